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

pub mod auth;
mod backoff;
mod calls;
pub mod config;
mod error;
mod features;
mod host;
mod redact;
mod server;
mod server_requests;
mod tools;
mod transport;

pub use calls::circuits::CircuitOptions;
pub use config::{
    ConfigError, DEFAULT_CALL_TIMEOUT, DEFAULT_CONNECT_TIMEOUT, PROTOCOL_VERSIONS, ServerConfig,
    ServerTransport, from_document, from_ours, select, select_servers,
};
pub use error::HostError;
pub use features::{
    apps::{APP_MEDIA_TYPE, App, AppPage},
    completions::{Completion, CompletionOf, CompletionRequest},
    error::FeatureError,
    pages::Listing,
    prompts::{Prompt, PromptArgument, PromptMessage, PromptRole, RenderedPrompt},
    resource_updates::{ResourceUpdate, ResourceUpdates},
    resources::{Resource, ResourceBody, ResourceContent, ResourceTemplate},
};
pub use host::{Grace, HostOptions, McpHost, Probing};
pub use redact::LiveSecrets;
pub use server::{
    logs::{LogLevel, LogLine},
    status::{CacheScope, ListFreshness, ServerIdentity, ServerState, ServerStatus},
    watchdog::Remains,
};
pub use server_requests::{responder::Answering, roots::Root, sampling::SamplingLimits};
pub use tools::tool_pinning::{
    fingerprint::{KnownTools, ToolChange, fingerprint},
    store::{ToolMemory, ToolMemoryError, ToolMemoryFile},
};
