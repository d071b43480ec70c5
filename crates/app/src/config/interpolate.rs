//! Expands `${VAR}` and `${VAR:-default}` in strings, and the variables of editors in their own
//! files: `${env:VAR}`, `${userHome}`, `${workspaceFolder}`, `${workspaceFolderBasename}`,
//! `${pathSeparator}` and `${/}`.

use std::path::{MAIN_SEPARATOR_STR, Path};

use secrecy::SecretString;
use serde_json::Value;
use switchboard_mcp_client::config::{foreign_servers_mut, mark_unusable};
use switchboard_orchestration::tools::arguments::ContextTemplate;

use super::environment::Environment;
use super::error::Problem;

/// Variables that contain folders. Their values are common in output and not secret.
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

/// Sources of values.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) environment: &'a Environment,
    /// The folder that an editor would have opened.
    pub(super) workspace: &'a Path,
}

impl<'a> Scope<'a> {
    pub(super) fn of(environment: &'a Environment) -> Self {
        Self {
            environment,
            workspace: &environment.working_dir,
        }
    }

    /// Returns the value of `NAME`, `NAME:-default` or a variable that editors define. Values of
    /// variables are added to `used`. A variable with an empty value uses the default, as in a
    /// shell.
    fn value(self, inside: &str, used: &mut Vec<SecretString>) -> Result<String, Problem> {
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
            _ if !is_name(name) => {
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

/// Removes the servers in the form of other hosts from a document, expands each one and passes it
/// to `finish`. A server with an error becomes unusable and does not affect the others.
pub(super) fn take_foreign(
    document: &mut Value,
    scope: Scope<'_>,
    used: &mut Vec<SecretString>,
    finish: impl Fn(&mut Value) -> Result<(), Problem>,
) -> Vec<Value> {
    let take = |server: &mut Value| {
        let mut server = std::mem::take(server);
        if let Err(problem) =
            fill_in(&mut server, false, scope, used).and_then(|()| finish(&mut server))
        {
            mark_unusable(&mut server, problem.to_string());
        }
        server
    };
    foreign_servers_mut(document)
        .into_iter()
        .map(take)
        .collect()
}

/// Inserts the servers that [`take_foreign`] removed. Their values are not expanded again.
pub(super) fn put_back(document: &mut Value, servers: Vec<Value>) {
    for (place, server) in foreign_servers_mut(document).into_iter().zip(servers) {
        *place = server;
    }
}

/// Expands every string of `value`, but no keys. Returns the values of the used variables, which
/// may be secrets.
pub(super) fn fill(value: &mut Value, scope: Scope<'_>) -> Result<Vec<SecretString>, Problem> {
    let mut used = Vec::new();
    fill_in(value, false, scope, &mut used)?;
    Ok(used)
}

/// Expands the strings of a configuration file.
///
/// Entries of the sections `optional_sections` that need an unset variable are removed. The section
/// `context` keeps the placeholders that each run fills.
pub(super) fn fill_document(
    document: &mut Value,
    optional_sections: &[&str],
    scope: Scope<'_>,
) -> Result<Vec<SecretString>, Problem> {
    let mut used = Vec::new();
    let Value::Object(sections) = document else {
        return Ok(used);
    };
    for (name, section) in sections {
        match section {
            Value::Object(entries) if optional_sections.contains(&name.as_str()) => {
                let mut result = Ok(());
                entries.retain(|_, entry| match fill_in(entry, false, scope, &mut used) {
                    Err(Problem::UnsetVariable { .. }) => false,
                    Ok(()) => true,
                    Err(problem) => {
                        result = Err(problem);
                        true
                    }
                });
                result?;
            }
            section => fill_in(section, name == "context", scope, &mut used)?,
        }
    }
    Ok(used)
}

fn fill_in(
    value: &mut Value,
    is_template: bool,
    scope: Scope<'_>,
    used: &mut Vec<SecretString>,
) -> Result<(), Problem> {
    match value {
        Value::String(text) => *text = expand(text, is_template, scope, used)?,
        Value::Array(items) => {
            for item in items {
                fill_in(item, is_template, scope, used)?;
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                fill_in(field, is_template, scope, used)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Expands the variables of a text. A default extends to the next `}`. `$${` is a literal `${`.
///
/// A template keeps the placeholders that each run fills, and its literal `$` is `$$`.
fn expand(
    text: &str,
    is_template: bool,
    scope: Scope<'_>,
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
            result += &literal(&scope.value(inside, used)?);
        }
        rest = after;
    }
    result += &literal(rest);
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
        let mut environment = Environment::of([("KEY", "k"), ("EMPTY", ""), ("HOME", "/home/ann")]);
        environment.working_dir = "/srv/project".into();
        expand(text, false, Scope::of(&environment), &mut Vec::new())
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
    fn expansion_errors_name_the_variable() {
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
    fn context_values_keep_the_placeholders_of_runs() {
        let environment = Environment::of([("KEY", "k$1 ${session.id}"), ("A", "a")]);
        for (text, expected) in [
            ("${session.id}", "${session.id}"),
            ("${A}/${principal.user}-${A}", "a/${principal.user}-a"),
            ("Bearer ${client.token}", "Bearer ${client.token}"),
            // What a variable holds is literal, whatever it looks like.
            ("${KEY}", "k$$1 $${session.id}"),
            ("$${session.id}", "$${session.id}"),
            ("${NONE:-x}${session.id}", "x${session.id}"),
            ("cost: $5", "cost: $$5"),
        ] {
            let mut value = json!({"context": {"a": [text]}});
            fill_document(&mut value, &[], Scope::of(&environment)).unwrap();
            assert_eq!(value["context"]["a"], json!([expected]), "{text}");
        }
        for text in [
            "${session.name}",
            "${client.a-b}",
            "${NONE}",
            "${session.id",
        ] {
            let mut value = json!({"context": [text]});
            fill_document(&mut value, &[], Scope::of(&environment)).unwrap_err();
        }
    }

    #[test]
    fn entries_with_unset_variables_are_removed_from_optional_sections() {
        let environment = Environment::of([("A", "${B}")]);
        let scope = Scope::of(&environment);
        let document = json!({
            "mcp_servers": {"one": {"command": "${NONE}"}, "two": {"command": "${A}"}},
            "model": "m",
        });
        let mut value = document.clone();
        let used = fill_document(&mut value, &["mcp_servers", "providers"], scope).unwrap();
        assert_eq!(used.len(), 1);
        let left = json!({"mcp_servers": {"two": {"command": "${B}"}}, "model": "m"});
        assert_eq!(value, left);
        // Nowhere else, and only for this.
        let error = fill_document(&mut document.clone(), &[], scope).unwrap_err();
        assert!(error.to_string().contains("NONE"));
        let mut other = json!({"model": "${NONE}"});
        fill_document(&mut other, &["mcp_servers"], scope).unwrap_err();
        let mut open = json!({"mcp_servers": {"one": {"command": "${NONE"}}});
        fill_document(&mut open, &["mcp_servers"], scope).unwrap_err();
    }

    #[test]
    fn an_unknown_home_is_named() {
        let environment = Environment::default();
        let mut value = json!("${userHome}");
        let error = fill(&mut value, Scope::of(&environment)).unwrap_err();
        assert!(
            error.to_string().contains("`userHome` is not set"),
            "{error}"
        );
    }

    #[test]
    fn expanded_values_are_not_expanded_again() {
        let environment = Environment::of([("A", "${B}"), ("B", "b")]);
        let mut used = Vec::new();
        assert_eq!(
            expand("${A}", false, Scope::of(&environment), &mut used).unwrap(),
            "${B}"
        );
        assert_eq!(used.len(), 1);
    }
}
