//! Tool calls that a model wrote as text, turned into tool uses.
//!
//! Small models, and servers without the right parser, answer with the text of a call instead of a
//! call. [`recover`] reads it: on only where the caller says so (a set of [`RecoveryForm`]s), and never
//! on text that names no offered tool.
//!
//! | module | holds |
//! |---|---|
//! | `form` | [`RecoveryForm`], [`RecoveryForms`] |
//! | `events` | [`EventRecovery`]: events in, events out |
//! | `scan`, `place` | one text: where a call may begin, and what is held back |
//! | `forms/` | a parser per form |
//! | `json`, `python`, `call` | what the forms have in common |
//! | `reader` | text that arrives in pieces, read as if it were all there |
//!
//! # What holds
//!
//! - Text that names no offered tool passes through unchanged, byte for byte. Only as much is held back
//!   as could still be the beginning of a call; blanks at the beginning of a text wait for what comes.
//! - How the text was cut into deltas changes nothing but the deltas of the text that is handed on.
//! - A call that the end of the text cuts off, or whose input cannot be read, becomes a malformed tool
//!   use: the model is told of it, and it is never executed. A call whose own brackets are closed is
//!   whole, also if a closing mark behind it is missing.
//! - Code shows calls and makes none: nothing is called within a Markdown block or span of code, or in a
//!   quoted line. A block that is itself a call ([`RecoveryForm::FencedJson`]) is one if the answer
//!   consists of nothing but calls and thinking. It is handed on at the end of the text.
//! - With a call in it, [`FinishReason::Stop`](switchboard_domain::FinishReason::Stop) becomes
//!   [`ToolUse`](switchboard_domain::FinishReason::ToolUse); every other reason stays.
//! - A list of which one call names no offered tool is text as a whole, so that nobody runs half of what
//!   was meant.
//! - Blanks between calls, and behind the last one, are not text.
//! - A call outside of code is handed on when it is complete; its input does not stream.
//! - Nothing is recovered of reasoning, nor of thinking that the server left in the text between
//!   `<think>` and `</think>`.
//! - At most as much is held back of a call as the domain's accumulator takes of a tool input
//!   ([`DEFAULT_MAX_TOOL_INPUT_BYTES`]); what is longer is malformed here and there.
//!
//! ```
//! use switchboard_domain::{ChatRequest, Message, ModelEvent, PartStart, ToolDefinition};
//! use switchboard_providers_common::text_tool_calls::{EventRecovery, Recovery, RecoveryForm, RecoveryForms};
//!
//! let tool = ToolDefinition::new("add", "Adds.", serde_json::json!({"type": "object"}));
//! let request = ChatRequest::new([Message::user("1 + 2?")]).with_tools([tool]);
//! let forms = RecoveryForms::of(&[RecoveryForm::FencedJson]);
//! let mut recovery = EventRecovery::new(Recovery::of(&request, forms));
//!
//! let mut events = Vec::new();
//! recovery.push(ModelEvent::PartStarted { index: 0, part: PartStart::Text }, &mut events);
//! for piece in ["```json\n{\"name\": \"ad", "d\", \"arguments\": {\"a\": 1, \"b\": 2}}\n```"] {
//!     let text = piece.to_owned();
//!     recovery.push(ModelEvent::TextDelta { index: 0, text }, &mut events);
//! }
//! recovery.end(&mut events);
//! assert!(matches!(
//!     &events[0],
//!     ModelEvent::PartStarted { part: PartStart::ToolUse { name, .. }, .. } if name == "add"
//! ));
//! ```

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use switchboard_domain::{
    ChatRequest, ModelError, ModelEvent, ModelStream, ToolChoiceOutcome, Warning,
    accumulator::DEFAULT_MAX_TOOL_INPUT_BYTES,
};

use crate::tool_names::ToolNames;

mod call;
mod events;
mod form;
mod forms;
mod json;
mod known;
mod outgoing;
mod place;
pub mod prompted;
mod python;
mod reader;
mod scan;
mod text_calls;

use known::Known;
use outgoing::Outgoing;

pub use events::EventRecovery;
pub use form::{RecoveryForm, RecoveryForms};
pub use text_calls::TextCalls;

/// Bytes around an input that a call in any form may have: marks, and the tool's name.
const ROOM_FOR_MARKS: usize = 16 * 1024;

/// What is looked for in an answer: calls of which tools, and in which forms.
#[derive(Debug, Clone)]
pub struct Recovery {
    known: Arc<Known>,
    forms: RecoveryForms,
    /// Bytes of a call at most. A longer one counts as cut off there.
    limit: usize,
    /// Ids of the conversation.
    used_ids: Arc<[String]>,
    outcome: Option<ToolChoiceOutcome>,
    warnings: Vec<Warning>,
}

impl Recovery {
    /// Calls of the tools that a request offers: all of them, those of
    /// [`ToolChoice::Only`](switchboard_domain::ToolChoice::Only), or none if no tool may be used.
    pub fn of(request: &ChatRequest, forms: RecoveryForms) -> Self {
        let messages = request.messages.iter();
        let ids = messages.flat_map(|message| message.tool_uses().map(|it| it.id.clone()));
        Self {
            known: Arc::new(Known::of(request)),
            forms,
            limit: DEFAULT_MAX_TOOL_INPUT_BYTES + ROOM_FOR_MARKS,
            used_ids: ids.collect(),
            outcome: None,
            warnings: Vec::new(),
        }
    }

    /// The same where the model was told other names. The events carry the declared ones.
    #[must_use]
    pub fn with_wire_names(mut self, names: &ToolNames) -> Self {
        let known = (*self.known).clone().told_as(names);
        self.known = Arc::new(known);
        self
    }

    /// Says in [`ModelEvent::Started`] what became of the tool choice, and warns.
    pub(crate) fn with_outcome(
        mut self,
        outcome: ToolChoiceOutcome,
        warnings: Vec<Warning>,
    ) -> Self {
        self.outcome = Some(outcome);
        self.warnings = warnings;
        self
    }

    /// Whether it changes no answer.
    fn is_idle(&self) -> bool {
        let finds_nothing = self.forms.is_empty() || self.known.is_empty();
        finds_nothing && self.outcome.is_none() && self.warnings.is_empty()
    }
}

/// The stream with the calls in its text turned into tool uses. The same stream if nothing can be
/// recovered of it.
///
/// What was held back when the stream fails comes before the error.
pub fn recover(stream: ModelStream, recovery: Recovery) -> ModelStream {
    if recovery.is_idle() {
        return stream;
    }
    Box::pin(Recovering {
        stream: Some(stream),
        events: EventRecovery::new(recovery),
        fresh: Vec::new(),
        outgoing: Outgoing::default(),
    })
}

struct Recovering {
    /// `None` when there will be no more.
    stream: Option<ModelStream>,
    events: EventRecovery,
    /// What was just made; kept for its memory.
    fresh: Vec<ModelEvent>,
    outgoing: Outgoing,
}

impl Stream for Recovering {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(next) = this.outgoing.next() {
                return Poll::Ready(Some(next));
            }
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(None);
            };
            match ready!(stream.as_mut().poll_next(context)) {
                Some(Ok(event)) => this.events.push(event, &mut this.fresh),
                end => {
                    this.stream = None;
                    if let Some(Err(failure)) = end {
                        this.outgoing.fail(failure);
                    }
                    this.events.end(&mut this.fresh);
                }
            }
            for event in this.fresh.drain(..) {
                this.outgoing.push(event);
            }
        }
    }
}

#[cfg(test)]
#[path = "text_tool_calls/text_tool_calls_tests.rs"]
mod tests;
