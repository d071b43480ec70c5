//! Incremental reader of the formatter's JSON.

use super::{MAX_NESTING, Source, item::Item, writer::Sink};
use crate::strategy::formatter::{
    items::Kind,
    json::{pair, unescaped},
};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 128;
/// Maximum stored length of a key or a short value. No recognized value is longer.
const MAX_WORD: usize = 256;

/// An incremental reader, which accepts one character at a time.
#[derive(Debug)]
pub(super) struct Reader {
    stack: Vec<Frame>,
    lex: Lex,
    /// The current key or short value.
    word: String,
    item: Option<Item>,
    /// The content of a string that may contain an answer.
    inner: Option<Box<Source>>,
    nesting: usize,
    done: bool,
}

#[derive(Debug)]
struct Frame {
    place: Place,
    is_object: bool,
    /// Whether the next string is a key of an object.
    expects_key: bool,
    field: Field,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Conversation,
    Item,
    /// The nested artifact of an item.
    Artifact,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Conversation,
    Type,
    Artifact,
    ArtifactType,
    Title,
    Language,
    Content,
    Other,
}

#[derive(Debug, Clone, Copy)]
enum Lex {
    Between,
    /// In a string.
    String {
        target: Target,
        escape: Escape,
        /// The first half of a surrogate pair.
        high: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Key,
    /// A short value of an item.
    Word(Field),
    Content,
    /// A text, or an answer as JSON text.
    Inner,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
enum Escape {
    None,
    Backslash,
    Unicode { digits: u8, value: u32 },
}

impl Reader {
    pub(super) fn new(nesting: usize) -> Self {
        Self {
            stack: Vec::new(),
            lex: Lex::Between,
            word: String::new(),
            item: None,
            inner: None,
            nesting,
            done: false,
        }
    }

    pub(super) fn push(&mut self, text: &str, sink: &mut Sink<'_>) {
        for c in text.chars() {
            if self.done {
                return;
            }
            match self.lex {
                Lex::Between => self.between(c, sink),
                Lex::String {
                    target,
                    escape,
                    high,
                } => self.in_string(c, target, escape, high, sink),
            }
        }
    }

    fn between(&mut self, c: char, sink: &mut Sink<'_>) {
        match c {
            '"' => self.begin_string(sink),
            '{' | '[' => self.open(c == '{', sink),
            '}' | ']' => self.close(sink),
            ',' => self.expect_key(true),
            ':' => self.expect_key(false),
            // White space, numbers and literals are ignored.
            _ => {}
        }
    }

    fn expect_key(&mut self, expects: bool) {
        if let Some(frame) = self.stack.last_mut() {
            frame.expects_key = expects && frame.is_object;
        }
    }

    fn open(&mut self, is_object: bool, sink: &mut Sink<'_>) {
        if self.stack.len() >= MAX_DEPTH {
            self.done = true;
            return;
        }
        let place = match self.stack.last() {
            None if is_object => Place::Root,
            None => Place::Conversation,
            Some(frame) => match (frame.place, frame.field, is_object) {
                (Place::Root, Field::Conversation, true) | (Place::Conversation, _, true) => {
                    Place::Item
                }
                (Place::Root, Field::Conversation, false) => Place::Conversation,
                (Place::Item, Field::Artifact, true) => Place::Artifact,
                _ => Place::Other,
            },
        };
        match place {
            Place::Item => self.item = Some(Item::default()),
            Place::Artifact => self.item().kind = Some(Kind::Artifact),
            _ => {}
        }
        self.stack.push(Frame {
            place,
            is_object,
            expects_key: is_object,
            field: Field::Other,
        });
        if place == Place::Artifact {
            self.try_to_show(sink);
        }
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        let Some(frame) = self.stack.pop() else {
            return;
        };
        if frame.place == Place::Item
            && let Some(item) = self.item.take()
        {
            item.finish(sink);
        }
        self.expect_key(true);
        self.done = self.stack.is_empty();
    }

    fn item(&mut self) -> &mut Item {
        self.item.get_or_insert_default()
    }

    fn begin_string(&mut self, sink: &mut Sink<'_>) {
        let target = match self.stack.last() {
            None => Target::Nothing,
            Some(frame) if frame.is_object && frame.expects_key => Target::Key,
            Some(frame) => match (frame.place, frame.field) {
                (Place::Root, Field::Conversation) | (Place::Conversation, _) => Target::Inner,
                (Place::Item | Place::Artifact, Field::Content) => Target::Content,
                (
                    Place::Item | Place::Artifact,
                    field @ (Field::Type | Field::ArtifactType | Field::Title | Field::Language),
                ) => Target::Word(field),
                _ => Target::Nothing,
            },
        };
        self.word.clear();
        match target {
            Target::Content => self.try_to_show(sink),
            Target::Inner => {
                self.inner = Some(Box::new(if self.nesting < MAX_NESTING {
                    Source::Undecided(String::new())
                } else {
                    sink.begin_text();
                    Source::Plain
                }));
            }
            _ => {}
        }
        self.lex = Lex::String {
            target,
            escape: Escape::None,
            high: None,
        };
    }

    fn in_string(
        &mut self,
        c: char,
        target: Target,
        escape: Escape,
        high: Option<u32>,
        sink: &mut Sink<'_>,
    ) {
        let mut next = (Escape::None, None);
        let decoded = match (escape, c) {
            (Escape::None, '"') => {
                if high.is_some() {
                    self.decoded(char::REPLACEMENT_CHARACTER, target, sink);
                }
                self.lex = Lex::Between;
                return self.end_string(target, sink);
            }
            (Escape::None, '\\') => {
                next = (Escape::Backslash, high);
                None
            }
            (Escape::Backslash, 'u') => {
                let unicode = Escape::Unicode {
                    digits: 0,
                    value: 0,
                };
                next = (unicode, high);
                None
            }
            (Escape::Unicode { digits, value }, c) => {
                let Some(digit) = c.to_digit(16) else {
                    // An invalid code is replaced, and this character is read again.
                    self.decoded(char::REPLACEMENT_CHARACTER, target, sink);
                    self.set(target, Escape::None, None);
                    return self.in_string(c, target, Escape::None, None, sink);
                };
                let (digits, value) = (digits + 1, value * 16 + digit);
                if digits == 4 {
                    return self.unicode(value, high, target, sink);
                }
                next = (Escape::Unicode { digits, value }, high);
                None
            }
            (Escape::Backslash, escaped) => Some(unescaped(escaped)),
            (Escape::None, plain) => Some(plain),
        };
        if let Some(c) = decoded {
            if high.is_some() {
                self.decoded(char::REPLACEMENT_CHARACTER, target, sink);
            }
            self.decoded(c, target, sink);
        }
        self.set(target, next.0, next.1);
    }

    fn set(&mut self, target: Target, escape: Escape, high: Option<u32>) {
        self.lex = Lex::String {
            target,
            escape,
            high,
        };
    }

    /// Processes a complete `\uXXXX`.
    fn unicode(&mut self, value: u32, high: Option<u32>, target: Target, sink: &mut Sink<'_>) {
        let mut pending_high = None;
        if let Some(high) = high
            && let Some(c) = pair(high, value)
        {
            self.decoded(c, target, sink);
        } else {
            if high.is_some() {
                self.decoded(char::REPLACEMENT_CHARACTER, target, sink);
            }
            if (0xD800..0xDC00).contains(&value) {
                pending_high = Some(value);
            } else {
                let c = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
                self.decoded(c, target, sink);
            }
        }
        self.set(target, Escape::None, pending_high);
    }

    fn decoded(&mut self, c: char, target: Target, sink: &mut Sink<'_>) {
        match target {
            Target::Nothing => {}
            Target::Key | Target::Word(_) => {
                if self.word.len() < MAX_WORD {
                    self.word.push(c);
                }
            }
            Target::Content => {
                let item = self.item();
                if item.is_shown {
                    sink.char(c);
                } else {
                    item.held.push(c);
                }
            }
            Target::Inner => {
                if let Some(inner) = &mut self.inner {
                    let nesting = std::mem::replace(&mut sink.writer.nesting, self.nesting + 1);
                    inner.push(c.encode_utf8(&mut [0; 4]), sink);
                    sink.writer.nesting = nesting;
                }
            }
        }
    }

    fn end_string(&mut self, target: Target, sink: &mut Sink<'_>) {
        match target {
            Target::Key => {
                let in_artifact =
                    self.stack.last().map(|frame| frame.place) == Some(Place::Artifact);
                let field = match self.word.as_str() {
                    "conversation" => Field::Conversation,
                    "type" if in_artifact => Field::ArtifactType,
                    "type" => Field::Type,
                    "artifact" => Field::Artifact,
                    "artifactType" | "artifact_type" => Field::ArtifactType,
                    "title" => Field::Title,
                    "language" => Field::Language,
                    "content" | "text" => Field::Content,
                    _ => Field::Other,
                };
                if let Some(frame) = self.stack.last_mut() {
                    frame.field = field;
                    frame.expects_key = false;
                }
                return;
            }
            Target::Word(field) => {
                let word = std::mem::take(&mut self.word);
                let item = self.item();
                match field {
                    Field::Type => item.kind = Some(Kind::of(&word)),
                    Field::ArtifactType => item.artifact_type = Some(word),
                    Field::Title => item.title = Some(word),
                    _ => item.language = Some(word),
                }
                self.try_to_show(sink);
            }
            Target::Inner => {
                // Undecided input is text.
                if let Some(Source::Undecided(held)) = self.inner.take().map(|inner| *inner) {
                    sink.begin_text();
                    sink.text(&held);
                }
                sink.end();
            }
            Target::Content | Target::Nothing => {}
        }
        self.expect_key(true);
    }

    fn try_to_show(&mut self, sink: &mut Sink<'_>) {
        if let Some(item) = &mut self.item {
            item.try_to_show(sink);
        }
    }
}
