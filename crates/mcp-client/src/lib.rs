//! Model Context Protocol host: many MCP servers behind one [`ToolHost`](switchboard_domain::ToolHost).
//!
//! ```no_run
//! use switchboard_domain::{ToolCall, ToolHost};
//! use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let files = ServerConfig::stdio("files", "npx", ["-y", "@modelcontextprotocol/server-filesystem", "."]);
//! let host = McpHost::start(vec![files], HostOptions::default())?;
//! host.ready().await?;
//! for tool in host.tools().await.tools {
//!     println!("{}: {}", tool.name, tool.description);
//! }
//! let call = ToolCall {
//!     name: "files__list_directory".to_owned(),
//!     ..ToolCall::default()
//! };
//! println!("{:?}", host.call(call).await?);
//! host.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! - [`config`]: which servers there are, from our own configuration and the files of other hosts.
//! - [`McpHost`]: starts them all at once, each in a task of its own that connects, watches,
//!   restarts and ends its server. One dead server takes nothing from the others.
//! - [`ServerStatus`]: what a person needs to see of a server that does not work.
//! - [`Answering`]: who answers what servers ask in the middle of a call: a person, a model, or nobody.
//!
//! Both eras of the protocol are spoken: 2026-07-28 (`server/discover`, no session) and the versions
//! before it (`initialize`). Which one a server belongs to is found out, or set per server.

#![deny(missing_docs)]

mod alarms;
mod asks;
pub mod auth;
mod breaker;
mod call;
mod caller;
mod circuits;
pub mod config;
mod connect;
mod convert;
mod deadline;
mod direct;
mod environment;
mod error;
mod exchange;
mod features;
mod fingerprint;
mod gate;
mod handler;
mod host;
mod http;
mod http_post;
mod invalid_message;
mod jitter;
mod life;
mod lines;
mod list;
mod logs;
mod memory;
mod names;
mod open_requests;
mod probe;
mod process;
mod redact;
mod seen;
mod server;
mod server_stream;
mod status;
mod stderr;
mod structured;
#[cfg_attr(not(unix), path = "watchdog_elsewhere.rs")]
mod watchdog;
mod wire;

pub use asks::{Answering, Root, SamplingLimits};
pub use circuits::CircuitOptions;
pub use config::{
    ConfigError, DEFAULT_CALL_TIMEOUT, DEFAULT_CONNECT_TIMEOUT, PROTOCOL_VERSIONS, ServerConfig,
    ServerTransport, from_document, from_ours, select, select_servers,
};
pub use error::HostError;
pub use features::{
    APP_MEDIA_TYPE, App, AppPage, Completion, CompletionOf, CompletionRequest, FeatureError,
    Listing, Prompt, PromptArgument, PromptMessage, PromptRole, RenderedPrompt, Resource,
    ResourceBody, ResourceContent, ResourceTemplate, ResourceUpdate, ResourceUpdates,
};
pub use fingerprint::{KnownTools, ToolChange, fingerprint};
pub use host::{Grace, HostOptions, McpHost, Probing};
pub use logs::{LogLevel, LogLine};
pub use memory::{ToolMemory, ToolMemoryError, ToolMemoryFile};
pub use redact::LiveSecrets;
pub use status::{CacheScope, ListFreshness, ServerIdentity, ServerState, ServerStatus};
pub use watchdog::Remains;
