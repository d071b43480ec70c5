//! `prompts`: prompts of MCP servers.

use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use switchboard_domain::nearest::{did_you_mean, nearest};
use switchboard_mcp_client::{
    CompletionOf, FeatureError, McpHost, Prompt, PromptRole, RenderedPrompt,
};

use super::offers::{self, gather, known_values, with_server};
use crate::{
    config::environment::Environment,
    terminal::{self, Screen, one_line},
};
use crate::{
    run_session::{
        arguments::Global,
        context::{self, Context},
        failure::{Code, Failure},
        interrupts::Interrupts,
    },
    terminal::output::{self, ListOutput},
};

/// Arguments of `prompts`.
#[derive(Debug, Args)]
pub(crate) struct PromptsArgs {
    #[command(subcommand)]
    command: PromptsCommand,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
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
    let servers = Context::load(&args.global, environment)?.servers()?;
    let output = args.output;
    match args.command {
        PromptsCommand::List { server } => {
            let server = server.as_deref();
            let work = async |host: &McpHost| list(host, server, output).await;
            with_server(servers, server, interrupts, work).await
        }
        PromptsCommand::Get {
            server,
            name,
            arguments,
        } => {
            let given = read_arguments(&arguments)?;
            let work = async |host: &McpHost| get(host, &server, &name, &given, output).await;
            with_server(servers, Some(&server), interrupts, work).await
        }
    }
}

fn read_arguments(arguments: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut given: Vec<(String, String)> = Vec::new();
    for argument in arguments {
        let Some((name, value)) = argument
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
        else {
            return Err(Failure::usage(anyhow!(
                "`{argument}` is not a prompt argument: write name=value"
            )));
        };
        if given.iter().any(|(other, _)| other == name) {
            return Err(Failure::usage(anyhow!("`{name}` is given twice")));
        }
        given.push((name.to_owned(), value.to_owned()));
    }
    Ok(given)
}

async fn list(host: &McpHost, named: Option<&str>, form: ListOutput) -> Result<Code, Failure> {
    let list = async |server: String| host.prompts(&server).await;
    let all = gather(host, named, list).await?;
    offers::print(&all, form, "no prompts are listed", |offered| {
        let prompt = &offered.item;
        let about = prompt.description.as_ref().or(prompt.title.as_ref());
        [
            one_line(&offered.server, 40),
            format!("{}({})", one_line(&prompt.name, 64), parameters(prompt)),
            one_line(about.map_or("", String::as_str), 100),
        ]
    })
}

/// Returns the argument names. Optional ones have a question mark.
fn parameters(prompt: &Prompt) -> String {
    let names = prompt.arguments.iter().map(|argument| {
        let mark = if argument.required { "" } else { "?" };
        format!("{}{mark}", one_line(&argument.name, 40))
    });
    names.collect::<Vec<_>>().join(", ")
}

async fn get(
    host: &McpHost,
    server: &str,
    name: &str,
    given: &[(String, String)],
    form: ListOutput,
) -> Result<Code, Failure> {
    let screen = Screen::new(true);
    screen.show_progress(&format!("starting {server}"));
    let rendered = rendered(host, server, name, given).await;
    screen.pause();
    let rendered = rendered?;
    for problem in &rendered.problems {
        terminal::print_warning(problem);
    }
    match form {
        ListOutput::Json => output::pretty(&rendered),
        ListOutput::Text => output::foreign(&as_text(&rendered)),
    }?;
    Ok(Code::Success)
}

/// Formats the messages, with roles if there are several.
fn as_text(rendered: &RenderedPrompt) -> String {
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

async fn rendered(
    host: &McpHost,
    server: &str,
    name: &str,
    given: &[(String, String)],
) -> Result<RenderedPrompt, Failure> {
    context::ready(host, server).await?;
    match host.prompts(server).await {
        Ok(listed) if listed.problems.is_empty() => {
            let Some(prompt) = listed.items.iter().find(|prompt| prompt.name == name) else {
                return Err(no_prompt(server, name, &listed.items));
            };
            check(host, server, prompt, given).await?;
        }
        Err(error @ FeatureError::Unsupported { .. }) => return Err(Failure::run(error)),
        // An unlisted prompt may exist.
        Ok(_) | Err(_) => {}
    }
    let arguments: BTreeMap<String, String> = given.iter().cloned().collect();
    match host.prompt(server, name, &arguments).await {
        Ok(rendered) => Ok(rendered),
        Err(error @ FeatureError::Refused { .. }) => {
            let mut text = error.to_string();
            for (argument, _) in given {
                if let Some(known) = known_values(host, server, of(name), argument, given).await {
                    text.push_str(&known);
                }
            }
            Err(Failure::run(anyhow!("{text}")))
        }
        Err(error) => Err(Failure::run(error)),
    }
}

fn of(prompt: &str) -> CompletionOf {
    CompletionOf::Prompt {
        name: prompt.to_owned(),
    }
}

fn no_prompt(server: &str, name: &str, listed: &[Prompt]) -> Failure {
    let names = || listed.iter().map(|prompt| prompt.name.as_str());
    if listed.is_empty() {
        return Failure::usage(anyhow!("server `{server}` has no prompts"));
    }
    Failure::usage(anyhow!(
        "server `{server}` has no prompt `{name}`{}; it has: {}",
        did_you_mean(nearest(name, names())),
        names().collect::<Vec<_>>().join(", ")
    ))
}

/// Checks the arguments against those that the prompt declares.
async fn check(
    host: &McpHost,
    server: &str,
    prompt: &Prompt,
    given: &[(String, String)],
) -> Result<(), Failure> {
    let names = || {
        prompt
            .arguments
            .iter()
            .map(|argument| argument.name.as_str())
    };
    for (argument, _) in given {
        if !names().any(|name| name == argument) {
            let takes = if prompt.arguments.is_empty() {
                "it takes none".to_owned()
            } else {
                format!("it takes: {}", names().collect::<Vec<_>>().join(", "))
            };
            return Err(Failure::usage(anyhow!(
                "prompt `{}` has no argument `{argument}`{}; {takes}",
                prompt.name,
                did_you_mean(nearest(argument, names()))
            )));
        }
    }
    let needed = prompt.arguments.iter().find(|argument| {
        argument.required && !given.iter().any(|(name, _)| *name == argument.name)
    });
    let Some(missing) = needed else {
        return Ok(());
    };
    let about = missing.description.as_deref().unwrap_or_default();
    let about = match one_line(about, 200) {
        about if about.is_empty() => about,
        about => format!(" ({about})"),
    };
    let (prompt, missing) = (&prompt.name, &missing.name);
    let known = known_values(host, server, of(prompt), missing, given).await;
    Err(Failure::usage(anyhow!(
        "prompt `{prompt}` needs `{missing}`{about}: add `{missing}=VALUE`{}",
        known.unwrap_or_default()
    )))
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
            read_arguments(&arguments).map_err(|failure| failure.error.to_string())
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read(&["a=1", "b=", "c=d=e"]),
            Ok(vec![pair("a", "1"), pair("b", ""), pair("c", "d=e")])
        );
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
            as_text(&RenderedPrompt {
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
