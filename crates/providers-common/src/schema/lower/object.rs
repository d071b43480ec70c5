//! Objects.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Level, Lower};
use crate::schema::{
    Map,
    change::ChangeKind,
    normal::below,
    rules::{Any, Further, Rules},
};

impl Lower<'_, '_> {
    pub(super) fn object(&mut self, mut schema: Map, at: &str, level: Level) -> Map {
        if level.objects >= self.rules.max_objects {
            return self.cut(&schema, at, "too many objects within objects");
        }
        let further = schema.get("additionalProperties");
        let of_further = match further {
            Some(Value::Object(schema)) => schema.clone(),
            _ => Map::new(),
        };
        let is_closed = further == Some(&json!(false)) && !has_patterns(&schema);
        let names = schema.get("required").and_then(Value::as_array);
        let is_said = names.is_some();
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let mut required: Vec<String> = names.map(str::to_owned).collect();
        let has_properties = schema.contains_key("properties");
        let is_empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
        let is_text = is_text(self.rules, is_closed)
            && required.is_empty()
            && schema.get("properties").is_none_or(is_empty);
        let is_root = level.depth == 0 && at.is_empty();
        if !is_root && is_text {
            return self.json_text(&schema, at, "an object of free keys", "A JSON object");
        }
        let room = self.rules.max_nodes.saturating_sub(self.nodes);
        let count = schema.get("properties").and_then(Value::as_object);
        let count = count.map_or(0, Map::len) + required.len();
        if count > room && !is_root {
            return self.cut(&schema, at, "too many properties");
        }
        // Taken out, not copied: it may be large.
        let mut properties = match schema.get_mut("properties") {
            Some(Value::Object(properties)) => std::mem::take(properties),
            _ => Map::new(),
        };
        for name in &required {
            if !properties.contains_key(name) {
                let message = format!("`{name}` is required and has no schema: it gets one");
                self.report(at, ChangeKind::Rewritten, message);
                properties.insert(name.clone(), Value::Object(of_further.clone()));
            }
        }
        if properties.len() > room {
            let message = format!("{} properties left out", properties.len() - room);
            self.report(at, ChangeKind::Truncated, message);
            properties = properties.into_iter().take(room).collect();
            required.retain(|name| properties.contains_key(name));
        }
        self.nodes += properties.len();
        let mut wanted: HashSet<String> = required.iter().cloned().collect();
        let mut lowered = Map::new();
        for (name, property) in properties {
            let property_at = below(at, "properties", &name);
            let Value::Object(property) = property else {
                continue;
            };
            let Some(mut property) = self.counted(property, &property_at, level.into_object())
            else {
                let message = "no value is valid against it: left out";
                // Without the one that it cannot have, an object is valid that never was.
                let kind = if wanted.remove(&name) {
                    ChangeKind::Widened
                } else {
                    ChangeKind::Rewritten
                };
                self.report(&property_at, kind, message);
                continue;
            };
            if self.rules.all_required && !wanted.contains(&name) {
                self.make_nullable(&mut property);
                let message = "it is required and may be null, which means that it is left out";
                self.report(&property_at, ChangeKind::Nullable, message);
            }
            lowered.insert(name, Value::Object(property));
        }
        if self.rules.all_required {
            required = lowered.keys().cloned().collect();
        } else {
            required.retain(|name| wanted.contains(name));
        }
        let mut structural = Map::new();
        if !lowered.is_empty() || has_properties || self.needs_properties(is_root) {
            let is_filled = !lowered.is_empty() || !self.rules.filled_objects;
            if is_filled {
                structural.insert("properties".to_owned(), Value::Object(lowered));
            }
        }
        if !required.is_empty() || self.rules.all_required || (is_said && required.is_empty()) {
            structural.insert("required".to_owned(), json!(required));
        }
        let further = schema.shift_remove("additionalProperties");
        self.further(further, &mut schema, &mut structural, at, level);
        self.keywords_with(schema, at, structural)
    }

    fn needs_properties(&self, is_root: bool) -> bool {
        self.rules.further == Further::Close || (is_root && self.rules.root_properties)
    }

    /// What is said of further keys.
    fn further(
        &mut self,
        further: Option<Value>,
        schema: &mut Map,
        structural: &mut Map,
        at: &str,
        level: Level,
    ) {
        let by_pattern = has_patterns(schema);
        match self.rules.further {
            Further::Keep => {
                let kept = match (further, by_pattern) {
                    (Some(Value::Object(schema)), _) => {
                        let at = format!("{at}/additionalProperties");
                        let lowered = self.node(schema, &at, level.into_object());
                        Some(lowered.map_or(json!(false), Value::Object))
                    }
                    // Keys by pattern are further keys to this wire.
                    (Some(Value::Bool(false)), true) => {
                        self.report(at, ChangeKind::Widened, "keys by pattern are further keys");
                        Some(json!(true))
                    }
                    (Some(Value::Bool(kept)), _) => Some(json!(kept)),
                    _ => None,
                };
                if let Some(kept) = kept {
                    structural.insert("additionalProperties".to_owned(), kept);
                }
            }
            Further::Close => {
                structural.insert("additionalProperties".to_owned(), json!(false));
                match further {
                    Some(Value::Bool(false)) if !by_pattern => {}
                    None if !by_pattern => {
                        self.report(at, ChangeKind::Closed, "it takes no further keys");
                    }
                    _ => {
                        let message = "further keys cannot be given on this wire";
                        self.report(at, ChangeKind::Narrowed, message);
                    }
                }
            }
            Further::Silent => match further {
                None => {}
                Some(Value::Bool(false)) => {
                    let message = "that there are no further keys is not said";
                    self.report(at, ChangeKind::Dropped, message);
                }
                Some(Value::Bool(true)) => {
                    self.report(at, ChangeKind::Noise, "`additionalProperties` left out");
                }
                Some(value) => self.tell(schema, "additionalProperties", &value, at),
            },
        }
    }
}

fn has_patterns(schema: &Map) -> bool {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    patterns.is_some_and(|it| !it.is_empty())
}

/// Whether an object that is not the root is written as JSON text: where the dialect has no schema
/// for free keys and the object has no others.
fn is_text(rules: &Rules, is_closed: bool) -> bool {
    rules.any == Any::JsonText && (rules.filled_objects || !is_closed)
}
