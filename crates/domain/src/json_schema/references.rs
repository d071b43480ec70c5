//! Resolution of references inside a schema.

use std::{collections::HashMap, rc::Rc};

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Index of a schema for resolving references such as `$ref`: its root, and its subschemas by name.
/// A name is an `$anchor` or the last path segment of an `$id`.
pub(super) struct SchemaReferences<'s> {
    root: &'s Value,
    named: Vec<(&'s str, &'s Value)>,
    resolved: HashMap<&'s str, Rc<[&'s Value]>>,
}

impl<'s> SchemaReferences<'s> {
    pub(super) fn collect_named_subschemas(root: &'s Value) -> Self {
        let mut named = Vec::new();
        let mut open = vec![root];
        while let Some(value) = open.pop() {
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => {
                    for key in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                        if let Some(Value::String(name)) = fields.get(key) {
                            let anchor = name.strip_prefix('#');
                            named.push((anchor.unwrap_or_else(|| last_path_segment(name)), value));
                        }
                    }
                    open.extend(fields.values());
                }
                _ => {}
            }
        }
        Self {
            root,
            named,
            resolved: HashMap::new(),
        }
    }

    /// Returns the subschemas that `reference` may point to, and the number of name comparisons,
    /// which the caller counts as steps. If several subschemas have the same name, all of them are
    /// returned. Returns no subschema if the reference points to another document.
    pub(super) fn find_referenced(&mut self, reference: &'s str) -> (Rc<[&'s Value]>, usize) {
        if let Some(targets) = self.resolved.get(reference) {
            return (Rc::clone(targets), 0);
        }
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let is_pointer = fragment.is_empty() || fragment.starts_with('/');
        let name = if is_pointer {
            last_path_segment(uri)
        } else {
            &*fragment
        };
        let named = self.named.iter().filter_map(|(it, schema)| {
            (*it == name || (is_pointer && uri.is_empty())).then_some(*schema)
        });
        let targets: Rc<[&Value]> = if is_pointer {
            let root = uri.is_empty().then_some(self.root);
            let resources = root.into_iter().chain(named);
            resources.filter_map(|it| it.pointer(&fragment)).collect()
        } else {
            named.collect()
        };
        self.resolved.insert(reference, Rc::clone(&targets));
        (targets, self.named.len())
    }
}

fn last_path_segment(uri: &str) -> &str {
    let path = uri.split('#').next().unwrap_or_default();
    path.rsplit(['/', ':']).next().unwrap_or_default()
}
