//! Model Context Protocol host: many MCP servers behind one
//! [`ToolHost`](switchboard_domain::ToolHost).
//!
//! ```no_run
//! use switchboard_domain::{ToolCall, ToolHost};
//! use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let args = ["-y", "@modelcontextprotocol/server-filesystem", "."];
//! let files = ServerConfig::stdio("files", "npx", args);
//! let host = McpHost::start(vec![files], HostOptions::default())?;
//! host.wait_until_ready().await?;
//! for tool in host.list_tools().await.tools {
//!     println!("{}: {}", tool.name, tool.description);
//! }
//! let call = ToolCall {
//!     name: "files__list_directory".to_owned(),
//!     ..ToolCall::default()
//! };
//! println!("{:?}", host.call_tool(call).await?);
//! host.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! - [`config`]: the configured servers, from our own files and the files of other MCP hosts.
//! - [`McpHost`]: starts all servers in parallel. Each has a supervisor task that connects,
//!   watches, restarts and stops it. A failed server does not affect the others.
//! - [`ServerStatus`]: the state of a server and its problems.
//! - [`ClientHandlers`]: the handlers of requests that servers send during a call.
//!
//! The host supports MCP 2026-07-28 (`server/discover`) and the versions since 2024-11-05
//! (`initialize`). It detects the version of each server, unless the configuration sets it.

#![deny(missing_docs)]

pub mod auth;
mod calls;
pub mod config;
mod features;
mod host;
mod options;
mod primitives;
mod server;
mod server_requests;
mod tools;
mod transport;

pub use config::{
    ConfigError, DEFAULT_CALL_TIMEOUT, DEFAULT_CONNECT_TIMEOUT, LogLevel, PROTOCOL_VERSIONS, Root,
    SamplingLimits, ServerConfig, ServerTransport, drop_unused_parts, parse_config_document,
    parse_mcp_servers, prune_server_entries, root_from_path,
};
pub use features::{
    apps::{App, AppPage},
    completions::{Completion, CompletionRequest, CompletionTarget},
    feature_client::{FeatureError, ItemList},
    prompts::{Prompt, PromptArgument, PromptMessage, PromptRole, RenderedPrompt},
    resource_updates::{ResourceUpdate, ResourceUpdates},
    resources::{Resource, ResourceBody, ResourceContent, ResourceTemplate},
};
pub use host::McpHost;
pub use options::{CircuitOptions, HangDetection, HostOptions, ShutdownGracePeriods};
pub use primitives::error::HostError;
pub use server::{
    status::{ListFreshness, ServerIdentity, ServerState, ServerStatus},
    stderr_and_logs::LogMessage,
};
pub use server_requests::handlers::ClientHandlers;
pub use tools::{
    tool_pinning::{
        fingerprint::{ToolChange, ToolPins, fingerprint},
        store::{ToolPinFile, ToolPinStoreError},
    },
    visibility::APP_MEDIA_TYPE,
};
