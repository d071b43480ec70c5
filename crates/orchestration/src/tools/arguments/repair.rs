//! Repairs of tool input, each with a description for the run's events.
//!
//! These faults are repaired: a code fence, a trailing comma, a number or a boolean in a string,
//! `null` for an optional property, and an object around the arguments. An input with any other
//! fault stays unchanged.

use serde_json::Value;
use switchboard_domain::{
    JsonObject, ToolDefinition, ToolInput,
    json_schema::{
        JsonType, SchemaValidator, ValidationError,
        error::{TypeKind, ValidationErrorKind},
    },
};

use super::schema::{declares_property, unescape_pointer_key};

/// Maximum number of faults that are repaired in a tool input. An input with more faults stays
/// invalid.
const MAX_FAULTS: usize = 500;
/// Number of decimal digits that a 64-bit float represents exactly. Longer numbers may lose digits.
const EXACT_DIGITS: usize = 15;
/// Names of properties in which some models wrap the arguments of a call by mistake.
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

/// A repaired value, and the descriptions of its repairs for the run's events.
pub(super) type Repaired<T> = (T, Vec<String>);

/// Parses the text of a malformed tool input after removing its code fence and its trailing commas.
/// Returns the parsed object and descriptions of the repairs.
///
/// `reason` is the reason why the input is malformed. Returns `None` if the text has other errors,
/// or if `reason` is not the parse error of the text but, for example, a cut-off response.
pub(super) fn repair_malformed_json(raw: &str, reason: &str) -> Option<Repaired<JsonObject>> {
    match ToolInput::parse_input(raw) {
        ToolInput::Malformed { reason: own, .. } if own == reason => {}
        _ => return None,
    }
    let mut repairs = Vec::new();
    let mut text = raw.trim();
    if let Some(fenced) = extract_fenced_text(text) {
        repairs.push("removed the code fence around the object".to_owned());
        text = fenced;
    }
    let (text, commas) = remove_trailing_commas(text);
    match commas {
        0 => {}
        1 => repairs.push("removed a trailing comma".to_owned()),
        n => repairs.push(format!("removed {n} trailing commas")),
    }
    match ToolInput::parse_input(&text) {
        // An empty text would be parsed as an empty object, although the model wrote no input.
        ToolInput::Object(object) if !repairs.is_empty() && !text.is_empty() => {
            Some((object.into_object(), repairs))
        }
        _ => None,
    }
}

/// Returns the text inside a Markdown code fence. Returns `None` if the fence does not surround the
/// whole text.
fn extract_fenced_text(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    Some(inner.trim_start_matches(char::is_alphanumeric).trim())
}

/// Removes commas before closing brackets. Returns the text and the number of removed commas.
fn remove_trailing_commas(text: &str) -> (String, usize) {
    let mut clean = String::with_capacity(text.len());
    let mut removed = 0;
    let (mut in_string, mut escaped) = (false, false);
    let mut previous = '\0';
    for (at, c) in text.char_indices() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c == '"' {
            in_string = true;
        } else if c == ','
            && text[at + 1..].trim_start().starts_with(['}', ']'])
            && !matches!(previous, '\0' | '{' | '[' | ',')
        {
            removed += 1;
            continue;
        }
        if !c.is_whitespace() {
            previous = c;
        }
        clean.push(c);
    }
    (clean, removed)
}

/// Repairs a tool input so that the schema accepts it. Returns the input and its repairs, or `None`
/// if it needs no repair or stays invalid.
pub(super) fn repair_tool_input(
    validator: &SchemaValidator,
    tool: &ToolDefinition,
    input: &Value,
) -> Option<Repaired<JsonObject>> {
    let repaired = repair_scalars(validator, input.clone()).or_else(|| {
        let (inner, unwrapped) = unwrap_arguments(tool, input.as_object()?)?;
        let (value, repairs) = repair_scalars(validator, Value::Object(inner))?;
        Some((value, [vec![unwrapped], repairs].concat()))
    });
    match repaired? {
        (Value::Object(object), repairs) if !repairs.is_empty() => Some((object, repairs)),
        _ => None,
    }
}

/// Returns the inner object of an input such as `{"arguments": {…}}`, and a description of the
/// repair. Returns `None` for other inputs. Also returns `None` if the schema declares a property
/// of the outer object, which is then not a mistake of the model.
fn unwrap_arguments(tool: &ToolDefinition, input: &JsonObject) -> Option<(JsonObject, String)> {
    let mut wrapper = None;
    for (key, value) in input {
        let is_tool_name =
            matches!(key.as_str(), "name" | "tool" | "function") && *value == tool.name;
        if declares_property(&tool.input_schema, key) {
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
        Value::String(text) => match ToolInput::parse_input(text) {
            ToolInput::Object(inner) => inner.into_object(),
            ToolInput::Malformed { .. } => return None,
        },
        _ => return None,
    };
    let description = format!("unwrapped the input from `{key}`, which is not in the schema");
    Some((inner, description))
}

/// Repairs the scalar values of an input. Returns the value and descriptions of the repairs, which
/// are empty if the value was valid. Returns `None` if the value stays invalid.
fn repair_scalars(validator: &SchemaValidator, mut value: Value) -> Option<Repaired<Value>> {
    let mut changes: Vec<ProposedChange> = Vec::new();
    for fault in validator.list_errors(&value).ok()?.iter().take(MAX_FAULTS) {
        collect_repair_changes(&value, fault, &mut changes);
    }
    let mut repairs = Vec::new();
    for (path, new_value, description) in changes {
        if let Some(new_value) = new_value {
            *value.pointer_mut(&path)? = new_value;
        } else {
            let (parent, key) = path.rsplit_once('/')?;
            let parent = value.pointer_mut(parent)?.as_object_mut()?;
            // `shift_remove` keeps the order of the remaining properties, unlike `remove`.
            parent.shift_remove(&unescape_pointer_key(key))?;
        }
        repairs.push(format!("{path}: {description}"));
    }
    (validator.is_valid(&value) == Ok(true)).then_some((value, repairs))
}

/// A proposed change of an input: the JSON pointer of a value, the new value (`None` removes the
/// property), and a description.
type ProposedChange = (String, Option<Value>, String);

/// Collects changes that could repair a validation fault. For a fault of `anyOf` or `oneOf`,
/// collects the changes for every branch.
fn collect_repair_changes(
    root: &Value,
    fault: &ValidationError<'_>,
    changes: &mut Vec<ProposedChange>,
) {
    let path = fault.instance_path().as_str();
    let (new_value, description) = match (root.pointer(path), fault.kind()) {
        (Some(Value::Null), _) => (None, "removed null: the property is optional".to_owned()),
        (
            _,
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context },
        ) => {
            for fault in context.iter().flatten().take(MAX_FAULTS) {
                collect_repair_changes(root, fault, changes);
            }
            return;
        }
        (Some(Value::String(text)), ValidationErrorKind::Type { kind }) => {
            let Some(value) = parse_scalar(text, kind) else {
                return;
            };
            let name = if value.is_boolean() {
                "boolean"
            } else {
                "number"
            };
            let description = format!("converted the text {text:?} to a {name}");
            (Some(value), description)
        }
        _ => return,
    };
    if !changes.iter().any(|(other, ..)| other == path) {
        changes.push((path.to_owned(), new_value, description));
    }
}

/// Parses a text as the number or boolean that the schema requires, and returns `None` if that is
/// not possible. Texts of numbers that would lose digits are not parsed, because they are probably
/// ids.
fn parse_scalar(text: &str, required: &TypeKind) -> Option<Value> {
    let is_required = |wanted: JsonType| match required {
        TypeKind::Single(single) => *single == wanted,
        TypeKind::Multiple(several) => several.contains(wanted),
    };
    if text.trim() != text {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let is_match = match &value {
        Value::Number(number) => {
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            let is_exact = digits <= EXACT_DIGITS || number.to_string() == text;
            let is_integer = is_required(JsonType::Integer) && !number.is_f64();
            is_exact && (is_integer || is_required(JsonType::Number))
        }
        Value::Bool(_) => is_required(JsonType::Boolean),
        _ => false,
    };
    is_match.then_some(value)
}
