//! Validation and repair of tool input before a call.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    SharedObject, ToolDefinition, ToolInput, check_depth, json_schema::SchemaValidator,
};

use super::repair::{repair_malformed_json, repair_tool_input};
use crate::tools::definition_cache::DefinitionCache;

/// Maximum number of faults that one error message lists. Further faults are omitted.
const MAX_FAULTS: usize = 6;
/// Maximum length of one fault description in bytes. It quotes the faulty value, which can be long.
const MAX_FAULT_BYTES: usize = 300;

/// A cache of compiled input schemas, one per tool definition. Clones share the cache.
#[derive(Debug, Clone, Default)]
pub struct InputValidators {
    /// Compiled schemas. `None` marks a schema that cannot be compiled. The input of its tool is
    /// not validated here, but by the tool's server.
    compiled: Arc<DefinitionCache<Option<SchemaValidator>>>,
}

/// A tool input that is valid or was repaired, so it may be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedToolInput {
    /// The input to execute, after the repairs.
    pub input: SharedObject,
    /// Descriptions of the repairs, such as `/customer_id: converted the text "42" to a number`.
    pub repairs: Vec<String>,
}

/// A fault of a tool input that could not be repaired. The tool is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// The input is not a JSON object.
    #[error("{reason}")]
    Malformed {
        /// Reason why the input is malformed, such as the syntax error of its JSON text.
        reason: String,
    },
    /// The input is a JSON object that does not match the tool's input schema.
    #[error("{faults}")]
    Invalid {
        /// Descriptions of the first faults, each with the JSON pointer of the faulty value.
        faults: String,
    },
}

impl InputValidators {
    /// Validates a tool input. The error describes the faults for the model. Returns `Ok` if the
    /// input schema cannot be compiled.
    pub fn validate_input(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &SharedObject,
    ) -> Result<(), String> {
        match &*self.find_validator(definition) {
            Some(validator) if validator.is_valid(input.as_value()) != Ok(true) => {
                Err(describe_faults(validator, input.as_value()))
            }
            _ => Ok(()),
        }
    }

    /// Validates a tool input of the model and repairs it if it is invalid. Returns an error if the
    /// repaired input is still invalid.
    pub fn validate_or_repair(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &ToolInput,
    ) -> Result<ValidatedToolInput, InputFault> {
        let validator = self.find_validator(definition);
        match (input, &*validator) {
            (ToolInput::Object(object), None) => Ok(ValidatedToolInput {
                input: object.clone(),
                repairs: Vec::new(),
            }),
            (ToolInput::Object(object), Some(validator)) => {
                validate_or_repair_object(validator, definition, object.clone()).ok_or_else(|| {
                    InputFault::Invalid {
                        faults: describe_faults(validator, object.as_value()),
                    }
                })
            }
            (ToolInput::Malformed { raw, reason }, validator) => {
                // Without a compiled schema, nothing can confirm that a repair is correct.
                let repaired = validator.as_ref().and_then(|validator| {
                    let (object, mut repairs) = repair_malformed_json(raw, reason)?;
                    let checked = validate_or_repair_object(validator, definition, object.into())?;
                    repairs.extend(checked.repairs);
                    let input = checked.input;
                    Some(ValidatedToolInput { input, repairs })
                });
                let reason = reason.clone();
                repaired.ok_or(InputFault::Malformed { reason })
            }
        }
    }

    fn find_validator(&self, definition: &Arc<ToolDefinition>) -> Arc<Option<SchemaValidator>> {
        self.compiled.get_or_create(definition, |definition| {
            SchemaValidator::compile(&definition.input_schema).ok()
        })
    }
}

/// Validates an object and repairs it if it is invalid. Returns `None` if it stays invalid.
fn validate_or_repair_object(
    validator: &SchemaValidator,
    definition: &ToolDefinition,
    object: SharedObject,
) -> Option<ValidatedToolInput> {
    let (input, repairs) = if validator.is_valid(object.as_value()) == Ok(true) {
        (object, Vec::new())
    } else {
        let (input, repairs) = repair_tool_input(validator, definition, object.as_value())?;
        (input.into(), repairs)
    };
    // The depth is checked again, because parsing an object from a string adds levels.
    check_depth(input.as_value()).ok()?;
    Some(ValidatedToolInput { input, repairs })
}

/// Describes the first faults of a value for a model or a person. Each description has the JSON
/// pointer of the faulty value.
pub(crate) fn describe_faults(validator: &SchemaValidator, value: &Value) -> String {
    let errors = match validator.list_errors(value) {
        Ok(errors) => errors,
        Err(error) => return format!("{error}; send a smaller input"),
    };
    let described = errors.iter().take(MAX_FAULTS).map(|error| {
        let fault = shorten_fault(error.to_string());
        match error.instance_path().as_str() {
            "" => fault,
            path => format!("{path}: {fault}"),
        }
    });
    let more = (errors.len() > MAX_FAULTS).then(|| "and more".to_owned());
    described.chain(more).collect::<Vec<_>>().join("; ")
}

/// Removes the middle of a long fault description. Its start quotes the faulty value, and its end
/// states the error.
fn shorten_fault(fault: String) -> String {
    if fault.len() <= MAX_FAULT_BYTES {
        return fault;
    }
    let start = fault.floor_char_boundary(MAX_FAULT_BYTES / 3);
    let end = fault.ceil_char_boundary(fault.len() - MAX_FAULT_BYTES * 2 / 3);
    format!("{} … {}", &fault[..start], &fault[end..])
}

#[cfg(test)]
#[path = "validators_tests.rs"]
mod tests;
