//! The two phases of a host that lets a model gather first and write the answer in a form then.
//!
//! The planner takes part in both as a model would: while it gathers it says beside its calls that it
//! wants to see the results, since only they tell what comes next, and the answer that it then has
//! goes into the form.

use std::sync::Arc;

use jiff::civil::Date;
use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, JsonObject, Message, Role, ToolDefinition, ToolResult};

use crate::{
    catalog::Tool,
    extract::Reading,
    fill::fill,
    plan::{Plan, PlannedCall},
    records::{data, records},
    schema::params,
    validate::fits,
};

/// The tool through which the answer is given.
const FORMATTER: &str = "response_formatter";
/// How a model says that it wants to go on gathering; the prompt of the phase names it.
const MARKER: &str = "NEED MORE DATA:";

/// What is said beside calls, if the host wants to hear it.
pub(crate) fn said_beside_calls(request: &ChatRequest, plan: &Plan) -> Option<String> {
    let is_gathering = request
        .messages
        .iter()
        .any(|message| message.role == Role::System && message.text().contains(MARKER));
    (is_gathering && !plan.calls().is_empty())
        .then(|| format!("{MARKER} the results tell what the question needs next."))
}

/// The answer in its form, if that is what is asked for: the formatter is the only tool. `plan` decides
/// about what was asked before.
pub(crate) fn formatted(
    request: &ChatRequest,
    today: Date,
    plan: impl FnOnce(&ChatRequest) -> Plan,
) -> Option<Plan> {
    let [tool] = request.tools.as_slice() else {
        return None;
    };
    if tool.name != FORMATTER {
        return None;
    }
    let is_demand =
        |message: &Message| message.role == Role::User && message.text().contains(FORMATTER);
    let mut messages = request.messages.clone();
    while messages.last().is_some_and(|message| is_demand(message)) {
        messages.pop();
    }
    let has_the_form = tool.input_schema["properties"]["conversation"]["type"] == "array";
    if !has_the_form {
        return Some(in_own_form(tool, &messages, today));
    }
    let asked = messages
        .iter()
        .rposition(|message| message.role == Role::User)
        .unwrap_or(0);
    let text = answered(messages.get(asked..).unwrap_or_default()).unwrap_or_else(|| {
        let question = ChatRequest::new(messages.clone());
        plan(&question).text().unwrap_or_default().to_owned()
    });
    let mut input = JsonObject::new();
    input.insert(
        "conversation".to_owned(),
        json!([{"type": "text", "content": text}]),
    );
    Some(given(&messages, input))
}

/// The answer in a form of the host's own, as far as results, words and question say what belongs there: first what a
/// result has under the name of a field, then what the question says of it; and what was answered where there is a place for
/// words.
fn in_own_form(form: &Arc<ToolDefinition>, messages: &[Arc<Message>], today: Date) -> Plan {
    let asked = messages
        .iter()
        .rposition(|message| message.role == Role::User)
        .unwrap_or(0);
    let tool = Tool::new(Arc::clone(form));
    let question = messages.get(asked).map(|message| message.text());
    let question = question.unwrap_or_default();
    let mut of_question = fill(&tool, &Reading::new(&question, today)).input;
    let turn = messages.get(asked..).unwrap_or_default();
    let results: Vec<Value> = turn
        .iter()
        .flat_map(|message| message.results())
        .filter_map(data)
        .collect();
    let mut input = JsonObject::new();
    let mut words = answered(turn);
    for param in params(&form.input_schema) {
        let mut found = results
            .iter()
            .flat_map(|data| records(data, &[], &param, &form.input_schema));
        let value = found.next().map(|record| record.value);
        let value = value
            .or_else(|| of_question.shift_remove(&param.name))
            .or_else(|| {
                let said = Value::String(words.clone()?);
                fits(&said, &param.schema, &form.input_schema).then(|| {
                    words = None;
                    said
                })
            });
        if let Some(value) = value {
            input.insert(param.name, value);
        }
    }
    given(messages, input)
}

/// What was said last in a turn, or what the tools gave in it.
fn answered(turn: &[Arc<Message>]) -> Option<String> {
    let said = turn
        .iter()
        .rev()
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.text())
        .find(|text| !text.trim().is_empty() && !text.contains(MARKER));
    said.or_else(|| {
        let results = turn.iter().flat_map(|message| message.results());
        let results: Vec<String> = results.map(ToolResult::as_text).collect();
        (!results.is_empty()).then(|| results.join("\n\n"))
    })
}

/// The call that gives the answer.
fn given(messages: &[Arc<Message>], input: JsonObject) -> Plan {
    let taken = |id: &str| {
        let mut uses = messages.iter().flat_map(|message| message.tool_uses());
        uses.any(|tool_use| tool_use.id == id)
    };
    let mut number = 1;
    while taken(&format!("call_{number}")) {
        number += 1;
    }
    Plan::Call(vec![PlannedCall {
        id: format!("call_{number}"),
        name: FORMATTER.to_owned(),
        input,
    }])
}
