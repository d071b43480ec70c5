//! `tools`: lists tools and calls one.

use std::io::Read as _;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::Value;
use switchboard_domain::nearest::{did_you_mean, nearest};
use switchboard_domain::{JsonObject, ToolCallError, ToolContent, ToolHost as _, ToolOutput};
use switchboard_mcp_client::McpHost;

use super::accept::accept;
use crate::terminal::table::table;
use crate::{
    config::environment::Environment,
    terminal::{self, Screen, one_line},
};
use crate::{
    run_session::{
        arguments::Global,
        context::{self, Context, only, with_host},
        failure::{Code, Failure},
        interrupts::Interrupts,
        server_status::parameters,
    },
    terminal::output::{self, ListOutput},
};

/// Arguments of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    command: ToolsCommand,
    /// Output format; json has complete schemas
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// List the tools of all servers
    List,
    /// Call one tool
    Call {
        /// Name of the server
        server: String,
        /// Name of the tool on the server
        tool: String,
        /// Input, a JSON object; - reads it from standard input
        #[arg(default_value = "{}")]
        input: String,
    },
    /// Accept changed tool definitions
    Accept {
        /// Name of the server
        server: String,
        /// Name of the tool on the server; default: all tools of the server
        tool: Option<String>,
    },
}

pub(crate) async fn run(
    args: ToolsArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let mut servers = Context::load(&args.global, environment)?.servers()?;
    let output = args.output;
    match args.command {
        ToolsCommand::List => {
            with_host(servers, interrupts, async |host| list(host, output).await).await
        }
        ToolsCommand::Call {
            server,
            tool,
            input,
        } => {
            let input = read_input(&input)?;
            only(&mut servers, &server)?;
            let work = async |host: &McpHost| call(host, &server, &tool, input, output).await;
            with_host(servers, interrupts, work).await
        }
        ToolsCommand::Accept { server, tool } => {
            only(&mut servers, &server)?;
            let tool = tool.as_deref();
            let work = async |host: &McpHost| accept(host, &server, tool, output).await;
            with_host(servers, interrupts, work).await
        }
    }
}

async fn list(host: &McpHost, form: ListOutput) -> Result<Code, Failure> {
    let screen = Screen::new(true);
    screen.show_progress("starting MCP servers");
    host.settled().await;
    screen.pause();
    let catalog = host.tools().await;
    for problem in &catalog.problems {
        terminal::print_warning(&format!("{}: {}", problem.server, problem.message));
    }
    let redefined = host.redefined_tools();
    if !redefined.is_empty() {
        terminal::print_note("`switchboard tools accept SERVER [TOOL]` accepts changed tools");
    }
    output::print(form, &catalog.tools, || {
        let rows = catalog.tools.iter().map(|tool| {
            let (server, name) = match &tool.origin {
                Some(origin) => (origin.server.as_str(), origin.tool.as_str()),
                None => ("", tool.name.as_str()),
            };
            let is_changed = redefined.contains(&tool.name);
            [
                one_line(server, 40),
                format!(
                    "{}({}){}",
                    one_line(name, 64),
                    parameters(&tool.input_schema),
                    if is_changed { " changed" } else { "" }
                ),
                one_line(&tool.description, 100),
            ]
        });
        table(&rows.collect::<Vec<_>>())
    })?;
    // A required server is missing.
    host.ready().await?;
    Ok(Code::Success)
}

async fn call(
    host: &McpHost,
    server: &str,
    tool: &str,
    input: JsonObject,
    form: ListOutput,
) -> Result<Code, Failure> {
    let screen = Screen::new(true);
    screen.show_progress(&format!("starting {server}"));
    context::ready(host, server)
        .await
        .inspect_err(|_| screen.pause())?;
    screen.show_progress(&format!("calling {tool}"));
    let result = host.call_raw(server, tool, input).await;
    screen.pause();
    let output = result.map_err(|error| match error {
        ToolCallError::UnknownTool { name, available } => {
            let near = nearest(&name, available.iter().map(String::as_str)).map(str::to_owned);
            Failure::usage(anyhow!(
                "server `{server}` has no tool `{name}`{}; it has: {}",
                did_you_mean(near.as_deref()),
                available.join(", ")
            ))
        }
        other => Failure::run(other),
    })?;
    write_output(&output, form)?;
    Ok(if output.is_error {
        Code::Failed
    } else {
        Code::Success
    })
}

fn write_output(output: &ToolOutput, form: ListOutput) -> std::io::Result<()> {
    if form == ListOutput::Json {
        return output::pretty(output);
    }
    let mut text: Vec<String> = output.content.iter().map(ToolContent::as_text).collect();
    if text.is_empty()
        && let Some(structured) = &output.structured
    {
        text.push(structured.to_string());
    }
    let text = text.join("\n");
    if output.is_error {
        // An error is not printed to standard output.
        terminal::print_error(&anyhow!("{text}"));
        return Ok(());
    }
    output::foreign(&text)
}

fn read_input(text: &str) -> Result<JsonObject, Failure> {
    let mut read = String::new();
    let text = if text == "-" {
        std::io::stdin()
            .read_to_string(&mut read)
            .map_err(|error| {
                Failure::usage(error).context("standard input is not readable text")
            })?;
        read.as_str()
    } else {
        text
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err(Failure::usage(anyhow!(
            "the input must be a JSON object, such as '{{\"customer_id\": 42}}'"
        ))),
        Err(error) => Err(Failure::usage(anyhow!(
            "the input is not valid JSON ({error}); it must be an object, such as \
             '{{\"customer_id\": 42}}'"
        ))),
    }
}
