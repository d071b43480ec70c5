//! `prompts`: prompts of MCP servers.

use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use switchboard_domain::ToolCallError;
use switchboard_mcp_client::{
    CompletionOf, CompletionRequest, FeatureError, McpHost, Prompt, PromptRole, RenderedPrompt,
};

use super::{item_lists::print_server_items, unknown_name_failure, with_servers};
use crate::{
    config::environment::Environment,
    run_session::{
        arguments::GlobalArgs,
        context::Context,
        failure::{Code, Failure},
        interrupts::Interrupts,
    },
    terminal::{
        one_line,
        output::{self, ListFormat},
        print_warning,
    },
};

/// Maximum number of argument completions in an error message.
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

pub(crate) async fn run(
    args: PromptsArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let servers = Context::load_context(&args.global, environment)?.servers_to_start()?;
    let form = args.output;
    match args.command {
        PromptsCommand::List { server } => {
            let named = server.as_deref();
            let work = async |host: &McpHost| list_prompts(host, named.is_some(), form).await;
            with_servers(servers, named, interrupts, work).await
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
            with_servers(servers, Some(&server), interrupts, work).await
        }
    }
}

fn parse_arguments(arguments: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut given = BTreeMap::new();
    for argument in arguments {
        let Some((name, value)) = argument.split_once('=').filter(|it| !it.0.is_empty()) else {
            return Err(Failure::usage(anyhow!(
                "`{argument}` is not a prompt argument: write name=value"
            )));
        };
        if given.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::usage(anyhow!("`{name}` is given twice")));
        }
    }
    Ok(given)
}

async fn list_prompts(host: &McpHost, is_named: bool, form: ListFormat) -> Result<Code, Failure> {
    let read = async |server: &str| host.prompts(server).await;
    let none = "no prompts are listed";
    print_server_items(host, is_named, form, none, read, |server, prompt| {
        let about = prompt.description.as_ref().or(prompt.title.as_ref());
        [
            server,
            format!(
                "{}({})",
                one_line(&prompt.name, 64),
                format_parameters(prompt)
            ),
            one_line(about.map_or("", String::as_str), 100),
        ]
    })
    .await
}

/// Lists the arguments of a prompt. Optional arguments end with a question mark.
fn format_parameters(prompt: &Prompt) -> String {
    let names = prompt.arguments.iter().map(|argument| {
        let mark = if argument.required { "" } else { "?" };
        format!("{}{mark}", one_line(&argument.name, 40))
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

/// Formats the messages of a prompt as text. Roles are shown only if the assistant has a message.
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

/// Gets a prompt. An error about an argument lists the server's completions for it.
async fn get_prompt(
    host: &McpHost,
    server: &str,
    name: &str,
    given: &BTreeMap<String, String>,
) -> Result<RenderedPrompt, Failure> {
    match host.prompts(server).await {
        Ok(listed) if listed.problems.is_empty() => {
            let known: Vec<&str> = listed.items.iter().map(|it| it.name.as_str()).collect();
            let error = format!("server `{server}` has no prompt");
            let prompt = match listed.items.iter().find(|prompt| prompt.name == name) {
                Some(prompt) => prompt,
                None if known.is_empty() => return Err(Failure::usage(anyhow!("{error}s"))),
                None => {
                    let error = format!("{error} `{name}`");
                    return Err(unknown_name_failure(error, name, "it has", &known));
                }
            };
            check_argument_names(prompt, given)?;
            let mut arguments = prompt.arguments.iter();
            if let Some(missing) = arguments.find(|it| it.required && !given.contains_key(&it.name))
            {
                let about = missing.description.as_deref().unwrap_or_default();
                let about = match one_line(about, 200) {
                    about if about.is_empty() => about,
                    about => format!(" ({about})"),
                };
                let missing = &missing.name;
                return Err(Failure::usage(anyhow!(
                    "prompt `{name}` needs `{missing}`{about}: add `{missing}=VALUE`{}",
                    describe_completions(host, server, name, missing, given).await
                )));
            }
        }
        Err(error @ FeatureError::Unsupported { .. }) => return Err(Failure::run(error)),
        // A server may have prompts that it does not list.
        Ok(_) | Err(_) => {}
    }
    match host.prompt(server, name, given).await {
        Err(error @ FeatureError::Request(ToolCallError::Refused { .. })) => {
            let mut text = error.to_string();
            for argument in given.keys() {
                text.push_str(&describe_completions(host, server, name, argument, given).await);
            }
            Err(Failure::run(anyhow!("{text}")))
        }
        rendered => rendered.map_err(Failure::run),
    }
}

/// Checks that the prompt declares all given arguments.
fn check_argument_names(prompt: &Prompt, given: &BTreeMap<String, String>) -> Result<(), Failure> {
    let known: Vec<&str> = prompt.arguments.iter().map(|it| &*it.name).collect();
    let Some(unknown) = given.keys().find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let error = format!("prompt `{}` has no argument `{unknown}`", prompt.name);
    Err(match known.as_slice() {
        [] => Failure::usage(anyhow!("{error}; it takes none")),
        known => unknown_name_failure(error, unknown, "it takes", known),
    })
}

/// Returns a line with the values that the server suggests for an argument. The line is empty if
/// there are none or if the given value is one of them.
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
        of: CompletionOf::Prompt {
            name: prompt.to_owned(),
        },
        argument: argument.to_owned(),
        value: String::new(),
        known,
    };
    // Completions are optional, so their errors are ignored.
    let Ok(listed) = host.complete(server, request).await else {
        return String::new();
    };
    if listed.values.is_empty() || own.is_some_and(|own| listed.values.contains(&own)) {
        return String::new();
    }
    let first = listed.values.iter().take(MAX_COMPLETIONS);
    let mut shown: Vec<String> = first.map(|value| one_line(value, 80)).collect();
    if listed.has_more || listed.values.len() > MAX_COMPLETIONS {
        shown.push("…".to_owned());
    }
    let argument = one_line(argument, 64);
    format!("\nknown values of `{argument}`: {}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use PromptRole::{Assistant, User};
    use switchboard_domain::ToolContent;
    use switchboard_mcp_client::PromptMessage;

    use super::*;

    #[test]
    fn arguments_are_names_and_values() {
        let read = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
            parse_arguments(&arguments).map_err(|failure| failure.error.to_string())
        };
        let expected = [("a", "1"), ("b", ""), ("c", "d=e")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read(&["a=1", "b=", "c=d=e"]), Ok(BTreeMap::from(expected)));
        for (arguments, expected) in [
            (
                &["name"][..],
                "`name` is not a prompt argument: write name=value",
            ),
            (&["=x"], "`=x` is not a prompt argument: write name=value"),
            (&["a=1", "a=2"], "`a` is given twice"),
        ] {
            assert_eq!(read(arguments), Err(expected.to_owned()));
        }
    }

    #[test]
    fn who_speaks_is_said_where_it_is_not_the_person_alone() {
        let said = |messages: &[(PromptRole, &str)]| {
            let messages = messages.iter().map(|&(role, text)| PromptMessage {
                role,
                content: ToolContent::text(text),
            });
            format_messages(&RenderedPrompt {
                description: None,
                messages: messages.collect(),
                problems: Vec::new(),
            })
        };
        assert_eq!(said(&[(User, "a"), (User, "b")]), "a\nb");
        assert_eq!(
            said(&[(User, "a"), (User, "b"), (Assistant, "c")]),
            "[user]\na\nb\n[assistant]\nc"
        );
    }
}
