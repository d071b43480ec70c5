//! The current turn of a conversation: the last user question, and the tool calls after it.

pub(crate) mod name_lookup;

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use switchboard_domain::{JsonObject, Message, Role, ToolContent, ToolResult, ToolUse};

use crate::{tool_parameters::Parameter, word_stems::stem_all_words};

/// Prefix of every text that asks the user for a missing value.
pub(crate) const ASK_PREFIX: &str = "I need ";

/// A tool call after the last user question, with its result if it has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnToolCall<'a> {
    pub(crate) tool_use: &'a ToolUse,
    pub(crate) result: Option<&'a ToolResult>,
}

/// The last user question, and the tool calls and assistant texts after it.
#[derive(Debug, Clone)]
pub(crate) struct ConversationTurn<'a> {
    /// Text of the last user message. If this message answers a question that the demo model asked,
    /// the text starts with the original question of the user.
    pub(crate) question: String,
    /// Text from which the tool is selected: the question. If it starts with "and", the user's
    /// previous question precedes it.
    pub(crate) topic: String,
    pub(crate) calls: Vec<TurnToolCall<'a>>,
    /// The texts of the assistant since the last user question.
    pub(crate) texts: Vec<String>,
}

impl<'a> ConversationTurn<'a> {
    pub(crate) fn from_messages(messages: &'a [Arc<Message>]) -> Self {
        let is_question = |message: &Arc<Message>| {
            message.role == Role::User && message.tool_results().next().is_none()
        };
        let at = messages.iter().rposition(is_question);
        let mut question = at.map(|at| messages[at].text()).unwrap_or_default();
        if let Some(at) = at
            && let [.., asked, request] = &messages[..at]
            && request.role == Role::Assistant
            && request.text().starts_with(ASK_PREFIX)
            && is_question(asked)
        {
            question = format!("{}\n{question}", asked.text());
        }
        let mut topic = question.clone();
        if question.to_lowercase().starts_with("and ")
            && let Some(before) = messages[..at.unwrap_or(0)]
                .iter()
                .rfind(|it| is_question(it))
        {
            topic = format!("{}\n{topic}", before.text());
        }
        let since = &messages[at.map_or(0, |at| at + 1)..];
        let results: Vec<&ToolResult> = since
            .iter()
            .flat_map(|message| message.tool_results())
            .collect();
        let tool_uses = since.iter().flat_map(|message| message.tool_uses());
        let calls = tool_uses.map(|tool_use| TurnToolCall {
            tool_use,
            result: results
                .iter()
                .copied()
                .find(|result| result.tool_use_id == tool_use.id),
        });
        let texts = since
            .iter()
            .filter(|message| message.role == Role::Assistant);
        let texts = texts.map(|message| message.text());
        Self {
            question,
            topic,
            calls: calls.collect(),
            texts: texts.filter(|text| !text.trim().is_empty()).collect(),
        }
    }

    pub(crate) fn calls_of_tool(&self, tool: &str) -> Vec<TurnToolCall<'a>> {
        let calls = self.calls.iter().copied();
        calls.filter(|call| call.tool_use.name == tool).collect()
    }

    /// Finds values for `parameters` in the successful tool results since the last user question.
    /// Returns the found values by parameter name.
    pub(crate) fn find_values_in_results<'p>(
        &self,
        parameters: impl Iterator<Item = &'p Parameter<'p>>,
    ) -> JsonObject {
        let results: Vec<Value> = self
            .calls
            .iter()
            .filter_map(|call| call.result)
            .filter(|result| !result.is_error)
            .filter_map(parse_result_data)
            .collect();
        parameters
            .filter_map(|parameter| {
                let mut found = results
                    .iter()
                    .map(|data| find_parameter_value(data, parameter, &[]));
                Some((parameter.name.clone(), found.find_map(|value| value)?))
            })
            .collect()
    }
}

/// Returns an endless iterator of ids for new tool calls: `call_1`, `call_2` and so on. Ids of tool
/// calls in `messages` are skipped.
pub(crate) fn unused_call_ids(messages: &[Arc<Message>]) -> impl Iterator<Item = String> {
    let tool_uses = messages.iter().flat_map(|message| message.tool_uses());
    let used: HashSet<String> = tool_uses.map(|tool_use| tool_use.id.clone()).collect();
    (1..)
        .map(|number: u64| format!("call_{number}"))
        .filter(move |id| !used.contains(id))
}

/// Returns the structured content of a tool result. If there is none, the result must contain
/// exactly one text, and this text must be a JSON object or array. Otherwise returns `None`.
pub(crate) fn parse_result_data(result: &ToolResult) -> Option<Value> {
    if let Some(structured) = &result.structured {
        return Some(Value::clone(structured));
    }
    let mut texts = result.content.iter().filter_map(|content| match content {
        ToolContent::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let (text, None) = (texts.next()?, texts.next()) else {
        return None;
    };
    let data: Value = serde_json::from_str(text.trim()).ok()?;
    (data.is_object() || data.is_array()).then_some(data)
}

/// Searches JSON data for the value of a parameter: a field with the parameter's name, or the field
/// `id` of an object with a matching name (`customers[0].id` for `customer_id`). The value must
/// have the parameter's type. `around` contains the word stems of the field name that leads to
/// `data`.
fn find_parameter_value(
    data: &Value,
    parameter: &Parameter<'_>,
    around: &[String],
) -> Option<Value> {
    match data {
        Value::Object(object) => {
            let own = object.iter().find(|(key, value)| {
                let key = stem_all_words(key);
                let in_named_object = key == ["id"] && parameter.stems.last() == key.last() && {
                    let mut others = parameter.stems.iter().filter(|stem| *stem != "id");
                    others.all(|stem| around.contains(stem))
                };
                (key == parameter.stems || in_named_object)
                    && matches_parameter_type(value, parameter)
            });
            own.map(|(_, value)| value.clone()).or_else(|| {
                let mut fields = object.iter();
                fields.find_map(|(key, value)| {
                    find_parameter_value(value, parameter, &stem_all_words(key))
                })
            })
        }
        Value::Array(items) => items
            .iter()
            .find_map(|item| find_parameter_value(item, parameter, around)),
        _ => None,
    }
}

fn matches_parameter_type(value: &Value, parameter: &Parameter<'_>) -> bool {
    match parameter.json_type() {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        _ => false,
    }
}
