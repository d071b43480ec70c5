//! Text that is put together only when it is written.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};

/// Between texts that were separate parts.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// Text in pieces, written as one string.
#[derive(Debug, PartialEq, Eq)]
pub struct Text<'a>(Pieces<'a>);

/// Most texts are of one piece, which is none if it is empty.
#[derive(Debug, PartialEq, Eq)]
enum Pieces<'a> {
    One(Cow<'a, str>),
    More(Vec<Cow<'a, str>>),
}

impl<'a> Text<'a> {
    /// Appends `text`, after `separator` if there is text before it.
    pub(crate) fn push(&mut self, separator: &'static str, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        if self.is_empty() {
            self.0 = Pieces::One(text);
            return;
        }
        self.change(|pieces| {
            if !separator.is_empty() {
                pieces.push(Cow::Borrowed(separator));
            }
            pieces.push(text);
        });
    }

    /// Appends another text, after `separator` if there is text before it.
    pub(crate) fn append(&mut self, separator: &'static str, other: Self) {
        let pieces = match other.0 {
            Pieces::One(only) => return self.push(separator, only),
            Pieces::More(pieces) => pieces,
        };
        let mut separator = separator;
        for piece in pieces {
            self.push(std::mem::take(&mut separator), piece);
        }
    }

    /// Whether nothing would be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_empty()
    }

    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Pieces::One(only) => only.len(),
            Pieces::More(pieces) => pieces.iter().map(|piece| piece.len()).sum(),
        }
    }

    /// The first piece.
    pub(crate) fn first(&self) -> &str {
        match &self.0 {
            Pieces::One(only) => only,
            Pieces::More(pieces) => pieces.first().map_or("", AsRef::as_ref),
        }
    }

    /// Puts `text` before all else.
    pub(crate) fn prepend(&mut self, text: &'static str) {
        if self.is_empty() {
            self.0 = Pieces::One(Cow::Borrowed(text));
        } else {
            self.change(|pieces| pieces.insert(0, Cow::Borrowed(text)));
        }
    }

    /// Changes the pieces, of which there will be several.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Cow<'a, str>>)) {
        match &mut self.0 {
            Pieces::One(only) => {
                let mut pieces = vec![std::mem::take(only)];
                change(&mut pieces);
                self.0 = Pieces::More(pieces);
            }
            Pieces::More(pieces) => change(pieces),
        }
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self(Pieces::One(Cow::Borrowed("")))
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Text<'a> {
    fn from(text: T) -> Self {
        Self(Pieces::One(text.into()))
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pieces::One(only) => f.write_str(only),
            Pieces::More(pieces) => pieces.iter().try_for_each(|piece| f.write_str(piece)),
        }
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Pieces::One(only) => serializer.serialize_str(only),
            Pieces::More(_) => serializer.collect_str(self),
        }
    }
}
