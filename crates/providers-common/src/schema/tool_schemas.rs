//! A cache of the compiled schemas of tools.

use std::{
    borrow::Cow,
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::ToolDefinition;

use super::{CompiledSchema, Dialect, compile};

/// Maximum number of cached schemas. A full cache is emptied before the next entry.
const MAX_ENTRIES: usize = 1_000;

/// A compiled schema of a tool. It serializes as the plain schema, and cloning it is cheap.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema(Arc<CompiledSchema<'static>>);

impl From<CompiledSchema<'_>> for ToolSchema {
    fn from(compiled: CompiledSchema<'_>) -> Self {
        Self(Arc::new(CompiledSchema {
            schema: Cow::Owned(compiled.schema.into_owned()),
            changes: compiled.changes,
            root_description: compiled.root_description,
        }))
    }
}

impl From<Value> for ToolSchema {
    fn from(schema: Value) -> Self {
        Self::from(CompiledSchema {
            schema: Cow::Owned(schema),
            changes: Vec::new(),
            root_description: None,
        })
    }
}

impl Deref for ToolSchema {
    type Target = CompiledSchema<'static>;

    fn deref(&self) -> &CompiledSchema<'static> {
        &self.0
    }
}

impl Serialize for ToolSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.schema.serialize(serializer)
    }
}

/// Cache of the compiled schemas of tools. Every request of a run sends the same definitions, so
/// that each is compiled once per dialect.
///
/// The requests share their definitions by `Arc`, so a schema is cached under the memory address of
/// its definition. The cache entry keeps the definition alive, so no other definition gets the same
/// address.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use switchboard_domain::ToolDefinition;
/// use switchboard_providers_common::schema::{Dialect, ToolSchemas};
///
/// let schemas = ToolSchemas::default();
/// let tool = Arc::new(ToolDefinition::new("t", "", json!({"type": "object"})));
/// let compiled = schemas.compiled_schema(&tool, Dialect::OpenAiStrict);
/// assert_eq!(compiled.schema["additionalProperties"], false);
/// ```
#[derive(Debug, Default)]
pub struct ToolSchemas(Mutex<HashMap<(usize, Dialect), Entry>>);

type Entry = (Arc<ToolDefinition>, ToolSchema);

impl ToolSchemas {
    /// Returns the compiled input schema of `tool` in `dialect`.
    pub fn compiled_schema(&self, tool: &Arc<ToolDefinition>, dialect: Dialect) -> ToolSchema {
        let key = (Arc::as_ptr(tool).addr(), dialect);
        // A poisoned lock is used anyway, because the map is valid after every step under the lock.
        let entries = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, schema)) = entries().get(&key) {
            return schema.clone();
        }
        // The lock is not held during the compilation, because compilation is slow. If two threads
        // compile the same schema, both get equal results.
        let schema = ToolSchema::from(compile(&tool.input_schema, dialect));
        let mut entries = entries();
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(key, (Arc::clone(tool), schema.clone()));
        schema
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(property: &str) -> Arc<ToolDefinition> {
        let schema = json!({"type": "object", "properties": {property: {"type": "string"}}});
        Arc::new(ToolDefinition::new("t", "", schema))
    }

    fn property(schemas: &ToolSchemas, tool: &Arc<ToolDefinition>) -> String {
        let compiled = schemas.compiled_schema(tool, Dialect::OpenAiLoose);
        let properties = compiled.schema["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    }

    #[test]
    fn a_schema_is_compiled_once_per_definition_and_dialect() {
        let schemas = ToolSchemas::default();
        let tool = tool("a");
        let strict = schemas.compiled_schema(&tool, Dialect::OpenAiStrict);
        let again = schemas.compiled_schema(&tool.clone(), Dialect::OpenAiStrict);
        assert!(Arc::ptr_eq(&strict.0, &again.0));
        assert_ne!(schemas.compiled_schema(&tool, Dialect::OpenAiLoose), strict);
        let text = serde_json::to_string(&strict).unwrap();
        assert_eq!(text, strict.schema.to_string());
    }

    #[test]
    fn a_definition_at_a_reused_address_or_changed_in_place_has_its_own_schema() {
        let schemas = ToolSchemas::default();
        for n in 0..3 * MAX_ENTRIES {
            let name = n.to_string();
            assert_eq!(property(&schemas, &tool(&name)), name);
        }
        assert!(schemas.0.lock().unwrap().len() <= MAX_ENTRIES);
        let mut changed = tool("before");
        assert_eq!(property(&schemas, &changed), "before");
        Arc::make_mut(&mut changed).input_schema = tool("after").input_schema.clone();
        assert_eq!(property(&schemas, &changed), "after");
    }
}
