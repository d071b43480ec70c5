//! Tool calls: attempts, deadlines, retries and circuit breakers.

pub(crate) mod attempt;
pub(crate) mod call;
pub(crate) mod circuits;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod failure;
pub(crate) mod multi_round;
pub(crate) mod task_updates;
pub(crate) mod tasks;
