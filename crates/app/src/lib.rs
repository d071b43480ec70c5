//! The application: composes the crates of the workspace into the command-line program
//! `switchboard`.
//!
//! `commands` has one module per command. `run_session` contains the code that several commands
//! use: it starts servers, builds an agent and follows a run. `config` reads the configuration,
//! `models` chooses a model, and `terminal` and `chat` read and write at a terminal. `serve`
//! implements the trait `Engine` of the HTTP server, and `eval` implements the trait `Engine` of
//! the evaluations.
#![deny(missing_docs)]

mod chat;
mod commands;
mod config;
mod eval;
mod models;
mod observe;
mod run_session;
mod serve;
mod storage;
mod terminal;

pub use commands::main;
pub use run_session::failure::Code;
