//! The program as a user has it: started as a process, with its standard streams, against real MCP
//! servers and loopback model servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod bad_input;
mod logins;
mod offline;
mod peers;
mod server_tools;
mod slow_server;
mod support;
mod surfaces;
mod wires;
