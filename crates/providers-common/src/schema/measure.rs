//! Measurement of the sizes that APIs limit.

use serde_json::Value;

use super::{Map, merge, normal::walk};

/// The sizes of a compiled schema. Anthropic limits the optional properties and the unions of all
/// strict schemas of a request; OpenAI limits the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    /// Number of optional properties.
    pub optional: usize,
    /// Number of unions: `anyOf`, `oneOf`, and lists of types.
    pub unions: usize,
    /// Number of properties.
    pub properties: usize,
    /// Nesting of objects; 1 for an object without nested objects.
    pub depth: usize,
    /// Number of values in all `enum`s.
    pub enum_values: usize,
}

/// Measures a schema. Each definition counts once.
pub fn measure(schema: &Value) -> Measure {
    let mut measure = Measure::default();
    if let Value::Object(root) = schema {
        let mut budget = super::rules::MAX_NODES;
        count(root, 0, &mut measure, &mut budget);
        let defs = root.get("$defs").and_then(Value::as_object);
        for def in defs
            .into_iter()
            .flatten()
            .filter_map(|(_, def)| def.as_object())
        {
            count(def, 0, &mut measure, &mut budget);
        }
    }
    measure
}

fn count(schema: &Map, around: usize, measure: &mut Measure, budget: &mut usize) {
    let Some(left) = budget.checked_sub(1) else {
        return;
    };
    *budget = left;
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
    measure.enum_values += list("enum").map_or(0, Vec::len);
    let several = schema
        .get("type")
        .is_some_and(|it| merge::names(it).len() > 1);
    let alternatives = list("anyOf").is_some() || list("oneOf").is_some();
    measure.unions += usize::from(several) + usize::from(alternatives);
    let mut depth = around;
    if let Some(Value::Object(properties)) = schema.get("properties") {
        depth += 1;
        measure.properties += properties.len();
        let required = list("required");
        let is_required = |name: &String| {
            required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
        };
        let optional = properties.keys().filter(|name| !is_required(name));
        measure.optional += optional.count();
    }
    measure.depth = measure.depth.max(depth);
    for child in walk::children(schema) {
        count(child, depth, measure, budget);
    }
}
