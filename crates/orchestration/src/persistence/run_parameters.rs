//! Parameters with which a run was started.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{MAX_RUN_PARAMETERS_BYTES, check_depth};

use crate::{Agent, RunOptions};

/// Parameters with which a run was started, stored as [`RunRecord::parameters`] for a process that
/// resumes the run.
///
/// They contain values that are not part of the stored run state. Before the first checkpoint, they
/// are the only stored settings.
///
/// They must not contain secrets, because they are stored, and exported with the run.
///
/// [`RunRecord::parameters`]: switchboard_domain::RunRecord::parameters
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunParameters {
    /// Name or file path of the recipe with which the run was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// Whether the run was started without tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_tools: bool,
    /// Further parameters, in the format of the program that started the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Options of the run. After the first checkpoint, they are also part of the stored run state.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Value>,
}

impl RunParameters {
    /// Returns parameters with the run options of this agent. The other parameters are not set.
    pub fn from_agent(agent: &Agent) -> Self {
        Self {
            options: serde_json::to_value(agent.run_options()).ok(),
            ..Self::default()
        }
    }

    /// Converts the parameters to a JSON object for the store.
    ///
    /// The run options are omitted if the object would exceed the store's limit of size or depth.
    /// Returns `None` if the rest exceeds a limit too.
    pub fn into_stored_value(mut self) -> Option<Value> {
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

    /// Reads the parameters from their stored JSON. Returns `None` if nothing is stored or if this
    /// version cannot read it.
    pub fn from_stored_value(stored: Option<&Value>) -> Option<Self> {
        Self::deserialize(stored?).ok()
    }

    /// Returns the run options, or `None` if they were not stored or cannot be read.
    ///
    /// Without options, a run that has no stored state cannot start again, because its approvals
    /// and limits might differ from the original ones.
    pub fn run_options(&self) -> Option<RunOptions> {
        RunOptions::deserialize(self.options.as_ref()?).ok()
    }
}

#[cfg(test)]
#[path = "run_parameters_tests.rs"]
mod tests;
