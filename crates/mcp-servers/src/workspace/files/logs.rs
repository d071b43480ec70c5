//! The tool `debug_logs`, which returns the last lines of a log file.

use std::{path::Path, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    tool::{BundledTool, ToolError, ToolOutput, ToolResult, default_number},
    workspace::{
        command::output::OutputTail,
        root::{
            Root, create_blocking_tool,
            folder::Kind,
            folder_walk::Walk,
            path::{Access, RelativePath},
        },
    },
};

/// Maximum size of the text that one call returns, in bytes.
const MAX_BYTES: usize = 32 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The path of the log file. The default is the file *.log that changed last.
    #[schemars(length(min = 1))]
    path: Option<String>,
    /// Maximum number of lines to return.
    #[serde(default = "default_number::<100>")]
    #[schemars(range(min = 1, max = 1000))]
    lines: usize,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    path: String,
    /// The last lines of the file, without terminal codes.
    content: String,
}

pub(in crate::workspace) fn debug_logs_tool(root: &Arc<Root>) -> BundledTool {
    create_blocking_tool(
        "debug_logs",
        "Read logs",
        "Reads the last lines of a log file of the workspace, by default of the newest one.",
        root,
        read_logs,
    )
}

fn read_logs(root: &Root, input: &Input) -> ToolResult<Output> {
    let path = match &input.path {
        Some(path) => root.parse_path(path, Access::Read)?,
        None => find_newest_log(root)?,
    };
    // One byte more than the limit of the tail shows whether the tail begins inside of a line.
    let mut tail = OutputTail::new(MAX_BYTES);
    tail.push(&root.read_tail(&path, MAX_BYTES as u64 + 1)?);
    let (text, _) = tail.into_text();
    let lines: Vec<&str> = text.lines().collect();
    let content = lines[lines.len().saturating_sub(input.lines)..].join("\n");
    let text = format!("The end of {path}:\n{content}");
    let data = Output {
        path: path.to_string(),
        content,
    };
    Ok(ToolOutput { text, data })
}

fn find_newest_log(root: &Root) -> Result<RelativePath, ToolError> {
    let mut logs = Vec::new();
    Walk::VISIBLE.visit_entries(root, &RelativePath::default(), |path, meta| {
        let extension = Path::new(path.name()).extension();
        if meta.kind == Kind::File && extension.is_some_and(|it| it == "log") {
            logs.push((meta.stamp.changed, path));
        }
        true
    })?;
    let newest = logs.into_iter().max_by_key(|(changed, _)| *changed);
    let path = newest.map(|(_, path)| path);
    path.ok_or_else(|| "There is no log file (*.log). Set path to another file.".into())
}
