//! Exemptions of values from the tool's schema, such as redacted secrets in recordings.

use serde_json::Value;
use switchboard_domain::json_schema::{ValidationError, error::ValidationErrorKind};

/// Predicate that exempts a value from a violated requirement of its schema.
pub(super) type Exemption<'a> = &'a dyn Fn(&Value, Requirement<'_>) -> bool;

/// A requirement of a schema that a value violates.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Requirement<'a> {
    /// One of these values.
    OneOf(&'a [Value]),
    /// Another type.
    Type,
    /// A text in another format.
    Format,
    /// A text with at most this number of characters.
    MaxLength(u64),
    /// Other items or properties, such as unique items.
    Contents,
}

/// Returns whether a fault is exempt. For `anyOf` and `oneOf`, one exempt branch is sufficient.
pub(super) fn is_exempt(
    input: &Value,
    fault: &ValidationError<'_>,
    exemption: Option<Exemption<'_>>,
) -> bool {
    let Some(exempts) = exemption else {
        return false;
    };
    let Some(value) = input.pointer(fault.instance_path().as_str()) else {
        return false;
    };
    let requirement = match fault.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            return context.iter().any(|branch| {
                branch
                    .iter()
                    .all(|fault| is_exempt(input, fault, exemption))
            });
        }
        ValidationErrorKind::Enum { options } => {
            Requirement::OneOf(options.as_array().map_or(&[][..], Vec::as_slice))
        }
        ValidationErrorKind::Constant { expected_value } => {
            Requirement::OneOf(std::slice::from_ref(&**expected_value))
        }
        ValidationErrorKind::Type { .. } => Requirement::Type,
        ValidationErrorKind::MaxLength { limit } => Requirement::MaxLength(*limit),
        ValidationErrorKind::Pattern { .. }
        | ValidationErrorKind::BacktrackLimitExceeded { .. }
        | ValidationErrorKind::RegexEngineFailure { .. }
        | ValidationErrorKind::Format { .. }
        | ValidationErrorKind::MinLength { .. }
        | ValidationErrorKind::ContentEncoding { .. }
        | ValidationErrorKind::ContentMediaType { .. }
        | ValidationErrorKind::FromUtf8 { .. } => Requirement::Format,
        ValidationErrorKind::Not { .. }
        | ValidationErrorKind::OneOfMultipleValid { .. }
        | ValidationErrorKind::Contains
        | ValidationErrorKind::UniqueItems => Requirement::Contents,
        // A missing or an unexpected property does not depend on values.
        _ => return false,
    };
    exempts(value, requirement)
}
