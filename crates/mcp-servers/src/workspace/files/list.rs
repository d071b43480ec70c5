//! The tool `file_list`, which lists files and folders.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    text::format_quantity,
    tool::{BundledTool, ToolError, ToolOutput, ToolResult},
    workspace::{
        root::{
            Root, create_blocking_tool,
            folder::Kind,
            folder_walk::{Walk, parse_pattern},
            path::Access,
        },
        text::format_size,
    },
};

/// Maximum number of files and folders that one call lists.
const MAX_ENTRIES: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The folder to list, as a path from the root folder. The default is the root folder.
    #[serde(default)]
    path: String,
    /// Also lists the content of subfolders. Folders such as `node_modules` and `target` are listed
    /// without their content.
    #[serde(default)]
    recursive: bool,
    /// Lists only files whose name matches this pattern, such as *.rs; * matches any characters, ?
    /// one character.
    #[serde(rename = "match")]
    pattern: Option<String>,
    /// Also lists hidden files and folders.
    #[serde(default)]
    hidden: bool,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    path: String,
    entries: Vec<Entry>,
    /// Whether further files or folders exist that are not listed.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Entry {
    /// The path of the entry from the root folder.
    path: String,
    kind: Kind,
    /// The size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    bytes: Option<u64>,
}

pub(in crate::workspace) fn file_list_tool(root: &Arc<Root>) -> BundledTool {
    create_blocking_tool(
        "file_list",
        "List files",
        "Lists the files and folders of a folder with their sizes, optionally with all \
         subfolders. Use it to find files and their names.",
        root,
        list_files,
    )
}

fn list_files(root: &Root, input: &Input) -> ToolResult<Output> {
    let path = root.parse_path(&input.path, Access::Read)?;
    let pattern = input.pattern.as_deref().map(parse_pattern).transpose();
    let pattern =
        pattern.map_err(|_| ToolError::from("match is too long. Use a shorter pattern."))?;
    let walk = Walk {
        recursive: input.recursive,
        hidden: input.hidden,
    };
    let mut entries = Vec::new();
    let complete = walk.visit_entries(root, &path, |path, meta| {
        let is_file = meta.kind == Kind::File;
        let pattern = pattern.as_ref();
        let is_match = pattern.is_none_or(|it| is_file && it.is_match(path.name()));
        if is_match && entries.len() < MAX_ENTRIES {
            entries.push(Entry {
                path: path.to_string(),
                kind: meta.kind,
                bytes: is_file.then_some(meta.size),
            });
            return true;
        }
        !is_match
    })?;
    let mut text = match entries.len() {
        0 if pattern.is_some() => format!("{path} has no matching files."),
        0 => format!("{path} has no entries."),
        number => format!("{path} has {}:", format_quantity(number, "entry")),
    };
    for entry in &entries {
        let _ = match (entry.kind, entry.bytes) {
            (Kind::File, Some(bytes)) => {
                write!(text, "\n{} ({})", entry.path, format_size(bytes))
            }
            (Kind::Folder, _) => write!(text, "\n{}/", entry.path),
            (Kind::Link, _) => write!(text, "\n{} (a link, not followed)", entry.path),
            _ => write!(text, "\n{} (neither file nor folder)", entry.path),
        };
    }
    if !complete {
        text.push_str("\nMore entries exist. List a subfolder, or use a pattern.");
    }
    let data = Output {
        path: path.to_string(),
        entries,
        truncated: !complete,
    };
    Ok(ToolOutput { text, data })
}
