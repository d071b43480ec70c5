//! The program end to end: a process with standard streams, real MCP
//! servers and loopback model servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod bad_input;
mod changed_tools;
#[cfg(unix)]
mod coming_from;
mod delivery;
mod earlier_data;
mod eval_files;
mod evals;
mod evaluations;
mod graph_chat;
mod library;
mod logins;
mod observability;
mod offers;
mod offline;
#[cfg(feature = "otlp")]
mod otlp;
mod planner_approvals;
mod proxies;
mod reannounced;
mod recipes;
mod recordings;
mod resume;
mod runs;
mod sampling;
mod server_tools;
mod slow_server;
mod source_examples;
mod stats;
mod stdio_server;
mod support;
mod surfaces;
mod unmatched_rules;
mod wires;

/// Not a test: the server that some tests configure. The clients ignore the lines that the test
/// runner writes to standard output.
#[test]
#[ignore = "a server that the other tests start"]
fn server() {
    library::serve_stdio();
    planner_approvals::serve_stdio();
    reannounced::serve_stdio();
    sampling::serve_stdio();
}
