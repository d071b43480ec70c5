//! Model calls: the request, the response and the phases of a strategy.

pub(in crate::run) mod phases;
pub(in crate::run) mod request;
pub(in crate::run) mod response;
