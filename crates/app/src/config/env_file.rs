//! The setting `envFile` of VS Code and Cursor: a file with environment variables for a server.

use std::path::Path;

use serde_json::{Map, Value};
use switchboard_mcp_client::config::ENV_FILE;

use super::{error::Problem, files::remove_os_error_code};

/// Replaces the key `envFile` of an MCP server by the variables in that file. Variables in `env`
/// take precedence over the file. A relative path is relative to the workspace.
pub(super) fn add_env_file_variables(server: &mut Value, workspace: &Path) -> Result<(), Problem> {
    let Some(fields) = server.as_object_mut() else {
        return Ok(());
    };
    let Some(Value::String(file)) = fields.get(ENV_FILE) else {
        return Ok(());
    };
    let file = workspace.join(file);
    let unreadable = |reason: String| Problem::EnvFile {
        file: file.clone(),
        reason,
    };
    let text = std::fs::read_to_string(&file);
    let text = text.map_err(|error| unreadable(remove_os_error_code(error).to_string()))?;
    let mut variables = parse_variables(&text).map_err(unreadable)?;
    fields.shift_remove(ENV_FILE);
    let env = fields.entry("env").or_insert(Value::Null);
    match env {
        Value::Object(given) => {
            variables.extend(std::mem::take(given));
            *given = variables;
        }
        Value::Null => *env = Value::Object(variables),
        _ => {}
    }
    Ok(())
}

/// Parses an environment file: lines of the form `NAME=VALUE`, with an optional `export`. `#`
/// starts a comment. A value may be in single or double quotes.
fn parse_variables(text: &str) -> Result<Map<String, Value>, String> {
    let mut variables = Map::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
            .ok_or_else(|| format!("line {number} is not of the form NAME=VALUE"))?;
        variables.insert(name.to_owned(), Value::String(unquote_value(value)));
    }
    Ok(variables)
}

fn unquote_value(value: &str) -> String {
    for quote in ['\'', '"'] {
        let inside = value
            .strip_prefix(quote)
            .and_then(|rest| rest.rsplit_once(quote));
        if let Some((inside, rest)) = inside
            && (rest.is_empty() || rest.trim_start().starts_with('#'))
        {
            return match quote {
                '"' => inside.replace("\\n", "\n").replace("\\\"", "\""),
                _ => inside.to_owned(),
            };
        }
    }
    let end = value.find(" #").unwrap_or(value.len());
    value[..end].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn env_files_are_parsed_like_in_editors() {
        let text = "\u{feff}# comment\n\nA=1\nexport B = two words # comment\nC='x # \
                    y'\r\nD=\"a\\nb \\\"c\\\"\" # d\n\
                    E=\nF=a=b#c\nG=\"open\n";
        let expected = json!({
            "A": "1", "B": "two words", "C": "x # y", "D": "a\nb \"c\"", "E": "", "F": "a=b#c", "G": "\"open",
        });
        assert_eq!(Value::Object(parse_variables(text).unwrap()), expected);
        for wrong in ["A", "=1", "A B=1"] {
            let error = parse_variables(&format!("X=secret-1\n{wrong}")).unwrap_err();
            assert_eq!(error, "line 2 is not of the form NAME=VALUE");
        }
    }
}
