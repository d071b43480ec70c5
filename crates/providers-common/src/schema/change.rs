//! What was done to a schema.

use std::fmt;

/// One thing that [`compile`](super::compile) did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where: a JSON pointer into the schema that was given, empty for its root. What stands in a
    /// definition is found below `/$defs`, also where the schema says `definitions`.
    pub pointer: String,
    /// What sort of change.
    pub kind: ChangeKind,
    /// What happened, for people: "`minimum` is said in the description".
    pub message: String,
}

impl Change {
    pub(super) fn new(pointer: &str, kind: ChangeKind, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.to_owned(),
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.pointer.is_empty() {
            "root"
        } else {
            &self.pointer
        };
        write!(f, "{at}: {}", self.message)
    }
}

/// What a change means for the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Another spelling; the same values are valid.
    Rewritten,
    /// What meant nothing was left out: `$schema`, `$id`, `$comment`, definitions that nobody uses.
    Noise,
    /// An optional property is required now and may be null. [`restore`](super::restore()) takes the
    /// null out again.
    Nullable,
    /// An object that said nothing of further keys takes none now.
    Closed,
    /// A constraint is said in the description; the wire does not hold an answer to it.
    Described,
    /// A constraint is said nowhere; the wire does not hold an answer to it.
    Dropped,
    /// More values are valid than before.
    Widened,
    /// Fewer values are valid than before: what the schema allows cannot all be answered.
    Narrowed,
    /// The value is written as JSON text in a string. [`restore`](super::restore()) reads it.
    Encoded,
    /// The root is no object and became the property `value` of one. [`restore`](super::restore())
    /// takes it out again.
    Wrapped,
    /// A property got a name that the wire takes. [`restore`](super::restore()) renames it back.
    Renamed,
    /// What stood there is no schema, or leads nowhere, and means nothing.
    Invalid,
    /// Too deep, too large, or within itself too often.
    Truncated,
}

impl ChangeKind {
    /// Whether the wire holds an answer to less after this change.
    pub const fn loses_enforcement(self) -> bool {
        matches!(
            self,
            Self::Described
                | Self::Dropped
                | Self::Widened
                | Self::Encoded
                | Self::Invalid
                | Self::Truncated
        )
    }
}
