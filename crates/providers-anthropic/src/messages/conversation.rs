//! The conversation, domain → wire.

use std::collections::HashSet;

use switchboard_domain::{
    ChatRequest, Message, ModelError, ModelErrorKind, Part, Role, WarningKind,
};

use super::{
    content::Mapper,
    wire::{self, Block},
};
use crate::rules::Rules;

/// The conversation as it is sent.
#[derive(Debug)]
pub(crate) struct Conversation<'a> {
    /// The instructions before it, and the later ones that could go nowhere else.
    pub(crate) system: Vec<Block<'a>>,
    /// How many of them stood before it.
    pub(crate) leading: usize,
    /// User and assistant in turn, beginning with the user.
    pub(crate) messages: Vec<wire::Message<'a>>,
}

impl Conversation<'_> {
    /// Whether the model is in the middle of a turn (it uses tools, or is to go on with its own words)
    /// that did not begin with a thought, so that the API refuses thinking with a budget: "Expected
    /// `thinking` or `redacted_thinking`, but found `tool_use`".
    pub(crate) fn is_in_a_turn_without_thinking(&self) -> bool {
        let is_answer = |message: &&wire::Message<'_>| message.role == wire::Role::Assistant;
        let Some(last) = self.messages.iter().rfind(is_answer) else {
            return false;
        };
        let calls = |block: &Block<'_>| matches!(block, Block::ToolUse { .. });
        let goes_on = last.content.iter().any(calls) || self.messages.last() == Some(last);
        goes_on && !last.content.first().is_some_and(Block::is_thinking)
    }
}

/// Maps the whole conversation.
///
/// Leading system messages become `system`. Later ones stay in their place where the model takes
/// instructions there, at the end of the user's turn; else they join the leading ones, which keeps
/// their authority, with a warning. Messages of one role that follow each other become one. The
/// results of a turn's calls come first in the message after it; a missing one is filled in, and one
/// without a call is sent as text.
///
/// Fails with [`ModelErrorKind::InvalidRequest`] when there is nothing to answer.
pub(crate) fn conversation<'a>(
    request: &'a ChatRequest,
    rules: Option<&Rules>,
    mut mapper: Mapper<'_>,
) -> Result<Conversation<'a>, ModelError> {
    let mut turns = Turns {
        inline: rules.is_some_and(|rules| rules.later_instructions),
        hoisted: 0,
        system: Vec::new(),
        list: Vec::with_capacity(request.messages.len()),
        waiting: Vec::new(),
    };
    for message in &request.messages {
        turns.message(message, &mut mapper);
    }
    turns.hoist_waiting();
    if mapper.reasoning_dropped > 0 {
        let message = format!(
            "{} reasoning part(s) left out: not this model's own, unsigned or no longer accepted",
            mapper.reasoning_dropped
        );
        mapper.warn(WarningKind::PartDropped, message);
    }
    if mapper.states_dropped > 0 {
        let message = format!(
            "{} part(s) sent without what another model had attached for itself",
            mapper.states_dropped
        );
        mapper.warn(WarningKind::PartDowngraded, message);
    }
    if turns.hoisted > 0 {
        let message = format!(
            "{} later instruction(s) were sent with the leading ones: {} takes them nowhere else",
            turns.hoisted, mapper.model.name
        );
        mapper.warn(WarningKind::PartDowngraded, message);
    }
    if turns.list.is_empty() {
        let kind = ModelErrorKind::InvalidRequest {
            field: Some("messages".to_owned()),
        };
        let message = "there is nothing to answer: no message of the person or the model";
        return Err(ModelError::new(&*mapper.model.provider, kind, message));
    }
    turns.pair(&mut mapper);
    turns.begin_with_the_user(&mut mapper);
    turns.end_as_the_model_takes_it(rules, &mut mapper);
    Ok(Conversation {
        leading: turns.system.len() - turns.hoisted,
        system: turns.system,
        messages: turns
            .list
            .into_iter()
            .flat_map(Turn::into_messages)
            .collect(),
    })
}

struct Turns<'a> {
    /// The model takes instructions in the middle of a conversation.
    inline: bool,
    /// How many later instructions had to go to the top.
    hoisted: usize,
    system: Vec<Block<'a>>,
    list: Vec<Turn<'a>>,
    /// Later instructions that wait for a turn of the user.
    waiting: Vec<Block<'a>>,
}

/// All that one side says before the other does.
struct Turn<'a> {
    role: wire::Role,
    /// Results of tools, which come first.
    results: Vec<Block<'a>>,
    content: Vec<Block<'a>>,
    /// Instructions that came during or right after it.
    instructions: Vec<Block<'a>>,
}

impl<'a> Turns<'a> {
    fn message(&mut self, message: &'a Message, mapper: &mut Mapper<'_>) {
        for result in message.results() {
            let mut beside = Vec::new();
            let block = mapper.result(result, &mut beside);
            let turn = self.turn(wire::Role::User);
            turn.results.push(block);
            turn.content.append(&mut beside);
        }
        for part in &message.parts {
            if matches!(part, Part::ToolResult(_)) {
                continue;
            }
            let (role, block) = match message.role {
                Role::System => (wire::Role::System, mapper.instruction(part)),
                Role::User | Role::Tool => (wire::Role::User, mapper.user(part)),
                Role::Assistant => (wire::Role::Assistant, mapper.assistant(part)),
            };
            match (block, role) {
                (Some(block), wire::Role::System) => self.instruct(block),
                (Some(block), role) => self.turn(role).content.push(block),
                (None, _) => {}
            }
        }
    }

    fn instruct(&mut self, block: Block<'a>) {
        match self.list.last_mut() {
            None => self.system.push(block),
            Some(_) if !self.inline => {
                self.hoisted += 1;
                self.system.push(block);
            }
            Some(turn) if turn.role == wire::Role::User => turn.instructions.push(block),
            Some(_) => self.waiting.push(block),
        }
    }

    /// The turn that is being said, or a new one.
    fn turn(&mut self, role: wire::Role) -> &mut Turn<'a> {
        if self.list.last().is_none_or(|last| last.role != role) {
            let instructions = match role {
                wire::Role::User => std::mem::take(&mut self.waiting),
                _ => Vec::new(),
            };
            self.list.push(Turn {
                instructions,
                ..Turn::new(role)
            });
        }
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// Instructions after the model's last word have no turn of the user to follow.
    fn hoist_waiting(&mut self) {
        self.hoisted += self.waiting.len();
        self.system.append(&mut self.waiting);
    }

    /// Brings calls and results together: each call has one result in the next message.
    fn pair(&mut self, mapper: &mut Mapper<'_>) {
        let mut at = 0;
        // The calls of the turn before.
        let mut open: Vec<String> = Vec::new();
        while at < self.list.len() || !open.is_empty() {
            let is_user = self
                .list
                .get(at)
                .is_some_and(|it| it.role == wire::Role::User);
            if !open.is_empty() && !is_user {
                self.list.insert(at, Turn::new(wire::Role::User));
            }
            let Some(turn) = self.list.get_mut(at) else {
                return;
            };
            turn.answer(&open, mapper);
            open = turn.calls();
            at += 1;
        }
    }

    fn begin_with_the_user(&mut self, mapper: &mut Mapper<'_>) {
        if self
            .list
            .first()
            .is_some_and(|first| first.role == wire::Role::User)
        {
            return;
        }
        let words = "[The conversation begins with the assistant.]";
        let mut turn = Turn::new(wire::Role::User);
        turn.content.push(Block::text(words));
        self.list.insert(0, turn);
        let message = format!("`{words}` was put first: this wire begins with the user");
        mapper.warn(WarningKind::PartDowngraded, message);
    }

    /// A conversation that ends with the model's own words asks it to go on with them. The newest
    /// models refuse that unless they paused themselves, and the older ones refuse white space at
    /// the end.
    fn end_as_the_model_takes_it(&mut self, rules: Option<&Rules>, mapper: &mut Mapper<'_>) {
        let Some(last) = self
            .list
            .last_mut()
            .filter(|it| it.role == wire::Role::Assistant)
        else {
            return;
        };
        let is_native = |block: &Block<'_>| matches!(block, Block::Native(_));
        if last.content.iter().any(is_native) {
            // It paused in the middle of a tool of its own: sent as it is, it goes on.
            return;
        }
        if rules.is_none_or(|rules| rules.prefill) {
            if let Some(Block::Text { text, .. }) = last.content.last_mut() {
                let end = text.trim_end().len();
                text.to_mut().truncate(end);
            }
            return;
        }
        let words = "Continue.";
        let mut turn = Turn::new(wire::Role::User);
        turn.content.push(Block::text(words));
        self.list.push(turn);
        let message = format!(
            "`{words}` was sent after the model's own words: {} does not go on with them otherwise",
            mapper.model.name
        );
        mapper.warn(WarningKind::PartDowngraded, message);
    }
}

impl<'a> Turn<'a> {
    fn new(role: wire::Role) -> Self {
        Self {
            role,
            results: Vec::new(),
            content: Vec::new(),
            instructions: Vec::new(),
        }
    }

    /// The ids of its calls.
    fn calls(&self) -> Vec<String> {
        let ids = self.content.iter().filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.clone().into_owned()),
            _ => None,
        });
        ids.collect()
    }

    /// Leaves one result for each of `calls` and no other.
    fn answer(&mut self, calls: &[String], mapper: &mut Mapper<'_>) {
        let mut left: HashSet<&str> = calls.iter().map(String::as_str).collect();
        let mut stray = Vec::new();
        for block in std::mem::take(&mut self.results) {
            match block {
                Block::ToolResult {
                    ref tool_use_id, ..
                } if left.remove(tool_use_id.as_ref()) => self.results.push(block),
                Block::ToolResult {
                    tool_use_id,
                    content,
                    ..
                } => {
                    let lead = format!("[Result of an earlier tool call, {tool_use_id}:]");
                    let message = format!(
                        "the result of call `{tool_use_id}` was sent as text: the call is not in \
                         the message before it"
                    );
                    mapper.warn(WarningKind::PartDowngraded, message);
                    stray.push(Block::text(lead));
                    stray.extend(content);
                }
                other => stray.push(other),
            }
        }
        for call in calls {
            if left.contains(call.as_str()) {
                let message = format!("call `{call}` has no result; the model is told so");
                mapper.warn(WarningKind::PartDowngraded, message);
                self.results.push(Block::ToolResult {
                    tool_use_id: call.clone().into(),
                    content: vec![Block::text("No result of this call was recorded.")],
                    is_error: true,
                });
            }
        }
        self.content.splice(0..0, stray);
    }

    fn into_messages(mut self) -> impl Iterator<Item = wire::Message<'a>> {
        let mut content = self.results;
        content.append(&mut self.content);
        let said = wire::Message {
            role: self.role,
            content,
            mark: None,
        };
        let instructions = wire::Message {
            role: wire::Role::System,
            content: self.instructions,
            mark: None,
        };
        let messages = [said, instructions].into_iter();
        messages.filter(|message| !message.content.is_empty())
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
