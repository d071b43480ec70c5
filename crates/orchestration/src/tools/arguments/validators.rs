//! Tool input is checked before a call, and repaired where that is safe.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};
use switchboard_domain::{
    JsonObject, SharedObject, ToolDefinition, ToolInput, check_depth,
    json_schema::{SchemaValidator, TooExpensive},
};

use super::{
    excused::{Demand, is_excused},
    fit,
    repair::Repair,
    schema, text,
};
use crate::tools::per_definition::PerDefinition;

/// Faults named in one message at most.
const MAX_FAULTS: usize = 6;
/// Bytes kept of one fault: it quotes the value, which may be long.
const FAULT_BYTES: usize = 300;

/// Compiled input schemas, one for each tool definition, compiled when first needed. A clone is the same
/// set, so that one agent's runs compile nothing twice.
#[derive(Clone, Default)]
pub struct Validators {
    /// `None` for a schema that cannot be compiled: the server has the last word then.
    compiled: Arc<PerDefinition<Option<SchemaValidator>>>,
}

/// Input that may be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The input.
    pub input: SharedObject,
    /// What was done to it; nothing, mostly.
    pub repairs: Vec<Repair>,
}

/// Input that is not executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// It is no JSON object.
    #[error("{reason}")]
    Malformed {
        /// Why not.
        reason: String,
    },
    /// It does not fit the tool's schema.
    #[error("{faults}")]
    Invalid {
        /// Every fault with its place.
        faults: String,
    },
}

impl Validators {
    /// Makes what most schemas need, once in a process: the schema of such schemas, which else the first check would make. For
    /// somebody who has to wait for something else meanwhile, on a thread of its own.
    pub fn prepare() {
        // One that says something: that an empty one fits is known without the schema of schemas.
        let schema = json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        });
        let input = json!({"id": 1});
        let _ = compile(&schema).is_some_and(|validator| validator.is_valid(&input) == Ok(true));
    }

    /// `Err` names every fault of `input`, for the model.
    pub fn check(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &SharedObject,
    ) -> Result<(), String> {
        match &*self.validator(definition) {
            Some(validator) => match validator.is_valid(input.as_value()) {
                Ok(true) => Ok(()),
                _ => Err(faults(validator, input.as_value())),
            },
            None => Ok(()),
        }
    }

    /// What a model wrote, as it would be executed if what is excused did fit: as it is, or with the repairs that
    /// [`Self::examine`] makes of all else. `None` if it would not be. An input that is no object is read as text. Told is
    /// the value that does not fit, and what is asked of it.
    pub fn mended_but_for(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &Value,
        excuses: &dyn Fn(&Value, Demand<'_>) -> bool,
    ) -> Option<JsonObject> {
        let validator = self.validator(definition);
        let object = match (input, &*validator) {
            (Value::Object(object), None) => return Some(object.clone()),
            (Value::Object(object), Some(_)) => object.clone().into(),
            (Value::String(raw), Some(_)) => match ToolInput::parse(raw) {
                ToolInput::Object(_) => return None,
                ToolInput::Malformed { reason, .. } => {
                    read_anew(definition, raw, &reason)?.0.into()
                }
            },
            _ => return None,
        };
        let validator = validator.as_ref().as_ref()?;
        let checked = fitting(validator, definition, object, Some(excuses))?;
        Some(checked.input.into_object())
    }

    /// What a model wrote, as it may be executed: as it is if it is valid, else with the repairs that make
    /// it so.
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
                let checked = fitting(validator, definition, object.clone(), None);
                checked.ok_or_else(|| {
                    let faults = faults(validator, object.as_value());
                    InputFault::Invalid { faults }
                })
            }
            (ToolInput::Malformed { raw, reason }, validator) => {
                // With no schema to say that the result is right, nothing is repaired.
                let repaired = validator.as_ref().and_then(|validator| {
                    let (object, mut repairs) = read_anew(definition, raw, reason)?;
                    let checked = fitting(validator, definition, object.into(), None)?;
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

    fn validator(&self, definition: &Arc<ToolDefinition>) -> Arc<Option<SchemaValidator>> {
        self.compiled
            .of(definition, |definition| compile(&definition.input_schema))
    }
}

/// The object in a text that is none as it stands, and what was done to read it.
fn read_anew(
    definition: &ToolDefinition,
    raw: &str,
    reason: &str,
) -> Option<(JsonObject, Vec<Repair>)> {
    let named = |name: &str| schema::names_property(&definition.input_schema, name);
    text::repair(raw, reason, &named)
}

/// The object as it is if it is valid but for what is excused, or repaired; `None` if it cannot be.
fn fitting(
    validator: &SchemaValidator,
    definition: &ToolDefinition,
    object: SharedObject,
    excuses: Option<fit::Excuses<'_>>,
) -> Option<Checked> {
    let input = object.as_value();
    let is_fit = match excuses {
        None => validator.is_valid(input).ok()?,
        Some(excuses) => {
            let faults = validator.errors(input).ok()?;
            faults.iter().all(|fault| is_excused(input, fault, excuses))
        }
    };
    let (input, repairs) = if is_fit {
        (object, Vec::new())
    } else {
        let schema = &definition.input_schema;
        let (input, repairs) = fit::fit(validator, schema, &definition.name, input, excuses)?;
        (input.into(), repairs)
    };
    // JSON that was read out of a string adds levels.
    check_depth(input.as_value()).ok()?;
    Some(Checked { input, repairs })
}

#[cfg(test)]
thread_local! {
    /// The schemas that this thread compiled, for tests that say when that is done.
    static COMPILED: std::cell::RefCell<Vec<Value>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Compiles a schema. `None` if it cannot be used.
pub(crate) fn compile(schema: &Value) -> Option<SchemaValidator> {
    #[cfg(test)]
    COMPILED.with_borrow_mut(|compiled| compiled.push(schema.clone()));
    SchemaValidator::compile(schema).ok()
}

/// Describes what is wrong with a value.
fn faults(validator: &SchemaValidator, instance: &Value) -> String {
    let errors = match validator.errors(instance) {
        Ok(errors) => errors,
        Err(TooExpensive { .. }) if validator.is_valid(instance).is_ok() => {
            return "the input does not fit the schema, and is too large to list the errors"
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

/// The end of a fault says what is wrong, its beginning quotes the value.
fn shortened(fault: String) -> String {
    if fault.len() <= FAULT_BYTES {
        return fault;
    }
    let start = fault.floor_char_boundary(FAULT_BYTES / 3);
    let end = fault.ceil_char_boundary(fault.len() - FAULT_BYTES * 2 / 3);
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
