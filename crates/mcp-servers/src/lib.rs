//! The MCP servers that Switchboard includes, for demonstrations, tests and work without other
//! servers. Any MCP client can use them.
//!
//! [`catalogue()`] lists them. [`serve_stdio`] serves the client that started the process,
//! [`serve_stream`] serves any pair of byte streams, such as `tokio::io::duplex`, and [`bind_http`]
//! serves streamable HTTP on the path `/mcp`. All support the protocol versions of `rmcp`:
//! 2026-07-28 without a handshake, and earlier ones with `initialize`.
//!
//! ```no_run
//! # async fn start() -> Result<(), switchboard_mcp_servers::ServerError> {
//! use switchboard_mcp_servers::{ServerOptions, bind_http};
//!
//! let address = ([127, 0, 0, 1], 0).into();
//! let server = bind_http("customer-service", address, ServerOptions::new()).await?;
//! eprintln!("listening on {}", server.url());
//! server.serve(std::future::pending()).await
//! # }
//! ```
//!
//! # Adding a server
//!
//! A server is a list of tools (`tool/mod.rs`). All servers share one `ServerHandler`
//! (`tool/server.rs`), so schemas, argument messages and error results have one form. A new server
//! needs a module with a function `open_server`, and an entry and a case in `catalogue.rs`.
#![deny(missing_docs)]

mod bte;
mod catalogue;
mod customer_service;
mod error;
mod graph;
mod options;
mod sqlite;
mod text;
mod tool;
mod transport;
mod workspace;

pub use catalogue::catalogue;
pub use error::{DataFileError, ServerError};
pub use options::{AccessToken, BteOptions, MIN_TOKEN_LENGTH, ServerOptions, WorkspaceOptions};
pub use tool::BundledServer;
pub use transport::{HttpServer, bind_http, serve_stdio, serve_stream};
