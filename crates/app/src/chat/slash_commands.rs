//! Parses the slash commands of `chat`.

use std::fmt::Write as _;

use clap::ValueEnum;
use switchboard_domain::similar_names::{did_you_mean, find_nearest};

/// A slash command. The doc comment of each variant is its help text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SlashCommand {
    /// switch the model
    Model,
    /// list the tools
    Tools,
    /// show the state of the MCP servers
    Servers,
    /// use a recipe
    Recipe,
    /// set the tool approval
    Approve,
    /// show tokens and cost of this session
    Usage,
    /// write this session to a file
    Save,
    /// resume a session
    Resume,
    /// start a new session
    New,
    /// resume the waiting or interrupted run
    Continue,
    /// discard the waiting or interrupted run
    Abandon,
    /// show this help
    #[value(alias = "?")]
    Help,
    /// quit (or press Ctrl-D)
    #[value(alias = "exit")]
    Quit,
}

impl SlashCommand {
    /// Returns the help text of the argument of this command. The text is empty if the command
    /// takes no argument.
    fn argument_help(self) -> &'static str {
        match self {
            Self::Model => "[PROVIDER/MODEL]",
            Self::Tools => "[SERVER]",
            Self::Recipe => "[NAME|FILE|off]",
            Self::Approve => "[ask|all|none|later]",
            Self::Save => "[FILE.md|FILE.json]",
            Self::Resume => "[ID|NUMBER]",
            _ => "",
        }
    }
}

/// Returns all slash commands in display order. Each item has the command, its name such as
/// `/model`, and its help text.
pub(crate) fn list_commands() -> impl Iterator<Item = (SlashCommand, String, String)> {
    SlashCommand::value_variants().iter().filter_map(|command| {
        let value = command.to_possible_value()?;
        let help = value.get_help().map(ToString::to_string);
        let name = format!("/{}", value.get_name());
        Some((*command, name, help.unwrap_or_default()))
    })
}

/// A parsed input line: a question to the model, a slash command or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatInput {
    Nothing,
    Question(String),
    /// A slash command with its argument, if the line has one.
    Command(SlashCommand, Option<String>),
    /// Error message for the user about an invalid slash command.
    Invalid(String),
}

/// Parses an input line. `//` at its start sends the model a question that begins with `/`.
pub(crate) fn parse_chat_input(line: &str) -> ChatInput {
    let text = line.trim();
    if text.is_empty() {
        return ChatInput::Nothing;
    }
    let Some(rest) = text.strip_prefix('/') else {
        return ChatInput::Question(text.to_owned());
    };
    if rest.starts_with('/') {
        return ChatInput::Question(rest.to_owned());
    }
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // A line that starts with a path, such as a pasted file name, is a question to the model.
    if name.contains('/') {
        return ChatInput::Question(text.to_owned());
    }
    let argument = Some(argument.trim().to_owned()).filter(|argument| !argument.is_empty());
    match SlashCommand::from_str(name, false) {
        Err(_) => ChatInput::Invalid(unknown_command_message(name)),
        Ok(command) if argument.is_some() && command.argument_help().is_empty() => {
            ChatInput::Invalid(format!("/{name} takes no arguments"))
        }
        Ok(command) => ChatInput::Command(command, argument),
    }
}

fn unknown_command_message(name: &str) -> String {
    let names: Vec<String> = list_commands().map(|(_, name, _)| name).collect();
    let written = format!("/{name}");
    let begins = |known: &&str| name.len() >= 2 && known.starts_with(&written);
    let mut known = names.iter().map(String::as_str);
    let near = known.clone().find(begins);
    let near = near.or_else(|| find_nearest(&written, known.by_ref()));
    format!(
        "unknown command /{name}{}. Type /help for a list, or //{name} to send it as text",
        did_you_mean(near)
    )
}

/// Returns the text that `/help` prints.
pub(crate) fn help_text() -> String {
    let mut text = String::new();
    for (command, name, does) in list_commands() {
        let _ = writeln!(
            text,
            "  {:<28} {does}",
            format!("{name} {}", command.argument_help())
        );
    }
    text.push_str(
        "\n  Enter: send · Alt+Enter or \\ at the end of a line: new line · Tab: complete\n  \
         Ctrl-C: stop the answer · Ctrl-D: quit · arrow keys: earlier messages",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_questions_commands_or_wrong() {
        let command = |command, argument: Option<&str>| {
            ChatInput::Command(command, argument.map(str::to_owned))
        };
        for (line, expected) in [
            ("", ChatInput::Nothing),
            ("  \n", ChatInput::Nothing),
            (" hello ", ChatInput::Question("hello".into())),
            ("//help", ChatInput::Question("/help".into())),
            (
                "/etc/hosts says what?",
                ChatInput::Question("/etc/hosts says what?".into()),
            ),
            ("/model", command(SlashCommand::Model, None)),
            ("/model  a/b ", command(SlashCommand::Model, Some("a/b"))),
            (
                "/save my file.md",
                command(SlashCommand::Save, Some("my file.md")),
            ),
            ("/quit", command(SlashCommand::Quit, None)),
            ("/exit", command(SlashCommand::Quit, None)),
        ] {
            assert_eq!(parse_chat_input(line), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_none_names_the_nearest() {
        let wrong = |line: &str| match parse_chat_input(line) {
            ChatInput::Invalid(text) => text,
            other => panic!("{other:?}"),
        };
        assert!(wrong("/modle gpt").contains("did you mean `/model`?"));
        assert!(wrong("/serv").contains("did you mean `/servers`?"));
        assert!(wrong("/xyzzyx").starts_with("unknown command /xyzzyx. Type /help"));
        assert_eq!(wrong("/quit now"), "/quit takes no arguments");
    }

    #[test]
    fn every_command_that_is_listed_is_understood() {
        for (command, name, _) in list_commands() {
            assert_eq!(parse_chat_input(&name), ChatInput::Command(command, None));
            assert!(help_text().contains(&name));
        }
    }
}
