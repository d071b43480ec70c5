//! The tool `file_save`, which creates or changes a text file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edit::{self, EditedText};
use crate::{
    text::format_quantity,
    tool::{BundledTool, ToolError, ToolOutput, ToolResult},
    workspace::{
        root::{
            FileError, ReadFile, Root, create_blocking_tool,
            path::{Access, RelativePath},
        },
        text::{add_line_numbers, count_lines, decode_text_file, hash, truncate_bytes},
    },
};

/// Number of lines that the result text shows before and after an edited passage.
const CONTEXT_LINES: usize = 3;
/// Maximum size, in bytes, of the edited passage with its context lines in the result text.
const MAX_SHOWN_BYTES: usize = 4 * 1024;

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
    /// The size of the whole file in bytes.
    bytes: usize,
    total_lines: usize,
    /// The hash of this version of the whole file.
    hash: String,
    /// The number of the first line of the new passage. Missing if no passage was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    first_line: Option<usize>,
    /// The number of the last line of the new passage. Missing if no passage was changed.
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

pub(in crate::workspace) fn file_save_tool(root: &Arc<Root>) -> BundledTool {
    create_blocking_tool(
        "file_save",
        "Save a file",
        "Saves a text file: creates it, replaces its complete content (with the hash from \
         file_load), or changes one passage (old_text and new_text), which is best for small \
         changes.",
        root,
        save_file,
    )
    .map_annotations(|it| it.read_only(false).destructive(true).idempotent(false))
}

fn save_file(root: &Root, input: &Input) -> ToolResult<Output> {
    let path = root.parse_path(&input.path, Access::Write)?;
    // Some models fill in every argument, so an empty hash is ignored.
    let expected = input.expected_hash.as_deref();
    let expected = expected.filter(|hash| !hash.is_empty());
    let _lock = root.lock_for_save();
    let now = match root.entry_kind(&path)? {
        None => None,
        Some(_) => Some(root.read_file(&path)?),
    };
    let (content, old) = (input.content.as_deref(), input.old_text.as_deref());
    match (now, content, old, input.new_text.as_deref()) {
        (Some(now), Some(content), None, None) if now.bytes == content.as_bytes() => {
            Ok(build_output(&path, Action::Unchanged, content, None))
        }
        (Some(now), Some(content), None, None) => {
            let expected = expected.ok_or_else(|| {
                format!(
                    "{path} exists, and replacing it requires expected_hash. Load it first, then \
                     save it with the hash from file_load; or change one passage with old_text \
                     and new_text."
                )
            })?;
            check_unchanged(&path, &now, expected)?;
            root.replace_file(&path, content.as_bytes(), &now)?;
            Ok(build_output(&path, Action::Replaced, content, None))
        }
        (None, Some(_), None, None) if expected.is_some() => Err(format!(
            "{path} was removed, so nothing was saved. Omit expected_hash to create a new file."
        )
        .into()),
        (None, Some(content), None, None) => {
            root.create_file(&path, content.as_bytes())?;
            Ok(build_output(&path, Action::Created, content, None))
        }
        (Some(mut now), None, Some(old), Some(new)) => {
            if let Some(expected) = expected {
                check_unchanged(&path, &now, expected)?;
            }
            let text = decode_text_file(&path, std::mem::take(&mut now.bytes))?;
            let edited = edit::replace_passage(&text, old, new)
                .map_err(|fault| format!("{path} {fault}"))?;
            root.replace_file(&path, edited.text.as_bytes(), &now)?;
            let text = &edited.text;
            Ok(build_output(&path, Action::Edited, text, Some(&edited)))
        }
        (None, None, Some(_), Some(_)) => {
            root.read_file(&path)?;
            // `read_file` normally returns an error here, because the file does not exist. If it
            // succeeds, another process has created the file in the meantime.
            Err(FileError::file_changed_error(&path).into())
        }
        (_, None, Some(_), None) => Err("new_text is missing; it may be empty.".into()),
        (_, None, None, Some(_)) => Err("old_text is missing: give the passage to replace.".into()),
        (_, None, None, None) => {
            Err("Nothing to save. Give content, or old_text and new_text.".into())
        }
        (_, Some(_), _, _) => {
            Err("Give either content, or old_text and new_text, but not both.".into())
        }
    }
}

fn check_unchanged(path: &RelativePath, now: &ReadFile, expected: &str) -> Result<(), ToolError> {
    if hash(&now.bytes).eq_ignore_ascii_case(expected.trim()) {
        return Ok(());
    }
    Err(
        format!("{path} has changed since it was loaded, so it was not saved. Load it again.")
            .into(),
    )
}

fn build_output(
    path: &RelativePath,
    action: Action,
    content: &str,
    edited: Option<&EditedText>,
) -> ToolOutput<Output> {
    let (hash, total_lines) = (hash(content.as_bytes()), count_lines(content));
    let lines = format_quantity(total_lines, "line");
    let text = match (action, edited) {
        (_, Some(edited)) => {
            let note = if edited.line_breaks_changed {
                " with the line breaks of the file (CR LF)"
            } else {
                ""
            };
            let excerpt = format_edited_lines(content, edited);
            format!("{path} was changed{note}; it has {lines} now (hash {hash}).{excerpt}")
        }
        (Action::Created, None) => format!("{path} is new, with {lines} (hash {hash})."),
        (Action::Unchanged, None) => {
            format!("{path} already has this content (hash {hash}).")
        }
        (Action::Replaced | Action::Edited, None) => {
            format!("{path} was replaced and has {lines} now (hash {hash}).")
        }
    };
    let data = Output {
        path: path.to_string(),
        action,
        bytes: content.len(),
        total_lines,
        hash,
        first_line: edited.map(|it| it.first_line),
        last_line: edited.map(|it| it.last_line),
    };
    ToolOutput { text, data }
}

/// Returns the numbered lines of the edited passage, with at most [`CONTEXT_LINES`] lines before
/// and after it. Cuts the text off after [`MAX_SHOWN_BYTES`] bytes, without counting the line
/// numbers.
fn format_edited_lines(text: &str, edited: &EditedText) -> String {
    let first = edited.first_line.saturating_sub(CONTEXT_LINES).max(1);
    let number = edited.last_line + CONTEXT_LINES + 1 - first;
    let lines = text.split_inclusive('\n').skip(first - 1).take(number);
    let shown: String = lines.collect();
    add_line_numbers(truncate_bytes(&shown, MAX_SHOWN_BYTES), first)
}
