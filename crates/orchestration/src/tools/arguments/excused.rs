//! Whether all that is wrong with an input is excused, such as where a secret was struck out of it.

use serde_json::Value;
use switchboard_domain::json_schema::{ValidationError, error::ValidationErrorKind};

/// What a schema asks of a value that does not fit it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Demand<'a> {
    /// One of these values.
    OneOf(&'a [Value]),
    /// Another type.
    Type,
    /// A text of another form.
    Form,
    /// A text of no more characters.
    AtMost(u64),
    /// Other values in it, such as no two that are equal.
    Inside,
}

/// Whether this fault of an input is excused. Of several alternatives it is enough if one could have fitted.
pub(super) fn is_excused(
    input: &Value,
    fault: &ValidationError<'_>,
    excuses: &dyn Fn(&Value, Demand<'_>) -> bool,
) -> bool {
    let Some(value) = input.pointer(fault.instance_path().as_str()) else {
        return false;
    };
    let demand = match fault.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            return context
                .iter()
                .any(|way| way.iter().all(|fault| is_excused(input, fault, excuses)));
        }
        ValidationErrorKind::Enum { options } => {
            Demand::OneOf(options.as_array().map_or(&[][..], Vec::as_slice))
        }
        ValidationErrorKind::Constant { expected_value } => {
            Demand::OneOf(std::slice::from_ref(&**expected_value))
        }
        ValidationErrorKind::Type { .. } => Demand::Type,
        ValidationErrorKind::MaxLength { limit } => Demand::AtMost(*limit),
        ValidationErrorKind::Pattern { .. }
        | ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. }
        | ValidationErrorKind::Format { .. }
        | ValidationErrorKind::MinLength { .. }
        | ValidationErrorKind::ContentEncoding { .. }
        | ValidationErrorKind::ContentMediaType { .. }
        | ValidationErrorKind::FromUtf8 { .. } => Demand::Form,
        ValidationErrorKind::Not { .. }
        | ValidationErrorKind::OneOfMultipleValid { .. }
        | ValidationErrorKind::Contains
        | ValidationErrorKind::UniqueItems => Demand::Inside,
        // What is missing or too much is so whatever the values are.
        _ => return false,
    };
    excuses(value, demand)
}
