//! The tools of a request, read once for ranking and filling.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::ToolDefinition;

use crate::{
    schema::{Kind, Param, output_fields, params},
    text::{document_terms, first_sentence, identifier_words, stem},
    thesaurus::is_generic,
};

/// One tool with everything that its definition says in words.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// The definition.
    pub(crate) definition: Arc<ToolDefinition>,
    /// Its parameters in order.
    pub(crate) params: Vec<Param>,
    /// The lower-case words of its own name, without the server's.
    pub(crate) name_words: Vec<String>,
    /// Their stems.
    pub(crate) name: Vec<String>,
    /// The stems of its title.
    pub(crate) title: Vec<String>,
    /// The stems of its description.
    pub(crate) about: Vec<String>,
    /// The stems of the values that its parameters are limited to.
    pub(crate) choices: Vec<String>,
    /// The stems of its result's fields.
    pub(crate) output: Vec<String>,
    /// The stems of its server's name.
    pub(crate) server: Vec<String>,
    /// It changes something, as far as is known.
    pub(crate) writes: bool,
    /// It says that it only reads, or its name does.
    pub(crate) reads: bool,
    /// It calls itself deprecated.
    pub(crate) deprecated: bool,
}

/// Verbs with which names of tools that change something begin.
const WRITING: &[&str] = &[
    "create", "add", "write", "update", "edit", "delete", "remove", "send", "set", "move",
    "rename", "open", "close", "post", "put", "insert", "commit", "reset", "checkout", "toggle",
    "trigger", "cancel", "book", "order", "pay", "submit", "register", "assign", "upload",
];

/// Verbs with which names of tools that only read begin.
const READING: &[&str] = &[
    "get",
    "list",
    "read",
    "search",
    "find",
    "show",
    "fetch",
    "lookup",
    "query",
    "count",
    "describe",
    "calculate",
    "compute",
    "convert",
    "check",
];

impl Tool {
    /// Reads a definition.
    pub(crate) fn new(definition: Arc<ToolDefinition>) -> Self {
        let (server, own) = own_name(&definition);
        let name_words = identifier_words(&own);
        let stems = |words: &[String]| words.iter().map(|word| stem(word)).collect::<Vec<_>>();
        let params = params(&definition.input_schema);
        let choices = params
            .iter()
            .flat_map(|param| &param.choices)
            .filter_map(Value::as_str)
            .flat_map(identifier_words)
            .map(|word| stem(&word))
            .collect();
        let output = definition
            .output_schema
            .as_ref()
            .map(output_terms)
            .unwrap_or_default();
        let title = definition
            .title
            .as_deref()
            .map(document_terms)
            .unwrap_or_default();
        let begins = |list: &[&str]| {
            name_words
                .iter()
                .take(2)
                .any(|word| list.contains(&word.as_str()))
        };
        // `add(a, b)` reckons; it adds nothing to anything.
        let reckons = !params.is_empty()
            && params
                .iter()
                .all(|param| matches!(param.kind, Kind::Number | Kind::Integer));
        let mut annotations = definition.annotations;
        if annotations.destructive == Some(true) {
            // Read-only and destructive at once is a contradiction, and to read too little harms none.
            annotations.read_only = annotations.read_only.filter(|read_only| !read_only);
        }
        let words = format!(
            "{} {}",
            definition.description,
            definition.title.as_deref().unwrap_or_default()
        );
        Self {
            writes: match annotations.read_only {
                Some(read_only) => !read_only,
                None => annotations.destructive == Some(true) || (begins(WRITING) && !reckons),
            },
            reads: annotations
                .read_only
                .unwrap_or_else(|| begins(READING) || reckons),
            deprecated: words.to_lowercase().contains("deprecated"),
            name: stems(&name_words),
            about: document_terms(&definition.description),
            server: stems(&identifier_words(&server)),
            params,
            name_words,
            title,
            choices,
            output,
            definition,
        }
    }

    /// The name under which it is called.
    pub(crate) fn id(&self) -> &str {
        &self.definition.name
    }

    /// The words of its name that tell it from other tools; all of them if none does.
    pub(crate) fn telling_name(&self) -> Vec<&String> {
        let telling: Vec<&String> = self.name.iter().filter(|stem| !is_generic(stem)).collect();
        if telling.is_empty() {
            self.name.iter().collect()
        } else {
            telling
        }
    }

    /// Whether a stem is in the tool's name, title or description.
    pub(crate) fn speaks_of(&self, stem: &str) -> bool {
        [&self.name, &self.title, &self.about]
            .iter()
            .any(|field| field.iter().any(|own| own == stem))
    }

    /// The names by which a person may call it exactly, longest first.
    pub(crate) fn exact_names(&self) -> Vec<String> {
        let mut names = vec![self.definition.name.clone()];
        let (server, own) = own_name(&self.definition);
        if !server.is_empty() {
            names.extend(["__", ".", "/", ":"].map(|joint| format!("{server}{joint}{own}")));
        }
        names.push(own);
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.dedup();
        names
    }

    /// What it does, in one line.
    pub(crate) fn summary(&self) -> String {
        let sentence = first_sentence(&self.definition.description);
        match (sentence.is_empty(), &self.definition.title) {
            (true, Some(title)) => title.clone(),
            _ => sentence,
        }
    }

    /// The parameter of this name.
    pub(crate) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// How many of its parameters count results.
    pub(crate) fn counts(&self) -> usize {
        self.params
            .iter()
            .filter(|param| param.kind == Kind::Count)
            .count()
    }
}

/// The server and the tool's own name. An alias without origin is taken apart at `__`.
fn own_name(definition: &ToolDefinition) -> (String, String) {
    match (&definition.origin, definition.name.rsplit_once("__")) {
        (Some(origin), _) => (origin.server.clone(), origin.tool.clone()),
        (None, Some((server, tool))) if !server.is_empty() && !tool.is_empty() => {
            (server.to_owned(), tool.to_owned())
        }
        (None, _) => (String::new(), definition.name.clone()),
    }
}

fn output_terms(schema: &Value) -> Vec<String> {
    let mut terms = Vec::new();
    for (path, field) in output_fields(schema) {
        if let Some(name) = path.last() {
            terms.extend(document_terms(name));
        }
        let about = field
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        terms.extend(document_terms(about));
    }
    terms
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_that_says_it_is_read_only_and_destructive_writes() {
        for (read_only, destructive, writes) in [
            (Some(true), None, false),
            (Some(true), Some(false), false),
            (Some(true), Some(true), true),
            (Some(false), None, true),
            (None, Some(true), true),
            (None, None, false),
        ] {
            let mut definition = ToolDefinition::new("get_it", "", json!({"type": "object"}));
            definition.annotations.read_only = read_only;
            definition.annotations.destructive = destructive;
            let tool = Tool::new(Arc::new(definition));
            assert_eq!(tool.writes, writes, "{read_only:?} {destructive:?}");
        }
    }
}
