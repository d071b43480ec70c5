//! Warnings about parts of a conversation that are changed or dropped.

use switchboard_domain::{Media, Part, ToolContent, Warning, WarningKind};

/// Collector of warnings about message parts that are sent in another form or dropped.
#[derive(Debug)]
pub struct ContentWarnings<'m> {
    warnings: &'m mut Vec<Warning>,
    /// Number of parts that are sent without their provider state, because another model created
    /// this state.
    pub dropped_states: usize,
}

impl<'m> ContentWarnings<'m> {
    /// Creates a collector that appends to `warnings`.
    pub fn new(warnings: &'m mut Vec<Warning>) -> Self {
        Self {
            warnings,
            dropped_states: 0,
        }
    }

    /// Returns a text to send instead of media, such as `[image image/bmp]`, and adds a warning.
    pub fn warn_media_as_text(&mut self, what: &str, media: &Media, why: &str) -> String {
        self.warn_sent_as_text(format!("[{what} {}]", media.media_type), why)
    }

    /// Warns that the text `name` is sent instead of a part, with the reason `why`. Returns `name`.
    pub fn warn_sent_as_text(&mut self, name: String, why: &str) -> String {
        let message = format!("{name} was sent as this text: {why}");
        self.add_downgrade(message);
        name
    }

    /// Warns that `part` was dropped, with the reason `why`.
    pub fn warn_dropped_part(&mut self, part: &Part, why: &str) {
        let what = part.describe_kind();
        let message = format!("{what} was dropped: {why}");
        self.add_warning(WarningKind::PartDropped, message);
    }

    /// Warns that `what`, such as the URL of a document, is sent as `sent_as`, such as text.
    pub fn warn_downgraded_part(&mut self, what: &str, sent_as: &str) {
        let message = format!("{what} was sent as {sent_as}");
        self.add_downgrade(message);
    }

    /// Warns that `count` images of a tool result were dropped, because the model does not support
    /// images. `result` is the name of the tool result in the text of the warning.
    pub fn warn_dropped_images(&mut self, count: usize, result: &str) {
        let message =
            format!("{count} image(s) of {result} were dropped: the model does not support images");
        self.add_warning(WarningKind::PartDropped, message);
    }

    /// Warns that `count` images of a tool result are sent in the next user message. `result` is
    /// the name of the tool result in the text of the warning.
    pub fn warn_moved_images(&mut self, count: usize, result: &str) {
        self.warn_downgraded_part(
            &format!("{count} image(s) of {result}"),
            "a user message after it: a result can contain only text",
        );
    }

    /// Warns about media in a tool result that are sent as text.
    pub fn warn_result_media_as_text<'c>(
        &mut self,
        content: impl Iterator<Item = &'c ToolContent>,
        result: &str,
    ) {
        for media in content.filter(|content| is_media(content)) {
            let name = format!("{} of {result}", media.as_text());
            self.warn_sent_as_text(name, "a result cannot contain it");
        }
    }

    /// Warns that `count` reasoning parts were dropped, with the reason `why`. Does nothing if
    /// `count` is 0.
    pub fn warn_dropped_reasoning(&mut self, count: usize, why: &str) {
        if count > 0 {
            let message = format!("{count} reasoning part(s) were dropped: {why}");
            self.add_warning(WarningKind::PartDropped, message);
        }
    }

    /// Adds one warning for all parts that are sent without their provider state, if there are any.
    pub fn warn_dropped_part_states(&mut self) {
        if self.dropped_states > 0 {
            let message = format!(
                "{} part(s) were sent without the state of another model",
                self.dropped_states
            );
            self.add_downgrade(message);
        }
    }

    /// Adds a warning with the text `message` about a part that is sent in another form.
    pub fn add_downgrade(&mut self, message: impl Into<String>) {
        self.add_warning(WarningKind::PartDowngraded, message);
    }

    /// Adds a warning with the text `message`.
    pub fn add_warning(&mut self, kind: WarningKind, message: impl Into<String>) {
        self.warnings.push(Warning::new(kind, message));
    }
}

/// Returns whether content of a tool result is an image, audio or a binary resource.
fn is_media(content: &ToolContent) -> bool {
    match content {
        ToolContent::Image(_) | ToolContent::Audio(_) => true,
        ToolContent::Resource { text, blob, .. } => text.is_none() && blob.is_some(),
        _ => false,
    }
}
