//! Targets of references within a schema.

use std::{borrow::Cow, collections::HashMap};

use serde_json::Value;

use crate::schema::{
    keywords::escaped,
    rules::{MAX_DEPTH, MAX_NODES},
};

/// The target of a reference.
pub(super) enum Target<'a> {
    Root,
    /// A pointer in the root, and its value.
    At(String, &'a Value),
    /// Another document.
    External,
    Missing,
}

/// Returns the target of `#` or `#/…` without escapes, the most common references.
pub(super) fn target_of_pointer<'a>(root: &'a Value, reference: &str) -> Option<Target<'a>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(Target::Root);
    }
    if !pointer.starts_with('/') || pointer.contains('%') {
        return None;
    }
    let target = root.pointer(pointer)?;
    Some(Target::At(pointer.to_owned(), target))
}

/// The subschemas with a name or an anchor, and their pointers.
#[derive(Debug, Default)]
pub(super) struct NamedSchemas<'a> {
    by_id: HashMap<&'a str, (String, &'a Value)>,
    by_anchor: HashMap<&'a str, (String, &'a Value)>,
}

impl<'a> NamedSchemas<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let mut schemas = Self::default();
        let mut nodes_left = MAX_NODES * 4;
        schemas.collect(root, "", 0, &mut nodes_left);
        schemas
    }

    fn collect(&mut self, value: &'a Value, at: &str, depth: usize, nodes_left: &mut usize) {
        *nodes_left = nodes_left.saturating_sub(1);
        if depth > MAX_DEPTH * 2 || *nodes_left == 0 {
            return;
        }
        let members: Box<dyn Iterator<Item = (Cow<'_, str>, &'a Value)>> = match value {
            Value::Object(map) => {
                for keyword in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                    let Some(Value::String(name)) = map.get(keyword) else {
                        continue;
                    };
                    // Drafts 4 to 7 write `$id: "#name"` for `$anchor`.
                    let (schemas, name) = match name.strip_prefix('#') {
                        Some(name) => (&mut self.by_anchor, name),
                        None if keyword.ends_with("nchor") => (&mut self.by_anchor, name.as_str()),
                        None => (&mut self.by_id, name.as_str()),
                    };
                    if !name.is_empty() {
                        schemas
                            .entry(name)
                            .or_insert_with(|| (at.to_owned(), value));
                    }
                }
                Box::new(
                    map.iter()
                        .map(|(name, value)| (escaped(name).into(), value)),
                )
            }
            Value::Array(list) => {
                let numbered = list.iter().enumerate();
                Box::new(numbered.map(|(index, value)| (index.to_string().into(), value)))
            }
            _ => return,
        };
        for (name, value) in members {
            if value.is_object() || value.is_array() {
                self.collect(value, &format!("{at}/{name}"), depth + 1, nodes_left);
            }
        }
    }

    pub(super) fn target(&self, root: &'a Value, reference: &str) -> Target<'a> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = match document {
            "" => Some((String::new(), root)),
            _ => self.document(root, document),
        };
        let Some((at, base)) = base else {
            return Target::External;
        };
        let target = if fragment.is_empty() {
            Some((at, base))
        } else if fragment.starts_with('/') {
            let fragment = percent_decoded(fragment);
            let target = base.pointer(&fragment);
            target.map(|target| (format!("{at}{fragment}"), target))
        } else {
            self.by_anchor.get(fragment).cloned()
        };
        match target {
            Some((at, _)) if at.is_empty() => Target::Root,
            Some((at, target)) => Target::At(at, target),
            None => Target::Missing,
        }
    }

    /// Finds a document within this one: by its `$id` or the end of it, or by the bare name of a
    /// definition, a common mistake.
    fn document(&self, root: &'a Value, document: &str) -> Option<(String, &'a Value)> {
        if let Some(found) = self.by_id.get(document) {
            return Some(found.clone());
        }
        if document.contains(':') || document.starts_with("//") {
            return None;
        }
        let is_end = |id: &str| {
            let rest = id.strip_suffix(document);
            rest.is_some_and(|rest| rest.ends_with('/'))
        };
        let mut by_end = self.by_id.iter().filter(|(id, _)| is_end(id));
        // Only a unique one, because the map has no order.
        if let (Some((_, found)), None) = (by_end.next(), by_end.next()) {
            return Some(found.clone());
        }
        ["$defs", "definitions"].into_iter().find_map(|group| {
            let found = root.get(group)?.get(document)?;
            Some((format!("/{group}/{}", escaped(document)), found))
        })
    }
}

/// Decodes `%20` and the like. Text that is not UTF-8 afterwards is returned unchanged.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let code = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        match code {
            Some(code) if first == b'%' => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
