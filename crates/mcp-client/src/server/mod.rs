//! One configured server: its process, its connection, its supervisor and its state.

pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod hang_detection;
pub(crate) mod logs;
pub(crate) mod process;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod stderr;
pub(crate) mod subscription;
pub(crate) mod supervisor;
