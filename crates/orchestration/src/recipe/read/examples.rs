//! From the examples of a document to [`Example`]s.

use serde_json::Value;
use switchboard_domain::{JsonObject, ToolInput};

use super::super::{
    Example, ExampleCall, RecipeError,
    fields::{Fields, Key},
};

const EXAMPLE: [Key; 3] = [
    ("user", &["question", "input"]),
    ("calls", &["tool_calls"]),
    ("answer", &["assistant", "output"]),
];
const CALL: [Key; 4] = [
    ("tool", &["name"]),
    ("input", &["arguments", "args"]),
    ("result", &["output"]),
    ("is_error", &["error"]),
];

pub(super) fn examples(fields: &Fields<'_>) -> Result<Vec<Example>, RecipeError> {
    let Some(value) = fields.get("examples") else {
        return Ok(Vec::new());
    };
    let place = fields.path("examples");
    let Some(items) = value.as_array() else {
        return Err(RecipeError::wrong(place, "a list of examples"));
    };
    let is_message = |item: &Value| item.get("role").is_some();
    if !items.is_empty() && items.iter().all(is_message) {
        return from_messages(items, &place);
    }
    items
        .iter()
        .enumerate()
        .map(|(index, item)| example(item, &format!("{place}[{index}]")))
        .collect()
}

fn example(value: &Value, place: &str) -> Result<Example, RecipeError> {
    let fields = Fields::of(value, place, &EXAMPLE)?;
    let mut calls = Vec::new();
    if let Some(value) = fields.get("calls") {
        let place = fields.path("calls");
        let Some(steps) = value.as_array() else {
            return Err(RecipeError::wrong(place, "a list of calls"));
        };
        for (index, step) in steps.iter().enumerate() {
            let place = format!("{place}[{index}]");
            calls.push(match step {
                // Calls that are made together stand in a list of their own.
                Value::Array(together) => together
                    .iter()
                    .enumerate()
                    .map(|(index, call)| example_call(call, &format!("{place}[{index}]")))
                    .collect::<Result<Vec<_>, _>>()?,
                call => vec![example_call(call, &place)?],
            });
        }
    }
    Ok(Example::new(
        fields.required_text("user")?,
        calls,
        fields.required_text("answer")?,
    ))
}

fn example_call(value: &Value, place: &str) -> Result<ExampleCall, RecipeError> {
    let fields = Fields::of(value, place, &CALL)?;
    let input = fields.read("input", "a map of arguments", input)?;
    let result = fields
        .get("result")
        .cloned()
        .ok_or_else(|| RecipeError::Missing {
            path: fields.path("result"),
        })?;
    Ok(ExampleCall::new(
        fields.required_text("tool")?,
        input.unwrap_or_default(),
        result,
        fields.flag("is_error")?.unwrap_or(false),
    ))
}

/// Arguments as a map, or as the JSON text of one.
fn input(value: &Value) -> Option<JsonObject> {
    match value {
        Value::Object(input) => Some(input.clone()),
        Value::String(text) => match ToolInput::parse(text) {
            ToolInput::Object(input) => Some(input.into_object()),
            ToolInput::Malformed { .. } => None,
        },
        _ => None,
    }
}

/// Examples as the messages of OpenAI's wire: `role`, `content`, `tool_calls`, `tool_call_id`.
fn from_messages(items: &[Value], place: &str) -> Result<Vec<Example>, RecipeError> {
    let mut examples: Vec<Example> = Vec::new();
    // Calls that have no result yet, by their ids, in the last step of the last example.
    let mut open: Vec<String> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let fields = Fields::of(
            item,
            &place,
            &[
                ("role", &[]),
                ("content", &[]),
                ("tool_calls", &[]),
                ("tool_call_id", &[]),
                ("name", &[]),
            ],
        )?;
        let role = fields.required_text("role")?;
        let misplaced = || {
            RecipeError::wrong(
                &place,
                "a message in the order user, assistant with calls, tool for each call, assistant",
            )
        };
        if role == "user" {
            if examples
                .last()
                .is_some_and(|example| example.answer.is_empty())
            {
                return Err(misplaced());
            }
            let user = fields.required_text("content")?;
            examples.push(Example::new(user, Vec::new(), String::new()));
            continue;
        }
        let example = examples.last_mut().ok_or_else(misplaced)?;
        if !example.answer.is_empty() {
            return Err(misplaced());
        }
        match (
            role.as_str(),
            fields.get("tool_calls").and_then(Value::as_array),
        ) {
            ("assistant", Some(calls)) if open.is_empty() && !calls.is_empty() => {
                let mut step = Vec::new();
                for call in calls {
                    let function = call.get("function").unwrap_or(call);
                    let text = |key| function.get(key).and_then(Value::as_str);
                    let arguments = match function.get("arguments") {
                        None => Some(JsonObject::new()),
                        Some(arguments) => input(arguments),
                    };
                    let (Some(tool), Some(arguments)) = (text("name"), arguments) else {
                        return Err(RecipeError::wrong(
                            &place,
                            "a message whose calls have a name and arguments",
                        ));
                    };
                    let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
                    open.push(id.to_owned());
                    step.push(ExampleCall::new(
                        tool.to_owned(),
                        arguments,
                        Value::Null,
                        false,
                    ));
                }
                example.calls.push(step);
            }
            ("tool", _) => {
                let id = fields.text("tool_call_id")?.unwrap_or_default();
                let step = example.calls.last_mut().ok_or_else(misplaced)?;
                // Results come in any order; each call gets its own.
                let unanswered = |(at, open): (usize, &String)| {
                    let free = step.get(at).is_some_and(|call| call.result.is_null());
                    (free && *open == id).then_some(at)
                };
                let at = open.iter().enumerate().find_map(unanswered);
                let call = at.and_then(|at| step.get_mut(at)).ok_or_else(misplaced)?;
                call.result = Value::String(fields.required_text("content")?);
                if step.iter().all(|call| !call.result.is_null()) {
                    open.clear();
                }
            }
            ("assistant", _) if open.is_empty() => {
                example.answer = fields.required_text("content")?;
            }
            _ => return Err(misplaced()),
        }
    }
    match examples.last() {
        Some(last) if last.answer.is_empty() => Err(RecipeError::wrong(
            place,
            "messages that end with an answer of the assistant",
        )),
        _ => Ok(examples),
    }
}
