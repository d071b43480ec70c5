//! Command `tools`: lists tools, calls a tool and accepts changed tool definitions.

use std::io::Read as _;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use serde_json::Value;
use switchboard_domain::{
    JsonObject, ToolCallError, ToolContent, ToolHost as _, ToolOutput,
    similar_names::list_available_names,
};
use switchboard_mcp_client::McpHost;

use super::run_with_servers;
use crate::{
    commands::print_table,
    run_session::{
        arguments::GlobalArgs,
        context::{Context, Process},
        failure::{Code, Failure},
        servers::status::format_tool_row,
    },
    terminal::{
        self, Screen,
        output::{self, ListFormat},
        to_one_line,
    },
};

/// Command-line arguments of `switchboard tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    command: ToolsCommand,
    /// Output format; json has complete schemas
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: ListFormat,
    #[command(flatten)]
    global: GlobalArgs,
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

pub(crate) async fn execute(args: ToolsArgs, process: Process<'_>) -> Result<Code, Failure> {
    let servers = Context::load_context(&args.global, process.environment)?.servers_to_start()?;
    let form = args.output;
    match args.command {
        ToolsCommand::List => {
            let work = async |host: &McpHost| list_tools(host, form).await;
            run_with_servers(servers, None, process.interrupts, work).await
        }
        ToolsCommand::Call {
            server,
            tool,
            input,
        } => {
            let input = read_tool_input(&input)?;
            let work = async |host: &McpHost| call_tool(host, &server, &tool, input, form).await;
            run_with_servers(servers, Some(&server), process.interrupts, work).await
        }
        ToolsCommand::Accept { server, tool } => {
            let work = async |host: &McpHost| {
                accept_tool_changes(host, &server, tool.as_deref(), form).await
            };
            run_with_servers(servers, Some(&server), process.interrupts, work).await
        }
    }
}

async fn list_tools(host: &McpHost, form: ListFormat) -> Result<Code, Failure> {
    let catalog = host.list_tools().await;
    for problem in &catalog.problems {
        terminal::print_warning(&format!("{}: {}", problem.server, problem.message));
    }
    let redefined = host.redefined_tool_names();
    if !redefined.is_empty() {
        terminal::print_note("`switchboard tools accept SERVER [TOOL]` accepts changed tools");
    }
    print_table(form, &catalog.tools, "", |tool| {
        format_tool_row(tool, redefined.contains(&tool.name))
    })?;
    // The list is printed before this check, which returns an error if a required server is not
    // ready.
    host.wait_until_ready().await?;
    Ok(Code::Success)
}

async fn call_tool(
    host: &McpHost,
    server: &str,
    tool: &str,
    input: JsonObject,
    form: ListFormat,
) -> Result<Code, Failure> {
    let screen = Screen::new(true);
    screen.show_progress(&format!("calling {tool}"));
    let result = host.call_server_tool(server, tool, input).await;
    drop(screen);
    let output = result.map_err(|error| match error {
        ToolCallError::UnknownTool { name, available } => {
            let known: Vec<&str> = available.iter().map(String::as_str).collect();
            unknown_tool_failure(server, &name, &known)
        }
        other => Failure::runtime_error(other),
    })?;
    write_tool_output(&output, form)?;
    Ok(Code::failed_if(output.is_error))
}

fn unknown_tool_failure(server: &str, tool: &str, known: &[&str]) -> Failure {
    let available = list_available_names(tool, known);
    Failure::usage_error(anyhow!("server `{server}` has no tool `{tool}`{available}"))
}

/// Accepts changed tool definitions, so that later runs do not report them as changed: the
/// definition of `tool`, or of all tools of the server. Returns an error if the server has no such
/// tool.
async fn accept_tool_changes(
    host: &McpHost,
    server: &str,
    tool: Option<&str>,
    form: ListFormat,
) -> Result<Code, Failure> {
    if let Some(tool) = tool {
        let catalog = host.list_tools().await;
        let origins = catalog.tools.iter().filter_map(|tool| tool.origin.as_ref());
        let known: Vec<&str> = origins.map(|origin| origin.tool.as_str()).collect();
        if !known.contains(&tool) {
            return Err(unknown_tool_failure(server, tool, &known));
        }
    }
    let accepted = host.accept_tools(|change| tool.is_none_or(|tool| tool == change.tool))?;
    let none = tool.map_or("no tool has".to_owned(), |tool| format!("{tool} has not"));
    output::print_json_or_text(form, &accepted, || {
        let lines = accepted.iter();
        let lines =
            lines.map(|it| format!("{server}: {} is accepted\n", to_one_line(&it.tool, 64)));
        let none = || format!("{server}: {none} changed");
        lines.reduce(|all, line| all + &line).unwrap_or_else(none)
    })?;
    Ok(Code::Success)
}

fn write_tool_output(output: &ToolOutput, form: ListFormat) -> std::io::Result<()> {
    if form == ListFormat::Json {
        return output::write_pretty_json(output);
    }
    let mut text: Vec<String> = output.content.iter().map(ToolContent::as_text).collect();
    if text.is_empty()
        && let Some(structured) = &output.structured
    {
        text.push(structured.to_string());
    }
    let text = text.join("\n");
    if output.is_error {
        // The text of a failed tool call is an error message, so it goes to standard error.
        terminal::print_error(&anyhow!("{text}"));
        return Ok(());
    }
    output::print_server_text(&text)
}

fn read_tool_input(text: &str) -> Result<JsonObject, Failure> {
    let mut text = text.to_owned();
    if text == "-" {
        text.clear();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")
            .map_err(Failure::usage_error)?;
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err(Failure::usage_error(anyhow!(
            "the input must be a JSON object, such as '{{\"customer_id\": 42}}'"
        ))),
        Err(error) => Err(Failure::usage_error(anyhow!(
            "the input is not valid JSON ({error}); it must be an object, such as \
             '{{\"customer_id\": 42}}'"
        ))),
    }
}
