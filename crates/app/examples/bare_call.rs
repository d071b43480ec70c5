//! What a question with one tool costs at least: starts an MCP server, lists its tools, calls one and ends, by bare rmcp and with
//! nothing around it. `cargo xtask bench ask` compares `switchboard ask` with it.
//!
//! `bare_call TOOL JSON PROGRAM [ARGUMENTS]` prints the text of the result.

#![allow(
    clippy::print_stdout,
    reason = "the result is what this program is for"
)]

use std::{error::Error, process::Stdio};

use rmcp::{
    ServiceExt as _,
    model::{CallToolRequestParams, ContentBlock},
    transport::async_rw::AsyncRwTransport,
};
use tokio::process::Command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or_else(|| format!("{what} is missing"));
    let (tool, input, program) = (next("the tool")?, next("its input")?, next("the server")?);
    // As rmcp's `TokioChildProcess` does it, without the wrapper around the process.
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let pipes = server.stdout.take().zip(server.stdin.take());
    let (stdout, stdin) = pipes.ok_or("the pipes are missing")?;
    let client = ().serve(AsyncRwTransport::new_client(stdout, stdin)).await?;
    let tools = client.list_all_tools().await?;
    if !tools.iter().any(|known| known.name == tool) {
        return Err(format!("the server has no tool `{tool}`").into());
    }
    let input = serde_json::from_str(&input)?;
    let params = CallToolRequestParams::new(tool).with_arguments(input);
    let result = client.call_tool(params).await?;
    for block in &result.content {
        if let ContentBlock::Text(text) = block {
            println!("{}", text.text);
        }
    }
    // Its standard input is closed, and it ends by itself.
    client.cancel().await?;
    server.wait().await?;
    Ok(())
}
