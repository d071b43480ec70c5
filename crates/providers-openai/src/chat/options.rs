//! Options of models on the Chat Completions API.

use std::borrow::Cow;

use serde::Deserialize;

use crate::Profile;

/// Options of a model on Chat Completions.
///
/// Every field is optional in a configuration file, such as `{strict_tools: true}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatOptions {
    /// Overrides [`Profile::strict_tools`] for models on Chat Completions. `None` keeps the value
    /// of the profile.
    pub strict_tools: Option<bool>,
}

impl ChatOptions {
    /// Returns `profile` with the values that these options override.
    pub fn apply_to_profile(self, profile: &Profile) -> Cow<'_, Profile> {
        profile.with_strict_tools(self.strict_tools)
    }
}
