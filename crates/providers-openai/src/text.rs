//! Text that is put together only when it is written.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};

/// Between texts that were separate parts.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// Text in pieces, written as one string.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(Vec<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// Appends `text`, after `separator` if there is text before it.
    pub(crate) fn push(&mut self, separator: &'static str, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        if !self.0.is_empty() && !separator.is_empty() {
            self.0.push(Cow::Borrowed(separator));
        }
        self.0.push(text);
    }

    /// Appends another text, after `separator` if there is text before it.
    pub(crate) fn append(&mut self, separator: &'static str, other: Self) {
        let mut separator = separator;
        for piece in other.0 {
            self.push(std::mem::take(&mut separator), piece);
        }
    }

    /// Whether nothing would be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first piece.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", AsRef::as_ref)
    }

    /// Puts `text` before all else.
    pub(crate) fn prepend(&mut self, text: &'static str) {
        self.0.insert(0, Cow::Borrowed(text));
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Text<'a> {
    fn from(text: T) -> Self {
        Self(vec![text.into()])
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => serializer.serialize_str(one),
            _ => serializer.collect_str(self),
        }
    }
}
