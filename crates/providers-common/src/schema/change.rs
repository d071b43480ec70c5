//! The changes that the schema compiler reports.

use std::fmt;

use switchboard_domain::{Warning, WarningKind};

/// A change by the schema compiler that affects answers or the enforcement of the schema. Changes
/// that only rewrite a schema in an equivalent form are not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// JSON pointer to the changed part of the original schema, empty for the root. Definitions are
    /// below `/$defs`, also where the schema uses `definitions`.
    pub pointer: String,
    /// Effect of the change on answers.
    pub kind: ChangeKind,
    /// Description for people, such as "`minimum` moved to the description".
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
        let at = match self.pointer.as_str() {
            "" => "root",
            pointer => pointer,
        };
        write!(f, "{at}: {}", self.message)
    }
}

/// Maximum number of changes that [`list_changes`] lists.
const MAX_LISTED: usize = 3;

/// Returns a text with the first three changes, their JSON pointers and the number of the other
/// changes. Returns `None` without changes.
pub fn list_changes<'c>(changes: impl Iterator<Item = &'c Change>) -> Option<String> {
    let changes: Vec<String> = changes.map(ToString::to_string).collect();
    let listed = changes.get(..MAX_LISTED).unwrap_or(&changes);
    let more = match changes.len() - listed.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!listed.is_empty()).then(|| format!("{}{more}", listed.join("; ")))
}

/// Adds a warning that consists of the texts `what` and `why`. `why` is usually a list of changes.
/// Does nothing if `why` is `None`.
pub fn warn_schema_changes(what: &str, why: Option<String>, warnings: &mut Vec<Warning>) {
    if let Some(why) = why {
        let message = format!("{what}: {why}");
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
}

/// Effect of a schema change on answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// An optional property became required and nullable.
    /// [`restore_answer`](super::restore_answer()) removes the null.
    Nullable,
    /// A constraint became text in the description. The provider does not enforce it.
    Described,
    /// A constraint was removed without a description. The provider does not enforce it.
    Dropped,
    /// More values are valid than with the original schema.
    Widened,
    /// Fewer values are valid than with the original schema.
    Narrowed,
    /// A value is written as JSON text in a string. [`restore_answer`](super::restore_answer())
    /// parses this text.
    Encoded,
    /// A root schema that is not an object became the property `value` of an object.
    /// [`restore_answer`](super::restore_answer()) unwraps it.
    Wrapped,
    /// A property was renamed for the provider. [`restore_answer`](super::restore_answer()) renames
    /// it back.
    Renamed,
    /// An invalid schema or reference was removed.
    Invalid,
    /// A subschema was cut off, because it was too deep, too large or too often nested in itself.
    Truncated,
}

impl ChangeKind {
    /// Returns whether a change of this kind weakens the schema, so that the provider does not
    /// enforce every constraint of the original.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_first_three_changes() {
        let changes = |count: usize| {
            let names = ["", "/a", "/b", "/c", "/d"].into_iter().take(count);
            let changes: Vec<Change> = names
                .map(|pointer| Change::new(pointer, ChangeKind::Dropped, "dropped"))
                .collect();
            list_changes(changes.iter())
        };
        assert_eq!(changes(0), None);
        let three = "root: dropped; /a: dropped; /b: dropped";
        assert_eq!(changes(3).as_deref(), Some(three));
        assert_eq!(changes(5), Some(format!("{three}; and 2 more")));
    }
}
