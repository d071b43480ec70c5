//! Tool input is checked before a call, and repaired where that is safe.

use std::{fmt, sync::Arc};

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolDefinition, ToolInput};

use super::{
    excused::{Demand, is_excused},
    fit,
    repair::Repair,
    schema, text,
};
use crate::per_definition::PerDefinition;

/// Faults named in one message at most.
const MAX_FAULTS: usize = 6;
/// Bytes kept of one fault: it quotes the value, which may be long.
const FAULT_BYTES: usize = 300;
/// Steps that a pattern with look-around may take; one without takes linear time.
const BACKTRACKS: usize = 100_000;

/// Compiled input schemas, one for each tool definition, compiled when first needed. A clone is the same
/// set, so that one agent's runs compile nothing twice.
#[derive(Clone, Default)]
pub struct Validators {
    /// `None` for a schema that cannot be compiled: the server has the last word then.
    compiled: Arc<PerDefinition<Option<Validator>>>,
}

/// Input that may be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The input.
    pub input: JsonObject,
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
    /// Makes what every schema needs, once in a process: the schema of schemas, which else the first check would make. For somebody
    /// who has to wait for something else meanwhile, on a thread of its own.
    pub fn prepare() {
        // One that says something: that an empty one fits is known without the schema of schemas.
        let schema = json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        });
        let input = json!({"id": 1});
        let _ = compile(&schema).is_some_and(|validator| validator.is_valid(&input));
    }

    /// `Err` names every fault of `input`, for the model.
    pub fn check(
        &self,
        definition: &Arc<ToolDefinition>,
        input: JsonObject,
    ) -> Result<JsonObject, String> {
        let validator = self.validator(definition);
        let Some(validator) = &*validator else {
            return Ok(input);
        };
        let input = Value::Object(input);
        match (validator.is_valid(&input), input) {
            (true, Value::Object(input)) => Ok(input),
            (_, input) => Err(faults(validator, &input)),
        }
    }

    /// Whether an input fits but for what is excused: told is the value that does not fit, and what is asked of it.
    pub fn fits_but_for(
        &self,
        definition: &Arc<ToolDefinition>,
        input: &Value,
        excuses: &dyn Fn(&Value, Demand<'_>) -> bool,
    ) -> bool {
        let validator = self.validator(definition);
        let Some(validator) = &*validator else {
            return true;
        };
        let mut faults = validator.iter_errors(input);
        faults.all(|fault| is_excused(input, &fault, excuses))
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
                fitting(validator, definition, object.clone()).map_err(|input| {
                    let faults = faults(validator, &input);
                    InputFault::Invalid { faults }
                })
            }
            (ToolInput::Malformed { raw, reason }, validator) => {
                // With no schema to say that the result is right, nothing is repaired.
                let repaired = validator.as_ref().and_then(|validator| {
                    let named = |name: &str| schema::names_property(&definition.input_schema, name);
                    let (object, mut repairs) = text::repair(raw, reason, &named)?;
                    let checked = fitting(validator, definition, object).ok()?;
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

    fn validator(&self, definition: &Arc<ToolDefinition>) -> Arc<Option<Validator>> {
        self.compiled
            .of(definition, |definition| compile(&definition.input_schema))
    }
}

/// The object as it is if it is valid, or repaired; an `Err` gives back what cannot be.
fn fitting(
    validator: &Validator,
    definition: &ToolDefinition,
    object: JsonObject,
) -> Result<Checked, Value> {
    let input = Value::Object(object);
    match (validator.is_valid(&input), input) {
        (true, Value::Object(input)) => Ok(Checked {
            input,
            repairs: Vec::new(),
        }),
        (_, input) => {
            let schema = &definition.input_schema;
            fit::fit(validator, schema, &definition.name, &input)
                .map(|(input, repairs)| Checked { input, repairs })
                .ok_or(input)
        }
    }
}

/// A validator that fetches nothing, from wherever, and in whose patterns no input gets stuck.
pub(crate) fn compile(schema: &Value) -> Option<Validator> {
    let options = jsonschema::options().offline();
    // Patterns in linear time; look-around has none, so that it gets a limit.
    let linear = options
        .clone()
        .with_pattern_options(PatternOptions::regex())
        .build(schema);
    linear
        .or_else(|_| {
            let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS);
            options.with_pattern_options(patterns).build(schema)
        })
        .ok()
}

fn faults(validator: &Validator, instance: &Value) -> String {
    let mut faults = Vec::new();
    for error in validator.iter_errors(instance) {
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
