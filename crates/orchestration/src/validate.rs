//! Tool input is checked before a call.

use std::{collections::HashMap, fmt, sync::Arc};

use jsonschema::Validator;
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolDefinition};

/// Faults named in one message at most.
const MAX_FAULTS: usize = 6;

/// Compiled input schemas, one per tool definition, compiled when first needed.
#[derive(Default)]
pub(crate) struct Validators {
    compiled: HashMap<String, Compiled>,
}

struct Compiled {
    definition: Arc<ToolDefinition>,
    /// `None` for a schema that cannot be compiled: the server has the last word then.
    validator: Option<Validator>,
}

impl Validators {
    /// `Err` names every fault of `input`, for the model.
    pub(crate) fn check(
        &mut self,
        definition: &Arc<ToolDefinition>,
        input: JsonObject,
    ) -> Result<JsonObject, String> {
        let current = self
            .compiled
            .get(&definition.name)
            .is_some_and(|compiled| Arc::ptr_eq(&compiled.definition, definition));
        if !current {
            // Default options never fetch a `$ref` over the network: the feature is not compiled in.
            let validator = jsonschema::validator_for(&definition.input_schema).ok();
            let compiled = Compiled {
                definition: Arc::clone(definition),
                validator,
            };
            self.compiled.insert(definition.name.clone(), compiled);
        }
        let Some(validator) = self
            .compiled
            .get(&definition.name)
            .and_then(|compiled| compiled.validator.as_ref())
        else {
            return Ok(input);
        };
        let instance = Value::Object(input);
        let mut faults = Vec::new();
        for error in validator.iter_errors(&instance) {
            if faults.len() == MAX_FAULTS {
                faults.push("and more".to_owned());
                break;
            }
            let path = error.instance_path().to_string();
            faults.push(if path.is_empty() {
                error.to_string()
            } else {
                format!("{path}: {error}")
            });
        }
        match instance {
            Value::Object(input) if faults.is_empty() => Ok(input),
            _ => Err(faults.join("; ")),
        }
    }
}

impl fmt::Debug for Validators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.compiled.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value, input: Value) -> Result<JsonObject, String> {
        let definition = Arc::new(ToolDefinition::new("t", "", schema));
        let Value::Object(input) = input else {
            panic!("test input must be an object")
        };
        Validators::default().check(&definition, input)
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "customer_id": {"type": "integer"},
                "priority": {"enum": ["low", "high"]},
            },
            "required": ["customer_id"],
        });
        let faults = check(schema.clone(), json!({"priority": "urgent"})).unwrap_err();
        assert!(
            faults.contains("customer_id") && faults.contains("/priority"),
            "{faults}"
        );
        assert!(check(schema, json!({"customer_id": 42})).is_ok());
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_blocks_nothing() {
        assert!(check(json!({"type": 3}), json!({"a": 1})).is_ok());
        let remote = json!({"$ref": "https://example.invalid/schema.json"});
        assert!(check(remote, json!({"a": 1})).is_ok());
    }

    #[test]
    fn a_changed_definition_is_compiled_anew() {
        let mut validators = Validators::default();
        let old = Arc::new(ToolDefinition::new("t", "", json!({"required": ["a"]})));
        let new = Arc::new(ToolDefinition::new("t", "", json!({"required": ["b"]})));
        assert!(
            validators
                .check(&old, JsonObject::new())
                .unwrap_err()
                .contains("\"a\"")
        );
        assert!(
            validators
                .check(&new, JsonObject::new())
                .unwrap_err()
                .contains("\"b\"")
        );
    }
}
