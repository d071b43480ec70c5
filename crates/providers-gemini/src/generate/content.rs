//! Converts the messages of a conversation to contents of the Gemini API.

pub(crate) mod parts;
mod tool_results;

use std::borrow::Cow;

use switchboard_domain::{ChatRequest, Message, ModelError, Part, Role, ToolResult};
use switchboard_providers_common::request::invalid_request;

use self::parts::{PartMapper, SIGNATURE};
use super::wire::{
    self, Content, FunctionResponse, FunctionResponseContent, OutputOrError, PartData,
};
use crate::capabilities::ModelSeries;

/// Placeholder for the thought signature of a tool call that another model made. The API accepts it
/// in place of a signature, and refuses a turn whose first call has neither. Source: the API's
/// guide to thought signatures.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// The text that the model receives in place of a missing tool result.
const NO_RESULT: &str = "No result of this call was recorded.";

/// The instructions and the messages of a Gemini request.
#[derive(Debug)]
pub(crate) struct WireConversation<'a> {
    pub(crate) system_instruction: Option<Content<'a>>,
    /// The messages of the user and the model. Tool results form a separate `user` message before
    /// the user's text.
    pub(crate) contents: Vec<Content<'a>>,
}

/// Maps all messages of a request to the instructions and the messages of a Gemini request.
///
/// System messages become `systemInstruction`. A system message after a user or model message is
/// moved there too, with a warning. Adjacent messages of one role become one [`Content`]. The
/// results of calls directly follow the content with the calls, one per call and in call order,
/// because the API pairs calls without ids by order. A missing result is replaced by a note, and a
/// result without a call is sent as text.
///
/// Fails with [`InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest) if there is no
/// message of the user or the model.
pub(crate) fn map_conversation<'a>(
    request: &'a ChatRequest,
    mut mapper: PartMapper<'_>,
) -> Result<WireConversation<'a>, ModelError> {
    let mut turns = ConversationTurns::default();
    for message in &request.messages {
        turns.add_message(message, &mut mapper);
    }
    if turns.moved_instructions > 0 {
        let message = format!(
            "{} later instruction(s) were sent with the leading ones: the API does not support \
             them elsewhere",
            turns.moved_instructions
        );
        mapper.warnings.add_downgrade(message);
    }
    turns.move_instructions_to_user_turn(&mut mapper);
    if turns.list.is_empty() {
        let message = "there is no message to answer: add a user message";
        return Err(invalid_request(&mapper.model.provider, "contents", message));
    }
    turns.pair_results_with_calls(&mut mapper);
    turns.ensure_first_turn_is_user(&mut mapper);
    if !mapper.replay_thoughts || mapper.series.is_some_and(ModelSeries::requires_signatures) {
        turns.add_placeholder_signatures();
    }
    let why = if mapper.replay_thoughts {
        "another model created them"
    } else {
        "the API refused the signatures in this conversation"
    };
    let mut warnings = mapper.warnings;
    warnings.warn_dropped_reasoning(mapper.reasoning_dropped, why);
    let count = warnings.dropped_states;
    if count > 0 {
        let message = format!("{count} part(s) were sent without their provider state: {why}");
        warnings.add_downgrade(message);
    }
    let content = |parts| Content { role: None, parts };
    Ok(WireConversation {
        system_instruction: (!turns.system.is_empty()).then(|| content(turns.system)),
        contents: turns
            .list
            .into_iter()
            .flat_map(ConversationTurn::into_contents)
            .collect(),
    })
}

#[derive(Default)]
struct ConversationTurns<'a> {
    system: Vec<wire::Part<'a>>,
    /// Number of parts of system messages that follow a user or model message. These parts are
    /// moved to the instructions at the start of the request.
    moved_instructions: usize,
    list: Vec<ConversationTurn<'a>>,
}

/// A turn: adjacent messages of the same role, which become one message of the request.
#[derive(Default)]
struct ConversationTurn<'a> {
    is_model: bool,
    /// The tool calls of a model turn.
    calls: Vec<TurnCall<'a>>,
    /// The tool results of a user turn that are not yet mapped, in the order of the conversation.
    results: Vec<&'a ToolResult>,
    /// The mapped tool results: exactly one for each call of the previous turn.
    responses: Vec<FunctionResponse<'a>>,
    parts: Vec<wire::Part<'a>>,
}

/// The ids and the name of a tool call, with which its result is found and sent.
struct TurnCall<'a> {
    /// Id of the call in the domain messages. Tool results refer to this id.
    id: &'a str,
    /// Id of the call in the API, if the API assigned one.
    wire_id: Option<&'a str>,
    name: Cow<'a, str>,
}

impl<'a> ConversationTurns<'a> {
    fn add_message(&mut self, message: &'a Message, mapper: &mut PartMapper<'_>) {
        for result in message.tool_results() {
            self.current_turn(false).results.push(result);
        }
        let mut said = Vec::new();
        for part in &message.parts {
            match (message.role, part) {
                (_, Part::ToolResult(_)) => {}
                (Role::System, part) => {
                    if let Some(part) = mapper.map_instruction(part) {
                        self.moved_instructions += usize::from(!self.list.is_empty());
                        self.system.push(part);
                    }
                }
                (Role::User | Role::Tool, part) => mapper.map_user_part(part, &mut said),
                (Role::Assistant, part) => mapper.map_assistant_part(part, &mut said),
            }
        }
        if said.is_empty() {
            return;
        }
        let is_model = message.role == Role::Assistant;
        let turn = self.current_turn(is_model);
        turn.parts.append(&mut said);
        if is_model {
            for tool_use in message.tool_uses() {
                turn.calls.push(TurnCall {
                    id: &tool_use.id,
                    wire_id: mapper.wire_call_id(tool_use),
                    name: mapper.names.wire_name(&tool_use.name),
                });
            }
        }
    }

    /// Returns the last turn if it has this author: the model if `is_model` is `true`, else the
    /// user. Otherwise starts a new turn and returns it.
    fn current_turn(&mut self, is_model: bool) -> &mut ConversationTurn<'a> {
        if self.list.last().is_none_or(|it| it.is_model != is_model) {
            self.list.push(ConversationTurn::new(is_model));
        }
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// Moves the instructions to the first user message if the model refuses `systemInstruction`.
    fn move_instructions_to_user_turn(&mut self, mapper: &mut PartMapper<'_>) {
        let takes = mapper
            .series
            .is_none_or(ModelSeries::supports_system_instruction);
        if takes || self.system.is_empty() {
            return;
        }
        let message = format!(
            "the instructions were sent in the first user message: {} does not support them \
             elsewhere",
            mapper.model.name
        );
        mapper.warnings.add_downgrade(message);
        if self.list.first().is_none_or(|first| first.is_model) {
            self.list.insert(0, ConversationTurn::new(false));
        }
        let instructions = std::mem::take(&mut self.system);
        if let Some(first) = self.list.first_mut() {
            first.parts.splice(0..0, instructions);
        }
    }

    /// Ensures that each tool call has exactly one result in the next message, as the API requires.
    fn pair_results_with_calls(&mut self, mapper: &mut PartMapper<'_>) {
        let mut at = 0;
        // The tool calls of the previous turn, which this turn must answer.
        let mut open: Vec<TurnCall<'a>> = Vec::new();
        while at < self.list.len() || !open.is_empty() {
            let is_user = self.list.get(at).is_some_and(|turn| !turn.is_model);
            if !open.is_empty() && !is_user {
                self.list.insert(at, ConversationTurn::new(false));
            }
            let Some(turn) = self.list.get_mut(at) else {
                return;
            };
            turn.add_results(open, mapper);
            open = std::mem::take(&mut turn.calls);
            at += 1;
        }
    }

    fn ensure_first_turn_is_user(&mut self, mapper: &mut PartMapper<'_>) {
        if self.list.first().is_none_or(|first| !first.is_model) {
            return;
        }
        let words = "[The conversation begins with the assistant.]";
        let mut turn = ConversationTurn::new(false);
        turn.parts.push(wire::Part::from_text(words));
        self.list.insert(0, turn);
        let message = format!("`{words}` was inserted: the API requires a user message first");
        mapper.warnings.add_downgrade(message);
    }

    /// Adds the placeholder [`NOT_SIGNED`] to the first tool call of each model turn in which no
    /// call has a signature. The API refuses such turns after the last user message. Earlier turns
    /// get the placeholder too, because prompt caches need identical requests.
    fn add_placeholder_signatures(&mut self) {
        for turn in &mut self.list {
            // No placeholder is needed if a server tool's call in the turn has a signature.
            if turn.parts.iter().any(is_signed_native_part) {
                continue;
            }
            let mut calls = turn.parts.iter_mut().filter_map(|part| match part {
                wire::Part::Said(said) if matches!(said.data, PartData::FunctionCall(_)) => {
                    Some(said)
                }
                _ => None,
            });
            let Some(first) = calls.next() else {
                continue;
            };
            if first.thought_signature.is_none() && calls.all(|it| it.thought_signature.is_none()) {
                first.thought_signature = Some(NOT_SIGNED);
            }
        }
    }
}

fn is_signed_native_part(part: &wire::Part<'_>) -> bool {
    matches!(part, wire::Part::Native(piece) if piece.get(SIGNATURE).is_some())
}

impl<'a> ConversationTurn<'a> {
    fn new(is_model: bool) -> Self {
        Self {
            is_model,
            ..Self::default()
        }
    }

    /// Creates one function response for each of `calls`. A call without a result gets a response
    /// with the text [`NO_RESULT`]. Results of other calls become text parts.
    fn add_results(&mut self, calls: Vec<TurnCall<'a>>, mapper: &mut PartMapper<'_>) {
        let mut results = std::mem::take(&mut self.results);
        let mut beside = Vec::new();
        for TurnCall { id, wire_id, name } in calls {
            let found = results.iter().position(|it| it.tool_use_id == id);
            self.responses.push(if let Some(at) = found {
                mapper.map_tool_result(results.remove(at), wire_id, name, &mut beside)
            } else {
                let message = format!("call `{id}` has no result; an error was sent for it");
                mapper.warnings.add_downgrade(message);
                FunctionResponse {
                    id: wire_id,
                    name,
                    response: FunctionResponseContent::Error {
                        error: OutputOrError::Text(NO_RESULT.into()),
                    },
                    parts: Vec::new(),
                }
            });
        }
        for stray in results {
            let id = &stray.tool_use_id;
            let message = format!(
                "the result of call `{id}` was sent as text: the previous message does not contain \
                 the call"
            );
            mapper.warnings.add_downgrade(message);
            let name = &stray.name;
            let text = tool_results::result_text(stray);
            beside.push(wire::Part::from_text(format!(
                "[Result of an earlier call of tool `{name}`:]\n{text}"
            )));
        }
        self.parts.splice(0..0, beside);
    }

    fn into_contents(self) -> impl Iterator<Item = Content<'a>> {
        let responses = self.responses.into_iter().map(PartData::FunctionResponse);
        let role = Some(if self.is_model { "model" } else { "user" });
        let answered = Content {
            role,
            parts: responses.map(wire::Part::from_data).collect(),
        };
        let said = Content {
            role,
            parts: self.parts,
        };
        [answered, said]
            .into_iter()
            .filter(|content| !content.parts.is_empty())
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
