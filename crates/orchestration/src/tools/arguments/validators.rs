//! Validation and repair of tool input before a call.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    SharedObject, ToolDefinition, ToolInput, check_depth, json_schema::SchemaValidator,
};

use super::repair::{repair_text, repair_values};
use crate::tools::per_definition::PerDefinition;

/// Maximum number of faults in one message.
const MAX_FAULTS: usize = 6;
/// Maximum length of one fault in bytes. A fault quotes the value, which can be long.
const MAX_FAULT_BYTES: usize = 300;

/// Compiled input schemas, one per tool definition. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Validators {
    /// `None` for a schema that cannot be compiled. The server then validates the input.
    compiled: Arc<PerDefinition<Option<SchemaValidator>>>,
}

/// Input that may be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The input.
    pub input: SharedObject,
    /// Descriptions of the repairs, such as `/customer_id: read the text "42" as a number`.
    pub repairs: Vec<String>,
}

/// Input that is not executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// The input is not a JSON object.
    #[error("{reason}")]
    Malformed {
        /// The syntax error.
        reason: String,
    },
    /// The input does not match the tool's schema.
    #[error("{faults}")]
    Invalid {
        /// Every fault with its JSON pointer.
        faults: String,
    },
}

impl Validators {
    /// Validates an input. Returns a description of the faults for the model as the error.
    pub fn check(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &SharedObject,
    ) -> Result<(), String> {
        match &*self.validator(definition) {
            Some(validator) if validator.is_valid(input.as_value()) != Ok(true) => {
                Err(describe_faults(validator, input.as_value()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the model's input as it may be executed: unchanged if it is valid, or repaired.
    pub fn examine(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &ToolInput,
    ) -> Result<Checked, InputFault> {
        let validator = self.validator(definition);
        match (input, &*validator) {
            (ToolInput::Object(object), None) => Ok(Checked {
                input: object.clone(),
                repairs: Vec::new(),
            }),
            (ToolInput::Object(object), Some(validator)) => {
                accept(validator, definition, object.clone()).ok_or_else(|| InputFault::Invalid {
                    faults: describe_faults(validator, object.as_value()),
                })
            }
            (ToolInput::Malformed { raw, reason }, validator) => {
                // Without a schema, nothing confirms that the repair is right.
                let repaired = validator.as_ref().and_then(|validator| {
                    let (object, mut repairs) = repair_text(raw, reason)?;
                    let checked = accept(validator, definition, object.into())?;
                    repairs.extend(checked.repairs);
                    let input = checked.input;
                    Some(Checked { input, repairs })
                });
                let reason = reason.clone();
                repaired.ok_or(InputFault::Malformed { reason })
            }
        }
    }

    fn validator(&self, definition: &Arc<ToolDefinition>) -> Arc<Option<SchemaValidator>> {
        self.compiled.of(definition, |definition| {
            SchemaValidator::compile(&definition.input_schema).ok()
        })
    }
}

/// Returns the object unchanged or repaired. Returns `None` if it stays invalid.
fn accept(
    validator: &SchemaValidator,
    definition: &ToolDefinition,
    object: SharedObject,
) -> Option<Checked> {
    let (input, repairs) = if validator.is_valid(object.as_value()) == Ok(true) {
        (object, Vec::new())
    } else {
        let (input, repairs) = repair_values(validator, definition, object.as_value())?;
        (input.into(), repairs)
    };
    // An object that was parsed from a string adds levels.
    check_depth(input.as_value()).ok()?;
    Some(Checked { input, repairs })
}

/// Describes the faults of a value, for the model.
fn describe_faults(validator: &SchemaValidator, value: &Value) -> String {
    let errors = match validator.errors(value) {
        Ok(errors) => errors,
        Err(error) => return format!("{error}; send a smaller input"),
    };
    let described = errors.iter().take(MAX_FAULTS).map(|error| {
        let fault = shortened(error.to_string());
        match error.instance_path().as_str() {
            "" => fault,
            path => format!("{path}: {fault}"),
        }
    });
    let more = (errors.len() > MAX_FAULTS).then(|| "and more".to_owned());
    described.chain(more).collect::<Vec<_>>().join("; ")
}

/// Shortens a fault in the middle. It quotes the value at its start and ends with the error.
fn shortened(fault: String) -> String {
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
