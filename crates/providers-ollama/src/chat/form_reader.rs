//! An answer in the form of [`Form`](super::Form), read while it streams.
//!
//! Text is buffered only until the tool's name is known; the input of the tool is streamed. An
//! answer in another form is text, because some servers ignore `format`.

use super::form::{Form, NAME, PARAMETERS, RESPONSE};

/// Maximum size in bytes of buffered text.
const MAX_HELD: usize = 4 * 1024 * 1024;
/// JSON's own white space.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

/// One parsed piece of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// A call of this tool begins.
    Call(String),
    /// More of its input.
    Input(String),
    /// Its input is complete.
    CallDone,
    /// More text of an answer.
    Text(String),
}

#[derive(Debug)]
pub(crate) struct FormReader {
    form: Form,
    state: State,
    kind: Option<Kind>,
    /// Buffered text whose kind is not yet known.
    held: String,
    /// The string or name that is being read.
    word: String,
    /// Input that came before the tool's name.
    early: String,
    input: Input,
    /// The answer, or something in it, was not in the form.
    strayed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Call,
    Answer,
}

/// How far a call's input has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Missing,
    Begun,
    Complete,
}

#[derive(Debug)]
enum State {
    /// Before the object.
    Start,
    /// Before a field or the object's end.
    Field,
    /// In the name of a field.
    FieldName(Value),
    /// Before the colon after it.
    Colon,
    /// Before a value.
    Before(Slot),
    /// In a value.
    InsideValue(Slot, Value),
    /// After a value.
    After,
    /// After the object.
    End,
    /// No longer in the form: all is text.
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Name,
    Parameters,
    Response,
    /// Nothing that is asked for.
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

    /// Takes more of the answer.
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

    /// Ends the answer. Emits the buffered text as text.
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

    /// Whether the object came to its end.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// Whether something was not in the form.
    pub(crate) fn strayed(&self) -> bool {
        self.strayed
    }

    /// Reads as much of `text` as belongs together; gives back the rest.
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
            // A comma may be missing for all we care.
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

    /// The field that was named; `None` if an answer in this form cannot have it here.
    fn slot(&self) -> Option<Slot> {
        let name = serde_json::from_str::<String>(&self.word).ok()?;
        match (self.kind, name.as_str()) {
            (None, NAME) => Some(Slot::Name),
            // Many models know the field under its other name.
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

    /// Takes a piece of a value.
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
                // A field without a value is a missing input, not an empty one.
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

    /// The tool's name is complete with the piece `read`.
    fn end_name(&mut self, read: &str, said: &mut Vec<Said>) {
        let name = serde_json::from_str::<String>(&self.word).ok();
        let Some(name) = name.filter(|name| self.form.tools.contains(name)) else {
            // The tool may not be called: the text is shown and never executed.
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

    /// The object is complete.
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
        // Blanks between a call and what follows are not held, so that cutting makes no difference.
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

/// How far a JSON value has come, counted in brackets. It holds no content.
#[derive(Debug, Default)]
struct Value {
    begun: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Value {
    /// A string whose first quote has been read.
    fn string() -> Self {
        Self {
            begun: true,
            in_string: true,
            ..Self::default()
        }
    }

    /// Reads on; where the value ends in `text`, if it does. All of JSON's own signs are single
    /// bytes, so the place is between two characters.
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
                // A number or a word ends where something else begins.
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
