//! Assembles tool calls from streamed pieces.
//!
//! OpenAI numbers its calls and sends id and name once. Compatible servers omit the index, use 0
//! for every call, omit the id, send a blank one or a new one per chunk, or repeat the name in each
//! chunk. `CallAssembler::find_call_for_piece` contains the rules for these servers.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    DEFAULT_MAX_TOOL_INPUT_BYTES as MAX_INPUT, JsonObject, ModelEvent, ModelId, PartStart,
    ProviderState,
};
use switchboard_providers_common::{
    AnswerEvents, JsonShapeRestorer, ToolMapping, ToolUseIds, emit_part_state,
};

use super::wire::{FunctionDelta, ToolCallDelta};

/// Fields of a tool call that may contain a thought signature, which is an encrypted form of the
/// reasoning of Gemini models. Later requests must send the same values with the same call.
pub(crate) const STATE_FIELDS: [&str; 2] = ["extra_content", "provider_specific_fields"];

/// Maximum number of recent calls that are compared with a streamed piece, to find the call that
/// the piece belongs to. The limit keeps the total time linear in the number of calls.
const MAX_SEARCHED: usize = 256;

/// Tool calls of one answer, assembled from streamed pieces.
#[derive(Debug)]
pub(crate) struct CallAssembler {
    model: ModelId,
    ids: ToolUseIds,
    tool_mapping: ToolMapping,
    list: Vec<AssembledCall>,
    /// Index in `list` of the call that is being streamed.
    current: Option<usize>,
}

#[derive(Debug, Default)]
struct AssembledCall {
    /// Id that the server sent for the call. Some servers send none.
    wire_id: Option<String>,
    /// Index that the server sent for the call. Some servers send none.
    index: Option<u64>,
    name: String,
    /// Index of the emitted message part of this call. `None` until the name of the tool is known.
    part: Option<u32>,
    /// Arguments that arrived before the tool's name. Text beyond `MAX_INPUT` bytes is dropped,
    /// except one character. This character is enough to recognize that the input is too long.
    early_arguments: String,
    restorer: JsonShapeRestorer,
    /// Received values of [`STATE_FIELDS`], which must be sent back to the server with the call.
    state: JsonObject,
    /// Whether `state` changed after it was last emitted, so that it must be emitted again.
    state_changed: bool,
    json: JsonEndScanner,
    /// Number of the last stream chunk that contained a piece of this call.
    chunk: u64,
}

impl CallAssembler {
    pub(crate) fn new(model: ModelId, ids: ToolUseIds) -> Self {
        Self {
            model,
            ids,
            tool_mapping: ToolMapping::default(),
            list: Vec::new(),
            current: None,
        }
    }

    /// Sets the mapping that converts tool names and inputs in the answer back to the names and
    /// schemas that the caller declared.
    pub(crate) fn set_tool_mapping(&mut self, tool_mapping: ToolMapping) {
        self.tool_mapping = tool_mapping;
    }

    /// Adds a streamed piece of a tool call and appends the resulting events to `events`. `chunk`
    /// is the number of the stream chunk that contains the piece.
    pub(crate) fn add_call_piece(
        &mut self,
        delta: &ToolCallDelta,
        chunk: u64,
        answer: &mut AnswerEvents,
        events: &mut Vec<ModelEvent>,
    ) {
        let piece = &CallPiece::new(delta);
        let found = self.find_call_for_piece(piece, chunk);
        let at = found.map_or(self.list.len(), |(at, _)| at);
        if found.is_none() {
            self.list.push(AssembledCall {
                wire_id: piece.id.map(str::to_owned),
                index: piece.index,
                ..AssembledCall::default()
            });
        }
        self.current = Some(at);
        let Some(call) = self.list.get_mut(at) else {
            return;
        };
        call.chunk = chunk;
        for (name, value) in STATE_FIELDS.into_iter().zip(piece.state) {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                call.state.insert(name.to_owned(), value.clone());
                call.state_changed = true;
            }
        }
        if let Some(name) = piece.name
            && call.part.is_none()
        {
            name.clone_into(&mut call.name);
            let declared = self.tool_mapping.declared_name(name);
            let part = PartStart::ToolUse {
                id: self.ids.claim_tool_use_id(call.wire_id.as_deref()),
                name: declared.to_owned(),
            };
            let index = answer.start_part(part, events);
            call.part = Some(index);
            call.restorer = self.tool_mapping.input_restorer(declared);
            let early = std::mem::take(&mut call.early_arguments);
            call.emit_arguments(index, &early, events);
        }
        if let Some(index) = call.part
            && call.state_changed
        {
            call.state_changed = false;
            let data = Value::Object(call.state.clone());
            let state = ProviderState::new_for_model(&self.model, data);
            emit_part_state(index, state, events);
        }
        let is_repeat = matches!(found, Some((_, CallPieceMatch::Repeats)));
        if piece.arguments.is_empty() || is_repeat {
            return;
        }
        call.json.scan_json(&piece.arguments);
        match call.part {
            Some(index) => call.emit_arguments(index, &piece.arguments, events),
            None => call.buffer_early_arguments(&piece.arguments),
        }
    }

    /// Adds a piece of the field `function_call`. Servers without `tool_calls` send the only call
    /// of an answer in this field.
    pub(crate) fn add_function_call(
        &mut self,
        function: FunctionDelta,
        chunk: u64,
        answer: &mut AnswerEvents,
        events: &mut Vec<ModelEvent>,
    ) {
        let delta = ToolCallDelta {
            // No other call of the answer has this index.
            index: Some(u64::MAX),
            function: Some(function),
            ..ToolCallDelta::default()
        };
        self.add_call_piece(&delta, chunk, answer, events);
    }

    /// Returns whether a tool call is being streamed. This ends when text or reasoning arrives.
    pub(crate) fn has_current_call(&self) -> bool {
        self.current.is_some()
    }

    /// Ends the current call, because text or reasoning follows it.
    pub(crate) fn end_current_call(&mut self) {
        self.current = None;
    }

    /// Returns whether the answer has a tool call with a name.
    pub(crate) fn has_named_call(&self) -> bool {
        self.list.iter().any(|call| call.part.is_some())
    }

    /// Returns the number of tool calls without a name, which cannot be executed.
    pub(crate) fn count_nameless_calls(&self) -> usize {
        let is_nameless = |call: &&AssembledCall| call.part.is_none();
        self.list.iter().filter(is_nameless).count()
    }

    /// Ends the calls with `PartFinished` at the end of the answer.
    ///
    /// If the answer is incomplete, two kinds of calls stay open, without `PartFinished`: the
    /// current call, because its input may parse as an object and still be incomplete, and calls
    /// with incomplete input, because some servers announce several calls before they send the
    /// input of any.
    pub(crate) fn finish_calls(&mut self, is_incomplete: bool, events: &mut Vec<ModelEvent>) {
        for (at, call) in self.list.iter_mut().enumerate() {
            let Some(index) = call.part else { continue };
            let is_open = is_incomplete && (self.current == Some(at) || !call.json.is_complete());
            let json = if is_open {
                call.restorer.take_raw_buffer()
            } else {
                call.restorer.restore_buffer()
            };
            events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
            if !is_open {
                events.push(ModelEvent::PartFinished { index });
            }
        }
    }

    /// Emits the call inputs that are still buffered when the answer is interrupted.
    pub(crate) fn emit_buffered_inputs(&mut self, events: &mut Vec<ModelEvent>) {
        for call in &mut self.list {
            let json = call.restorer.take_raw_buffer();
            let delta = |(index, json)| ModelEvent::ToolInputDelta { index, json };
            events.extend(call.part.zip(json).map(delta));
        }
    }

    /// Returns the position in `list` of the call that a piece belongs to, with the relation
    /// between piece and call. Returns `None` for the first piece of a new call.
    fn find_call_for_piece(
        &self,
        piece: &CallPiece<'_>,
        chunk: u64,
    ) -> Option<(usize, CallPieceMatch)> {
        let find = |is_meant: &dyn Fn(&AssembledCall) -> bool| {
            let mut calls = self.list.iter().enumerate().rev().take(MAX_SEARCHED);
            calls.find(|(_, call)| is_meant(call)).map(|(at, _)| at)
        };
        let by_id = find(&|call| {
            let is_other_index =
                piece.index.is_some() && call.index.is_some() && call.index != piece.index;
            piece.id.is_some() && call.wire_id.as_deref() == piece.id && !is_other_index
        });
        let at = by_id.or_else(|| match piece.index {
            Some(_) => find(&|call| call.index == piece.index),
            // A piece without an index continues the current call, else the last call.
            None => self.current.or_else(|| self.list.len().checked_sub(1)),
        })?;
        let call = self.list.get(at)?;
        let is_complete = call.json.is_complete();
        let has_other_id = piece.id.is_some() && call.wire_id.is_some() && by_id.is_none();
        let Some(name) = piece.name else {
            // Some servers send a new id in each chunk. A piece with another id but without a name
            // therefore continues the call. It starts a new call only if the call's input is
            // already complete and the piece has arguments.
            let starts = has_other_id && is_complete && !piece.arguments.is_empty();
            return (!starts).then_some((at, CallPieceMatch::Continues));
        };
        if call.name.is_empty() {
            return Some((at, CallPieceMatch::Continues));
        }
        if call.name != name {
            return None;
        }
        // The piece has the name and the id of `call`. If the input of `call` is already complete,
        // the server repeats the call, so the arguments in the piece are ignored.
        if by_id.is_some() {
            let repeats = is_complete && !piece.arguments.is_empty();
            let kind = if repeats {
                CallPieceMatch::Repeats
            } else {
                CallPieceMatch::Continues
            };
            return Some((at, kind));
        }
        // The piece has the name of `call`, but not its id. The piece starts a new call in three
        // cases: this chunk already had a piece of `call`, the input of `call` is complete and the
        // piece has arguments, or the ids differ. Different ids are ignored while the input of
        // `call` is incomplete, because some servers send a new id in each chunk.
        let is_in_same_chunk = call.chunk == chunk;
        let follows_complete = is_complete && !piece.arguments.is_empty();
        let is_within_input = call.json.started && !is_complete;
        let starts = is_in_same_chunk || follows_complete || (has_other_id && !is_within_input);
        (!starts).then_some((at, CallPieceMatch::Continues))
    }
}

impl AssembledCall {
    fn emit_arguments(&mut self, index: u32, more: &str, events: &mut Vec<ModelEvent>) {
        let json = self.restorer.push(more);
        events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
    }

    /// Buffers arguments that arrive before the tool's name. Drops text beyond `MAX_INPUT` bytes,
    /// except one character, which is enough to recognize that the input is too long.
    fn buffer_early_arguments(&mut self, arguments: &str) {
        let room = (MAX_INPUT + 1).saturating_sub(self.early_arguments.len());
        let end = arguments.ceil_char_boundary(room);
        self.early_arguments.push_str(&arguments[..end]);
    }
}

/// Relation between a streamed piece and the call that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallPieceMatch {
    Continues,
    /// The piece repeats a call whose input is already complete. The arguments in the piece are
    /// ignored.
    Repeats,
}

/// A streamed piece of a tool call. Blank fields count as missing.
struct CallPiece<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: Cow<'a, str>,
    /// Values of the fields in [`STATE_FIELDS`], in this order. `None` for a missing field.
    state: [Option<&'a Value>; 2],
}

impl<'a> CallPiece<'a> {
    fn new(delta: &'a ToolCallDelta) -> Self {
        let function = delta.function.as_ref();
        let name = function.and_then(|it| it.name.as_deref());
        let arguments = match function.and_then(|it| it.arguments.as_ref()) {
            None | Some(Value::Null) => Cow::Borrowed(""),
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Some(value) => Cow::Owned(value.to_string()),
        };
        let visible = |text: &'a str| Some(text.trim()).filter(|text| !text.is_empty());
        Self {
            index: delta.index,
            // Mistral sends the text "null" if the piece has no id.
            id: delta
                .id
                .as_deref()
                .and_then(visible)
                .filter(|id| *id != "null"),
            name: name.and_then(visible),
            arguments,
            state: [
                delta.extra_content.as_ref(),
                delta.provider_specific_fields.as_ref(),
            ],
        }
    }
}

/// Detector of the end of a JSON object that is streamed. Tracks brackets and strings, and does not
/// store the text.
#[derive(Debug, Default)]
struct JsonEndScanner {
    started: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl JsonEndScanner {
    fn scan_json(&mut self, text: &str) {
        for byte in text.bytes() {
            self.started |= !byte.is_ascii_whitespace();
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns whether the JSON text has started and all its brackets and strings are closed.
    fn is_complete(&self) -> bool {
        self.started && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
#[path = "tool_calls_tests.rs"]
mod tests;
