//! Tool calls that a model wrote as text.
//!
//! Small models, and servers without the right parser, answer with the text of a call instead of a
//! call. [`recover_tool_calls`] converts it into a tool use, in the [`TextCallFormat`]s that the
//! caller selects and for the tools of the request.
//!
//! | module | content |
//! |---|---|
//! | `call_format` | [`TextCallFormat`], [`TextCallFormats`] |
//! | `event_converter` | [`TextCallConverter`]: converts an answer's events |
//! | `scan`, `markdown` | splits a text into text and calls; skips examples |
//! | `format_parsers` | one parser for each [`TextCallFormat`] |
//! | `cursor`, `json_calls`, `literal` | parsers that several formats share |
//! | [`prompted`] | tools for models without tool support |
//!
//! # Rules
//!
//! - Text that names no offered tool passes through unchanged, byte for byte. Text is buffered from
//!   the first marker of a format, such as `<tool_call>`, to the end of the text. White space at
//!   the beginning of a text is emitted with the text that follows it.
//! - The same text gives the same calls, however the server splits it into deltas.
//! - A call that ends with the text before it is complete, or whose input cannot be read, becomes a
//!   malformed tool use: the model receives an error, and the call is not executed. A call whose
//!   brackets are closed is complete, also without its closing marker.
//! - Calls in code are examples: nothing in a Markdown block or span of code, or in a quoted line,
//!   is a call. A block that is itself a call ([`TextCallFormat::FencedJson`]) counts if the answer
//!   consists only of calls and thinking.
//! - In an answer with a call, [`FinishReason::Stop`](switchboard_domain::FinishReason::Stop)
//!   becomes [`ToolUse`](switchboard_domain::FinishReason::ToolUse). Other finish reasons stay.
//! - If one call of a list names a tool that is not offered, the whole list is text.
//! - White space between calls, and after the last one, is dropped.
//! - Nothing is recovered from reasoning, or from thinking that the server left in the text between
//!   `<think>` and `</think>`.
//! - The size limit of a call is that of a tool input ([`DEFAULT_MAX_TOOL_INPUT_BYTES`]); a longer
//!   call is malformed.
//! ```
//! use switchboard_domain::{ChatRequest, Message, ModelEvent, PartStart, ToolDefinition};
//! use switchboard_providers_common::text_tool_calls::{
//!     CallRecoverySettings, TextCallConverter, TextCallFormat, TextCallFormats,
//! };
//!
//! let tool = ToolDefinition::new("add", "Adds.", serde_json::json!({"type": "object"}));
//! let request = ChatRequest::new([Message::user("1 + 2?")]).with_tools([tool]);
//! let forms = TextCallFormats::from_forms(&[TextCallFormat::FencedJson]);
//! let mut recovery = TextCallConverter::new(CallRecoverySettings::for_request(&request, forms));
//!
//! let mut events = Vec::new();
//! recovery.push(ModelEvent::PartStarted { index: 0, part: PartStart::Text }, &mut events);
//! for piece in ["```json\n{\"name\": \"ad", "d\", \"arguments\": {\"a\": 1, \"b\": 2}}\n```"] {
//!     let text = piece.to_owned();
//!     recovery.push(ModelEvent::TextDelta { index: 0, text }, &mut events);
//! }
//! recovery.end_answer(&mut events);
//! assert!(matches!(
//!     &events[0],
//!     ModelEvent::PartStarted { part: PartStart::ToolUse { name, .. }, .. } if name == "add"
//! ));
//! ```

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use switchboard_domain::{
    ChatRequest, DEFAULT_MAX_TOOL_INPUT_BYTES, ModelStream, ToolChoiceOutcome, Warning,
};

use crate::{ToolUseIds, tool_names::ToolNames};

mod call_format;
mod cursor;
mod event_converter;
mod format_parsers;
mod json_calls;
mod literal;
mod markdown;
mod offered_tools;
pub mod prompted;
mod scan;
mod text_call_model;

use offered_tools::OfferedTools;

pub use call_format::{TextCallFormat, TextCallFormats};
pub use event_converter::TextCallConverter;
pub use text_call_model::TextCallModel;

/// Maximum size in bytes of everything in a call except its input: the tool name and the markup,
/// such as `<tool_call>`.
const MAX_MARKS_BYTES: usize = 16 * 1024;

/// Settings of the search for tool calls in an answer's text: which tools a call may name and which
/// [`TextCallFormat`]s are recognized.
#[derive(Debug, Clone)]
pub struct CallRecoverySettings {
    tools: Arc<OfferedTools>,
    forms: TextCallFormats,
    /// Maximum size in bytes of one call in the text. A longer call counts as incomplete and is not
    /// executed.
    limit: usize,
    ids: ToolUseIds,
    outcome: Option<ToolChoiceOutcome>,
    warnings: Vec<Warning>,
}

impl CallRecoverySettings {
    /// Creates the settings for the answer to `request`. The search finds only calls of tools that
    /// the tool choice of `request` allows: all tools, those of
    /// [`ToolChoice::Only`](switchboard_domain::ToolChoice::Only), or none for
    /// [`ToolChoice::None`](switchboard_domain::ToolChoice::None).
    pub fn for_request(request: &ChatRequest, forms: TextCallFormats) -> Self {
        Self {
            tools: Arc::new(OfferedTools::from_request(request)),
            forms,
            limit: DEFAULT_MAX_TOOL_INPUT_BYTES + MAX_MARKS_BYTES,
            ids: ToolUseIds::from_request(request).with_prefix("call_text_"),
            outcome: None,
            warnings: Vec::new(),
        }
    }

    /// Sets the names under which the tools were sent to the model, because the model writes these
    /// names in its calls. The emitted tool uses have the declared names.
    #[must_use]
    pub fn with_wire_names(mut self, names: &ToolNames) -> Self {
        let tools = (*self.tools).clone().with_wire_names(names);
        self.tools = Arc::new(tools);
        self
    }

    /// Sets how the request's tool choice was applied (`outcome`), and the warnings about the
    /// request. [`recover_tool_calls`] emits both at the beginning of the answer.
    pub(crate) fn with_tool_choice_outcome(
        mut self,
        outcome: ToolChoiceOutcome,
        warnings: Vec<Warning>,
    ) -> Self {
        self.outcome = Some(outcome);
        self.warnings = warnings;
        self
    }

    /// Returns whether [`recover_tool_calls`] can return its stream unchanged: there is no format
    /// or tool to search for, and no outcome or warning to emit.
    fn leaves_stream_unchanged(&self) -> bool {
        let finds_nothing = self.forms.is_empty() || self.tools.is_empty();
        finds_nothing && self.outcome.is_none() && self.warnings.is_empty()
    }
}

/// Converts the tool calls that a model wrote as text in a stream into tool uses. Returns the
/// stream unchanged if `recovery` has nothing to search for and nothing to report.
///
/// If the stream fails, the buffered text and calls are emitted before the error.
pub fn recover_tool_calls(stream: ModelStream, recovery: CallRecoverySettings) -> ModelStream {
    if recovery.leaves_stream_unchanged() {
        return stream;
    }
    let state = (Some(stream), TextCallConverter::new(recovery));
    let batches = stream::unfold(state, |(stream, mut recovery)| async move {
        let mut stream = stream?;
        let mut events = Vec::new();
        let (stream, failure) = match stream.next().await {
            Some(Ok(event)) => {
                recovery.push(event, &mut events);
                (Some(stream), None)
            }
            end => {
                recovery.end_answer(&mut events);
                (None, end.and_then(Result::err))
            }
        };
        let items = events.into_iter().map(Ok).chain(failure.map(Err));
        Some((stream::iter(items), (stream, recovery)))
    });
    Box::pin(batches.flatten().fuse())
}

#[cfg(test)]
#[path = "text_tool_calls/text_tool_calls_tests.rs"]
mod tests;
