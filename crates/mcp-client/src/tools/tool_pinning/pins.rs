//! What a server's tools were when they were first and last seen.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use switchboard_domain::ToolHostChange;

use crate::tools::{
    list::{Tools, own_name},
    tool_pinning::fingerprint::ToolChange,
};

/// By the tools' own names. A tool that vanishes stays in it: it may come back as another one.
pub(crate) struct SeenTools(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    tools: HashMap<String, Seen>,
    /// Whether any is not what it was when it was first seen. Mostly none is, and that is asked before every
    /// question to a model.
    any_changed: bool,
}

/// Fingerprints of a tool.
struct Seen {
    first: String,
    last: String,
}

impl Seen {
    fn new(fingerprint: &str) -> Self {
        Self {
            first: fingerprint.to_owned(),
            last: fingerprint.to_owned(),
        }
    }
}

impl Memory {
    fn judge(&mut self) {
        self.any_changed = self.tools.values().any(|seen| seen.first != seen.last);
    }
}

impl SeenTools {
    /// With what is known from earlier runs, by the tools' own names.
    pub(crate) fn new<'a>(known: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let known = known.map(|(tool, fingerprint)| (tool.to_owned(), Seen::new(fingerprint)));
        Self(Mutex::new(Memory {
            tools: known.collect(),
            any_changed: false,
        }))
    }

    /// Notes what the tools are, and says which of them are not what they were when they were last seen.
    pub(crate) fn look_at(&self, server: &str, tools: &Tools) -> Vec<ToolHostChange> {
        let mut memory = self.lock();
        let seen = &mut memory.tools;
        let redefined = tools.definitions.iter().filter_map(|definition| {
            let tool = own_name(definition);
            let now = tools.fingerprints.get(tool)?;
            let Some(seen) = seen.get_mut(tool) else {
                seen.insert(tool.to_owned(), Seen::new(now));
                return None;
            };
            (seen.last != *now).then(|| ToolHostChange::ToolRedefined {
                server: server.to_owned(),
                tool: definition.name.clone(),
                before: std::mem::replace(&mut seen.last, now.clone()),
                now: now.clone(),
            })
        });
        let redefined = redefined.collect();
        memory.judge();
        redefined
    }

    /// What of these tools is not what it was when it was first seen.
    pub(crate) fn changed(&self, server: &str, tools: &Tools) -> Vec<ToolChange> {
        let memory = self.lock();
        if !memory.any_changed {
            return Vec::new();
        }
        let changed = tools.definitions.iter().filter_map(|definition| {
            let tool = own_name(definition);
            let seen = memory.tools.get(tool)?;
            let now = tools.fingerprints.get(tool)?;
            (seen.first != *now).then(|| ToolChange {
                server: server.to_owned(),
                tool: tool.to_owned(),
                name: definition.name.clone(),
                before: seen.first.clone(),
                now: now.clone(),
            })
        });
        changed.collect()
    }

    /// By the tools' own names, what they were when they were first seen, or last accepted.
    pub(crate) fn first(&self) -> Vec<(String, String)> {
        let memory = self.lock();
        let seen = memory.tools.iter();
        seen.map(|(tool, seen)| (tool.clone(), seen.first.clone()))
            .collect()
    }

    /// Takes a tool, by its own name, for what it is now, unless it has become something else again.
    pub(crate) fn accept(&self, change: &ToolChange) -> bool {
        let mut memory = self.lock();
        let seen = memory.tools.get_mut(&change.tool);
        let Some(seen) = seen.filter(|seen| seen.last == change.now) else {
            return false;
        };
        seen.first.clone_from(&seen.last);
        memory.judge();
        true
    }

    /// By the tools' own names, what they were when they were last seen.
    pub(crate) fn last(&self) -> Vec<(String, String)> {
        let memory = self.lock();
        let seen = memory.tools.iter();
        seen.map(|(tool, seen)| (tool.clone(), seen.last.clone()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
