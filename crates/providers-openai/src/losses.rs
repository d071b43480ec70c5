//! What a conversation loses on its way to the wire, in the same words on both.

use switchboard_domain::{Media, Part, ToolContent, Warning, WarningKind};

use crate::results::is_more_than_words;

/// Where losses are told.
pub(crate) struct Losses<'m> {
    warnings: &'m mut Vec<Warning>,
    /// Parts that go without what another model had attached for itself.
    pub(crate) states: usize,
}

impl<'m> Losses<'m> {
    pub(crate) fn new(warnings: &'m mut Vec<Warning>) -> Self {
        Self {
            warnings,
            states: 0,
        }
    }

    /// The words in which a medium that cannot be sent is named, so that the model knows of it.
    pub(crate) fn in_words(&mut self, what: &str, media: &Media, why: &str) -> String {
        let name = format!("[{what} {}]", media.media_type);
        let message = format!("{name} was sent as these words: {why}");
        self.warn(WarningKind::PartDowngraded, message);
        name
    }

    /// A part is left out.
    pub(crate) fn dropped(&mut self, part: &Part, why: &str) {
        let what = part.in_words();
        self.warn(WarningKind::PartDropped, format!("{what} left out: {why}"));
    }

    /// Something is sent in a poorer form.
    pub(crate) fn downgraded(&mut self, what: &str, to: &str) {
        let message = format!("{what} was sent as {to}");
        self.warn(WarningKind::PartDowngraded, message);
    }

    /// Images of a result that nobody sees are left out.
    pub(crate) fn unseen(&mut self, images: usize, from: &str) {
        let message = format!("the model sees no images: {images} left out of {from}");
        self.warn(WarningKind::PartDropped, message);
    }

    /// Images of a result follow it: `whose` results are text.
    pub(crate) fn shown_after(&mut self, images: usize, from: &str, whose: &str) {
        self.downgraded(
            &format!("{images} image(s) of {from}"),
            &format!("a user message after it: results are text on this {whose}"),
        );
    }

    /// Pieces of a result go in words: those of them that are more than words are told.
    pub(crate) fn in_words_only<'c>(
        &mut self,
        pieces: impl Iterator<Item = &'c ToolContent>,
        from: &str,
    ) {
        for piece in pieces.filter(|piece| is_more_than_words(piece)) {
            let words = piece.as_text();
            let message = format!(
                "{words} of {from} was sent as these words: a result takes no such media here"
            );
            self.warn(WarningKind::PartDowngraded, message);
        }
    }

    /// So many reasoning parts are left out.
    pub(crate) fn reasoning(&mut self, count: usize, why: &str) {
        if count > 0 {
            let message = format!("{count} reasoning part(s) left out: {why}");
            self.warn(WarningKind::PartDropped, message);
        }
    }

    /// Tells what was only counted.
    pub(crate) fn sum_up(&mut self) {
        if self.states > 0 {
            let message = format!(
                "{} part(s) sent without what another model had attached for itself",
                self.states
            );
            self.warn(WarningKind::PartDowngraded, message);
        }
    }

    pub(crate) fn warn(&mut self, kind: WarningKind, message: String) {
        self.warnings.push(Warning::new(kind, message));
    }
}

/// What the model is told before the images of a result that follow it, by the names that it knows.
pub(crate) fn lead(tool: &str, call: &str) -> String {
    format!("Image(s) from the result of tool `{tool}` (call {call}):")
}
