//! Parses slash commands.

use std::fmt::Write as _;

use switchboard_domain::nearest::{did_you_mean, nearest};

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Model(Option<String>),
    Tools(Option<String>),
    Servers,
    Recipe(Option<String>),
    Usage,
    Save(Option<String>),
    Resume(Option<String>),
    New,
    Approve(Option<String>),
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
    Command(Command),
    /// An invalid command, with a message.
    Invalid(String),
}

/// Name, arguments and description of the commands, in display order.
pub(crate) const COMMANDS: [(&str, &str, &str); 13] = [
    ("/model", "[PROVIDER/MODEL]", "switch the model"),
    ("/tools", "[SERVER]", "list the tools"),
    ("/servers", "", "show the state of the MCP servers"),
    ("/recipe", "[NAME|FILE|off]", "use a recipe"),
    ("/approve", "[ask|all|none]", "set the tool approval"),
    ("/usage", "", "show tokens and cost of this session"),
    (
        "/save",
        "[FILE.md|FILE.json]",
        "write this session to a file",
    ),
    ("/resume", "[ID|NUMBER]", "resume a session"),
    ("/new", "", "begin a new session"),
    ("/continue", "", "resume the waiting or interrupted run"),
    ("/abandon", "", "discard the waiting or interrupted run"),
    ("/help", "", "show this"),
    ("/quit", "", "leave (Ctrl-D does too)"),
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
    let (name, argument) = match rest.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, Some(argument.trim().to_owned())),
        None => (rest, None),
    };
    let argument = argument.filter(|argument| !argument.is_empty());
    // A path, such as a pasted file name, is a question.
    if name.contains('/') {
        return ParsedLine::Question(text.to_owned());
    }
    let command = match name {
        "model" => Command::Model(argument),
        "tools" => Command::Tools(argument),
        "recipe" => Command::Recipe(argument),
        "save" => Command::Save(argument),
        "resume" => Command::Resume(argument),
        "approve" => Command::Approve(argument),
        "servers" | "usage" | "new" | "continue" | "abandon" | "help" | "quit" | "exit" | "?" => {
            if argument.is_some() {
                return ParsedLine::Invalid(format!("/{name} takes no arguments"));
            }
            match name {
                "servers" => Command::Servers,
                "usage" => Command::Usage,
                "new" => Command::New,
                "continue" => Command::Continue,
                "abandon" => Command::Abandon,
                "help" | "?" => Command::Help,
                _ => Command::Quit,
            }
        }
        unknown => return ParsedLine::Invalid(unknown_command(unknown)),
    };
    ParsedLine::Command(command)
}

fn unknown_command(name: &str) -> String {
    let names = COMMANDS
        .iter()
        .map(|(known, _, _)| known.trim_start_matches('/'));
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
    for (name, takes, does) in COMMANDS {
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
        let command = ParsedLine::Command;
        for (line, expected) in [
            ("", ParsedLine::Nothing),
            ("  \n", ParsedLine::Nothing),
            (" hello ", ParsedLine::Question("hello".into())),
            ("//help", ParsedLine::Question("/help".into())),
            (
                "/etc/hosts says what?",
                ParsedLine::Question("/etc/hosts says what?".into()),
            ),
            ("/model", command(Command::Model(None))),
            ("/model  a/b ", command(Command::Model(Some("a/b".into())))),
            (
                "/save my file.md",
                command(Command::Save(Some("my file.md".into()))),
            ),
            ("/quit", command(Command::Quit)),
            ("/exit", command(Command::Quit)),
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
        for (name, _, _) in COMMANDS {
            assert!(matches!(parse(name), ParsedLine::Command(_)), "{name}");
            assert!(help().contains(name));
        }
    }
}
