//! `${VAR}` and `${VAR:-default}` in configured strings.

use serde_json::Value;

use super::error::Problem;
use crate::environment::Environment;

/// Fills in every string of `value`; keys stay as they are.
pub(super) fn fill(value: &mut Value, environment: &Environment) -> Result<(), Problem> {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                *text = filled(text, environment)?;
            }
            Ok(())
        }
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| fill(item, environment)),
        Value::Object(fields) => fields
            .values_mut()
            .try_for_each(|field| fill(field, environment)),
        _ => Ok(()),
    }
}

/// A default reaches to the next `}` and is taken as it stands. `$${` is a literal `${`. A variable
/// that is set but empty takes the default, as in a shell.
fn filled(text: &str, environment: &Environment) -> Result<String, Problem> {
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
        if !is_name(name) {
            return Err(Problem::BadVariable {
                name: name.to_owned(),
            });
        }
        match environment.get(name).or(default) {
            Some(value) => result.push_str(value),
            None => {
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
    use super::*;

    fn fill_in(text: &str) -> Result<String, Problem> {
        filled(text, &Environment::of([("KEY", "k"), ("EMPTY", "")]))
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
        ] {
            assert_eq!(fill_in(text).unwrap(), expected, "{text}");
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
            let error = fill_in(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn values_that_look_like_variables_are_not_filled_in_again() {
        let environment = Environment::of([("A", "${B}"), ("B", "b")]);
        assert_eq!(filled("${A}", &environment).unwrap(), "${B}");
    }
}
