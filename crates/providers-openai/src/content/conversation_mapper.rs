//! Converts the messages and their parts in the order that both OpenAI APIs require.

use std::borrow::Cow;

use switchboard_domain::{Document, Media, Message, Part, Role, ToolResult};
use switchboard_providers_common::{ContentWarnings, JoinedText};

use super::PARAGRAPH;
use crate::wire::media::MediaUrl;

/// Converter of conversations, one message at a time, that both APIs share. The default methods
/// determine the order of messages and parts. Each API implements the methods that build its JSON
/// types.
pub(crate) trait ConversationMapper<'a, 'm> {
    /// The API's type for one part of a user message, such as a text or an image.
    type Piece;

    fn content_warnings(&mut self) -> &mut ContentWarnings<'m>;
    /// Returns the pending content: images and texts from tool results that will be sent as a user
    /// message. The API requires the results of all calls directly after the calls, so this message
    /// cannot be between them.
    fn pending_result_parts(&mut self) -> &mut Vec<Self::Piece>;

    fn push_instructions(&mut self, text: JoinedText<'a>);
    /// Adds a user message with the parts `pieces`, at least one.
    fn push_user_message(&mut self, pieces: Vec<Self::Piece>);
    /// Adds an assistant message. `parts` contains no tool result.
    fn push_assistant_message(&mut self, parts: impl Iterator<Item = &'a Part>);
    fn push_tool_result(&mut self, result: &'a ToolResult);

    fn map_text(&mut self, text: Cow<'a, str>) -> Self::Piece;
    fn map_image(&mut self, media: &'a Media) -> Self::Piece;
    /// Converts an image of a tool result for a model with vision.
    fn map_result_image(&mut self, image: MediaUrl<'a>) -> Self::Piece;
    fn map_audio(&mut self, media: &'a Media) -> Self::Piece;
    fn map_document(&mut self, document: &'a Document) -> Self::Piece;

    /// Converts one message. Adds the tool results of the message before its other parts, because
    /// they answer earlier calls.
    fn map_message(&mut self, message: &'a Message) {
        for result in message.tool_results() {
            self.push_tool_result(result);
        }
        let is_other = |part: &&Part| !matches!(part, Part::ToolResult(_));
        let mut parts = message.parts.iter().filter(is_other).peekable();
        if parts.peek().is_none() {
            return;
        }
        self.flush_pending_results();
        match message.role {
            Role::System => self.push_system_parts(parts),
            Role::User | Role::Tool => self.push_user_parts(parts),
            Role::Assistant => self.push_assistant_message(parts),
        }
    }

    /// Adds the pending content, such as images of tool results, as a user message.
    fn flush_pending_results(&mut self) {
        let waiting = std::mem::take(self.pending_result_parts());
        if !waiting.is_empty() {
            self.push_user_message(waiting);
        }
    }

    /// Adds images of a tool result to the pending content, after the text `lead`.
    fn add_result_images(&mut self, lead: String, images: impl Iterator<Item = MediaUrl<'a>>)
    where
        Self: Sized,
    {
        let lead = self.map_text(lead.into());
        self.pending_result_parts().push(lead);
        for image in images {
            let image = self.map_result_image(image);
            self.pending_result_parts().push(image);
        }
    }

    /// Returns a text, such as `[image image/bmp]`, that replaces media which cannot be sent, and
    /// adds a warning. `what` is the kind of media, such as `image`. `why` is the reason that the
    /// warning states.
    fn media_as_text(&mut self, what: &str, media: &Media, why: &str) -> Self::Piece {
        let name = self.content_warnings().warn_media_as_text(what, media, why);
        self.map_text(name.into())
    }

    fn push_system_parts(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = JoinedText::default();
        for part in parts {
            match part {
                Part::Text(text) => content.push(PARAGRAPH, &text.text),
                other => self
                    .content_warnings()
                    .warn_dropped_part(other, "instructions can contain only text"),
            }
        }
        if !content.is_empty() {
            self.push_instructions(content);
        }
    }

    fn push_user_parts(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut pieces = Vec::with_capacity(1);
        for part in parts {
            pieces.push(match part {
                Part::Text(text) if text.text.is_empty() => continue,
                Part::Text(text) => self.map_text(Cow::Borrowed(&text.text)),
                Part::Image(media) => self.map_image(media),
                Part::Audio(media) => self.map_audio(media),
                Part::Document(document) => self.map_document(document),
                Part::Opaque(opaque) if let Some(text) = &opaque.text => {
                    self.content_warnings()
                        .warn_downgraded_part(&opaque.kind, "its text");
                    self.map_text(Cow::Borrowed(text))
                }
                other => {
                    self.content_warnings()
                        .warn_dropped_part(other, "a user message cannot contain it");
                    continue;
                }
            });
        }
        if !pieces.is_empty() {
            self.push_user_message(pieces);
        }
    }
}
