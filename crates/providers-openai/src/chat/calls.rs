//! Which streamed piece belongs to which tool call.
//!
//! OpenAI numbers its calls and says id and name once. Compatible servers leave the number out, use
//! 0 for all, leave the id out or blank or make up a new one per chunk, and repeat the name in each
//! chunk. The rules are in [`Calls::find`].

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;
use switchboard_domain::{
    JsonObject, ModelEvent, ModelId, PartStart, ProviderState,
    accumulator::DEFAULT_MAX_TOOL_INPUT_BYTES as MAX_INPUT,
};
use switchboard_providers_common::LocalIds;

use super::wire::{FunctionDelta, ToolCallDelta};
use crate::reshaped::{Held, Reshaped, broken, pass, rest};

/// What a call carries back, by its name on the wire.
pub(crate) const CARRIED: [&str; 2] = ["extra_content", "provider_specific_fields"];

/// The calls of one answer.
#[derive(Debug)]
pub(crate) struct Calls {
    model: ModelId,
    ids: LocalIds,
    reshaped: Reshaped,
    list: Vec<Call>,
    places: Places,
    /// The call that is being written.
    current: Option<usize>,
}

#[derive(Debug, Default)]
struct Call {
    /// The server's id for it.
    wire_id: Option<String>,
    name: String,
    /// The part that it became, as soon as its name is known.
    part: Option<u32>,
    /// Arguments that came before the name, up to one character more than an input may have.
    early: String,
    /// Arguments that are to be given another shape.
    held: Option<Held>,
    /// What must come back with it.
    carried: JsonObject,
    /// Whether that is more than was said.
    carried_anew: bool,
    json: JsonProgress,
    /// The chunk that spoke of it last.
    chunk: u64,
}

impl Calls {
    /// The calls of an answer of `model`.
    pub(crate) fn new(model: ModelId, ids: LocalIds) -> Self {
        Self {
            model,
            ids,
            reshaped: Reshaped::default(),
            list: Vec::new(),
            places: Places::default(),
            current: None,
        }
    }

    /// Gives some tools another name, and their inputs another shape.
    pub(crate) fn reshape(&mut self, reshaped: Reshaped) {
        self.reshaped = reshaped;
    }

    /// Takes a piece of a call out of chunk number `chunk`.
    pub(crate) fn delta(
        &mut self,
        delta: &ToolCallDelta,
        chunk: u64,
        next_part: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) {
        self.piece(&Piece::new(delta), chunk, next_part, events);
    }

    fn piece(
        &mut self,
        piece: &Piece<'_>,
        chunk: u64,
        next_part: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) {
        let found = self.find(piece, chunk);
        let at = found.map_or(self.list.len(), |(at, _)| at);
        if found.is_none() {
            self.places.note(at, piece.id, piece.index);
            self.list.push(Call {
                wire_id: piece.id.map(str::to_owned),
                ..Call::default()
            });
        }
        self.current = Some(at);
        let Some(call) = self.list.get_mut(at) else {
            return;
        };
        call.chunk = chunk;
        for (name, value) in CARRIED.into_iter().zip(piece.carried) {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                call.carried.insert(name.to_owned(), value.clone());
                call.carried_anew = true;
            }
        }
        if let Some(name) = piece.name
            && call.part.is_none()
        {
            let index = *next_part;
            *next_part = next_part.saturating_add(1);
            call.part = Some(index);
            name.clone_into(&mut call.name);
            events.push(ModelEvent::PartStarted {
                index,
                part: PartStart::ToolUse {
                    id: self.ids.claim(call.wire_id.as_deref()),
                    name: self.reshaped.declared(name).to_owned(),
                },
            });
            call.held = self.reshaped.hold_input(self.reshaped.declared(name));
            let early = std::mem::take(&mut call.early);
            // Apart, so that what may be kept of an input that is too long is kept.
            let (whole, more) = early.split_at(early.floor_char_boundary(MAX_INPUT));
            for json in [whole, more] {
                call.argue(index, json, events);
            }
        }
        if let Some(index) = call.part
            && call.carried_anew
        {
            call.carried_anew = false;
            let data = Value::Object(call.carried.clone());
            let state = ProviderState::minted_by(&self.model, data);
            let state = Box::new(state);
            events.push(ModelEvent::PartState { index, state });
        }
        let is_repeat = matches!(found, Some((_, Match::Repeat)));
        if piece.arguments.is_empty() || is_repeat {
            return;
        }
        call.json.feed(&piece.arguments);
        match call.part {
            Some(index) => call.argue(index, &piece.arguments, events),
            None => call.keep(&piece.arguments),
        }
    }

    /// Takes a piece of the one call in the form before `tool_calls`.
    pub(crate) fn legacy(
        &mut self,
        function: FunctionDelta,
        chunk: u64,
        next_part: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) {
        let delta = ToolCallDelta {
            // There is only one call of this form, so it has a number that no other has.
            index: Some(u64::MAX),
            function: Some(function),
            ..ToolCallDelta::default()
        };
        self.delta(&delta, chunk, next_part, events);
    }

    /// Text or reasoning came: the call before it is no longer being written.
    pub(crate) fn settle(&mut self) {
        self.current = None;
    }

    /// Whether a call with a name came.
    pub(crate) fn any(&self) -> bool {
        self.list.iter().any(|call| call.part.is_some())
    }

    /// How many calls came without ever being given a name.
    pub(crate) fn nameless(&self) -> usize {
        let is_nameless = |call: &&Call| call.part.is_none();
        self.list.iter().filter(is_nameless).count()
    }

    /// Closes the calls. If the answer was cut off, the one being written stays open: its input may
    /// read like a whole object and yet lack its end. So does one whose input is not whole: servers
    /// announce several calls before they write the input of any.
    pub(crate) fn finish(&mut self, cut_off: bool, events: &mut Vec<ModelEvent>) {
        for (at, call) in self.list.iter_mut().enumerate() {
            let Some(index) = call.part else { continue };
            let is_open = cut_off && (self.current == Some(at) || !call.json.is_whole());
            let json = if is_open {
                broken(&mut call.held)
            } else {
                rest(&mut call.held)
            };
            events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
            if !is_open {
                events.push(ModelEvent::PartFinished { index });
            }
        }
    }

    /// The answer broke off: gives out what was held back.
    pub(crate) fn release(&mut self, events: &mut Vec<ModelEvent>) {
        for call in &mut self.list {
            let json = broken(&mut call.held);
            let delta = |(index, json)| ModelEvent::ToolInputDelta { index, json };
            events.extend(call.part.zip(json).map(delta));
        }
    }

    /// The call that a piece continues; `None` if it begins one.
    fn find(&self, piece: &Piece<'_>, chunk: u64) -> Option<(usize, Match)> {
        let by_id = self.places.of_id(piece.id, piece.index);
        let at = by_id.or_else(|| match piece.index {
            Some(index) => self.places.by_index.get(&index).copied(),
            // No number at all: it goes on with the call being written.
            None => self.current.or_else(|| self.list.len().checked_sub(1)),
        })?;
        let call = self.list.get(at)?;
        let whole = call.json.is_whole();
        let other_id = piece.id.is_some() && call.wire_id.is_some() && by_id.is_none();
        let Some(name) = piece.name else {
            // An id made up per chunk goes on with the call, unless that has nothing left to say.
            let begins = other_id && whole && !piece.arguments.is_empty();
            return (!begins).then_some((at, Match::More));
        };
        if call.name.is_empty() {
            return Some((at, Match::More));
        }
        if call.name != name {
            return None;
        }
        // The same name again. With the same id, it is repeated in each chunk, or the whole call is
        // said once more at the end.
        if by_id.is_some() {
            let again = whole && !piece.arguments.is_empty();
            return Some((at, if again { Match::Repeat } else { Match::More }));
        }
        // Without: two entries of one chunk are two calls, and so is what comes after a whole
        // input; between the two, ids differ from call to call or (midway in an input) per chunk.
        let two_entries = call.chunk == chunk;
        let after_whole = whole && !piece.arguments.is_empty();
        let midway = call.json.has_begun() && !whole;
        let begins = two_entries || after_whole || (other_id && !midway);
        (!begins).then_some((at, Match::More))
    }
}

impl Call {
    /// More of the arguments.
    fn argue(&mut self, index: u32, more: &str, events: &mut Vec<ModelEvent>) {
        let json = pass(&mut self.held, more);
        events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
    }

    /// Keeps arguments for a call whose name has not come. Of too many just enough stay to be known for
    /// too many.
    fn keep(&mut self, arguments: &str) {
        let room = (MAX_INPUT + 1).saturating_sub(self.early.len());
        let end = arguments.ceil_char_boundary(room);
        self.early.push_str(&arguments[..end]);
    }
}

/// Where calls stand in the list, so that an answer of many calls takes no longer per call.
#[derive(Debug, Default)]
struct Places {
    /// The last call of a number.
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, Named>,
}

/// Where calls of one id stand: the last one of each number, of none, and of all.
#[derive(Debug, Default)]
struct Named {
    last: usize,
    unnumbered: Option<usize>,
    numbered: BTreeMap<u64, usize>,
}

impl Places {
    /// A call begins at `at`.
    fn note(&mut self, at: usize, id: Option<&str>, index: Option<u64>) {
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        if let Some(id) = id {
            let named = self.by_id.entry(id.to_owned()).or_default();
            named.last = at;
            match index {
                Some(index) => {
                    named.numbered.insert(index, at);
                }
                None => named.unnumbered = Some(at),
            }
        }
    }

    /// The last call of that id whose number does not say otherwise.
    fn of_id(&self, id: Option<&str>, index: Option<u64>) -> Option<usize> {
        let named = self.by_id.get(id?)?;
        match index {
            Some(index) => named.unnumbered.max(named.numbered.get(&index).copied()),
            None => Some(named.last),
        }
    }
}

/// How a piece goes with the call that it was found to belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    /// It continues it.
    More,
    /// It says all of it again.
    Repeat,
}

/// A piece of a call with its blanks taken for absent.
struct Piece<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: Cow<'a, str>,
    /// In the order of [`CARRIED`].
    carried: [Option<&'a Value>; 2],
}

impl<'a> Piece<'a> {
    fn new(delta: &'a ToolCallDelta) -> Self {
        let function = delta.function.as_ref();
        let name = function.and_then(|it| it.name.as_deref());
        let arguments = match function.and_then(|it| it.arguments.as_ref()) {
            None | Some(Value::Null) => Cow::Borrowed(""),
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Some(value) => Cow::Owned(value.to_string()),
        };
        Self {
            index: delta.index,
            id: delta.id.as_deref().and_then(id_of),
            name: name.and_then(name_of),
            arguments,
            carried: [
                delta.extra_content.as_ref(),
                delta.provider_specific_fields.as_ref(),
            ],
        }
    }
}

/// An id, unless it is blank. Mistral's "null" is a blank too.
fn id_of(id: &str) -> Option<&str> {
    Some(id.trim()).filter(|id| !id.is_empty() && *id != "null")
}

/// A name, unless it is blank.
fn name_of(name: &str) -> Option<&str> {
    Some(name.trim()).filter(|name| !name.is_empty())
}

/// How far a streamed JSON object has come, counted in brackets. It holds no content.
#[derive(Debug, Default)]
struct JsonProgress {
    begun: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl JsonProgress {
    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            self.begun |= !byte.is_ascii_whitespace();
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

    fn has_begun(&self) -> bool {
        self.begun
    }

    /// Something came, and all its brackets and strings are closed.
    fn is_whole(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
