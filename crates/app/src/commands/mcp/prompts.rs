//! Command `prompts`: lists prompts of MCP servers and fills in their arguments.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use switchboard_domain::{ToolCallError, similar_names::list_available_names};
use switchboard_mcp_client::{
    CompletionRequest, CompletionTarget, FeatureError, McpHost, Prompt, PromptArgument, PromptRole,
    RenderedPrompt,
};

use super::{feature_lists::print_server_features, run_with_servers};
use crate::{
    run_session::{
        arguments::GlobalArgs,
        context::{Context, Process},
        failure::{Code, Failure},
    },
    terminal::{
        output::{self, ListFormat},
        print_warning, to_one_line,
    },
};

/// Maximum number of values that an error message suggests for one argument.
const MAX_COMPLETIONS: usize = 20;

/// Command-line arguments of `switchboard prompts`.
#[derive(Debug, Args)]
pub(crate) struct PromptsArgs {
    #[command(subcommand)]
    command: PromptsCommand,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: ListFormat,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum PromptsCommand {
    /// List the prompts of a server, or of all servers
    List {
        /// Name of the server
        server: Option<String>,
    },
    /// Get a prompt with its arguments filled in
    Get {
        /// Name of the server
        server: String,
        /// Name of the prompt
        name: String,
        /// Arguments of the prompt
        #[arg(value_name = "NAME=VALUE")]
        arguments: Vec<String>,
    },
}

pub(crate) async fn execute(args: PromptsArgs, process: Process<'_>) -> Result<Code, Failure> {
    let servers = Context::load_context(&args.global, process.environment)?.servers_to_start()?;
    let form = args.output;
    match args.command {
        PromptsCommand::List { server } => {
            let named = server.as_deref();
            let work = async |host: &McpHost| list_prompts(host, named.is_some(), form).await;
            run_with_servers(servers, named, process.interrupts, work).await
        }
        PromptsCommand::Get {
            server,
            name,
            arguments,
        } => {
            let given = parse_arguments(&arguments)?;
            let work = async |host: &McpHost| {
                let rendered = get_prompt(host, &server, &name, &given).await?;
                print_prompt(&rendered, form)
            };
            run_with_servers(servers, Some(&server), process.interrupts, work).await
        }
    }
}

fn parse_arguments(arguments: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut given = BTreeMap::new();
    for argument in arguments {
        let Some((name, value)) = argument.split_once('=').filter(|it| !it.0.is_empty()) else {
            let error = anyhow!("`{argument}` is not a prompt argument: write name=value");
            return Err(Failure::usage_error(error));
        };
        if given.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::usage_error(anyhow!("`{name}` is given twice")));
        }
    }
    Ok(given)
}

async fn list_prompts(host: &McpHost, is_named: bool, form: ListFormat) -> Result<Code, Failure> {
    let read = async |server: &str| host.list_prompts(server).await;
    let none = "no prompts";
    print_server_features(host, is_named, form, none, read, |server, prompt| {
        let (name, parameters) = (to_one_line(&prompt.name, 64), format_parameters(prompt));
        let about = prompt.description.as_ref().or(prompt.title.as_ref());
        let about = to_one_line(about.map_or("", String::as_str), 100);
        [server, format!("{name}({parameters})"), about]
    })
    .await
}

/// Returns the argument names of a prompt as text. Optional names end with a question mark.
fn format_parameters(prompt: &Prompt) -> String {
    let names = prompt.arguments.iter().map(|argument| {
        let mark = if argument.required { "" } else { "?" };
        format!("{}{mark}", to_one_line(&argument.name, 40))
    });
    names.collect::<Vec<_>>().join(", ")
}

fn print_prompt(rendered: &RenderedPrompt, form: ListFormat) -> Result<Code, Failure> {
    for problem in &rendered.problems {
        print_warning(problem);
    }
    match form {
        ListFormat::Json => output::write_pretty_json(rendered),
        ListFormat::Text => output::print_server_text(&format_messages(rendered)),
    }?;
    Ok(Code::Success)
}

/// Formats the messages of a prompt as text. The roles are shown only if at least one message has
/// the role `assistant`.
fn format_messages(rendered: &RenderedPrompt) -> String {
    let mut text = String::new();
    let only_person = rendered.messages.iter().all(|m| m.role == PromptRole::User);
    let mut last = None;
    for message in &rendered.messages {
        if !text.is_empty() {
            text.push('\n');
        }
        if !only_person && last != Some(message.role) {
            text.push_str(match message.role {
                PromptRole::User => "[user]\n",
                PromptRole::Assistant => "[assistant]\n",
            });
        }
        last = Some(message.role);
        text.push_str(&message.content.as_text());
    }
    text
}

/// Gets a prompt from its server. For an unknown prompt, the error message lists the prompts of the
/// server. For a missing or refused argument, the error message lists the arguments of the prompt
/// and the values that the server suggests for them.
async fn get_prompt(
    host: &McpHost,
    server: &str,
    name: &str,
    given: &BTreeMap<String, String>,
) -> Result<RenderedPrompt, Failure> {
    let listed = host.list_prompts(server).await;
    // If the list of prompts is incomplete, a prompt that is not in the list may still exist.
    let is_complete = listed.as_ref().is_ok_and(|it| it.problems.is_empty());
    let prompts = listed.map(|listed| listed.items).unwrap_or_default();
    let prompt = prompts.iter().find(|prompt| prompt.name == name);
    let arguments = prompt.map(|prompt| prompt.arguments.as_slice());
    let arguments = arguments.unwrap_or_default();
    let is_missing = |it: &&PromptArgument| it.required && !given.contains_key(&it.name);
    let mut text = match arguments.iter().find(is_missing) {
        Some(missing) => format!("prompt `{name}` needs the argument `{}`", missing.name),
        None if prompt.is_none() && is_complete => {
            format!("server `{server}` has no prompt `{name}`")
        }
        None => match host.render_prompt(server, name, given).await {
            Err(error @ FeatureError::Request(ToolCallError::Refused { .. })) => error.to_string(),
            rendered => return rendered.map_err(Failure::runtime_error),
        },
    };
    if let Some(prompt) = prompt {
        let parameters = format_parameters(prompt);
        let _ = write!(
            text,
            "\nprompt `{name}` takes these arguments: {parameters}"
        );
    } else {
        let known: Vec<&str> = prompts.iter().map(|it| it.name.as_str()).collect();
        text.push_str(&list_available_names(name, &known));
    }
    for argument in arguments {
        text.push_str(&describe_completions(host, server, name, &argument.name, given).await);
    }
    Err(Failure::usage_error(anyhow!("{text}")))
}

/// Returns a line with the values that the server suggests for an argument. The line is empty if
/// there are no values or if the user already gave one of them.
async fn describe_completions(
    host: &McpHost,
    server: &str,
    prompt: &str,
    argument: &str,
    given: &BTreeMap<String, String>,
) -> String {
    let mut known = given.clone();
    let own = known.remove(argument);
    let request = CompletionRequest {
        of: CompletionTarget::Prompt {
            name: prompt.to_owned(),
        },
        argument: argument.to_owned(),
        value: String::new(),
        known,
    };
    // Suggestions only improve an error message, so a failure to get them is ignored.
    let Ok(listed) = host.complete_argument(server, request).await else {
        return String::new();
    };
    if listed.values.is_empty() || own.is_some_and(|own| listed.values.contains(&own)) {
        return String::new();
    }
    let first = listed.values.iter().take(MAX_COMPLETIONS);
    let mut shown: Vec<String> = first.map(|value| to_one_line(value, 80)).collect();
    if listed.has_more || listed.values.len() > MAX_COMPLETIONS {
        shown.push("…".to_owned());
    }
    let argument = to_one_line(argument, 64);
    format!("\nknown values of `{argument}`: {}", shown.join(", "))
}
