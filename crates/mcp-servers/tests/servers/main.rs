//! The bundled servers as a client sees them: over in-process pipes, over HTTP on loopback and as a
//! child process, in every protocol version.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "the functions that tests share may fail as loudly as the tests"
)]

mod bte;
mod child;
mod client;
mod concurrency;
mod files;
mod graph;
mod http;
mod streams;
mod tools;
mod versions;
mod workspace;
