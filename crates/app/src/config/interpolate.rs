//! `${VAR}` and `${VAR:-default}` in configured strings, and what editors write in their own files:
//! `${env:VAR}` and `${workspaceFolder}`.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::error::Problem;
use crate::environment::Environment;

/// Variables that say where things are. Their values are in every second line of a server's output,
/// and no secret.
const PLACES: [&str; 8] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PWD",
    "PATH",
    "TMPDIR",
    "USERPROFILE",
    "APPDATA",
];

/// Fills in every string of `value`; keys stay as they are. Gives the values of the variables that
/// were used: any may be a secret.
pub(super) fn fill(
    value: &mut Value,
    environment: &Environment,
) -> Result<Vec<SecretString>, Problem> {
    let mut used = Vec::new();
    fill_in(value, environment, &mut used)?;
    Ok(used)
}

/// The same, but that entries of the maps under the keys `left_out` are taken out where they need a variable that is
/// not set.
pub(super) fn fill_but(
    value: &mut Value,
    left_out: &[&str],
    environment: &Environment,
) -> Result<Vec<SecretString>, Problem> {
    let mut used = Vec::new();
    // What is filled in is not looked at again: values may look like variables.
    let mut done = Vec::new();
    if let Value::Object(fields) = value {
        for (key, section) in fields.iter_mut() {
            let Value::Object(entries) = section else {
                continue;
            };
            if !left_out.contains(&key.as_str()) {
                continue;
            }
            let mut kept = Map::new();
            for (name, mut entry) in std::mem::take(entries) {
                match fill_in(&mut entry, environment, &mut used) {
                    Ok(()) => {
                        kept.insert(name, entry);
                    }
                    Err(Problem::UnsetVariable { .. }) => {}
                    Err(problem) => return Err(problem),
                }
            }
            done.push((key.clone(), kept));
        }
    }
    fill_in(value, environment, &mut used)?;
    if let Value::Object(fields) = value {
        for (key, kept) in done {
            // In its place: the key is there.
            fields.insert(key, Value::Object(kept));
        }
    }
    Ok(used)
}

fn fill_in(
    value: &mut Value,
    environment: &Environment,
    used: &mut Vec<SecretString>,
) -> Result<(), Problem> {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                *text = filled(text, environment, used)?;
            }
            Ok(())
        }
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| fill_in(item, environment, used)),
        Value::Object(fields) => fields
            .values_mut()
            .try_for_each(|field| fill_in(field, environment, used)),
        _ => Ok(()),
    }
}

/// A default reaches to the next `}` and is taken as it stands. `$${` is a literal `${`. A variable
/// that is set but empty takes the default, as in a shell.
fn filled(
    text: &str,
    environment: &Environment,
    used: &mut Vec<SecretString>,
) -> Result<String, Problem> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        if let Some(before) = before.strip_suffix('$') {
            result.push_str(before);
            result.push_str("${");
            rest = &from[2..];
            continue;
        }
        result.push_str(before);
        let Some((inside, after)) = from[2..].split_once('}') else {
            return Err(Problem::OpenVariable);
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if name == "workspaceFolder" {
            result.push_str(&environment.working_dir.to_string_lossy());
            rest = after;
            continue;
        }
        if !is_name(name) {
            return Err(Problem::BadVariable {
                name: name.to_owned(),
            });
        }
        match (environment.get(name), default) {
            (Some(value), _) => {
                result.push_str(value);
                if !PLACES.contains(&name) {
                    used.push(SecretString::from(value));
                }
            }
            (None, Some(default)) => result.push_str(default),
            (None, None) => {
                return Err(Problem::UnsetVariable {
                    name: name.to_owned(),
                });
            }
        }
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill_text(text: &str) -> Result<String, Problem> {
        let mut environment = Environment::of([("KEY", "k"), ("EMPTY", "")]);
        environment.working_dir = "/project".into();
        filled(text, &environment, &mut Vec::new())
    }

    #[test]
    fn variables_and_defaults_are_filled_in() {
        for (text, expected) in [
            ("${KEY}", "k"),
            ("Bearer ${KEY}!", "Bearer k!"),
            ("${KEY}${KEY}", "kk"),
            ("${NONE:-http://localhost:1}", "http://localhost:1"),
            ("${EMPTY:-other}", "other"),
            ("${NONE:-}", ""),
            ("${KEY:-other}", "k"),
            ("$KEY and $ and {x}", "$KEY and $ and {x}"),
            ("$${KEY}", "${KEY}"),
            ("${env:KEY}", "k"),
            ("${workspaceFolder}/a", "/project/a"),
        ] {
            assert_eq!(fill_text(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        for (text, expected) in [
            ("${NONE}", "NONE"),
            ("${EMPTY}", "EMPTY"),
            ("${input:token}", "input:token"),
            ("${}", "``"),
            ("${KEY", "}"),
        ] {
            let error = fill_text(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn entries_that_lack_a_variable_are_left_out_where_they_may_be() {
        let environment = Environment::of([("A", "${B}")]);
        let document = json!({
            "mcp_servers": {"one": {"command": "${NONE}"}, "two": {"command": "${A}"}},
            "model": "m",
        });
        let mut value = document.clone();
        let used = fill_but(&mut value, &["mcp_servers", "providers"], &environment).unwrap();
        assert_eq!(used.len(), 1);
        let left = json!({"mcp_servers": {"two": {"command": "${B}"}}, "model": "m"});
        assert_eq!(value, left);
        // Nowhere else, and only for this.
        let error = fill_but(&mut document.clone(), &[], &environment).unwrap_err();
        assert!(error.to_string().contains("NONE"));
        let mut other = json!({"model": "${NONE}"});
        fill_but(&mut other, &["mcp_servers"], &environment).unwrap_err();
        let mut open = json!({"mcp_servers": {"one": {"command": "${NONE"}}});
        fill_but(&mut open, &["mcp_servers"], &environment).unwrap_err();
    }

    #[test]
    fn values_that_look_like_variables_are_not_filled_in_again() {
        let environment = Environment::of([("A", "${B}"), ("B", "b")]);
        let mut used = Vec::new();
        assert_eq!(filled("${A}", &environment, &mut used).unwrap(), "${B}");
        assert_eq!(used.len(), 1);
    }
}
