//! Servers of other authors, unchanged. See `cargo xtask test --peers`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the functions around the tests fail as the tests do"
)]

#[path = "../shared/mod.rs"]
mod shared;

mod everything;
mod node;
mod notes;
mod python;
mod stage;
