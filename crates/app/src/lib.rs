//! The application: composes the crates of the workspace into a command line.
//!
//! `commands` has one module per command. `run_session` is shared by them: it starts servers,
//! builds an agent and follows a run. `config` reads the configuration, `models` chooses a model,
//! `terminal` and `chat` read and write at a terminal, `serve` and `eval` implement the engine
//! ports of the server and of the evaluations.
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
