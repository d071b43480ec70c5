//! Completes names and file paths at the `chat` prompt when the user presses Tab.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use reedline::{Completer, CompletionResult, Span, Suggestion};

use crate::chat::slash_commands::list_commands;

/// Maximum number of file paths that are suggested for one word.
const MAX_FILES: usize = 200;

/// Names that the Tab key completes at the `chat` prompt.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompletionNames {
    pub(crate) models: Vec<String>,
    pub(crate) servers: Vec<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) recipes: Vec<String>,
    /// Id and title of each saved session.
    pub(crate) sessions: Vec<(String, String)>,
    /// Folder against which relative file paths are completed.
    pub(crate) folder: PathBuf,
}

/// Names for completion. The conversation updates them, and the line editor reads them.
pub(crate) type SharedNames = Arc<RwLock<CompletionNames>>;

/// Completer that suggests names and file paths for the word before the cursor.
pub(crate) struct NameCompleter(pub(crate) SharedNames);

impl Completer for NameCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        CompletionResult::fresh(suggest_completions(line, pos, &known))
    }
}

/// Returns the suggestions for the word before the cursor. `pos` is the byte offset of the cursor
/// in `line`.
pub(crate) fn suggest_completions(
    line: &str,
    pos: usize,
    known: &CompletionNames,
) -> Vec<Suggestion> {
    let Some(before) = line.get(..pos) else {
        return Vec::new();
    };
    let start = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    });
    let word = &before[start..];
    let span = Span { start, end: pos };
    let command = before.trim_start().strip_prefix('/');
    let mut found = Vec::new();
    let mut add = |value: &str, about: Option<&str>, goes_on: bool| {
        found.push(Suggestion {
            value: value.to_owned(),
            description: about.map(ToOwned::to_owned),
            span,
            append_whitespace: !goes_on,
            ..Suggestion::default()
        });
    };
    let command = command.map(|command| command.split_once(char::is_whitespace));
    let completes_files = match command {
        Some(None) if !word.trim_start_matches('/').contains('/') => {
            for (_, name, does) in list_commands().filter(|(_, name, _)| name.starts_with(word)) {
                add(&name, Some(&does), false);
            }
            false
        }
        Some(Some((command, _))) => {
            let names: Vec<(&str, Option<&str>)> = match command {
                "model" => names_without_description(&known.models),
                "tools" => names_without_description(&known.servers),
                "recipe" => {
                    let mut recipes = names_without_description(&known.recipes);
                    recipes.push(("off", None));
                    recipes
                }
                "approve" => ["ask", "all", "none", "later"]
                    .map(|it| (it, None))
                    .to_vec(),
                "resume" => {
                    let sessions = known.sessions.iter();
                    sessions
                        .map(|(id, title)| (id.as_str(), Some(title.as_str())))
                        .collect()
                }
                _ => Vec::new(),
            };
            for (name, about) in names.into_iter().filter(|(name, _)| name.starts_with(word)) {
                add(name, about, false);
            }
            command == "save" || (command == "recipe" && word.contains(['/', '.']))
        }
        _ if word.contains('/') => true,
        _ if word.chars().count() >= 2 => {
            let names = known.tools.iter().chain(&known.servers);
            for name in names.filter(|name| name.starts_with(word)) {
                add(name, None, false);
            }
            false
        }
        _ => false,
    };
    if completes_files {
        for (file, is_folder) in find_matching_paths(&known.folder, word) {
            add(&file, None, is_folder);
        }
    }
    found
}

fn names_without_description(names: &[String]) -> Vec<(&str, Option<&str>)> {
    names.iter().map(|name| (name.as_str(), None)).collect()
}

/// Returns the paths relative to `from` that start with `word`, and whether each path is a folder.
/// Returns no paths if their folder cannot be read.
fn find_matching_paths(from: &Path, word: &str) -> Vec<(String, bool)> {
    let (folder, begin) = match word.rsplit_once('/') {
        Some((folder, begin)) => (format!("{folder}/"), begin),
        None => (String::new(), word),
    };
    let Ok(entries) = fs::read_dir(from.join(&folder)) else {
        return Vec::new();
    };
    let mut files: Vec<(String, bool)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_hidden = name.starts_with('.') && !begin.starts_with('.');
            let fits = name.starts_with(begin) && !is_hidden && !name.contains(char::is_whitespace);
            let is_folder = entry.path().is_dir();
            let end = if is_folder { "/" } else { "" };
            fits.then(|| (format!("{folder}{name}{end}"), is_folder))
        })
        .take(MAX_FILES)
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> CompletionNames {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        CompletionNames {
            models: names(&["offline/planner", "openai/gpt-6"]),
            servers: names(&["crm", "workspace"]),
            tools: names(&["get_customer"]),
            recipes: names(&["research"]),
            sessions: vec![("0199-a".into(), "Ada".into())],
            folder: PathBuf::from("/nonexistent"),
        }
    }

    fn values(line: &str, known: &CompletionNames) -> Vec<String> {
        let found = suggest_completions(line, line.len(), known);
        for suggestion in &found {
            assert_eq!(suggestion.span.end, line.len());
        }
        found.into_iter().map(|it| it.value).collect()
    }

    #[test]
    fn commands_and_their_arguments_are_completed() {
        let known = known();
        assert_eq!(values("/re", &known), ["/recipe", "/resume"]);
        assert_eq!(
            values("/model o", &known),
            ["offline/planner", "openai/gpt-6"]
        );
        assert_eq!(values("/model op", &known), ["openai/gpt-6"]);
        assert_eq!(values("/tools w", &known), ["workspace"]);
        assert_eq!(values("/recipe ", &known), ["research", "off"]);
        assert_eq!(values("/approve a", &known), ["ask", "all"]);
        assert_eq!(values("/approve l", &known), ["later"]);
        assert_eq!(values("/resume 01", &known), ["0199-a"]);
        assert_eq!(values("call get_c", &known), ["get_customer"]);
        assert_eq!(values("a", &known), [""; 0]);
        assert_eq!(values("", &known), [""; 0]);
    }

    #[test]
    fn only_the_word_before_the_cursor_is_replaced() {
        let found = suggest_completions("/model op and more", 9, &known());
        assert_eq!((found[0].span.start, found[0].span.end), (7, 9));
        // The byte offset 1 is inside the two bytes of `ä`, so it is not a valid cursor.
        assert!(suggest_completions("ä", 1, &known()).is_empty());
    }

    #[test]
    fn files_are_completed_where_a_path_is_written() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["notes.md", "names.json", ".hidden"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("nested")).unwrap();
        fs::write(folder.path().join("nested/deep.md"), "").unwrap();
        let mut known = known();
        known.folder = folder.path().to_owned();
        assert_eq!(
            values("/save n", &known),
            ["names.json", "nested/", "notes.md"]
        );
        assert_eq!(values("read nested/d", &known), ["nested/deep.md"]);
        assert_eq!(values("read n", &known), [""; 0]);
    }
}
