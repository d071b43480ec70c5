//! Measurement of the sizes that APIs limit.

use serde_json::Value;

use super::{
    keywords::{Map, SchemaMembers, children},
    rules::MAX_NODES,
};

/// Sizes of a compiled schema that providers limit. Anthropic limits the optional properties and
/// the unions of all strict schemas of a request; OpenAI limits the other sizes.
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

/// Measures the sizes of a schema. Each definition counts once.
pub fn measure(schema: &Value) -> Measure {
    let mut measure = Measure::default();
    let Value::Object(root) = schema else {
        return measure;
    };
    let mut nodes_left = MAX_NODES;
    let definitions = root.object("$defs").into_iter().flatten();
    let definitions = definitions.filter_map(|(_, definition)| definition.as_object());
    for schema in std::iter::once(root).chain(definitions) {
        count(schema, 0, &mut measure, &mut nodes_left);
    }
    measure
}

fn count(schema: &Map, outer_depth: usize, measure: &mut Measure, nodes_left: &mut usize) {
    let Some(left) = nodes_left.checked_sub(1) else {
        return;
    };
    *nodes_left = left;
    measure.enum_values += schema.list("enum").len();
    let has_alternatives = ["anyOf", "oneOf"]
        .iter()
        .any(|keyword| schema.get(*keyword).is_some_and(Value::is_array));
    measure.unions += usize::from(schema.types().len() > 1) + usize::from(has_alternatives);
    let mut depth = outer_depth;
    if let Some(properties) = schema.object("properties") {
        depth += 1;
        measure.properties += properties.len();
        let optional = properties.keys().filter(|name| !schema.requires(name));
        measure.optional += optional.count();
    }
    measure.depth = measure.depth.max(depth);
    for (_, child) in children(schema) {
        count(child, depth, measure, nodes_left);
    }
}
