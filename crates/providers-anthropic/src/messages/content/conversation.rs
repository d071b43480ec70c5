//! Converts the messages of a conversation to messages of the Messages API.

use std::collections::HashSet;

use switchboard_domain::{ChatRequest, Message, ModelError, Part, Role};
use switchboard_providers_common::request::invalid_request;

use super::ContentMapper;
use crate::{
    messages::wire::{self, Block},
    model_rules::ModelRules,
};

/// The instructions and the messages of a Messages API request.
#[derive(Debug)]
pub(crate) struct WireConversation<'a> {
    /// The instructions before the conversation. Instructions within the conversation are added
    /// here if the model does not support them between messages.
    pub(crate) system: Vec<Block<'a>>,
    /// Number of blocks at the beginning of `system` that come from instructions before the
    /// conversation. The other blocks were moved here from within the conversation.
    pub(crate) leading: usize,
    /// The messages, starting with one of the user. User and assistant messages alternate, and a
    /// user message may be followed by a system message with instructions.
    pub(crate) messages: Vec<wire::Message<'a>>,
}

impl WireConversation<'_> {
    /// Returns whether the model must continue its last turn, after tool results or after its own
    /// text, and this turn does not start with thinking. The API then refuses thinking with a
    /// budget: "Expected `thinking` or `redacted_thinking`, but found `tool_use`".
    pub(crate) fn continues_without_thinking(&self) -> bool {
        let is_answer = |message: &&wire::Message<'_>| message.role == wire::Role::Assistant;
        let Some(last) = self.messages.iter().rfind(is_answer) else {
            return false;
        };
        let is_call = |block: &Block<'_>| matches!(block, Block::ToolUse { .. });
        let continues = last.content.iter().any(is_call) || self.messages.last() == Some(last);
        continues && !last.content.first().is_some_and(Block::is_thinking)
    }
}

/// Converts the messages of a request.
///
/// System messages before the conversation become `system`. Later ones stay at the end of the
/// user's turn if the model supports that. Otherwise they are added to `system`, with a warning, so
/// that the model still reads them as instructions. Consecutive messages of one role are joined.
/// Tool results come first in the message after their calls. A missing result is added, and a
/// result without its call is sent as text.
///
/// Fails with [`InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest) when there is
/// no message to answer.
pub(crate) fn map_conversation<'a>(
    request: &'a ChatRequest,
    rules: Option<&ModelRules>,
    mut mapper: ContentMapper<'_>,
) -> Result<WireConversation<'a>, ModelError> {
    let mut turns = ConversationTurns {
        inline_instructions: rules.is_some_and(|rules| rules.later_instructions),
        ..ConversationTurns::default()
    };
    for message in &request.messages {
        turns.add_message(message, &mut mapper);
    }
    turns.move_instructions_to_system();
    let why = "they have no signature, are from another model or were refused";
    let warnings = &mut mapper.warnings;
    warnings.warn_dropped_reasoning(mapper.dropped_reasoning, why);
    warnings.warn_dropped_part_states();
    if turns.moved_instructions > 0 {
        let message = format!(
            "{} later instruction(s) were sent with the leading ones: {} does not support them \
             elsewhere",
            turns.moved_instructions, mapper.model.name
        );
        mapper.warnings.add_downgrade(message);
    }
    if turns.list.is_empty() {
        let message = "there is no message to answer: add a user message";
        return Err(invalid_request(&mapper.model.provider, "messages", message));
    }
    turns.pair_results_with_calls(&mut mapper);
    turns.ensure_first_turn_is_user(&mut mapper);
    turns.adjust_last_turn(rules, &mut mapper);
    Ok(WireConversation {
        leading: turns.system.len() - turns.moved_instructions,
        system: turns.system,
        messages: turns
            .list
            .into_iter()
            .flat_map(ConversationTurn::into_messages)
            .collect(),
    })
}

#[derive(Default)]
struct ConversationTurns<'a> {
    /// Whether the model accepts system messages between other messages.
    inline_instructions: bool,
    /// Number of instructions within the conversation that were moved to `system`.
    moved_instructions: usize,
    system: Vec<Block<'a>>,
    list: Vec<ConversationTurn<'a>>,
    /// Instructions after an assistant message. They are sent with the next turn of the user.
    pending_instructions: Vec<Block<'a>>,
}

/// A turn: consecutive messages of the same role, which become one message of the request.
struct ConversationTurn<'a> {
    role: wire::Role,
    /// Tool results of the turn. They precede its other content, as the API requires.
    results: Vec<Block<'a>>,
    content: Vec<Block<'a>>,
    /// Instructions within the turn or directly after it. They become a system message after the
    /// turn.
    instructions: Vec<Block<'a>>,
}

impl<'a> ConversationTurns<'a> {
    fn add_message(&mut self, message: &'a Message, mapper: &mut ContentMapper<'_>) {
        for result in message.tool_results() {
            let mut after_results = Vec::new();
            let block = mapper.map_tool_result(result, &mut after_results);
            let turn = self.current_turn(wire::Role::User);
            turn.results.push(block);
            turn.content.append(&mut after_results);
        }
        for part in &message.parts {
            if matches!(part, Part::ToolResult(_)) {
                continue;
            }
            let (role, block) = match message.role {
                Role::System => (wire::Role::System, mapper.map_instruction_part(part)),
                Role::User | Role::Tool => (wire::Role::User, mapper.map_user_part(part)),
                Role::Assistant => (wire::Role::Assistant, mapper.map_assistant_part(part)),
            };
            match (block, role) {
                (Some(block), wire::Role::System) => self.add_instruction(block),
                (Some(block), role) => self.current_turn(role).content.push(block),
                (None, _) => {}
            }
        }
    }

    fn add_instruction(&mut self, block: Block<'a>) {
        match self.list.last_mut() {
            None => self.system.push(block),
            Some(_) if !self.inline_instructions => {
                self.moved_instructions += 1;
                self.system.push(block);
            }
            Some(turn) if turn.role == wire::Role::User => turn.instructions.push(block),
            Some(_) => self.pending_instructions.push(block),
        }
    }

    /// Returns the last turn if it has this role, otherwise starts a new turn.
    fn current_turn(&mut self, role: wire::Role) -> &mut ConversationTurn<'a> {
        if self.list.last().is_none_or(|last| last.role != role) {
            let instructions = match role {
                wire::Role::User => std::mem::take(&mut self.pending_instructions),
                _ => Vec::new(),
            };
            self.list.push(ConversationTurn {
                instructions,
                ..ConversationTurn::new(role)
            });
        }
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// Moves the instructions after the last assistant message to `system`, because no user turn
    /// follows.
    fn move_instructions_to_system(&mut self) {
        self.moved_instructions += self.pending_instructions.len();
        self.system.append(&mut self.pending_instructions);
    }

    /// Ensures that each tool call has exactly one result in the next message, as the API requires.
    fn pair_results_with_calls(&mut self, mapper: &mut ContentMapper<'_>) {
        let mut index = 0;
        // Ids of the tool calls in the previous turn, which this turn must answer.
        let mut open: Vec<String> = Vec::new();
        while index < self.list.len() || !open.is_empty() {
            let turn = self.list.get(index);
            let is_user = turn.is_some_and(|it| it.role == wire::Role::User);
            if !open.is_empty() && !is_user {
                self.list
                    .insert(index, ConversationTurn::new(wire::Role::User));
            }
            let Some(turn) = self.list.get_mut(index) else {
                return;
            };
            turn.match_results_to_calls(&open, mapper);
            open = turn.call_ids();
            index += 1;
        }
    }

    fn ensure_first_turn_is_user(&mut self, mapper: &mut ContentMapper<'_>) {
        let first = self.list.first();
        if first.is_some_and(|first| first.role == wire::Role::User) {
            return;
        }
        let text = "[The conversation begins with the assistant.]";
        self.list.insert(0, ConversationTurn::user_turn(text));
        let message = format!("`{text}` was inserted: the API requires a user message first");
        mapper.warnings.add_downgrade(message);
    }

    /// Adjusts a conversation that ends with an assistant message, which the model would continue.
    /// The newest models refuse such a conversation unless the turn has paused, so the user message
    /// "Continue." is added, with a warning. Older models refuse trailing white space, so it is
    /// removed.
    fn adjust_last_turn(&mut self, rules: Option<&ModelRules>, mapper: &mut ContentMapper<'_>) {
        let last = self.list.last_mut();
        let Some(last) = last.filter(|it| it.role == wire::Role::Assistant) else {
            return;
        };
        let is_native = |block: &Block<'_>| matches!(block, Block::Native(_));
        if last.content.iter().any(is_native) {
            // Blocks of a server tool show that the API paused the turn. The turn is sent
            // unchanged, so that the API continues it.
            return;
        }
        if rules.is_none_or(|rules| rules.prefill) {
            if let Some(Block::Text { text, .. }) = last.content.last_mut() {
                let end = text.trim_end().len();
                text.to_mut().truncate(end);
            }
            return;
        }
        let text = "Continue.";
        self.list.push(ConversationTurn::user_turn(text));
        let message = format!(
            "`{text}` was sent after the last assistant message: {} does not continue it otherwise",
            mapper.model.name
        );
        mapper.warnings.add_downgrade(message);
    }
}

impl<'a> ConversationTurn<'a> {
    fn new(role: wire::Role) -> Self {
        Self {
            role,
            results: Vec::new(),
            content: Vec::new(),
            instructions: Vec::new(),
        }
    }

    fn user_turn(text: &'static str) -> Self {
        Self {
            content: vec![Block::from_text(text)],
            ..Self::new(wire::Role::User)
        }
    }

    fn call_ids(&self) -> Vec<String> {
        let ids = self.content.iter().filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.clone().into_owned()),
            _ => None,
        });
        ids.collect()
    }

    /// Ensures that the turn has exactly one tool result for each of the `calls`. A missing result
    /// is added as an error, and a result of another call becomes text, both with a warning.
    fn match_results_to_calls(&mut self, calls: &[String], mapper: &mut ContentMapper<'_>) {
        let mut missing: HashSet<&str> = calls.iter().map(String::as_str).collect();
        let mut unmatched = Vec::new();
        for block in std::mem::take(&mut self.results) {
            match block {
                Block::ToolResult {
                    ref tool_use_id, ..
                } if missing.remove(tool_use_id.as_ref()) => self.results.push(block),
                Block::ToolResult {
                    tool_use_id,
                    content,
                    ..
                } => {
                    let lead = format!("[Result of an earlier tool call, {tool_use_id}:]");
                    let message = format!(
                        "the result of call `{tool_use_id}` was sent as text: the previous message \
                         does not contain the call"
                    );
                    mapper.warnings.add_downgrade(message);
                    unmatched.push(Block::from_text(lead));
                    unmatched.extend(content);
                }
                other => unmatched.push(other),
            }
        }
        for call in calls {
            if missing.contains(call.as_str()) {
                let message = format!("call `{call}` has no result; an error was sent for it");
                mapper.warnings.add_downgrade(message);
                self.results.push(Block::ToolResult {
                    tool_use_id: call.clone().into(),
                    content: vec![Block::from_text("No result of this call was recorded.")],
                    is_error: true,
                });
            }
        }
        self.content.splice(0..0, unmatched);
    }

    fn into_messages(mut self) -> impl Iterator<Item = wire::Message<'a>> {
        let mut content = self.results;
        content.append(&mut self.content);
        let messages = [
            (self.role, content),
            (wire::Role::System, self.instructions),
        ];
        messages
            .into_iter()
            .filter(|(_, content)| !content.is_empty())
            .map(|(role, content)| wire::Message {
                role,
                content,
                breakpoint: None,
            })
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
