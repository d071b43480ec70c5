//! The two phases of a host that lets a model gather first and write the answer in a form then.
//!
//! The planner takes part in both as a model would: while it gathers it says beside its calls that it
//! wants to see the results, since only they tell what comes next, and the answer that it then has
//! goes into the form.

use serde_json::json;
use switchboard_domain::{ChatRequest, Message, Role};

use crate::plan::{Plan, PlannedCall};

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
    plan: impl FnOnce(&ChatRequest) -> Plan,
) -> Option<Plan> {
    let [tool] = request.tools.as_slice() else {
        return None;
    };
    let has_the_form = tool.input_schema["properties"]["conversation"]["type"] == "array";
    if tool.name != FORMATTER || !has_the_form {
        return None;
    }
    let is_demand =
        |message: &Message| message.role == Role::User && message.text().contains(FORMATTER);
    let mut messages = request.messages.clone();
    while messages.last().is_some_and(|message| is_demand(message)) {
        messages.pop();
    }
    let asked = messages
        .iter()
        .rposition(|message| message.role == Role::User)
        .unwrap_or(0);
    let said = messages[asked..]
        .iter()
        .rev()
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.text())
        .find(|text| !text.trim().is_empty() && !text.contains(MARKER));
    let results: Vec<String> = messages[asked..]
        .iter()
        .flat_map(|message| message.results())
        .map(switchboard_domain::ToolResult::as_text)
        .collect();
    let text = match said {
        Some(text) => text,
        None if !results.is_empty() => results.join("\n\n"),
        None => {
            let question = ChatRequest::new(messages.clone());
            plan(&question).text().unwrap_or_default().to_owned()
        }
    };
    let taken = |id: &str| {
        let mut uses = messages.iter().flat_map(|message| message.tool_uses());
        uses.any(|tool_use| tool_use.id == id)
    };
    let mut number = 1;
    while taken(&format!("call_{number}")) {
        number += 1;
    }
    let mut input = serde_json::Map::new();
    input.insert(
        "conversation".to_owned(),
        json!([{"type": "text", "content": text}]),
    );
    Some(Plan::Call(vec![PlannedCall {
        id: format!("call_{number}"),
        name: FORMATTER.to_owned(),
        input,
    }]))
}
