//! The configured commands of the tools `compile` and `test_run`.

mod model_arguments;
pub(super) mod output;
mod process;
pub(super) mod tools;

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use switchboard_domain::child_environment::is_inherited_variable;

/// The tool to which a configured command belongs: `compile` or `test_run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandPurpose {
    Compile,
    Test,
}

/// A command that the configuration allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) purpose: CommandPurpose,
    /// Name by which models and users select the command: its configured words, joined by spaces,
    /// without `{args}`.
    pub(super) name: String,
    /// Path of the program, which was found in `PATH` or in the workspace at the start of the
    /// server.
    program: PathBuf,
    arguments: Vec<String>,
    /// Whether the model may add arguments to the command.
    pub(super) open: bool,
}

/// The last word of a configured command to which the model may add arguments.
const PLACEHOLDER: &str = "{args}";

impl Command {
    /// Parses one entry of `WorkspaceOptions::commands` and finds its program. `root` is the root
    /// folder. The error describes the problem for the user.
    pub(super) fn parse(
        entry: &str,
        root: &Path,
        environment: &Environment,
    ) -> Result<Self, String> {
        let (purpose, text) = match entry.trim().split_once(':') {
            Some(("compile", text)) => (Some(CommandPurpose::Compile), text),
            Some(("test", text)) => (Some(CommandPurpose::Test), text),
            _ => (None, entry),
        };
        let mut words = split_words(text).map_err(|problem| format!("`{entry}` {problem}"))?;
        let open = words.last().is_some_and(|word| word == PLACEHOLDER);
        if open {
            words.pop();
        }
        if words.iter().any(|word| word.contains(PLACEHOLDER)) {
            return Err(format!(
                "`{entry}` contains {PLACEHOLDER} before the end; it must be the last word"
            ));
        }
        if words.first().is_none_or(String::is_empty) {
            return Err(format!("`{entry}` has no program"));
        }
        let name = words.join(" ");
        let program = words.remove(0);
        let is_test = words.iter().any(|word| word.contains("test")) || program.contains("test");
        let guessed = is_test.then_some(CommandPurpose::Test);
        let found = find_program(&program, root, environment);
        Ok(Self {
            purpose: purpose.or(guessed).unwrap_or(CommandPurpose::Compile),
            name,
            program: found
                .ok_or_else(|| format!("program `{program}` of `{entry}` was not found"))?,
            arguments: words,
            open,
        })
    }
}

/// Splits a command into words at white space. Quotes (`'` or `"`) group words. No other character
/// is special. Returns an error for a quote without an end or a null character.
fn split_words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            (_, '\0') => return Err("contains a null character"),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err("has an unclosed quote");
    }
    words.extend(word);
    Ok(words)
}

/// Finds a program in `PATH` of `environment`, or in the workspace if `program` is a path such as
/// `./gradlew`. Ignores relative entries of `PATH`, because they refer to the workspace, where
/// models write files.
fn find_program(program: &str, root: &Path, environment: &Environment) -> Option<PathBuf> {
    let path = environment.get_variable("PATH").unwrap_or_default();
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let folders: Vec<PathBuf> = folders.collect();
    // With an empty `PATH`, `which_in` would search the current folder, which is the workspace
    // here. So a program name without a path is not searched then.
    if folders.is_empty() && Path::new(program).components().count() == 1 {
        return None;
    }
    let path = std::env::join_paths(folders).ok()?;
    which::which_in(program, Some(path), root).ok()
}

/// The environment variables that every command receives.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

/// Names of variables of development tools that commands inherit in addition to common variables
/// such as `HOME`. Proxy variables are excluded, because their URLs may contain passwords.
const INHERITED: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "VIRTUAL_ENV",
    "PYENV_ROOT",
    "DOTNET_ROOT",
];

impl Environment {
    /// Creates the environment from the variables of this process (`own`) and the entries of the
    /// configuration. An entry `NAME` inherits the value in `own`, and `NAME=VALUE` sets a value.
    /// The error describes an invalid entry.
    pub(super) fn new(
        own: impl IntoIterator<Item = (OsString, OsString)>,
        configured: &[String],
    ) -> Result<Self, String> {
        let own: Vec<(OsString, OsString)> = own.into_iter().collect();
        // These variables disable colours and cursor movements in the output.
        let plain = [("TERM", "dumb"), ("NO_COLOR", "1")];
        let mut environment: Vec<(OsString, OsString)> = own
            .iter()
            .filter(|(name, _)| is_inherited_variable(name, INHERITED))
            .cloned()
            .chain(plain.map(|(name, value)| (name.into(), value.into())))
            .collect();
        for entry in configured {
            let (name, value) = if let Some((name, value)) = entry.split_once('=') {
                (name, Some(value.into()))
            } else {
                let found = own.iter().find(|(known, _)| known == entry.as_str());
                (entry.as_str(), found.map(|(_, value)| value.clone()))
            };
            if name.is_empty() || name.contains('\0') {
                return Err(format!("`{entry}` is not an environment variable"));
            }
            // A configured `NAME` that `own` does not contain stays unset.
            if let Some(value) = value {
                environment.retain(|(known, _)| known != name);
                environment.push((name.into(), value));
            }
        }
        Ok(Self(environment))
    }

    fn get_variable(&self, name: &str) -> Option<&OsStr> {
        let found = self
            .0
            .iter()
            .find(|(known, _)| known == name || cfg!(windows) && known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_os_str())
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
