//! The tool pins of one server during a run.

use std::{collections::HashMap, sync::Mutex};

use switchboard_domain::ToolHostChange;

use crate::{
    primitives::sync::lock_mutex,
    tools::{catalog::ServerTools, tool_pinning::fingerprint::ToolChange},
};

/// Pinned tools of one server, by their names on the server. A tool that disappears stays pinned,
/// because it may return with another definition.
pub(crate) struct PinnedTools(Mutex<HashMap<String, ToolPin>>);

/// Pinned and current fingerprint of one tool, which differ if its definition has changed.
struct ToolPin {
    /// Fingerprint of the first definition, or of the last one that a person accepted.
    pinned: String,
    current: String,
}

impl ToolPin {
    fn new(fingerprint: &str) -> Self {
        Self {
            pinned: fingerprint.to_owned(),
            current: fingerprint.to_owned(),
        }
    }
}

impl PinnedTools {
    /// Creates the pinned tools of a server from pairs of tool name and fingerprint, which an
    /// earlier run stored.
    pub(crate) fn new<'a>(pins: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let pins = pins.map(|(tool, fingerprint)| (tool.to_owned(), ToolPin::new(fingerprint)));
        Self(Mutex::new(pins.collect()))
    }

    /// Stores a pin (fingerprint of the definition) for each tool without a pin. Returns an event
    /// for each tool whose definition has changed since the last update.
    pub(crate) fn update_pins(&self, server: &str, tools: &ServerTools) -> Vec<ToolHostChange> {
        let mut pins = lock_mutex(&self.0);
        let redefined = tools.model_tools().filter_map(|tool| {
            let (name, now) = (tool.original_name(), &tool.fingerprint);
            let Some(pin) = pins.get_mut(name) else {
                pins.insert(name.to_owned(), ToolPin::new(now));
                return None;
            };
            (pin.current != *now).then(|| ToolHostChange::ToolRedefined {
                server: server.to_owned(),
                tool: tool.definition.name.clone(),
                before: std::mem::replace(&mut pin.current, now.clone()),
                now: now.clone(),
            })
        });
        redefined.collect()
    }

    /// Returns the tools whose definition differs from the pinned one.
    pub(crate) fn changed_tools(&self, server: &str, tools: &ServerTools) -> Vec<ToolChange> {
        let pins = lock_mutex(&self.0);
        let changed = tools.model_tools().filter_map(|tool| {
            let (name, now) = (tool.original_name(), &tool.fingerprint);
            let pin = pins.get(name)?;
            (pin.pinned != *now).then(|| ToolChange {
                server: server.to_owned(),
                tool: name.to_owned(),
                name: tool.definition.name.clone(),
                before: pin.pinned.clone(),
                now: now.clone(),
            })
        });
        changed.collect()
    }

    /// Pins the new definition of a changed tool. Returns `false` if the definition has changed
    /// again since `change` was created.
    pub(crate) fn accept_change(&self, change: &ToolChange) -> bool {
        let mut pins = lock_mutex(&self.0);
        let pin = pins.get_mut(&change.tool);
        let Some(pin) = pin.filter(|pin| pin.current == change.now) else {
            return false;
        };
        pin.pinned.clone_from(&pin.current);
        true
    }

    /// Returns the name of each pinned tool on its server, with the pinned fingerprint.
    pub(crate) fn pinned_fingerprints(&self) -> Vec<(String, String)> {
        let pins = lock_mutex(&self.0);
        let pins = pins.iter();
        pins.map(|(tool, pin)| (tool.clone(), pin.pinned.clone()))
            .collect()
    }
}
