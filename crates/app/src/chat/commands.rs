//! What begins with a slash.

use std::fmt::Write as _;

use switchboard_domain::nearest::{did_you_mean, nearest};

/// What a person can say beside questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Another model, or which there are.
    Model(Option<String>),
    /// The tools, of one server or all.
    Tools(Option<String>),
    /// The servers.
    Servers,
    /// Another recipe, none (`off`), or which there are.
    Recipe(Option<String>),
    /// What the session cost.
    Usage,
    /// Write the session to a file.
    Save(Option<String>),
    /// Go on with another session, or which there are.
    Resume(Option<String>),
    /// Begin another session.
    New,
    /// Which tool calls need a word.
    Approve(Option<String>),
    /// Go on with the run that waits or was interrupted.
    Continue,
    /// End it instead.
    Abandon,
    /// What there is to say.
    Help,
    /// Leave.
    Quit,
}

/// A line that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// Nothing.
    Nothing,
    /// Something for the model.
    Question(String),
    /// Something for this program.
    Command(Command),
    /// A command that is none, and what would be right.
    Wrong(String),
}

/// The commands, with what they take and do, in the order in which they are shown.
pub(crate) const COMMANDS: [(&str, &str, &str); 13] = [
    (
        "/model",
        "[PROVIDER/MODEL]",
        "ask another model from now on",
    ),
    ("/tools", "[SERVER]", "list the tools"),
    ("/servers", "", "show the state of the MCP servers"),
    ("/recipe", "[NAME|FILE|off]", "follow a recipe from now on"),
    (
        "/approve",
        "[ask|all|none]",
        "say which tool calls need your word",
    ),
    ("/usage", "", "count tokens and cost of this session"),
    (
        "/save",
        "[FILE.md|FILE.json]",
        "write this session to a file",
    ),
    ("/resume", "[ID|NUMBER]", "go on with an earlier session"),
    ("/new", "", "begin a new session"),
    (
        "/continue",
        "",
        "go on with the run that waits or was interrupted",
    ),
    ("/abandon", "", "end that run without going on"),
    ("/help", "", "show this"),
    ("/quit", "", "leave (Ctrl-D does too)"),
];

/// What a line means. Two slashes are one slash for the model.
pub(crate) fn understand(line: &str) -> Said {
    let text = line.trim();
    if text.is_empty() {
        return Said::Nothing;
    }
    let Some(rest) = text.strip_prefix('/') else {
        return Said::Question(text.to_owned());
    };
    if rest.starts_with('/') {
        return Said::Question(rest.to_owned());
    }
    let (name, argument) = match rest.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, Some(argument.trim().to_owned())),
        None => (rest, None),
    };
    let argument = argument.filter(|argument| !argument.is_empty());
    // A path, such as of a file that was pasted, is nothing for this program.
    if name.contains('/') {
        return Said::Question(text.to_owned());
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
                return Said::Wrong(format!("/{name} takes nothing behind it"));
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
        unknown => return Said::Wrong(unknown_command(unknown)),
    };
    Said::Command(command)
}

fn unknown_command(name: &str) -> String {
    let names = COMMANDS
        .iter()
        .map(|(known, _, _)| known.trim_start_matches('/'));
    let begins = |known: &&str| name.len() >= 2 && known.starts_with(name);
    let near = names.clone().find(begins).or_else(|| nearest(name, names));
    let near = near.map(|near| format!("/{near}"));
    format!(
        "there is no /{name}{}; /help lists what there is, and //{name} is text for the model",
        did_you_mean(near.as_deref())
    )
}

/// All commands in a few lines.
pub(crate) fn help() -> String {
    let mut text = String::new();
    for (name, takes, does) in COMMANDS {
        let _ = writeln!(text, "  {:<28} {does}", format!("{name} {takes}"));
    }
    text.push_str(
        "\n  Enter sends; Alt+Enter or \\ at the end of a line begins another one; Tab completes.\n  \
         Ctrl-C stops an answer, Ctrl-D leaves; the arrow keys bring back what you said before.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_questions_commands_or_wrong() {
        let command = Said::Command;
        for (line, said) in [
            ("", Said::Nothing),
            ("  \n", Said::Nothing),
            (" hello ", Said::Question("hello".into())),
            ("//help", Said::Question("/help".into())),
            (
                "/etc/hosts says what?",
                Said::Question("/etc/hosts says what?".into()),
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
            assert_eq!(understand(line), said, "{line:?}");
        }
    }

    #[test]
    fn what_is_none_names_the_nearest() {
        let wrong = |line: &str| match understand(line) {
            Said::Wrong(text) => text,
            other => panic!("{other:?}"),
        };
        assert!(wrong("/modle gpt").contains("did you mean `/model`?"));
        assert!(wrong("/serv").contains("did you mean `/servers`?"));
        assert!(wrong("/xyzzyx").starts_with("there is no /xyzzyx; /help lists"));
        assert_eq!(wrong("/quit now"), "/quit takes nothing behind it");
    }

    #[test]
    fn every_command_that_is_listed_is_understood() {
        for (name, _, _) in COMMANDS {
            assert!(matches!(understand(name), Said::Command(_)), "{name}");
            assert!(help().contains(name));
        }
    }
}
