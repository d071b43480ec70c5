//! The application: the crates of the workspace wired into a command line.
//!
//! Nothing is decided here that another surface would have to decide again: the loop is in
//! `orchestration`, servers are in `mcp-client`, mappings are in the providers. What is here is
//! [`config`], the choice of a [`model`], the [`servers`] that run, and how all of it looks in a
//! [`terminal`].
#![deny(missing_docs)]

pub mod chat;
pub mod cli;
pub mod config;
pub mod decisions;
pub mod environment;
mod eval;
mod injection;
pub mod model;
pub mod observe;
mod private_file;
pub mod recipes;
pub mod runs;
pub mod sampler;
pub mod serve;
pub mod servers;
pub mod sessions;
mod tape;
pub mod terminal;
