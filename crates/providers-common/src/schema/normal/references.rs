//! Where references lead, within the schema only.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::rules::{MAX_DEPTH, MAX_NODES};

/// What a reference leads to.
pub(super) enum Target<'a> {
    Root,
    /// A place in the root and what stands there.
    At(String, &'a Value),
    /// Another document.
    Outside,
    Nowhere,
}

/// What `#/…` without escapes leads to, which is what references almost always are.
pub(super) fn plain<'a>(root: &'a Value, reference: &str) -> Option<Target<'a>> {
    let pointer = reference.strip_prefix('#')?;
    if !pointer.starts_with('/') || pointer.contains('%') {
        return None;
    }
    let found = root.pointer(pointer)?;
    Some(Target::At(pointer.to_owned(), found))
}

/// The places of a schema that have a name of their own.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    /// By `$id`, and by `#` and `$anchor`.
    named: HashMap<&'a str, (String, &'a Value)>,
    anchors: HashMap<&'a str, (String, &'a Value)>,
}

impl<'a> Places<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let mut places = Self::default();
        let mut left = MAX_NODES * 4;
        places.collect(root, "", 0, &mut left);
        places
    }

    fn collect(&mut self, value: &'a Value, at: &str, depth: usize, left: &mut usize) {
        *left = left.saturating_sub(1);
        if depth > MAX_DEPTH * 2 || *left == 0 {
            return;
        }
        match value {
            Value::Object(map) => {
                for keyword in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                    let Some(Value::String(name)) = map.get(keyword) else {
                        continue;
                    };
                    // `$id: "#name"` is how drafts 4 to 7 say `$anchor`.
                    let (map, name) = match name.strip_prefix('#') {
                        Some(name) => (&mut self.anchors, name),
                        None if keyword.contains("nchor") => (&mut self.anchors, name.as_str()),
                        None => (&mut self.named, name.as_str()),
                    };
                    if !name.is_empty() {
                        map.entry(name).or_insert_with(|| (at.to_owned(), value));
                    }
                }
                for (name, value) in map {
                    if value.is_object() || value.is_array() {
                        let name = name.replace('~', "~0").replace('/', "~1");
                        self.collect(value, &format!("{at}/{name}"), depth + 1, left);
                    }
                }
            }
            Value::Array(list) => {
                for (index, value) in list.iter().enumerate() {
                    if value.is_object() || value.is_array() {
                        self.collect(value, &format!("{at}/{index}"), depth + 1, left);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn target(&self, root: &'a Value, reference: &str) -> Target<'a> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = match document {
            "" => Some((String::new(), root)),
            _ => self.document(root, document),
        };
        let Some((at, base)) = base else {
            return Target::Outside;
        };
        let found = if fragment.is_empty() {
            Some((at, base))
        } else if fragment.starts_with('/') {
            let fragment = percent_decoded(fragment);
            let found = base.pointer(&fragment);
            found.map(|found| (format!("{at}{fragment}"), found))
        } else {
            self.anchors.get(fragment).cloned()
        };
        match found {
            Some((at, _)) if at.is_empty() => Target::Root,
            Some((at, found)) => Target::At(at, found),
            None => Target::Nowhere,
        }
    }

    /// A document that is part of this one: by its `$id` or the end of it, or (which is wrong and
    /// common) by the bare name of a definition.
    fn document(&self, root: &'a Value, document: &str) -> Option<(String, &'a Value)> {
        if let Some(found) = self.named.get(document) {
            return Some(found.clone());
        }
        if document.contains(':') || document.starts_with("//") {
            return None;
        }
        let ends = |id: &str| {
            id.strip_suffix(document)
                .is_some_and(|rest| rest.ends_with('/'))
        };
        let mut by_end = self.named.iter().filter(|(id, _)| ends(id));
        // Only if there is no doubt: a map has no order.
        if let (Some((_, found)), None) = (by_end.next(), by_end.next()) {
            return Some(found.clone());
        }
        ["$defs", "definitions"].into_iter().find_map(|group| {
            let found = root.get(group)?.get(document)?;
            let name = document.replace('~', "~0").replace('/', "~1");
            Some((format!("/{group}/{name}"), found))
        })
    }
}

/// `%20` and the like as what they stand for; what is no UTF-8 then stays as it is.
fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
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
