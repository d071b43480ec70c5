//! The parameters that a run was started with.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{MAX_RUN_PARAMETERS_BYTES, check_depth};

use crate::{Agent, RunOptions};

/// The parameters that a run was started with, for a process that resumes it: values that the
/// stored state does not have, and all values before the first checkpoint. Stored as
/// [`RunRecord::parameters`](switchboard_domain::RunRecord::parameters).
///
/// It must not contain secrets: it is stored, and exported with the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunParameters {
    /// Name or file of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// Whether the run has no tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_tools: bool,
    /// Further parameters, in the form of the surface that started the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// The options. After the first checkpoint the stored state has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Value>,
}

impl RunParameters {
    /// Returns the parameters of runs of this agent.
    pub fn of(agent: &Agent) -> Self {
        Self {
            options: serde_json::to_value(agent.options()).ok(),
            ..Self::default()
        }
    }

    /// Returns the stored form, an object. The options are omitted if they exceed the size limit of
    /// a store. Returns `None` if the rest exceeds it too.
    pub fn stored(mut self) -> Option<Value> {
        let fits = |value: &Value| {
            let text = serde_json::to_vec(value);
            text.is_ok_and(|text| text.len() <= MAX_RUN_PARAMETERS_BYTES)
                && check_depth(value).is_ok()
        };
        let whole = serde_json::to_value(&self).ok()?;
        if fits(&whole) {
            return Some(whole);
        }
        self.options = None;
        serde_json::to_value(&self).ok().filter(fits)
    }

    /// Reads the stored form. Returns `None` if there is none or if this version cannot read it.
    pub fn read(stored: Option<&Value>) -> Option<Self> {
        Self::deserialize(stored?).ok()
    }

    /// Returns the options; `None` if they are unknown. Without them a run without a stored state
    /// cannot start again, because its approvals and limits might differ.
    pub fn options(&self) -> Option<RunOptions> {
        RunOptions::deserialize(self.options.as_ref()?).ok()
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
