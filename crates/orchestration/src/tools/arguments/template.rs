//! Context values with placeholders that are filled for each run.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use switchboard_domain::Principal;

use super::schema::LocatedSubschema;

/// The text that `Debug` prints instead of a secret value.
pub(super) const HIDDEN: &str = "[hidden]";
/// The prefix in the names of placeholders for client values, as in `${client.NAME}`.
const CLIENT: &str = "client.";
/// Maximum length of `NAME` in a placeholder `${client.NAME}`, in bytes. A longer name is an error.
const MAX_CLIENT_NAME: usize = 64;

/// A hidden tool input value with placeholders, which are filled for each run.
///
/// | placeholder | value |
/// |---|---|
/// | `${session.id}` | the id of the session; the id of the run if the run is in no session |
/// | `${principal.user}` | the user of the run; empty if there is only one user |
/// | `${principal.tenant}` | the tenant of the run; empty if there is only one tenant |
/// | `${client.NAME}` | the value that the client sends under `NAME` |
///
/// `$$` is a literal `$`. A text is omitted if one of its placeholders has no value. `Debug` prints
/// `[hidden]`.
#[derive(Clone, PartialEq, derive_more::Debug)]
#[debug("{}", HIDDEN)]
pub struct ContextTemplate(Value);

/// The session and the principal of one run. Their values replace placeholders.
#[derive(Clone)]
pub(super) struct RunPlaceholderValues {
    pub(super) session: String,
    pub(super) principal: Principal,
}

/// A part of a template's text: literal text or one placeholder.
enum TemplatePart {
    Literal(String),
    Session,
    User,
    Tenant,
    Client(String),
}

/// An error about a placeholder that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown placeholder `${{{0}}}` in a context value. Available: ${{session.id}}, \
     ${{principal.user}}, ${{principal.tenant}} and ${{client.NAME}}, with a NAME of letters, \
     digits and `_`"
)]
pub struct UnknownPlaceholder(pub String);

impl ContextTemplate {
    /// Creates a template from a JSON value. Returns an error if a string in the value contains an
    /// unknown placeholder.
    pub fn parse(value: &Value) -> Result<Self, UnknownPlaceholder> {
        let mut texts = Vec::new();
        visit_texts("", value, &mut |_, text| texts.push(text));
        let mut unknown = texts
            .into_iter()
            .filter_map(|text| split_placeholders(text).err());
        unknown.next().map_or_else(|| Ok(Self(value.clone())), Err)
    }

    /// Creates a template of an object that contains the session id under `key`.
    pub fn with_session_id(key: impl Into<String>) -> Self {
        Self(json!({key.into(): "${session.id}"}))
    }

    /// Returns whether `${name}` is a valid placeholder. `name` is the text between the braces.
    pub fn is_placeholder(name: &str) -> bool {
        parse_placeholder(name).is_some()
    }

    /// Returns the names of the client values for which the template has placeholders.
    pub fn client_value_names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        visit_texts("", &self.0, &mut |_, text| {
            names.extend(find_client_value_names(text));
        });
        names
    }

    /// Returns the texts of the template outside of placeholders, so that they can be redacted.
    /// They may be secrets.
    pub fn literal_texts(&self) -> Vec<String> {
        let mut literals = Vec::new();
        visit_texts("", &self.0, &mut |_, text| {
            literals.extend(
                split_valid_placeholders(text).filter_map(|piece| match piece {
                    TemplatePart::Literal(text) => Some(text),
                    _ => None,
                }),
            );
        });
        literals
    }

    /// Adds the values that must be redacted in tool results to `secrets`, as pairs of a name and a
    /// text. The texts are the literal texts of the template and the values of its placeholders in
    /// `client`. The name is the nearest JSON key, or `name` for a text outside of objects. A
    /// client value is also added under the name in its placeholder.
    ///
    /// The ids of sessions, users and tenants are not secrets.
    pub(super) fn collect_template_secrets(
        &self,
        name: &str,
        client: &Map<String, Value>,
        secrets: &mut Vec<(String, String)>,
    ) {
        visit_texts(name, &self.0, &mut |key, text| {
            let pieces: Vec<TemplatePart> = split_valid_placeholders(text).collect();
            // The redactor also redacts short texts if their name is typical of secrets, such as
            // `token`. A literal part of a longer text gets no name. Otherwise, a text such as
            // `Bearer ` before a placeholder would be redacted everywhere.
            let key_of_literal = if pieces.len() > 1 { "" } else { key };
            for piece in pieces {
                match piece {
                    TemplatePart::Literal(text) => secrets.push((key_of_literal.to_owned(), text)),
                    TemplatePart::Client(name) => {
                        if let Some(Value::String(text)) = client.get(&name) {
                            secrets.push((key.to_owned(), text.clone()));
                            secrets.push((name, text.clone()));
                        }
                    }
                    TemplatePart::Session | TemplatePart::User | TemplatePart::Tenant => {}
                }
            }
        });
    }

    /// Adds the members of the object `defaults` that this object does not have.
    pub(super) fn merge_defaults(mut self, defaults: &Self) -> Self {
        if let (Value::Object(entries), Value::Object(defaults)) = (&mut self.0, &defaults.0) {
            for (key, value) in defaults {
                entries.entry(key).or_insert_with(|| value.clone());
            }
        }
        self
    }

    /// Returns this value without the object members that `schemas` do not declare. All members
    /// stay if the schemas declare none or allow additional ones. A value that is not an object
    /// does not change. All `schemas` describe this value.
    ///
    /// Adds to `needed` the names of the client values that the required members depend on. If
    /// `is_required` is set and this value is a string, also adds the names in the placeholders of
    /// this string.
    pub(super) fn select_declared_members(
        &self,
        schemas: &[LocatedSubschema<'_>],
        is_required: bool,
        needed: &mut BTreeSet<String>,
    ) -> Self {
        if is_required {
            // The tool cannot be called without a required string, so the client values in the
            // placeholders of the string are needed. A list or an object only omits a string
            // without a value, so it adds no names.
            needed.extend(client_value_names_in_json(&self.0));
        }
        let Value::Object(members) = &self.0 else {
            return self.clone();
        };
        let others: Vec<&Value> = schemas
            .iter()
            .filter_map(|it| it.schema.get("additionalProperties"))
            .collect();
        let allows_others = if others.is_empty() {
            !schemas
                .iter()
                .any(|it| it.schema.contains_key("properties"))
        } else {
            others.iter().any(|others| **others != Value::Bool(false))
        };
        let mut part = Map::new();
        for (key, value) in members {
            if schemas.iter().any(|it| it.requires_property(key)) {
                needed.extend(client_value_names_in_json(value));
            }
            if allows_others || schemas.iter().any(|it| it.find_property(key).is_some()) {
                part.insert(key.clone(), value.clone());
            }
        }
        Self(Value::Object(part))
    }

    /// Replaces the placeholders with the values of a run. Returns `None` if the template is a
    /// string with a placeholder that has no value. Lists and objects omit such strings.
    pub(super) fn fill_placeholders(
        &self,
        scope: Option<&RunPlaceholderValues>,
        client: &Map<String, Value>,
    ) -> Option<Value> {
        fill_value_placeholders(&self.0, scope, client)
    }
}

/// Calls `visit` with the nearest JSON key and the content of each string in a JSON value. Items of
/// a list have the key of the list; strings outside of objects have `key`.
fn visit_texts<'v>(key: &'v str, value: &'v Value, visit: &mut dyn FnMut(&'v str, &'v str)) {
    match value {
        Value::String(text) => visit(key, text),
        Value::Array(items) => items.iter().for_each(|item| visit_texts(key, item, visit)),
        Value::Object(entries) => {
            for (key, item) in entries {
                visit_texts(key, item, visit);
            }
        }
        _ => {}
    }
}

fn fill_value_placeholders(
    value: &Value,
    scope: Option<&RunPlaceholderValues>,
    client: &Map<String, Value>,
) -> Option<Value> {
    match value {
        Value::String(text) => fill_text_placeholders(text, scope, client),
        Value::Array(items) => {
            let items = items
                .iter()
                .filter_map(|item| fill_value_placeholders(item, scope, client));
            Some(items.collect())
        }
        Value::Object(entries) => {
            let entries = entries.iter().filter_map(|(key, item)| {
                Some((key.clone(), fill_value_placeholders(item, scope, client)?))
            });
            Some(Value::Object(entries.collect()))
        }
        other => Some(other.clone()),
    }
}

fn fill_text_placeholders(
    text: &str,
    scope: Option<&RunPlaceholderValues>,
    client: &Map<String, Value>,
) -> Option<Value> {
    let pieces: Vec<TemplatePart> = split_valid_placeholders(text).collect();
    // If the text is exactly one placeholder, the client's value keeps its type, such as a number.
    if let [TemplatePart::Client(name)] = &*pieces {
        return client.get(name).cloned();
    }
    let mut filled = String::new();
    for piece in pieces {
        match piece {
            TemplatePart::Literal(literal) => filled.push_str(&literal),
            TemplatePart::Session => filled.push_str(&scope?.session),
            TemplatePart::User => filled.push_str(&scope?.principal.user),
            TemplatePart::Tenant => filled.push_str(&scope?.principal.tenant),
            TemplatePart::Client(name) => match client.get(&name)? {
                Value::String(value) => filled.push_str(value),
                value => filled.push_str(&value.to_string()),
            },
        }
    }
    Some(Value::String(filled))
}

/// Splits a text into literals and placeholders. Returns an error for an unknown placeholder.
fn split_placeholders(text: &str) -> Result<Vec<TemplatePart>, UnknownPlaceholder> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        literal.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let placeholder = after.strip_prefix('{').and_then(|it| it.split_once('}'));
        if let Some((name, after)) = placeholder {
            if !literal.is_empty() {
                pieces.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            pieces
                .push(parse_placeholder(name).ok_or_else(|| UnknownPlaceholder(name.to_owned()))?);
            rest = after;
        } else {
            literal.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(TemplatePart::Literal(literal));
    }
    Ok(pieces)
}

/// Splits a text of a parsed template, whose placeholders are valid.
fn split_valid_placeholders(text: &str) -> impl Iterator<Item = TemplatePart> {
    split_placeholders(text).unwrap_or_default().into_iter()
}

fn parse_placeholder(name: &str) -> Option<TemplatePart> {
    if let Some(name) = name.strip_prefix(CLIENT) {
        let is_name = !name.is_empty()
            && name.len() <= MAX_CLIENT_NAME
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        return is_name.then(|| TemplatePart::Client(name.to_owned()));
    }
    match name {
        "session.id" => Some(TemplatePart::Session),
        "principal.user" => Some(TemplatePart::User),
        "principal.tenant" => Some(TemplatePart::Tenant),
        _ => None,
    }
}

fn find_client_value_names(text: &str) -> impl Iterator<Item = String> {
    split_valid_placeholders(text).filter_map(|piece| match piece {
        TemplatePart::Client(name) => Some(name),
        _ => None,
    })
}

fn client_value_names_in_json(value: &Value) -> impl Iterator<Item = String> {
    value.as_str().into_iter().flat_map(find_client_value_names)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
