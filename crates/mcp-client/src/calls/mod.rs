//! Tool calls: attempts, deadlines, retries and circuit breakers.

pub(crate) mod alarms;
pub(crate) mod attempt;
pub(crate) mod call;
pub(crate) mod circuit_breaker;
pub(crate) mod circuits;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod tasks;
