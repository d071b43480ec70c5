//! What Chat Completions may be told beside the request.

use std::borrow::Cow;

use serde::Deserialize;

use crate::Profile;

/// What Chat Completions may be told beside the request.
///
/// A configuration file may hold any of its fields, such as `{strict_tools: true}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatOptions {
    /// [`Profile::strict_tools`] for this wire; `None` leaves it to the profile.
    pub strict_tools: Option<bool>,
}

impl ChatOptions {
    /// The profile with these laid over it.
    pub fn over(self, profile: &Profile) -> Cow<'_, Profile> {
        profile.with_strict_tools(self.strict_tools)
    }
}
