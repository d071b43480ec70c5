//! Repairs of values that do not match the tool's schema.
//!
//! The repairs are: a number or a boolean in a string, `null` for an optional property, and an
//! object around the arguments. All faults must be repaired; otherwise the input stays unchanged.

use serde_json::{Value, value::Number};
use switchboard_domain::{
    JsonObject, ToolInput,
    json_schema::{
        JsonType, SchemaValidator, ValidationError,
        error::{TypeKind, ValidationErrorKind},
    },
};

use super::{
    exemption::{Exemption, is_exempt},
    repair::{Repair, quoted},
    schema::{names_property, unescaped},
};

/// Maximum number of faults that are repaired in one input.
const MAX_FAULTS: usize = 500;
/// Number of decimal digits that a 64-bit float keeps.
const EXACT_DIGITS: usize = 15;
/// Property names of objects that models put around the arguments.
const WRAPPERS: [&str; 8] = [
    "arguments",
    "input",
    "parameters",
    "args",
    "params",
    "tool_input",
    "function_args",
    "kwargs",
];

/// Returns the input as the schema accepts it, and its repairs.
///
/// Returns `None` if the input needs no repair or if the repairs do not make it valid. Exempt
/// values stay unchanged.
pub(super) fn repair_values(
    validator: &SchemaValidator,
    schema: &Value,
    tool: &str,
    input: &Value,
    exemption: Option<Exemption<'_>>,
) -> Option<(JsonObject, Vec<Repair>)> {
    let repaired = repair_scalars(validator, input.clone(), exemption).or_else(|| {
        let (inner, unwrapped) = unwrap(schema, tool, input.as_object()?)?;
        let (value, repairs) = repair_scalars(validator, Value::Object(inner), exemption)?;
        Some((value, [vec![unwrapped], repairs].concat()))
    });
    match repaired? {
        (Value::Object(object), repairs) if !repairs.is_empty() => Some((object, repairs)),
        _ => None,
    }
}

/// Returns the object inside `{"arguments": {…}}`, if the schema has no such property.
fn unwrap(schema: &Value, tool: &str, input: &JsonObject) -> Option<(JsonObject, Repair)> {
    let mut wrapper = None;
    for (key, value) in input {
        let is_tool_name = matches!(key.as_str(), "name" | "tool" | "function") && value == tool;
        if names_property(schema, key) {
            return None;
        }
        if !is_tool_name {
            if wrapper.is_some() || !WRAPPERS.contains(&key.as_str()) {
                return None;
            }
            wrapper = Some((key, value));
        }
    }
    let (key, value) = wrapper?;
    let inner = match value {
        Value::Object(inner) => inner.clone(),
        Value::String(text) => match ToolInput::parse(text) {
            ToolInput::Object(inner) => inner.into_object(),
            ToolInput::Malformed { .. } => return None,
        },
        _ => return None,
    };
    let description = format!("took the input out of `{key}`, which is not in the schema");
    Some((inner, Repair::whole(description)))
}

/// A proposed change of one value.
struct Change {
    path: String,
    /// The new value. `None` removes the property.
    value: Option<Value>,
    description: String,
}

/// Returns the value without faults and its repairs. The repairs are empty if it had no fault.
fn repair_scalars(
    validator: &SchemaValidator,
    mut value: Value,
    exemption: Option<Exemption<'_>>,
) -> Option<(Value, Vec<Repair>)> {
    let mut changes: Vec<Change> = Vec::new();
    for fault in validator.errors(&value).ok()?.iter().take(MAX_FAULTS) {
        if !is_exempt(&value, fault, exemption) {
            propose(&value, fault, &mut changes);
        }
    }
    let mut repairs = Vec::new();
    for change in changes {
        apply(&mut value, &change)?;
        repairs.push(Repair::new(change.path, change.description));
    }
    let faults = validator.errors(&value).ok()?;
    let is_valid = faults.iter().all(|it| is_exempt(&value, it, exemption));
    drop(faults);
    is_valid.then_some((value, repairs))
}

/// Adds the changes that could repair a fault. For a fault of `anyOf` or `oneOf`, these are the
/// changes for every branch.
fn propose(root: &Value, fault: &ValidationError<'_>, changes: &mut Vec<Change>) {
    let path = fault.instance_path().as_str();
    let Some(value) = root.pointer(path) else {
        return;
    };
    let change = match (value, fault.kind()) {
        (Value::Null, kind) if refuses_null(kind) && is_property(root, path) => {
            Some((None, "removed null: the property is optional".to_owned()))
        }
        (Value::String(text), ValidationErrorKind::Type { kind }) => {
            read_scalar(text, kind).map(|(value, description)| (Some(value), description))
        }
        (
            _,
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context },
        ) => {
            for fault in context.iter().flatten().take(MAX_FAULTS) {
                propose(root, fault, changes);
            }
            None
        }
        _ => None,
    };
    if let Some((value, description)) = change
        && !changes.iter().any(|other| other.path == path)
    {
        let path = path.to_owned();
        changes.push(Change {
            path,
            value,
            description,
        });
    }
}

fn refuses_null(kind: &ValidationErrorKind) -> bool {
    matches!(
        kind,
        ValidationErrorKind::Type { .. }
            | ValidationErrorKind::Enum { .. }
            | ValidationErrorKind::Constant { .. }
            | ValidationErrorKind::AnyOf { .. }
            | ValidationErrorKind::OneOfNotValid { .. }
    )
}

fn is_property(root: &Value, path: &str) -> bool {
    path.rsplit_once('/')
        .and_then(|(parent, _)| root.pointer(parent))
        .is_some_and(Value::is_object)
}

fn apply(root: &mut Value, change: &Change) -> Option<()> {
    if let Some(value) = &change.value {
        root.pointer_mut(&change.path)?.clone_from(value);
    } else {
        let (parent, key) = change.path.rsplit_once('/')?;
        let parent = root.pointer_mut(parent)?.as_object_mut()?;
        // `remove` would change the order of the other properties.
        parent.shift_remove(&unescaped(key))?;
    }
    Some(())
}

/// Returns the number or boolean that a text holds, if the schema requires that type.
fn read_scalar(text: &str, required: &TypeKind) -> Option<(Value, String)> {
    let is_required = |wanted: JsonType| match required {
        TypeKind::Single(single) => *single == wanted,
        TypeKind::Multiple(several) => several.contains(wanted),
    };
    let value: Value = serde_json::from_str(text).ok()?;
    let (is_match, name) = match &value {
        Value::Number(number) => {
            let integer = is_required(JsonType::Integer) && !number.is_f64();
            let is_match = integer || is_required(JsonType::Number);
            (is_match && is_exact(text, number), "number")
        }
        Value::Bool(_) => {
            let is_match = is_required(JsonType::Boolean);
            (is_match && text.trim() == text, "boolean")
        }
        _ => return None,
    };
    is_match.then(|| (value, format!("read the text {} as a {name}", quoted(text))))
}

/// Returns whether the number kept all digits of the text. A longer row of digits is an id.
fn is_exact(text: &str, number: &Number) -> bool {
    if !number.is_f64() {
        return number.to_string() == text;
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    digits <= EXACT_DIGITS && text.trim() == text && number.as_f64().is_some_and(f64::is_finite)
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
