//! Repairs of values by the tool's schema.
//!
//! The validator says what is wrong and where; for some faults there is one obvious other way to read
//! the value. All of them are applied, the result is validated, and only a result without faults counts.
//! Where two readings are equally near, there is no repair.

use serde_json::{Value, json};
use switchboard_domain::{
    JsonObject, ToolInput,
    json_schema::{
        JsonType, SchemaValidator, ValidationError,
        error::{TypeKind, ValidationErrorKind},
    },
};

use super::{
    excused::{Demand, is_excused},
    repair::{Repair, quoted},
    schema::{names_property, unescaped},
};

/// How often the result of repairs is looked at again: a text may hold an object whose properties need
/// repair themselves.
const ROUNDS: usize = 6;
/// Faults dealt with in one round.
const MOST_FAULTS: usize = 500;
/// Branches of one `anyOf` or `oneOf` that are tried.
const MOST_BRANCHES: usize = 16;
/// How deep alternatives within alternatives are tried.
const DEEPEST: usize = 3;
/// Maximum number of validations of one input.
const MOST_VALIDATIONS: u64 = 200;
/// Maximum cost of all validations of one input, in visits and values: large inputs are validated
/// fewer times.
const MOST_COST: u64 = 200_000;
/// Digits that a 64-bit fraction keeps.
const EXACT_DIGITS: usize = 15;
/// Names that models put around the arguments.
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

/// What of an input need not fit: told is the value, and what is asked of it.
pub(super) type Excuses<'a> = &'a dyn Fn(&Value, Demand<'_>) -> bool;

/// The input as `validator` takes it, and what was done for that. `None` if there is no such reading, or
/// if the input needs none. What is excused is left as it is.
pub(super) fn fit(
    validator: &SchemaValidator,
    schema: &Value,
    tool: &str,
    input: &Value,
    excuses: Option<Excuses<'_>>,
) -> Option<(JsonObject, Vec<Repair>)> {
    let cost = validator.visits(input).ok()?.max(count(input)).max(1);
    let fuel = (MOST_COST / cost).clamp(3, MOST_VALIDATIONS);
    let mut fitter = Fitter {
        validator,
        fuel,
        excuses,
    };
    let (value, repairs) = fitter.fit(input.clone()).or_else(|| {
        let (inner, unwrapped) = unwrap(schema, tool, input.as_object()?)?;
        let (value, further) = fitter.fit(Value::Object(inner))?;
        Some((value, std::iter::once(unwrapped).chain(further).collect()))
    })?;
    match value {
        Value::Object(object) if !repairs.is_empty() => Some((object, repairs)),
        _ => None,
    }
}

/// What is inside of `{"arguments": {…}}`, where the schema has no such property.
fn unwrap(schema: &Value, tool: &str, input: &JsonObject) -> Option<(JsonObject, Repair)> {
    let mut wrapper = None;
    for (key, value) in input {
        let names_tool = matches!(key.as_str(), "name" | "tool" | "function") && value == tool;
        let known = names_property(schema, key);
        match (known, names_tool, &wrapper) {
            (false, true, _) => {}
            (false, false, None) if WRAPPERS.contains(&key.as_str()) => {
                wrapper = Some((key, value));
            }
            _ => return None,
        }
    }
    let (key, value) = wrapper?;
    let (inner, form) = match value {
        Value::Object(inner) => (inner.clone(), ""),
        Value::String(text) => match ToolInput::parse(text) {
            ToolInput::Object(inner) => (inner.into_object(), ", and read from JSON text"),
            ToolInput::Malformed { .. } => return None,
        },
        _ => return None,
    };
    let what = format!("the input was taken out of `{key}`, which the schema does not have{form}");
    Some((inner, Repair::whole(what)))
}

/// One other reading of one place.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    path: String,
    reading: Reading,
    what: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Reading {
    /// This value instead.
    Value(Value),
    /// No such property.
    Nothing,
}

struct Fitter<'a> {
    validator: &'a SchemaValidator,
    /// Validations left.
    fuel: u64,
    excuses: Option<Excuses<'a>>,
}

impl Fitter<'_> {
    /// The value without faults, if it can be had.
    fn fit(&mut self, mut value: Value) -> Option<(Value, Vec<Repair>)> {
        let mut repairs = Vec::new();
        for _ in 0..ROUNDS {
            let mut changes: Vec<Change> = Vec::new();
            let validator = self.validator;
            self.burn()?;
            let mut faults = 0;
            let found = validator.errors(&value).ok()?;
            for fault in found.iter().take(MOST_FAULTS) {
                if self.is_excused(&value, fault) {
                    continue;
                }
                faults += 1;
                changes.extend(self.propose(&value, fault, 0).unwrap_or_default());
            }
            drop(found);
            if faults == 0 {
                return Some((value, repairs));
            }
            let applied = apply(&mut value, changes);
            if applied.is_empty() {
                return None;
            }
            repairs.extend(
                applied
                    .into_iter()
                    .map(|change| Repair::new(change.path, change.what)),
            );
        }
        self.burn()?;
        let faults = self.validator.errors(&value).ok()?;
        let is_mended = faults.iter().all(|fault| self.is_excused(&value, fault));
        drop(faults);
        is_mended.then_some((value, repairs))
    }

    fn is_excused(&self, input: &Value, fault: &ValidationError<'_>) -> bool {
        self.excuses
            .is_some_and(|excuses| is_excused(input, fault, excuses))
    }

    fn burn(&mut self) -> Option<()> {
        self.fuel = self.fuel.checked_sub(1)?;
        Some(())
    }

    /// What would mend one fault; several changes only where a branch of alternatives needs them.
    fn propose(
        &mut self,
        root: &Value,
        fault: &ValidationError<'_>,
        depth: usize,
    ) -> Option<Vec<Change>> {
        let path = fault.instance_path().as_str();
        let value = root.pointer(path)?;
        let one = |reading: Reading, what: String| {
            let path = path.to_owned();
            Some(vec![Change {
                path,
                reading,
                what,
            }])
        };
        let kind = fault.kind();
        if value.is_null() && refuses_null(kind) && in_object(root, path) {
            // If it is required, the result is not valid, and nothing is repaired.
            let what = "null was left out: the property is optional";
            return one(Reading::Nothing, what.to_owned());
        }
        match kind {
            ValidationErrorKind::Type { kind } => {
                let (value, what) = retype(value, |wanted| wants(kind, wanted))?;
                one(Reading::Value(value), what)
            }
            ValidationErrorKind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                let (value, what) = among(value, options)?;
                one(Reading::Value(value), what)
            }
            ValidationErrorKind::Constant { expected_value } => {
                let (value, what) = among(value, std::slice::from_ref(&**expected_value))?;
                one(Reading::Value(value), what)
            }
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                if depth >= DEEPEST {
                    return None;
                }
                let mut best: Option<Vec<Change>> = None;
                let mut tied = false;
                for (branch, faults) in context.iter().enumerate().take(MOST_BRANCHES) {
                    let Some(changes) = self.branch(root, path, branch, faults, depth) else {
                        continue;
                    };
                    match &best {
                        Some(other) if other.len() < changes.len() => {}
                        Some(other) if other.len() == changes.len() => {
                            tied = tied || !same(other, &changes);
                        }
                        _ => {
                            tied = false;
                            best = Some(changes);
                        }
                    }
                }
                best.filter(|_| !tied)
            }
            _ => None,
        }
    }

    /// What makes the value at `path` fit one branch of its alternatives.
    fn branch(
        &mut self,
        root: &Value,
        path: &str,
        branch: usize,
        faults: &[ValidationError<'static>],
        depth: usize,
    ) -> Option<Vec<Change>> {
        let changes = self.mend_all(root, faults, depth)?;
        self.burn()?;
        let mut value = root.clone();
        let mut done = apply(&mut value, changes);
        for _ in 0..ROUNDS {
            self.burn()?;
            let validator = self.validator;
            let left: Vec<_> = validator
                .errors(&value)
                .ok()?
                .into_iter()
                .filter(|fault| is_below(fault.instance_path().as_str(), path))
                .filter(|fault| !self.is_excused(&value, fault))
                .map(ValidationError::to_owned)
                .collect();
            if left.is_empty() {
                return (!done.is_empty()).then_some(done);
            }
            let faults = left
                .into_iter()
                .find_map(|fault| match fault.into_parts().kind {
                    ValidationErrorKind::AnyOf { mut context }
                    | ValidationErrorKind::OneOfNotValid { mut context }
                        if branch < context.len() =>
                    {
                        Some(context.swap_remove(branch))
                    }
                    _ => None,
                })?;
            let changes = self.mend_all(&value, &faults, depth)?;
            let applied = apply(&mut value, changes);
            if applied.is_empty() {
                return None;
            }
            done.extend(applied);
        }
        None
    }

    /// A change for every one of the faults that are not excused.
    fn mend_all(
        &mut self,
        root: &Value,
        faults: &[ValidationError<'_>],
        depth: usize,
    ) -> Option<Vec<Change>> {
        let mut changes = Vec::new();
        for fault in faults.iter().take(MOST_FAULTS) {
            if !self.is_excused(root, fault) {
                changes.extend(self.propose(root, fault, depth + 1)?);
            }
        }
        Some(changes)
    }
}

/// The same readings, whatever the words.
fn same(one: &[Change], other: &[Change]) -> bool {
    one.iter()
        .map(|change| (&change.path, &change.reading))
        .eq(other.iter().map(|change| (&change.path, &change.reading)))
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Does what can be done, and gives back what was done: one change for each place, and none below a place
/// that has changed.
fn apply(value: &mut Value, changes: Vec<Change>) -> Vec<Change> {
    let mut done: Vec<Change> = Vec::new();
    for change in changes {
        let meets = |other: &Change| {
            is_below(&change.path, &other.path) || is_below(&other.path, &change.path)
        };
        if done.iter().any(meets) {
            continue;
        }
        let applied = match &change.reading {
            Reading::Value(reading) => value
                .pointer_mut(&change.path)
                .map(|place| *place = reading.clone()),
            Reading::Nothing => remove(value, &change.path),
        };
        if applied.is_some() {
            done.push(change);
        }
    }
    done
}

fn remove(value: &mut Value, path: &str) -> Option<()> {
    let (parent, key) = path.rsplit_once('/')?;
    let parent = value.pointer_mut(parent)?.as_object_mut()?;
    // Not `remove`, which changes the order of the others.
    parent.shift_remove(&unescaped(key)).map(|_| ())
}

fn in_object(root: &Value, path: &str) -> bool {
    path.rsplit_once('/')
        .and_then(|(parent, _)| root.pointer(parent))
        .is_some_and(Value::is_object)
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

fn wants(kind: &TypeKind, wanted: JsonType) -> bool {
    match kind {
        TypeKind::Single(single) => *single == wanted,
        TypeKind::Multiple(several) => several.contains(wanted),
    }
}

/// The value as one of the types that are wanted.
fn retype(value: &Value, wants: impl Fn(JsonType) -> bool) -> Option<(Value, String)> {
    match value {
        Value::String(text) => {
            if let Some(read) = exactly(text) {
                let (fits, words) = match &read {
                    Value::Number(number) => (
                        wants(JsonType::Number) || (wants(JsonType::Integer) && !number.is_f64()),
                        "as a number",
                    ),
                    Value::Bool(_) => (wants(JsonType::Boolean), "as a boolean"),
                    Value::Null => (wants(JsonType::Null), "as null"),
                    Value::Object(_) => {
                        (wants(JsonType::Object), "as the JSON object that it holds")
                    }
                    Value::Array(_) => (wants(JsonType::Array), "as the JSON list that it holds"),
                    Value::String(_) => (false, ""),
                };
                if fits {
                    return Some((read, format!("the text {} was read {words}", quoted(text))));
                }
            }
            // What begins like JSON, or holds several things, is no single item.
            let several =
                text.trim_start().starts_with(['[', '{']) || text.contains([',', ';', '\n']);
            (wants(JsonType::Array) && !several).then(|| listed(value))
        }
        // Not a fraction: `1.10` may have been a version.
        Value::Number(number) if wants(JsonType::String) && !number.is_f64() => Some((
            Value::String(number.to_string()),
            format!("the number {number} was read as a text"),
        )),
        Value::Number(_) | Value::Bool(_) | Value::Object(_) if wants(JsonType::Array) => {
            Some(listed(value))
        }
        _ => None,
    }
}

fn listed(value: &Value) -> (Value, String) {
    (
        json!([value]),
        "the single value was put into a list".to_owned(),
    )
}

/// The JSON value that a text is, if nothing of it is lost by reading it.
fn exactly(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    match &value {
        Value::Number(number) => (is_exact(text, number)).then_some(value),
        Value::Bool(_) | Value::Null => (text.trim().len() == text.len()).then_some(value),
        Value::String(_) => None,
        Value::Array(_) | Value::Object(_) => Some(value),
    }
}

/// Whether a number kept all of its digits. A long row of digits that does not fit is an id.
fn is_exact(text: &str, number: &serde_json::Number) -> bool {
    if !number.is_f64() {
        return number.to_string() == text;
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    digits <= EXACT_DIGITS
        && text.trim().len() == text.len()
        && number.as_f64().is_some_and(f64::is_finite)
}

/// The one of `options` that the value means.
fn among(value: &Value, options: &[Value]) -> Option<(Value, String)> {
    let found = match value {
        Value::String(text) => {
            let meant = folded(text);
            let read = exactly(text);
            unique(options, |option| match option {
                Value::String(option) => folded(option) == meant,
                other => read.as_ref() == Some(other),
            })?
        }
        Value::Number(number) if !number.is_f64() => {
            let text = number.to_string();
            unique(options, |option| option.as_str() == Some(&text))?
        }
        _ => return None,
    };
    Some((found.clone(), format!("{value} was read as {found}")))
}

fn unique(options: &[Value], is: impl Fn(&Value) -> bool) -> Option<&Value> {
    let mut found = options.iter().filter(|option| is(option));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Without case, and with one space for any space.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(char::to_lowercase));
    }
    folded
}

/// How many values there are, counted up to [`MOST_COST`].
fn count(value: &Value) -> u64 {
    let mut open = vec![value];
    let mut count = 0;
    while let Some(value) = open.pop() {
        count += 1;
        if count >= MOST_COST {
            break;
        }
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(object) => open.extend(object.values()),
            _ => {}
        }
    }
    count
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
