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

    /// Returns the value of a variable that editors define. `None` for other variables.
    fn editor_value(self, name: &str) -> Option<Result<String, Problem>> {
        let lossy = |path: &Path| path.to_string_lossy().into_owned();
        let value = match name {
            "workspaceFolder" => Some(lossy(self.workspace)),
            "workspaceFolderBasename" => self.workspace.file_name().map(|it| lossy(it.as_ref())),
            "userHome" => ["HOME", "USERPROFILE"]
                .into_iter()
                .find_map(|name| self.environment.get(name))
                .map(str::to_owned),
            "pathSeparator" | "/" => Some(MAIN_SEPARATOR_STR.to_owned()),
            _ => return None,
        };
        Some(value.ok_or_else(|| Problem::UnsetVariable {
            name: name.to_owned(),
        }))
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
        if let Err(problem) = fill_in(&mut server, scope, used).and_then(|()| finish(&mut server)) {
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
    fill_in(value, scope, &mut used)?;
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
            section if name == "context" => fill_template(section, scope, &mut used)?,
            Value::Object(entries) if optional_sections.contains(&name.as_str()) => {
                let mut result = Ok(());
                entries.retain(|_, entry| match fill_in(entry, scope, &mut used) {
                    Err(Problem::UnsetVariable { .. }) => false,
                    Ok(()) => true,
                    Err(problem) => {
                        result = Err(problem);
                        true
                    }
                });
                result?;
            }
            section => fill_in(section, scope, &mut used)?,
        }
    }
    Ok(used)
}

/// Expands context values. The result is a template: a literal `$` is `$$`.
fn fill_template(
    value: &mut Value,
    scope: Scope<'_>,
    used: &mut Vec<SecretString>,
) -> Result<(), Problem> {
    for_each_text(value, &mut |text| {
        *text = template(text, scope, used)?;
        Ok(())
    })
}

fn template(text: &str, scope: Scope<'_>, used: &mut Vec<SecretString>) -> Result<String, Problem> {
    let mut result = String::new();
    let mut literal = |text: &str| {
        let filled = filled(text, scope, used);
        filled.map(|text| text.replace('$', "$$"))
    };
    let (mut begin, mut from) = (0, 0);
    while let Some(start) = text[from..].find("${").map(|at| from + at) {
        let inside = text[start + 2..].split_once('}').map(|(inside, _)| inside);
        let is_escaped = text[..start].ends_with('$');
        match inside.filter(|name| !is_escaped && ContextTemplate::is_placeholder(name)) {
            Some(name) => {
                result.push_str(&literal(&text[begin..start])?);
                begin = start + name.len() + 3;
                result.push_str(&text[start..begin]);
                from = begin;
            }
            None => from = start + 2,
        }
    }
    result.push_str(&literal(&text[begin..])?);
    Ok(result)
}

fn fill_in(
    value: &mut Value,
    scope: Scope<'_>,
    used: &mut Vec<SecretString>,
) -> Result<(), Problem> {
    for_each_text(value, &mut |text| {
        *text = filled(text, scope, used)?;
        Ok(())
    })
}

fn for_each_text(
    value: &mut Value,
    change: &mut impl FnMut(&mut String) -> Result<(), Problem>,
) -> Result<(), Problem> {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| for_each_text(item, change)),
        Value::Object(fields) => fields
            .values_mut()
            .try_for_each(|field| for_each_text(field, change)),
        _ => Ok(()),
    }
}

/// A default extends to the next `}`. `$${` is a literal `${`. A variable with an empty value uses
/// the default, as in a shell.
fn filled(text: &str, scope: Scope<'_>, used: &mut Vec<SecretString>) -> Result<String, Problem> {
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
        if let Some(value) = scope.editor_value(inside) {
            result.push_str(&value?);
            rest = after;
            continue;
        }
        if !is_name(name) {
            return Err(Problem::BadVariable {
                name: name.to_owned(),
            });
        }
        match (scope.environment.get(name), default) {
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
        let mut environment = Environment::of([("KEY", "k"), ("EMPTY", ""), ("HOME", "/home/ann")]);
        environment.working_dir = "/srv/project".into();
        filled(text, Scope::of(&environment), &mut Vec::new())
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
        let error = filled("${userHome}", Scope::of(&environment), &mut Vec::new()).unwrap_err();
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
            filled("${A}", Scope::of(&environment), &mut used).unwrap(),
            "${B}"
        );
        assert_eq!(used.len(), 1);
    }
}
