//! The tool `file_load`, which returns the lines of a text file.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    text::format_quantity,
    tool::{BundledTool, ToolOutput, ToolResult},
    workspace::{
        root::{Root, create_blocking_tool, path::Access},
        text::{add_line_numbers, count_lines, decode_text_file, hash, truncate_bytes},
    },
};

/// Maximum number of lines that one call returns if the argument `last_line` is missing.
const MAX_LINES: usize = 2000;
/// Maximum size of the text that one call returns, in bytes.
const MAX_BYTES: usize = 96 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The path of the file from the root folder, such as src/main.rs.
    #[schemars(length(min = 1))]
    path: String,
    /// The first line to load, counted from 1.
    #[schemars(range(min = 1))]
    first_line: Option<usize>,
    /// The last line to load, inclusive.
    #[schemars(range(min = 1))]
    last_line: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    path: String,
    /// The lines exactly as they are in the file.
    content: String,
    /// The number of the first line of `content`.
    first_line: usize,
    /// The number of the last line of `content`; one less than `first_line` for empty content.
    last_line: usize,
    total_lines: usize,
    /// The size of the whole file in bytes.
    bytes: usize,
    /// The hash of this version of the whole file, for `expected_hash` of `file_save`.
    hash: String,
    /// The number of the first requested line that is not in `content`. Missing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    next_line: Option<usize>,
    /// Whether `content` has only the start of one very long line.
    line_is_cut: bool,
}

pub(in crate::workspace) fn file_load_tool(root: &Arc<Root>) -> BundledTool {
    create_blocking_tool(
        "file_load",
        "Load a file",
        "Loads a text file, or some lines of it, with line numbers and with the hash that \
         file_save needs to replace the file. Load a file before you describe or change it.",
        root,
        load_file,
    )
}

fn load_file(root: &Root, input: &Input) -> ToolResult<Output> {
    let path = root.parse_path(&input.path, Access::Read)?;
    let file = root.read_file(&path)?;
    let (bytes, hash) = (file.bytes.len(), hash(&file.bytes));
    let text = decode_text_file(&path, file.bytes)?;
    let total_lines = count_lines(&text);
    let first_line = input.first_line.unwrap_or(1);
    if first_line > total_lines.max(1) {
        return Err(format!("{path} has only {}.", format_quantity(total_lines, "line")).into());
    }
    let wanted = input.last_line.unwrap_or(total_lines).min(total_lines);
    if input.last_line.is_some_and(|last| last < first_line) {
        return Err("last_line is before first_line.".into());
    }
    let max_lines = input.last_line.map_or(MAX_LINES, |_| usize::MAX);
    let mut content = String::new();
    let mut last_line = first_line - 1;
    let mut line_is_cut = false;
    let lines = text.split_inclusive('\n').take(wanted);
    for line in lines.skip(first_line - 1).take(max_lines) {
        if content.len() + line.len() > MAX_BYTES {
            if content.is_empty() {
                content.push_str(truncate_bytes(line, MAX_BYTES));
                line_is_cut = true;
                last_line += 1;
            }
            break;
        }
        content.push_str(line);
        last_line += 1;
    }
    let next_line = (last_line < wanted).then_some(last_line + 1);
    let mut text = if total_lines == 0 {
        format!("{path} is empty (hash {hash}).")
    } else {
        format!("{path}, lines {first_line} to {last_line} of {total_lines} (hash {hash}):")
    };
    text.push_str(&add_line_numbers(&content, first_line));
    if line_is_cut {
        text.push_str("\nThe line is too long and continues.");
    }
    if let Some(next) = next_line {
        let _ = write!(text, "\nMore lines follow: load the file from line {next}.");
    }
    let data = Output {
        path: path.to_string(),
        content,
        first_line,
        last_line,
        total_lines,
        bytes,
        hash,
        next_line,
        line_is_cut,
    };
    Ok(ToolOutput { text, data })
}
