//! The transports of bundled servers.

mod authentication;
mod http;
mod stdio;

pub use http::{HttpServer, bind_http};
pub use stdio::{serve_stdio, serve_stream};
