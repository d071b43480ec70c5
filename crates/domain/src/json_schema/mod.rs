//! JSON Schema validation with bounded cost.
//!
//! Schemas come from MCP servers and API clients, and values from models and servers. A schema of
//! 3 kB whose definitions refer to each other can describe more than 10^12 evaluation steps, and a
//! validator cannot be interrupted. [`SchemaValidator`] therefore counts the steps first and
//! refuses a check that needs more than [`MAX_VISITS`] of them.
//!
//! It is the only place that compiles and evaluates schemas. It never fetches a `$ref`, and it
//! matches patterns in linear time.
//!
//! ```
//! use serde_json::json;
//! use switchboard_domain::json_schema::SchemaValidator;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = json!({"type": "object", "required": ["id"]});
//! let validator = SchemaValidator::compile(&schema)?;
//! assert!(validator.is_valid(&json!({"id": 42}))?);
//! assert_eq!(validator.list_errors(&json!({}))?[0].to_string(), "\"id\" is a required property");
//! # Ok(())
//! # }
//! ```

mod references;
mod validation_cost;

pub use jsonschema::{Draft, JsonType, ValidationError, error};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Maximum number of steps of one check. A step applies one schema node to one value node. The
/// slowest allowed check takes less than 100 ms on one core.
pub const MAX_VISITS: u64 = 1_000_000;
/// Maximum number of steps of [`SchemaValidator::list_errors`]. Each error in a branch of `anyOf`
/// or `oneOf` contains a copy of the invalid value. Each JSON value in the copy counts as one step.
const MAX_ERROR_STEPS: u64 = 2_000_000;
/// Maximum number of JSON values in a schema. A larger schema is refused.
const MAX_SCHEMA_VALUES: usize = 20_000;
/// Maximum nesting of a schema, in levels. A deeper schema is refused.
const MAX_SCHEMA_DEPTH: usize = 100;
/// Maximum size of one compiled pattern in bytes. For example, `\p{L}{1,64}` takes 1 MB.
const MAX_PATTERN_BYTES: usize = 2 << 20;

/// A compiled schema whose checks have a bounded cost.
#[derive(Debug)]
pub struct SchemaValidator {
    validator: Validator,
    /// The schema before compilation. It is needed to count the steps of a check.
    schema: Value,
}

/// Options of [`SchemaValidator::compile_with_options`]. The defaults follow MCP: `$schema` selects
/// the draft, and a schema without `$schema` uses 2020-12. The draft decides whether `format` is
/// checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct SchemaOptions {
    /// The JSON Schema draft, which takes precedence over `$schema`. `None` uses the draft that
    /// `$schema` names, or 2020-12.
    pub draft: Option<Draft>,
    /// Whether a value that violates `format` is invalid. `None` applies the rule of the draft.
    pub assert_formats: Option<bool>,
}

/// The error for a schema that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema has more than `max` JSON values.
    #[error("the schema is too large: it has more than {max} values")]
    TooLarge { max: usize },
    /// The schema has more than `max` levels of nesting.
    #[error("the schema is nested more than {max} levels deep")]
    TooDeep { max: usize },
    /// The schema is not valid, or refers to another document.
    #[error("{reason}")]
    Invalid {
        /// Description of the fault, without values from the schema.
        reason: String,
    },
}

/// The error for a check that needs too many steps and was therefore not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[error("checking this value against the schema takes too many steps (maximum {max})")]
pub struct ValidationTooExpensive {
    pub max: u64,
}

impl SchemaValidator {
    /// Compiles a schema with the default options.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Self::compile_with_options(schema, SchemaOptions::default())
    }

    /// Compiles a schema. Ignores patterns that need look-around or back-references, because they
    /// cannot be matched in linear time.
    pub fn compile_with_options(
        schema: &Value,
        options: SchemaOptions,
    ) -> Result<Self, SchemaError> {
        check_schema_size(schema)?;
        let validator = match build_validator(schema, options) {
            Ok(validator) => validator,
            Err(error) => match remove_unsupported_patterns(schema) {
                Some(schema) => build_validator(&schema, options)
                    .map_err(|error| invalid_schema_error(&error))?,
                None => return Err(invalid_schema_error(&error)),
            },
        };
        let schema = schema.clone();
        Ok(Self { validator, schema })
    }

    /// Returns whether the value conforms to the schema. Fails if the check takes more than
    /// [`MAX_VISITS`] steps.
    pub fn is_valid(&self, value: &Value) -> Result<bool, ValidationTooExpensive> {
        self.check_step_limit(value)?;
        Ok(self.validator.is_valid(value))
    }

    /// Returns every validation error of the value. The list is empty for a valid value.
    ///
    /// Fails if [`Self::is_valid`] fails, or if listing the errors of an invalid value takes too
    /// many steps. Listing takes more steps than a check, because errors contain copies of values.
    pub fn list_errors<'i>(
        &'i self,
        value: &'i Value,
    ) -> Result<Vec<ValidationError<'i>>, ValidationTooExpensive> {
        self.check_step_limit(value)?;
        let steps = validation_cost::count_error_listing_steps(&self.schema, value, MAX_VISITS);
        if steps.is_none_or(|steps| steps > MAX_ERROR_STEPS) {
            let max = steps.map_or(MAX_VISITS, |_| MAX_ERROR_STEPS);
            return if self.validator.is_valid(value) {
                Ok(Vec::new())
            } else {
                Err(ValidationTooExpensive { max })
            };
        }
        Ok(self.validator.iter_errors(value).collect())
    }

    /// Returns an error if the check takes more than [`MAX_VISITS`] steps.
    fn check_step_limit(&self, value: &Value) -> Result<(), ValidationTooExpensive> {
        let max = MAX_VISITS;
        let steps = validation_cost::count_validation_steps(&self.schema, value, max);
        steps.map(drop).ok_or(ValidationTooExpensive { max })
    }
}

fn build_validator(
    schema: &Value,
    options: SchemaOptions,
) -> Result<Validator, ValidationError<'static>> {
    let mut base = jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES));
    if let Some(draft) = options.draft {
        base = base.with_draft(draft);
    }
    if let Some(assert_formats) = options.assert_formats {
        base = base.should_validate_formats(assert_formats);
    }
    base.build(schema)
}

fn invalid_schema_error(error: &ValidationError<'_>) -> SchemaError {
    let reason = error.masked().to_string();
    SchemaError::Invalid { reason }
}

/// Returns an error if a schema is too large or nested too deeply. Works without recursion, which
/// could overflow the stack.
fn check_schema_size(schema: &Value) -> Result<(), SchemaError> {
    let mut values = 0_usize;
    let mut open = vec![(schema, 1_usize)];
    while let Some((value, depth)) = open.pop() {
        values += 1;
        if values > MAX_SCHEMA_VALUES {
            let max = MAX_SCHEMA_VALUES;
            return Err(SchemaError::TooLarge { max });
        }
        if depth > MAX_SCHEMA_DEPTH {
            let max = MAX_SCHEMA_DEPTH;
            return Err(SchemaError::TooDeep { max });
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the schema without the patterns that the linear-time engine cannot match; `None` if it
/// has no such pattern.
fn remove_unsupported_patterns(schema: &Value) -> Option<Value> {
    let is_supported = |pattern: &str| {
        let probe = serde_json::json!({ "pattern": pattern });
        build_validator(&probe, SchemaOptions::default()).is_ok()
    };
    let mut schema = schema.clone();
    let mut removed = false;
    let mut open = vec![&mut schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter_mut()),
            Value::Object(fields) => {
                let pattern = fields.get("pattern").and_then(Value::as_str);
                if pattern.is_some_and(|pattern| !is_supported(pattern)) {
                    fields.shift_remove("pattern");
                    removed = true;
                }
                if let Some(Value::Object(patterns)) = fields.get_mut("patternProperties") {
                    let before = patterns.len();
                    patterns.retain(|pattern, _| is_supported(pattern));
                    if patterns.len() < before {
                        // The empty pattern, which matches every name, replaces a pattern that was
                        // removed. Otherwise, `additionalProperties` would reject the members that
                        // the removed pattern allowed.
                        patterns.entry("").or_insert(serde_json::json!({}));
                        removed = true;
                    }
                }
                open.extend(fields.values_mut());
            }
            _ => {}
        }
    }
    removed.then_some(schema)
}

#[cfg(test)]
#[path = "json_schema_tests.rs"]
mod tests;
