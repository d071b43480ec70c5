//! Parses slash commands.

use std::fmt::Write as _;

use switchboard_domain::nearest::{did_you_mean, nearest};

/// A slash command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Model,
    Tools,
    Servers,
    Recipe,
    Approve,
    Usage,
    Save,
    Resume,
    New,
    Continue,
    Abandon,
    Help,
    Quit,
}

/// A line of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParsedLine {
    Nothing,
    Question(String),
    /// A command with its argument.
    Command(Command, Option<String>),
    /// An invalid command, with a message.
    Invalid(String),
}

/// The commands with name, argument and description, in display order.
pub(crate) const COMMANDS: [(Command, &str, &str, &str); 13] = [
    (
        Command::Model,
        "/model",
        "[PROVIDER/MODEL]",
        "switch the model",
    ),
    (Command::Tools, "/tools", "[SERVER]", "list the tools"),
    (
        Command::Servers,
        "/servers",
        "",
        "show the state of the MCP servers",
    ),
    (
        Command::Recipe,
        "/recipe",
        "[NAME|FILE|off]",
        "use a recipe",
    ),
    (
        Command::Approve,
        "/approve",
        "[ask|all|none]",
        "set the tool approval",
    ),
    (
        Command::Usage,
        "/usage",
        "",
        "show tokens and cost of this session",
    ),
    (
        Command::Save,
        "/save",
        "[FILE.md|FILE.json]",
        "write this session to a file",
    ),
    (
        Command::Resume,
        "/resume",
        "[ID|NUMBER]",
        "resume a session",
    ),
    (Command::New, "/new", "", "begin a new session"),
    (
        Command::Continue,
        "/continue",
        "",
        "resume the waiting or interrupted run",
    ),
    (
        Command::Abandon,
        "/abandon",
        "",
        "discard the waiting or interrupted run",
    ),
    (Command::Help, "/help", "", "show this"),
    (Command::Quit, "/quit", "", "leave (Ctrl-D does too)"),
];

/// Parses a line. Two slashes are one slash for the model.
pub(crate) fn parse(line: &str) -> ParsedLine {
    let text = line.trim();
    if text.is_empty() {
        return ParsedLine::Nothing;
    }
    let Some(rest) = text.strip_prefix('/') else {
        return ParsedLine::Question(text.to_owned());
    };
    if rest.starts_with('/') {
        return ParsedLine::Question(rest.to_owned());
    }
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // A path, such as a pasted file name, is a question.
    if name.contains('/') {
        return ParsedLine::Question(text.to_owned());
    }
    let full_name = match name {
        "exit" => "quit",
        "?" => "help",
        name => name,
    };
    let argument = Some(argument.trim().to_owned()).filter(|argument| !argument.is_empty());
    let mut commands = COMMANDS.into_iter();
    match commands.find(|(_, known, ..)| known.trim_start_matches('/') == full_name) {
        None => ParsedLine::Invalid(unknown_command(name)),
        Some((_, _, "", _)) if argument.is_some() => {
            ParsedLine::Invalid(format!("/{name} takes no arguments"))
        }
        Some((command, ..)) => ParsedLine::Command(command, argument),
    }
}

fn unknown_command(name: &str) -> String {
    let names = COMMANDS
        .iter()
        .map(|(_, known, ..)| known.trim_start_matches('/'));
    let begins = |known: &&str| name.len() >= 2 && known.starts_with(name);
    let near = names.clone().find(begins).or_else(|| nearest(name, names));
    let near = near.map(|near| format!("/{near}"));
    format!(
        "unknown command /{name}{}. Type /help for a list, or //{name} to send it as text",
        did_you_mean(near.as_deref())
    )
}

/// Returns the help text.
pub(crate) fn help() -> String {
    let mut text = String::new();
    for (_, name, takes, does) in COMMANDS {
        let _ = writeln!(text, "  {:<28} {does}", format!("{name} {takes}"));
    }
    text.push_str(
        "\n  Enter sends; Alt+Enter or \\ at the end of a line begins another one; Tab \
         completes.\n  \
         Ctrl-C stops an answer, Ctrl-D leaves; the arrow keys bring back what you said before.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_questions_commands_or_wrong() {
        let command = |command, argument: Option<&str>| {
            ParsedLine::Command(command, argument.map(str::to_owned))
        };
        for (line, expected) in [
            ("", ParsedLine::Nothing),
            ("  \n", ParsedLine::Nothing),
            (" hello ", ParsedLine::Question("hello".into())),
            ("//help", ParsedLine::Question("/help".into())),
            (
                "/etc/hosts says what?",
                ParsedLine::Question("/etc/hosts says what?".into()),
            ),
            ("/model", command(Command::Model, None)),
            ("/model  a/b ", command(Command::Model, Some("a/b"))),
            (
                "/save my file.md",
                command(Command::Save, Some("my file.md")),
            ),
            ("/quit", command(Command::Quit, None)),
            ("/exit", command(Command::Quit, None)),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_none_names_the_nearest() {
        let wrong = |line: &str| match parse(line) {
            ParsedLine::Invalid(text) => text,
            other => panic!("{other:?}"),
        };
        assert!(wrong("/modle gpt").contains("did you mean `/model`?"));
        assert!(wrong("/serv").contains("did you mean `/servers`?"));
        assert!(wrong("/xyzzyx").starts_with("unknown command /xyzzyx. Type /help"));
        assert_eq!(wrong("/quit now"), "/quit takes no arguments");
    }

    #[test]
    fn every_command_that_is_listed_is_understood() {
        for (command, name, ..) in COMMANDS {
            assert_eq!(parse(name), ParsedLine::Command(command, None));
            assert!(help().contains(name));
        }
    }
}
