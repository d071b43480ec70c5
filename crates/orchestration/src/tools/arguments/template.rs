//! Context values with placeholders that are filled for each run.

use std::{collections::BTreeSet, fmt};

use serde_json::{Map, Value};

use super::{
    context::{ContextScope, HIDDEN},
    schema::{applied, escaped, requires},
};

/// The placeholders that the run fills.
const RUN_PLACEHOLDERS: [&str; 3] = ["session.id", "principal.user", "principal.tenant"];
/// The prefix of placeholders that a client fills.
const CLIENT: &str = "client.";
/// Maximum length of a client value's name, in bytes.
const MAX_CLIENT_NAME: usize = 64;

/// A context value with placeholders.
///
/// | placeholder | value |
/// |---|---|
/// | `${session.id}` | the id of the session; the id of the run if the run is in no session |
/// | `${principal.user}` | the user of the run; empty if there is only one |
/// | `${principal.tenant}` | the tenant of the run; empty if there is only one |
/// | `${client.NAME}` | the value that the client sends under `NAME` |
///
/// `$$` is a literal `$`. A text with a placeholder without a value is omitted. `Debug` prints
/// `[hidden]`.
#[derive(Clone, PartialEq)]
pub struct ContextTemplate(Node);

#[derive(Clone, PartialEq)]
enum Node {
    /// A number, a boolean or null.
    Fixed(Value),
    Text(Vec<Piece>),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

#[derive(Clone, PartialEq)]
enum Piece {
    Literal(String),
    Session,
    User,
    Tenant,
    Client(String),
}

/// A placeholder that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`${{{0}}}` is not a placeholder of a context value; there are ${{session.id}}, ${{principal.user}}, \
     ${{principal.tenant}} and ${{client.NAME}}, with a NAME of letters, digits and `_`"
)]
pub struct UnknownPlaceholder(pub String);

impl ContextTemplate {
    /// Parses the placeholders in every text of `value`.
    pub fn parse(value: &Value) -> Result<Self, UnknownPlaceholder> {
        node(value).map(Self)
    }

    /// Returns a template without placeholders.
    pub fn literal(value: Value) -> Self {
        Self(literal(value))
    }

    /// Returns an object that has the id of the session under `key`.
    pub fn session_id_under(key: impl Into<String>) -> Self {
        Self(Node::Object(vec![(
            key.into(),
            Node::Text(vec![Piece::Session]),
        )]))
    }

    /// Returns whether `name`, the text between `${` and `}`, is a placeholder.
    pub fn is_placeholder(name: &str) -> bool {
        piece(name).is_some()
    }

    /// Returns the names of the values that a client may send.
    pub fn client_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.0.each_text(&mut |_, pieces| {
            names.extend(pieces.iter().filter_map(Piece::client));
        });
        names
    }

    /// Returns the literal texts, which may be secrets.
    pub fn literals(&self) -> Vec<&str> {
        let mut literals = Vec::new();
        self.0.each_text(&mut |_, pieces| {
            literals.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Literal(text) => Some(text.as_str()),
                _ => None,
            }));
        });
        literals
    }

    /// Calls `secret` with the key and the text of everything that results must not show.
    ///
    /// The ids of sessions, users and tenants are not secrets.
    pub(super) fn each_secret(
        &self,
        name: &str,
        client: &Map<String, Value>,
        secret: &mut dyn FnMut(&str, &str),
    ) {
        self.0.each_text_of(name, &mut |key, pieces| {
            for piece in pieces {
                match piece {
                    // A part of a longer text, such as `Bearer `, is an ordinary word.
                    Piece::Literal(text) if pieces.len() > 1 => secret("", text),
                    Piece::Literal(text) => secret(key, text),
                    Piece::Client(name) => {
                        if let Some(Value::String(text)) = client.get(name) {
                            secret(key, text);
                            secret(name, text);
                        }
                    }
                    Piece::Session | Piece::User | Piece::Tenant => {}
                }
            }
        });
    }

    /// Adds the entries of `defaults` that this object does not have.
    pub(super) fn or_defaults(mut self, defaults: &Self) -> Self {
        if let (Node::Object(entries), Node::Object(defaults)) = (&mut self.0, &defaults.0) {
            for (key, value) in defaults {
                if !entries.iter().any(|(name, _)| name == key) {
                    entries.push((key.clone(), value.clone()));
                }
            }
        }
        self
    }

    /// Returns the part that the schemas at `pointers` name. All of them describe this value.
    ///
    /// Adds the client values that a required property depends on to `needed`.
    pub(super) fn named_part(
        &self,
        root: &Value,
        pointers: &[String],
        needed: &mut BTreeSet<String>,
    ) -> Self {
        Self(named_part(root, pointers, &self.0, needed))
    }

    /// Adds the client values that this text depends on.
    pub(super) fn depends_on(&self, needed: &mut BTreeSet<String>) {
        self.0.depends_on(needed);
    }

    /// Returns the value for a run; `None` if it is a text with a placeholder that has no value.
    pub(super) fn fill(
        &self,
        scope: Option<&ContextScope>,
        client: &Map<String, Value>,
    ) -> Option<Value> {
        self.0.fill(scope, client)
    }
}

impl fmt::Debug for ContextTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Piece {
    fn client(&self) -> Option<&str> {
        match self {
            Self::Client(name) => Some(name),
            _ => None,
        }
    }
}

impl Node {
    fn each_text<'n>(&'n self, visit: &mut dyn FnMut(&'n str, &'n [Piece])) {
        self.each_text_of("", visit);
    }

    fn each_text_of<'n>(&'n self, key: &'n str, visit: &mut dyn FnMut(&'n str, &'n [Piece])) {
        match self {
            Self::Fixed(_) => {}
            Self::Text(pieces) => visit(key, pieces),
            Self::List(items) => items.iter().for_each(|item| item.each_text_of(key, visit)),
            Self::Object(entries) => {
                for (key, item) in entries {
                    item.each_text_of(key, visit);
                }
            }
        }
    }

    /// Adds the client values that a text depends on. Lists and objects stay without them.
    fn depends_on(&self, needed: &mut BTreeSet<String>) {
        if let Self::Text(pieces) = self {
            needed.extend(pieces.iter().filter_map(Piece::client).map(str::to_owned));
        }
    }

    fn fill(&self, scope: Option<&ContextScope>, client: &Map<String, Value>) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Text(pieces) => text(pieces, scope, client),
            Self::List(items) => {
                let items = items.iter().filter_map(|item| item.fill(scope, client));
                Some(Value::Array(items.collect()))
            }
            Self::Object(entries) => {
                let entries = entries
                    .iter()
                    .filter_map(|(key, item)| Some((key.clone(), item.fill(scope, client)?)));
                Some(Value::Object(entries.collect()))
            }
        }
    }
}

fn text(
    pieces: &[Piece],
    scope: Option<&ContextScope>,
    client: &Map<String, Value>,
) -> Option<Value> {
    // A client's number stays a number if it is the whole text.
    if let [Piece::Client(name)] = pieces {
        return client.get(name).cloned();
    }
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Session => text.push_str(&scope?.session),
            Piece::User => text.push_str(&scope?.principal.user),
            Piece::Tenant => text.push_str(&scope?.principal.tenant),
            Piece::Client(name) => match client.get(name)? {
                Value::String(value) => text.push_str(value),
                value => text.push_str(&value.to_string()),
            },
        }
    }
    Some(Value::String(text))
}

fn node(value: &Value) -> Result<Node, UnknownPlaceholder> {
    Ok(match value {
        Value::String(text) => Node::Text(pieces(text)?),
        Value::Array(items) => Node::List(items.iter().map(node).collect::<Result<_, _>>()?),
        Value::Object(object) => {
            let entries = object
                .iter()
                .map(|(key, value)| Ok((key.clone(), node(value)?)));
            Node::Object(entries.collect::<Result<_, _>>()?)
        }
        other => Node::Fixed(other.clone()),
    })
}

fn literal(value: Value) -> Node {
    match value {
        Value::String(text) => Node::Text(vec![Piece::Literal(text)]),
        Value::Array(items) => Node::List(items.into_iter().map(literal).collect()),
        Value::Object(object) => {
            let entries = object.into_iter();
            Node::Object(entries.map(|(key, value)| (key, literal(value))).collect())
        }
        other => Node::Fixed(other),
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, UnknownPlaceholder> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        literal.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        if let Some(after) = after.strip_prefix('$') {
            literal.push('$');
            rest = after;
        } else if let Some((name, after)) =
            after.strip_prefix('{').and_then(|it| it.split_once('}'))
        {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(piece(name).ok_or_else(|| UnknownPlaceholder(name.to_owned()))?);
            rest = after;
        } else {
            literal.push('$');
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

fn piece(name: &str) -> Option<Piece> {
    if let Some(name) = name.strip_prefix(CLIENT) {
        let is_name = !name.is_empty()
            && name.len() <= MAX_CLIENT_NAME
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        return is_name.then(|| Piece::Client(name.to_owned()));
    }
    let position = RUN_PLACEHOLDERS.iter().position(|known| *known == name)?;
    Some([Piece::Session, Piece::User, Piece::Tenant][position].clone())
}

fn named_part(
    root: &Value,
    pointers: &[String],
    value: &Node,
    needed: &mut BTreeSet<String>,
) -> Node {
    let schemas: Vec<_> = pointers
        .iter()
        .flat_map(|pointer| applied(root, pointer))
        .collect();
    let below = |keyword: &str| -> Vec<String> {
        let having = schemas.iter().filter(|a| a.schema.contains_key(keyword));
        having.map(|a| format!("{}/{keyword}", a.pointer)).collect()
    };
    match value {
        Node::Object(entries) => {
            let lists = below("properties");
            let further: Vec<&Value> = schemas
                .iter()
                .filter_map(|applied| applied.schema.get("additionalProperties"))
                .collect();
            let closed = further
                .iter()
                .any(|further| **further == Value::Bool(false));
            let takes_others = further
                .iter()
                .any(|further| **further != Value::Bool(false))
                || schemas
                    .iter()
                    .any(|applied| applied.schema.contains_key("patternProperties"));
            let open = takes_others || (lists.is_empty() && !closed);
            let mut part = Vec::new();
            for (key, value) in entries {
                if schemas.iter().any(|it| requires(it.schema, key)) {
                    value.depends_on(needed);
                }
                let step = escaped(key);
                let named: Vec<String> = lists
                    .iter()
                    .map(|list| format!("{list}/{step}"))
                    .filter(|pointer| root.pointer(pointer).is_some())
                    .collect();
                if !named.is_empty() {
                    part.push((key.clone(), named_part(root, &named, value, needed)));
                } else if open {
                    part.push((key.clone(), value.clone()));
                }
            }
            Node::Object(part)
        }
        Node::List(items) => {
            let of_items = below("items");
            let items = items.iter();
            Node::List(
                items
                    .map(|item| named_part(root, &of_items, item, needed))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
