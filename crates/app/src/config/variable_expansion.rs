//! Expands `${VAR}` and `${VAR:-default}` in strings, and the variables of editors in their own
//! files: `${env:VAR}`, `${userHome}`, `${workspaceFolder}`, `${workspaceFolderBasename}`,
//! `${pathSeparator}` and `${/}`.

use std::path::{MAIN_SEPARATOR_STR, Path};

use secrecy::SecretString;
use serde_json::Value;
use switchboard_mcp_client::config::{mark_server_unusable, other_host_servers_mut};
use switchboard_orchestration::tools::arguments::ContextTemplate;

use super::{environment::Environment, error::Problem};

/// Environment variables whose values are not redacted, because folders and user names are not
/// secret.
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

/// The sources of values for `${…}`: the environment variables and the workspace folder.
#[derive(Clone, Copy)]
pub(super) struct VariableScope<'a> {
    pub(super) environment: &'a Environment,
    /// Folder that `${workspaceFolder}` expands to.
    pub(super) workspace: &'a Path,
}

impl<'a> VariableScope<'a> {
    pub(super) fn from_environment(environment: &'a Environment) -> Self {
        Self {
            environment,
            workspace: &environment.working_dir,
        }
    }

    /// Returns the value for `inside`, the text in `${…}`: `NAME`, `NAME:-default` or an editor
    /// variable such as `workspaceFolder`. The default replaces an unset or empty variable, as in a
    /// shell. Returns an error for such a variable without a default. Adds the values of
    /// environment variables to `used`.
    fn resolve_variable(
        self,
        inside: &str,
        used: &mut Vec<SecretString>,
    ) -> Result<String, Problem> {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let lossy = |path: &Path| path.to_string_lossy().into_owned();
        let value = match inside {
            "workspaceFolder" => Some(lossy(self.workspace)),
            "workspaceFolderBasename" => self.workspace.file_name().map(|it| lossy(it.as_ref())),
            "userHome" => {
                let home = self.environment.get("HOME");
                let home = home.or_else(|| self.environment.get("USERPROFILE"));
                home.map(str::to_owned)
            }
            "pathSeparator" | "/" => Some(MAIN_SEPARATOR_STR.to_owned()),
            _ if !is_variable_name(name) => {
                return Err(Problem::BadVariable {
                    name: name.to_owned(),
                });
            }
            _ => {
                let value = self.environment.get(name);
                if let Some(value) = value
                    && !PLACES.contains(&name)
                {
                    used.push(SecretString::from(value));
                }
                value.or(default).map(str::to_owned)
            }
        };
        value.ok_or_else(|| Problem::UnsetVariable {
            name: name.to_owned(),
        })
    }
}

/// Removes the MCP servers in lists of other MCP hosts, such as `mcpServers`, from a document.
/// Expands the variables of each server and calls `finish` for it. An error makes the server
/// unusable. Returns the servers, so that [`insert_mcp_json_servers`] can insert them again.
pub(super) fn expand_mcp_json_servers(
    document: &mut Value,
    scope: VariableScope<'_>,
    used: &mut Vec<SecretString>,
    finish: impl Fn(&mut Value) -> Result<(), Problem>,
) -> Vec<Value> {
    let take = |server: &mut Value| {
        let mut server = std::mem::take(server);
        if let Err(problem) =
            expand_strings(&mut server, false, scope, used).and_then(|()| finish(&mut server))
        {
            mark_server_unusable(&mut server, problem.to_string());
        }
        server
    };
    let servers = other_host_servers_mut(document).into_iter();
    servers.map(take).collect()
}

/// Inserts the servers that [`expand_mcp_json_servers`] returned at their places in the document.
/// Callers first expand the rest of the document, so that the values of the servers are not
/// expanded twice.
pub(super) fn insert_mcp_json_servers(document: &mut Value, servers: Vec<Value>) {
    for (place, server) in other_host_servers_mut(document).into_iter().zip(servers) {
        *place = server;
    }
}

/// Expands the variables in a configuration file and returns their values, which may be secrets. In
/// the section `context`, placeholders such as `${session.id}` are kept, because each run fills
/// them.
pub(super) fn expand_config_strings(
    document: &mut Value,
    scope: VariableScope<'_>,
) -> Result<Vec<SecretString>, Problem> {
    let mut used = Vec::new();
    for (name, section) in document.as_object_mut().into_iter().flatten() {
        expand_strings(section, name == "context", scope, &mut used)?;
    }
    Ok(used)
}

/// Expands the variables in all strings of `value`, except in keys. Adds the values of the
/// variables, which may be secrets, to `used`.
pub(super) fn expand_strings(
    value: &mut Value,
    is_template: bool,
    scope: VariableScope<'_>,
    used: &mut Vec<SecretString>,
) -> Result<(), Problem> {
    match value {
        Value::String(text) => *text = expand_text(text, is_template, scope, used)?,
        Value::Array(items) => {
            for item in items {
                expand_strings(item, is_template, scope, used)?;
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                expand_strings(field, is_template, scope, used)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Expands the variables in a text and adds their values to `used`. A default value ends at the
/// next `}`. `$${` is a literal `${`.
///
/// With `is_template`, the result is the text of a [`ContextTemplate`]: placeholders such as
/// `${session.id}` are kept, and a literal `$` becomes `$$`.
fn expand_text(
    text: &str,
    is_template: bool,
    scope: VariableScope<'_>,
    used: &mut Vec<SecretString>,
) -> Result<String, Problem> {
    let literal = |text: &str| {
        if is_template {
            text.replace('$', "$$")
        } else {
            text.to_owned()
        }
    };
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            result += &literal(before);
            result += &literal("${");
            rest = after;
            continue;
        }
        result += &literal(before);
        let (inside, after) = after.split_once('}').ok_or(Problem::OpenVariable)?;
        if is_template && ContextTemplate::is_placeholder(inside) {
            result.extend(["${", inside, "}"]);
        } else {
            result += &literal(&scope.resolve_variable(inside, used)?);
        }
        rest = after;
    }
    result += &literal(rest);
    Ok(result)
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill_text(text: &str) -> Result<String, Problem> {
        let mut environment =
            Environment::from_variables([("KEY", "k"), ("EMPTY", ""), ("HOME", "/home/ann")]);
        environment.working_dir = "/srv/project".into();
        expand_text(
            text,
            false,
            VariableScope::from_environment(&environment),
            &mut Vec::new(),
        )
    }

    #[test]
    fn variables_and_defaults_are_expanded() {
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
            ("${workspaceFolder}/a", "/srv/project/a"),
            ("${workspaceFolderBasename}-a", "project-a"),
            ("${userHome}/a", "/home/ann/a"),
            (
                "a${pathSeparator}b${/}c",
                &format!("a{MAIN_SEPARATOR_STR}b{MAIN_SEPARATOR_STR}c"),
            ),
        ] {
            assert_eq!(fill_text(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn context_values_keep_the_placeholders_of_runs() {
        let environment = Environment::from_variables([("KEY", "k$1 ${session.id}"), ("A", "a")]);
        for (text, expected) in [
            ("${session.id}", "${session.id}"),
            ("${A}/${principal.user}-${A}", "a/${principal.user}-a"),
            ("Bearer ${client.token}", "Bearer ${client.token}"),
            // A `${…}` in the value of a variable is literal text and is not expanded.
            ("${KEY}", "k$$1 $${session.id}"),
            ("$${session.id}", "$${session.id}"),
            ("${NONE:-x}${session.id}", "x${session.id}"),
            ("cost: $5", "cost: $$5"),
        ] {
            let mut value = json!({"context": {"a": [text]}});
            expand_config_strings(&mut value, VariableScope::from_environment(&environment))
                .unwrap();
            assert_eq!(value["context"]["a"], json!([expected]), "{text}");
        }
        for text in [
            "${session.name}",
            "${client.a-b}",
            "${NONE}",
            "${session.id",
        ] {
            let mut value = json!({"context": [text]});
            expand_config_strings(&mut value, VariableScope::from_environment(&environment))
                .unwrap_err();
        }
    }

    #[test]
    fn expanded_values_are_not_expanded_again() {
        let environment = Environment::from_variables([("A", "${B}"), ("B", "b")]);
        let mut used = Vec::new();
        assert_eq!(
            expand_text(
                "${A}",
                false,
                VariableScope::from_environment(&environment),
                &mut used
            )
            .unwrap(),
            "${B}"
        );
        assert_eq!(used.len(), 1);
    }
}
