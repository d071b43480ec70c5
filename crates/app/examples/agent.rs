//! Example of a streaming agent with the tools of one MCP server. Needs `ANTHROPIC_API_KEY`.
#![allow(clippy::print_stdout, reason = "a program that prints")]
use std::sync::Arc;

use futures_util::StreamExt;
use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
use switchboard_orchestration::{Agent, RunEventKind};
use switchboard_providers_anthropic::AnthropicModel;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = AnthropicModel::from_env("claude-sonnet-5-5")?;
    let server = ServerConfig::stdio("crm", "switchboard", ["mcp-server", "customer-service"]);
    let tools = Arc::new(McpHost::start(vec![server], HostOptions::default())?);
    tools.wait_until_ready().await?;
    let agent = Agent::new(Arc::new(model)).with_tools(tools.clone());
    let mut run = agent.ask("What is the account value of customer 42?");
    while let Some(event) = run.next().await {
        if let RunEventKind::TextDelta { text } = event.kind {
            print!("{text}");
        }
    }
    tools.close().await;
    Ok(())
}
