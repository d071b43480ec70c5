//! An answer in the form of [`Form`](super::Form), read while it streams.
//!
//! Text is buffered only until the tool's name is known; the input of the tool is streamed. An
//! answer in another form is text, because some servers ignore `format`.

use super::form::{Form, NAME, PARAMETERS, RESPONSE};

/// Maximum size in bytes of buffered text.
const MAX_HELD: usize = 4 * 1024 * 1024;
/// White space in JSON.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

/// One parsed piece of a constrained answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// A call of the tool with this name begins.
    Call(String),
    /// More of the input of the current call.
    Input(String),
    /// The input of the current call is complete.
    CallDone,
    /// More of the text of an answer that is not a call.
    Text(String),
}

#[derive(Debug)]
pub(crate) struct FormReader {
    form: Form,
    state: State,
    kind: Option<Kind>,
    /// Buffered text that is not yet known to be a call or an answer.
    held: String,
    /// The string or field name that is being read.
    word: String,
    /// Input of a call that arrived before the name of the tool.
    early: String,
    input: Input,
    /// Whether any part of the answer violated the form.
    strayed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Call,
    Answer,
}

/// Progress of the input of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Missing,
    Begun,
    Complete,
}

#[derive(Debug)]
enum State {
    /// The reader is before the JSON object.
    Start,
    /// The reader is before a field or the end of the object.
    Field,
    /// The reader is in the name of a field.
    FieldName(Value),
    /// The reader is before the colon after a field name.
    Colon,
    /// The reader is before the value of a field.
    Before(Slot),
    /// The reader is in the value of a field.
    InsideValue(Slot, Value),
    /// The reader is after the value of a field.
    After,
    /// The reader is after the JSON object.
    End,
    /// The answer violated the form: the rest is plain text.
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Name,
    Parameters,
    Response,
    /// A field that the form does not have.
    Other,
}

impl FormReader {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            state: State::Start,
            kind: None,
            held: String::new(),
            word: String::new(),
            early: String::new(),
            input: Input::Missing,
            strayed: false,
        }
    }

    /// Reads more of the answer. Appends the parsed pieces to `said`.
    pub(crate) fn push(&mut self, text: &str, said: &mut Vec<Said>) {
        let mut rest = text;
        while !rest.is_empty() {
            let left = self.step(rest, said);
            if self.kind.is_none() && !matches!(self.state, State::Text) {
                let read = rest.len().saturating_sub(left.len());
                self.held.push_str(rest.get(..read).unwrap_or_default());
                if self.held.len() > MAX_HELD {
                    self.stray("", said);
                }
            }
            rest = left;
        }
    }

    /// Ends the answer. Emits the buffered text as plain text.
    pub(crate) fn end(&mut self, said: &mut Vec<Said>) {
        if self.kind == Some(Kind::Call)
            && self.input == Input::Missing
            && matches!(self.state, State::End)
        {
            said.push(Said::CallDone);
        }
        if self.kind.is_none() && !matches!(self.state, State::Text) {
            let blank = self.held.trim_matches(BLANK).is_empty();
            if blank {
                self.held.clear();
            }
            self.stray("", said);
        }
    }

    /// Returns whether the JSON object of the answer is complete.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// Returns whether any part of the answer violated the form.
    pub(crate) fn strayed(&self) -> bool {
        self.strayed
    }

    /// Reads the first token of `text` and returns the rest.
    fn step<'t>(&mut self, text: &'t str, said: &mut Vec<Said>) -> &'t str {
        match &mut self.state {
            State::Text => {
                said.push(Said::Text(text.to_owned()));
                return "";
            }
            State::FieldName(value) => {
                let end = value.end_in(text);
                let (read, rest) = divide(text, end);
                self.word.push_str(read);
                if end.is_some() {
                    self.state = State::Colon;
                }
                return rest;
            }
            State::InsideValue(slot, value) => {
                let slot = *slot;
                let end = value.end_in(text);
                let (read, rest) = divide(text, end);
                return self.value(slot, read, end.is_some(), rest, said);
            }
            _ => {}
        }
        let visible = text.trim_start_matches(BLANK);
        let Some(first) = visible.chars().next() else {
            return "";
        };
        let after = visible.get(first.len_utf8()..).unwrap_or_default();
        match (&self.state, first) {
            (State::Start, '{') => {
                self.state = State::Field;
                after
            }
            (State::Field | State::After, '"') => {
                self.word.clear();
                self.word.push('"');
                self.state = State::FieldName(Value::string());
                after
            }
            // A missing comma between fields is tolerated.
            (State::After, ',') => after,
            (State::Field | State::After, '}') => self.close_value(text, after, said),
            (State::Colon, ':') => match self.slot() {
                Some(slot) => {
                    self.word.clear();
                    self.state = State::Before(slot);
                    after
                }
                None => self.stray(text, said),
            },
            (State::Before(slot), _) => {
                let slot = *slot;
                if slot == Slot::Name && first != '"' {
                    return self.stray(text, said);
                }
                self.state = State::InsideValue(slot, Value::default());
                visible
            }
            _ => self.stray(text, said),
        }
    }

    /// Returns the slot for the field that was just named. Returns `None` if the form does not
    /// allow this field here.
    fn slot(&self) -> Option<Slot> {
        let name = serde_json::from_str::<String>(&self.word).ok()?;
        match (self.kind, name.as_str()) {
            (None, NAME) => Some(Slot::Name),
            // Many models write `arguments` instead of `parameters`.
            (None | Some(Kind::Call), PARAMETERS | "arguments") if self.input == Input::Missing => {
                Some(Slot::Parameters)
            }
            (None, RESPONSE) if self.form.may_answer && self.input == Input::Missing => {
                Some(Slot::Response)
            }
            (None, _) => None,
            (Some(_), _) => Some(Slot::Other),
        }
    }

    /// Reads a piece of a field's value.
    fn value<'t>(
        &mut self,
        slot: Slot,
        read: &str,
        complete: bool,
        rest: &'t str,
        said: &mut Vec<Said>,
    ) -> &'t str {
        if complete {
            self.state = State::After;
        }
        match slot {
            Slot::Name => {
                self.word.push_str(read);
                if complete {
                    self.end_name(read, said);
                }
            }
            Slot::Parameters => {
                // A field without a value counts as missing input, not as empty input.
                let complete = complete && !(read.is_empty() && self.input == Input::Missing);
                self.input = if complete {
                    Input::Complete
                } else {
                    Input::Begun
                };
                if self.kind.is_none() {
                    self.early.push_str(read);
                } else {
                    if !read.is_empty() {
                        said.push(Said::Input(read.to_owned()));
                    }
                    if complete {
                        said.push(Said::CallDone);
                    }
                }
            }
            Slot::Response => {
                self.kind = Some(Kind::Answer);
                self.held.clear();
                if !read.is_empty() {
                    said.push(Said::Text(read.to_owned()));
                }
            }
            Slot::Other => {}
        }
        rest
    }

    /// Ends the name of the tool with its last piece `read`, and begins the call.
    fn end_name(&mut self, read: &str, said: &mut Vec<Said>) {
        let name = serde_json::from_str::<String>(&self.word).ok();
        let Some(name) = name.filter(|name| self.form.tools.contains(name)) else {
            // The tool may not be called: its call becomes text and is never executed.
            self.held.push_str(read);
            self.stray("", said);
            return;
        };
        self.kind = Some(Kind::Call);
        self.held.clear();
        said.push(Said::Call(name));
        let early = std::mem::take(&mut self.early);
        if !early.is_empty() {
            said.push(Said::Input(early));
        }
        if self.input == Input::Complete {
            said.push(Said::CallDone);
        }
    }

    /// Ends the JSON object of the answer.
    fn close_value<'t>(&mut self, text: &'t str, after: &'t str, said: &mut Vec<Said>) -> &'t str {
        if self.kind.is_none() {
            return self.stray(text, said);
        }
        self.state = State::End;
        after
    }

    /// Treats the buffered text, `text` and all later text as plain text, because the form is
    /// violated.
    fn stray<'t>(&mut self, text: &str, said: &mut Vec<Said>) -> &'t str {
        self.state = State::Text;
        self.strayed = true;
        let mut all = std::mem::take(&mut self.held);
        // White space after a call is not buffered, so that the result does not depend on chunk
        // borders.
        let between = self.kind.is_some();
        all.push_str(if between {
            text.trim_start_matches(BLANK)
        } else {
            text
        });
        if !all.is_empty() {
            said.push(Said::Text(all));
        }
        ""
    }
}

/// Splits the text at the end of a value.
fn divide(text: &str, end: Option<usize>) -> (&str, &str) {
    end.and_then(|end| text.split_at_checked(end))
        .unwrap_or((text, ""))
}

/// Progress of a JSON value, judged by its brackets. The content is not stored.
#[derive(Debug, Default)]
struct Value {
    begun: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Value {
    /// Creates the progress of a string whose first quote was read.
    fn string() -> Self {
        Self {
            begun: true,
            in_string: true,
            ..Self::default()
        }
    }

    /// Reads more of the value. Returns the position in `text` where the value ends, if it ends
    /// there. The position is always between characters, because all syntax characters of JSON are
    /// single bytes.
    fn end_in(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' if self.depth > 0 || !self.begun => self.in_string = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                // A number or a word ends before the next syntax character.
                b'}' | b']' | b',' | b'"' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => {
                    return Some(at);
                }
                _ => {}
            }
            self.begun = true;
        }
        None
    }
}

#[cfg(test)]
#[path = "form_reader_tests.rs"]
mod tests;
