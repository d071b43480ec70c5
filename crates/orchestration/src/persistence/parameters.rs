//! What a run was begun with.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{MOST_WISH_BYTES, check_depth};

use crate::{Agent, RunOptions};

/// What a run was begun with, for whoever goes on with it in another process: what its stored state does not say, and,
/// while nothing of that is stored, all of it. Kept with the run as its [wish](switchboard_domain::RunRecord::wish).
///
/// Nothing secret belongs here: it is stored, and exported with the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BegunWith {
    /// The recipe that was chosen, by its name or its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// It is offered no tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_tools: bool,
    /// What else was asked for, in the words of the surface that began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Its options, which stand in its state as soon as there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Value>,
}

impl BegunWith {
    /// What runs of this agent begin with.
    pub fn of(agent: &Agent) -> Self {
        Self {
            options: serde_json::to_value(agent.options()).ok(),
            ..Self::default()
        }
    }

    /// As it is stored: an object. Of options that are more than a store keeps nothing is stored; `None` if
    /// the rest is as well.
    pub fn stored(mut self) -> Option<Value> {
        let fits = |value: &Value| {
            let text = serde_json::to_vec(value);
            text.is_ok_and(|text| text.len() <= MOST_WISH_BYTES) && check_depth(value).is_ok()
        };
        let whole = serde_json::to_value(&self).ok()?;
        if fits(&whole) {
            return Some(whole);
        }
        self.options = None;
        serde_json::to_value(&self).ok().filter(fits)
    }

    /// What is stored with a run; `None` if that is nothing, or nothing that this version can read.
    pub fn read(stored: Option<&Value>) -> Option<Self> {
        Self::deserialize(stored?).ok()
    }

    /// The options that the run began with; `None` if they are not known. Without them a run whose state was never
    /// stored cannot begin anew: its approvals and limits might be others.
    pub fn options(&self) -> Option<RunOptions> {
        RunOptions::deserialize(self.options.as_ref()?).ok()
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
