//! Support for hosts that gather tool results and then request the answer as a call of a tool.

use jiff::civil::Date;
use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, JsonObject, Message, Role, ToolResult};

use crate::{
    arguments::fill_arguments, conversation_turn::ConversationTurn,
    question_values::QuestionValues, step_planner::Plan, tool_parameters::read_parameters,
};

/// Name of the tool through which the model returns a formatted answer: the input of the tool call
/// is the answer.
pub(crate) const NAME: &str = "response_formatter";
/// Prefix of a text that asks for more tool results. If a system message contains this prefix, the
/// host is in the gathering phase, which collects tool results before the answer is formatted.
const MARKER: &str = "NEED MORE DATA:";

/// Returns the text that precedes the planned tool calls while the host gathers tool results.
/// Returns `None` if no system message contains [`MARKER`], or if the plan contains no tool call.
pub(crate) fn text_before_tool_calls(request: &ChatRequest, plan: &Plan) -> Option<String> {
    let is_prompt =
        |message: &Message| message.role == Role::System && message.text().contains(MARKER);
    let is_gathering = request.messages.iter().any(|message| is_prompt(message));
    (is_gathering && !plan.planned_calls().is_empty())
        .then(|| format!("{MARKER} the results of these calls are needed."))
}

/// Returns the input for a call of the tool `response_formatter`. Returns `None` unless this tool
/// is the only tool of the request.
pub(crate) fn build_formatter_input(request: &ChatRequest, today: Date) -> Option<JsonObject> {
    let [tool] = request.tools.as_slice() else {
        return None;
    };
    if tool.name != NAME {
        return None;
    }
    // A user message that contains the name `response_formatter` is an instruction of the host, not
    // a question of the user.
    let is_instruction =
        |message: &Message| message.role == Role::User && message.text().contains(NAME);
    let mut messages = request.messages.clone();
    while messages
        .last()
        .is_some_and(|message| is_instruction(message))
    {
        messages.pop();
    }
    let turn = ConversationTurn::from_messages(&messages);
    let text = turn
        .texts
        .iter()
        .rev()
        .find(|text| !text.contains(MARKER))
        .cloned();
    let text = text.or_else(|| {
        let results = turn.calls.iter().filter_map(|call| call.result);
        let results: Vec<String> = results.map(ToolResult::as_text).collect();
        (!results.is_empty()).then(|| results.join("\n\n"))
    });
    if tool.input_schema["properties"]["conversation"]["type"] == "array" {
        let text = text.unwrap_or_else(|| {
            let plan = Plan::from_request(&ChatRequest::new(messages.clone()), today);
            plan.user_text().unwrap_or_default().to_owned()
        });
        let items = json!([{"type": "text", "content": text}]);
        return Some(JsonObject::from_iter([("conversation".to_owned(), items)]));
    }
    // The host defines the fields of the tool's input. Their values come from the question and the
    // tool results. The first required text field without a value gets the assistant's last text,
    // or else the texts of all tool results.
    let parameters = read_parameters(&tool.input_schema);
    let known = turn.find_values_in_results(parameters.iter());
    let values = QuestionValues::from_text(&turn.question, today);
    let filled = fill_arguments(tool, &turn.question, &values, &known);
    let mut input = filled.inputs.into_iter().next().unwrap_or_default();
    let is_text = |name: &String| {
        let mut found = parameters
            .iter()
            .filter(|parameter| parameter.name == *name);
        found.any(|parameter| parameter.json_type() == "string")
    };
    if let Some(text) = text
        && let Some(name) = filled.missing.iter().find(|name| is_text(name))
    {
        input.insert(name.clone(), Value::String(text));
    }
    Some(input)
}
