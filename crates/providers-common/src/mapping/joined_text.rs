//! Text that is joined from parts, for adapters whose API expects one string.

use std::borrow::Cow;

use serde::Serialize;

/// Text that is joined from parts. A single part is borrowed without a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct JoinedText<'a>(Cow<'a, str>);

impl<'a> JoinedText<'a> {
    /// Appends a part, after `separator` if there is text before it. An empty part changes nothing.
    pub fn push(&mut self, separator: &str, part: impl Into<Cow<'a, str>>) {
        let part = part.into();
        if part.is_empty() {
            return;
        }
        if self.0.is_empty() {
            self.0 = part;
        } else {
            let text = self.0.to_mut();
            text.push_str(separator);
            text.push_str(&part);
        }
    }

    /// Appends another text, after `separator` if there is text before it.
    pub fn append(&mut self, separator: &str, other: Self) {
        self.push(separator, other.0);
    }

    /// Inserts `prefix` at the start of the text.
    pub fn prepend(&mut self, prefix: &str) {
        self.0.to_mut().insert_str(0, prefix);
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the joined text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for JoinedText<'a> {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::JoinedText;

    #[test]
    fn parts_are_joined_and_empty_parts_are_skipped() {
        let mut text = JoinedText::default();
        for part in ["", "a", "", "b"] {
            text.push("\n", part);
        }
        text.append("\n\n", "c".into());
        text.append("\n\n", JoinedText::default());
        text.prepend("Error: ");
        assert_eq!(text.as_str(), "Error: a\nb\n\nc");
        assert!(JoinedText::default().is_empty());
    }
}
