//! Options of Chat Completions.

use std::borrow::Cow;

use serde::Deserialize;

use crate::Profile;

/// Options of a model on Chat Completions.
///
/// A configuration file may contain any of its fields, such as `{strict_tools: true}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatOptions {
    /// Overrides [`Profile::strict_tools`] for models on Chat Completions.
    pub strict_tools: Option<bool>,
}

impl ChatOptions {
    /// Returns the profile with these options applied.
    pub fn apply_to_profile(self, profile: &Profile) -> Cow<'_, Profile> {
        profile.with_strict_tools(self.strict_tools)
    }
}
