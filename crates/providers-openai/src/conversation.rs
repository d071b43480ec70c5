//! How a conversation is gone through, the same for both wires.

use std::borrow::Cow;

use switchboard_domain::{Document, Media, Message, Part, Role, ToolResult};

use crate::{
    losses::Losses,
    media::DataUrl,
    text::{PARAGRAPH, Text},
};

/// What maps a conversation message by message. A wire says how each thing is written.
pub(crate) trait Conversation<'a, 'm> {
    /// A piece of a person's message.
    type Piece;

    /// Where losses are told.
    fn losses(&mut self) -> &mut Losses<'m>;
    /// Pieces that wait until all results of a group are sent: a call must be answered before any other
    /// message comes.
    fn waiting(&mut self) -> &mut Vec<Self::Piece>;

    fn instructions(&mut self, text: Text<'a>);
    /// A message of the person, of at least one piece.
    fn person(&mut self, pieces: Vec<Self::Piece>);
    /// A message of the person that is one text, as nearly all are.
    fn person_says(&mut self, text: &'a str) {
        let text = self.text(Cow::Borrowed(text));
        self.person(vec![text]);
    }
    /// What the model said; no result is among the parts.
    fn assistant(&mut self, parts: impl Iterator<Item = &'a Part>);
    fn tool_result(&mut self, result: &'a ToolResult);

    fn text(&mut self, text: Cow<'a, str>) -> Self::Piece;
    fn image(&mut self, media: &'a Media) -> Self::Piece;
    /// An image of a result, for a model that sees.
    fn shown(&mut self, image: DataUrl<'a>) -> Self::Piece;
    fn audio(&mut self, media: &'a Media) -> Self::Piece;
    fn document(&mut self, document: &'a Document) -> Self::Piece;

    /// Maps a message: the results in it first, which answer the calls before it.
    fn message(&mut self, message: &'a Message) {
        if let (Role::User, [Part::Text(text)]) = (message.role, message.parts.as_slice())
            && !text.text.is_empty()
        {
            self.flush();
            return self.person_says(&text.text);
        }
        for result in message.results() {
            self.tool_result(result);
        }
        let is_other = |part: &&Part| !matches!(part, Part::ToolResult(_));
        let mut parts = message.parts.iter().filter(is_other).peekable();
        if parts.peek().is_none() {
            return;
        }
        self.flush();
        match message.role {
            Role::System => self.system(parts),
            Role::User | Role::Tool => self.user(parts),
            Role::Assistant => self.assistant(parts),
        }
    }

    /// Sends what waits.
    fn flush(&mut self) {
        let waiting = std::mem::take(self.waiting());
        if !waiting.is_empty() {
            self.person(waiting);
        }
    }

    /// Images of a result that follow it.
    fn show(&mut self, lead: String, images: impl Iterator<Item = DataUrl<'a>>)
    where
        Self: Sized,
    {
        let lead = self.text(lead.into());
        self.waiting().push(lead);
        for image in images {
            let image = self.shown(image);
            self.waiting().push(image);
        }
    }

    /// A medium that cannot be sent, in words.
    fn in_words(&mut self, what: &str, media: &Media, why: &str) -> Self::Piece {
        let words = self.losses().in_words(what, media, why);
        self.text(words.into())
    }

    fn system(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = Text::default();
        for part in parts {
            match part {
                Part::Text(text) => content.push(PARAGRAPH, &text.text),
                other => self.losses().dropped(other, "instructions are text"),
            }
        }
        if !content.is_empty() {
            self.instructions(content);
        }
    }

    fn user(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut pieces = Vec::with_capacity(1);
        for part in parts {
            pieces.push(match part {
                Part::Text(text) if text.text.is_empty() => continue,
                Part::Text(text) => self.text(Cow::Borrowed(&text.text)),
                Part::Image(media) => self.image(media),
                Part::Audio(media) => self.audio(media),
                Part::Document(document) => self.document(document),
                Part::Opaque(opaque) if let Some(text) = &opaque.text => {
                    self.losses().downgraded(&opaque.kind, "its text");
                    self.text(Cow::Borrowed(text))
                }
                other => {
                    self.losses()
                        .dropped(other, "a user message cannot hold it");
                    continue;
                }
            });
        }
        if !pieces.is_empty() {
            self.person(pieces);
        }
    }
}
