//! Measurement of the schema sizes that Anthropic limits.

use serde_json::Value;

use super::keywords::{Map, SchemaMembers, visit_schemas};

/// Sizes of a compiled schema. Anthropic limits their sums over all strict schemas of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchemaSizes {
    /// Number of properties that are not listed in `required`.
    pub optional: usize,
    /// Number of unions: `anyOf`, `oneOf`, and lists of types.
    pub unions: usize,
}

/// Counts the optional properties and unions of a schema. Each definition counts once.
pub fn measure_schema(schema: &Value) -> SchemaSizes {
    let mut measure = SchemaSizes::default();
    let mut count = |schema: &Map| {
        let has_alternatives =
            schema.get_array("anyOf").len() + schema.get_array("oneOf").len() > 0;
        measure.unions += usize::from(schema.get_types().len() > 1) + usize::from(has_alternatives);
        let properties = schema.get_object("properties").into_iter().flatten();
        measure.optional += properties
            .filter(|(name, _)| !schema.is_required(name))
            .count();
    };
    if let Value::Object(root) = schema {
        let definitions = root.get_object("$defs").into_iter().flatten();
        let definitions = definitions.filter_map(|(_, definition)| definition.as_object());
        for schema in std::iter::once(root).chain(definitions) {
            visit_schemas(schema, &mut count);
        }
    }
    measure
}
