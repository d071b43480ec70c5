//! Validation and repair of tool input before a call.

use std::{fmt, sync::Arc};

use serde_json::Value;
use switchboard_domain::{
    JsonObject, SharedObject, ToolDefinition, ToolInput, check_depth,
    json_schema::{SchemaValidator, TooExpensive},
};

use super::{
    exemption::{Exemption, Requirement, is_exempt},
    repair::{Repair, repair_text},
    values::repair_values,
};
use crate::tools::per_definition::PerDefinition;

/// Maximum number of faults in one message.
const MAX_FAULTS: usize = 6;
/// Maximum length of one fault in bytes. A fault quotes the value, which can be long.
const MAX_FAULT_BYTES: usize = 300;

/// Compiled input schemas, one per tool definition. Clones share them.
#[derive(Clone, Default)]
pub struct Validators {
    /// `None` for a schema that cannot be compiled. The server then validates the input.
    compiled: Arc<PerDefinition<Option<SchemaValidator>>>,
}

/// Input that may be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The input.
    pub input: SharedObject,
    /// Repairs of the input.
    pub repairs: Vec<Repair>,
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
            Some(validator) => match validator.is_valid(input.as_value()) {
                Ok(true) => Ok(()),
                _ => Err(describe_faults(validator, input.as_value())),
            },
            None => Ok(()),
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
                let checked = accept(validator, definition, object.clone(), None);
                checked.ok_or_else(|| {
                    let faults = describe_faults(validator, object.as_value());
                    InputFault::Invalid { faults }
                })
            }
            (ToolInput::Malformed { raw, reason }, validator) => {
                // Without a schema, nothing confirms that the repair is right.
                let repaired = validator.as_ref().and_then(|validator| {
                    let (object, mut repairs) = repair_text(raw, reason)?;
                    let checked = accept(validator, definition, object.into(), None)?;
                    repairs.extend(checked.repairs);
                    let input = checked.input;
                    Some(Checked { input, repairs })
                });
                repaired.ok_or_else(|| InputFault::Malformed {
                    reason: reason.clone(),
                })
            }
        }
    }

    /// Returns a recorded input as [`Self::examine`] does, but accepts the faults that `exempts`
    /// accepts. A string is parsed as the model's text. Returns `None` if other faults remain.
    pub fn examine_recorded(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &Value,
        exempts: &dyn Fn(&Value, Requirement<'_>) -> bool,
    ) -> Option<JsonObject> {
        let validator = self.validator(definition);
        let object: SharedObject = match (input, &*validator) {
            (Value::Object(object), None) => return Some(object.clone()),
            (Value::Object(object), Some(_)) => object.clone().into(),
            (Value::String(raw), Some(_)) => match ToolInput::parse(raw) {
                ToolInput::Object(_) => return None,
                ToolInput::Malformed { reason, .. } => repair_text(raw, &reason)?.0.into(),
            },
            _ => return None,
        };
        let validator = validator.as_ref().as_ref()?;
        let checked = accept(validator, definition, object, Some(exempts))?;
        Some(checked.input.into_object())
    }

    fn validator(&self, definition: &Arc<ToolDefinition>) -> Arc<Option<SchemaValidator>> {
        self.compiled
            .of(definition, |definition| compile(&definition.input_schema))
    }
}

/// Returns the object unchanged if all its faults are exempt, or repaired. Returns `None` if
/// neither is possible.
fn accept(
    validator: &SchemaValidator,
    definition: &ToolDefinition,
    object: SharedObject,
    exemption: Option<Exemption<'_>>,
) -> Option<Checked> {
    let input = object.as_value();
    let is_valid = if exemption.is_some() {
        let faults = validator.errors(input).ok()?;
        faults.iter().all(|it| is_exempt(input, it, exemption))
    } else {
        validator.is_valid(input).ok()?
    };
    let (input, repairs) = if is_valid {
        (object, Vec::new())
    } else {
        let schema = &definition.input_schema;
        let (input, repairs) =
            repair_values(validator, schema, &definition.name, input, exemption)?;
        (input.into(), repairs)
    };
    // An object that was parsed from a string adds levels.
    check_depth(input.as_value()).ok()?;
    Some(Checked { input, repairs })
}

#[cfg(test)]
thread_local! {
    /// The schemas that this thread compiled.
    static COMPILED: std::cell::RefCell<Vec<Value>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Compiles a schema. Returns `None` if it is invalid or unsupported.
pub(crate) fn compile(schema: &Value) -> Option<SchemaValidator> {
    #[cfg(test)]
    COMPILED.with_borrow_mut(|compiled| compiled.push(schema.clone()));
    SchemaValidator::compile(schema).ok()
}

/// Describes the faults of a value, for the model.
fn describe_faults(validator: &SchemaValidator, value: &Value) -> String {
    let errors = match validator.errors(value) {
        Ok(errors) => errors,
        Err(TooExpensive { .. }) if validator.is_valid(value).is_ok() => {
            return "the input does not match the schema and is too large to list the errors"
                .to_owned();
        }
        Err(error) => return format!("{error}; send a smaller input"),
    };
    let mut faults = Vec::new();
    for error in errors {
        if faults.len() == MAX_FAULTS {
            faults.push("and more".to_owned());
            break;
        }
        let path = error.instance_path().as_str();
        let fault = shortened(error.to_string());
        faults.push(if path.is_empty() {
            fault
        } else {
            format!("{path}: {fault}")
        });
    }
    faults.join("; ")
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

impl fmt::Debug for Validators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Validators").field(&self.compiled).finish()
    }
}

#[cfg(test)]
#[path = "validators_tests.rs"]
mod tests;
