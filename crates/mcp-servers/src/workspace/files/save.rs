//! `file_save`.

use std::sync::Arc;

use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edit::{self, Edited};
use crate::{
    text::quantity,
    tool::{BundledTool, ToolError, ToolOutput},
    workspace::{
        root::{
            FileFault, ReadFile, Root,
            path::{Access, RelativePath},
        },
        text::{count_lines, cut, decode, hash, numbered},
    },
};

/// Number of lines shown before and after an edited passage.
const CONTEXT_LINES: usize = 3;
/// Maximum size of the edited passage that is shown, in bytes.
const MAX_SHOWN_BYTES: usize = 4 * 1024;

pub(in crate::workspace) struct FileSave(pub(in crate::workspace) Arc<Root>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The path of the file from the root folder, such as src/main.rs. Missing folders are created.
    #[schemars(length(min = 1))]
    path: String,
    /// The complete new content. Omit it to change one passage with `old_text` and `new_text`.
    content: Option<String>,
    /// The passage to change, exactly as in the file, with enough context to be unique.
    #[schemars(length(min = 1))]
    old_text: Option<String>,
    /// The replacement of `old_text`. Empty to delete it.
    new_text: Option<String>,
    /// The hash from `file_load`: the file is saved only if it has not changed since. Required to
    /// replace the complete content of an existing file.
    expected_hash: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    path: String,
    action: Action,
    /// The size of the whole file.
    bytes: usize,
    total_lines: usize,
    /// Identifies this version of the whole file.
    hash: String,
    /// The first line of the new passage, after an edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    first_line: Option<usize>,
    /// Its last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    last_line: Option<usize>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::workspace) enum Action {
    Created,
    Replaced,
    Edited,
    Unchanged,
}

impl BundledTool for FileSave {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "file_save";
    const TITLE: &'static str = "Save a file";
    const DESCRIPTION: &'static str = "Saves a text file: creates it, replaces its complete \
        content \
        (with the hash from file_load), or changes one passage (old_text and new_text), which is \
        best for small changes.";

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(false)
    }

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        self.0.run(move |root| save(root, input)).await
    }
}

fn save(root: &Root, input: Input) -> Result<ToolOutput<Output>, ToolError> {
    let path = root.parse(&input.path, Access::Write)?;
    // Some models fill in every argument, so an empty hash is ignored.
    let expected = input.expected_hash.filter(|hash| !hash.is_empty());
    let _lock = root.lock_for_save();
    let now = match root.kind(&path)? {
        None => None,
        Some(_) => Some(root.read(&path)?),
    };
    match (now, input.content, input.old_text, input.new_text) {
        (Some(now), Some(content), None, None) => {
            replace(root, &path, &now, &content, expected.as_deref())
        }
        (None, Some(content), None, None) => create(root, &path, &content, expected.as_deref()),
        (Some(now), None, Some(old), Some(new)) => {
            edit(root, &path, now, &old, &new, expected.as_deref())
        }
        (None, None, Some(_), Some(_)) => match root.read(&path) {
            Err(fault) => Err(fault.into()),
            // Another process created the file in the meantime.
            Ok(_) => Err(FileFault::changed(&path).into()),
        },
        (_, None, Some(_), None) => refuse("new_text is missing; it may be empty."),
        (_, None, None, Some(_)) => refuse("old_text is missing: give the passage to replace."),
        (_, None, None, None) => refuse("Nothing to save. Give content, or old_text and new_text."),
        (_, Some(_), _, _) => {
            refuse("Give either content or old_text and new_text; both together are not possible.")
        }
    }
}

fn refuse(text: impl Into<String>) -> Result<ToolOutput<Output>, ToolError> {
    Err(ToolError::Refused(text.into()))
}

fn create(
    root: &Root,
    path: &RelativePath,
    content: &str,
    expected: Option<&str>,
) -> Result<ToolOutput<Output>, ToolError> {
    if expected.is_some() {
        return refuse(format!(
            "{path} was removed, so nothing was saved. Omit expected_hash to create a new file."
        ));
    }
    root.create(path, content.as_bytes())?;
    Ok(answer(path, Action::Created, content, None))
}

fn replace(
    root: &Root,
    path: &RelativePath,
    now: &ReadFile,
    content: &str,
    expected: Option<&str>,
) -> Result<ToolOutput<Output>, ToolError> {
    if now.bytes == content.as_bytes() {
        return Ok(answer(path, Action::Unchanged, content, None));
    }
    match expected {
        None => refuse(format!(
            "{path} exists, and replacing it requires expected_hash. Load it first, then save it \
             with the hash from file_load; or change one passage with old_text and new_text."
        )),
        Some(expected) => {
            unchanged(path, now, expected)?;
            root.replace(path, content.as_bytes(), now)?;
            Ok(answer(path, Action::Replaced, content, None))
        }
    }
}

fn edit(
    root: &Root,
    path: &RelativePath,
    mut now: ReadFile,
    old: &str,
    new: &str,
    expected: Option<&str>,
) -> Result<ToolOutput<Output>, ToolError> {
    if let Some(expected) = expected {
        unchanged(path, &now, expected)?;
    }
    let text = decode(path, std::mem::take(&mut now.bytes))?;
    let edited = edit::replace(&text, old, new)
        .map_err(|fault| ToolError::Refused(format!("{path} {fault}")))?;
    root.replace(path, edited.text.as_bytes(), &now)?;
    Ok(answer(path, Action::Edited, &edited.text, Some(&edited)))
}

fn unchanged(path: &RelativePath, now: &ReadFile, expected: &str) -> Result<(), ToolError> {
    if hash(&now.bytes).eq_ignore_ascii_case(expected.trim()) {
        return Ok(());
    }
    Err(ToolError::Refused(format!(
        "{path} has changed since it was loaded, so it was not saved. Load it again."
    )))
}

fn answer(
    path: &RelativePath,
    action: Action,
    text: &str,
    edited: Option<&Edited>,
) -> ToolOutput<Output> {
    let (hash, total_lines) = (hash(text.as_bytes()), count_lines(text));
    let lines = quantity(total_lines, "line");
    let message = match (action, edited) {
        (_, Some(edited)) => {
            let note = if edited.line_breaks_changed {
                " with the line breaks of the file (CR LF)"
            } else {
                ""
            };
            let context = context(text, edited);
            format!("{path} was changed{note}; it has {lines} now (hash {hash}).{context}")
        }
        (Action::Created, None) => format!("{path} is new, with {lines} (hash {hash})."),
        (Action::Unchanged, None) => {
            format!("{path} already has this content (hash {hash}).")
        }
        (Action::Replaced | Action::Edited, None) => {
            format!("{path} was replaced and has {lines} now (hash {hash}).")
        }
    };
    ToolOutput {
        text: message,
        data: Output {
            path: path.to_string(),
            action,
            bytes: text.len(),
            total_lines,
            hash,
            first_line: edited.map(|it| it.first_line),
            last_line: edited.map(|it| it.last_line),
        },
    }
}

/// Returns the edited passage with some lines before and after it.
fn context(text: &str, edited: &Edited) -> String {
    let first = edited.first_line.saturating_sub(CONTEXT_LINES).max(1);
    let number = edited.last_line + CONTEXT_LINES + 1 - first;
    let lines = text.split_inclusive('\n').skip(first - 1).take(number);
    let shown: String = lines.collect();
    numbered(cut(&shown, MAX_SHOWN_BYTES), first)
}
