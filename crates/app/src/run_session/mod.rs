//! Code that several commands share: starts servers, builds an agent and follows a run.

pub(crate) mod agent;
pub(crate) mod arguments;
pub(crate) mod context;
pub(crate) mod conversations;
pub(crate) mod failure;
pub(crate) mod interrupts;
pub(crate) mod recording;
pub(crate) mod rule_name_check;
pub(crate) mod run_resources;
pub(crate) mod servers;
pub(crate) mod terminal_run;
