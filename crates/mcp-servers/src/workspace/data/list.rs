//! The tool `data_list`, which lists data files with their columns.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataFormat, csv};
use crate::{
    text::format_quantity,
    tool::{BundledTool, ToolOutput, ToolResult},
    workspace::{
        root::{
            Root, create_blocking_tool,
            folder::Kind,
            folder_walk::Walk,
            path::{Access, RelativePath},
        },
        text::format_size,
    },
};

/// Maximum number of data files that one call lists.
const MAX_FILES: usize = 200;
/// Maximum number of folders that one call lists.
const MAX_FOLDERS: usize = 200;
/// Maximum number of bytes that are read from a CSV, TSV or JSON Lines file to find its column
/// names.
const HEAD_BYTES: u64 = 64 * 1024;
/// Maximum size of a JSON file whose columns are listed, in bytes. A JSON file must be read
/// completely to find its columns.
const MAX_JSON_BYTES: u64 = 1024 * 1024;
/// Maximum number of columns that are listed for a file.
const MAX_LISTED_COLUMNS: usize = 50;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The folder, as a path from the root folder. The default is the root folder.
    #[serde(default)]
    path: String,
    /// Also lists the data files of subfolders.
    #[serde(default)]
    recursive: bool,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    path: String,
    files: Vec<DataFile>,
    /// The subfolders, if `recursive` is not set.
    folders: Vec<String>,
    /// Whether further files or folders exist that are not listed.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct DataFile {
    /// The path of the file from the root folder.
    path: String,
    /// The format of the file: CSV, TSV, JSON or JSON Lines.
    format: String,
    bytes: u64,
    /// The names of the first 50 columns. Missing for large JSON files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    columns: Option<Vec<String>>,
}

pub(in crate::workspace) fn data_list_tool(root: &Arc<Root>) -> BundledTool {
    create_blocking_tool(
        "data_list",
        "List data files",
        "Lists the data files (CSV, TSV, JSON, JSON Lines) of a folder with their sizes and \
         columns, and its subfolders.",
        root,
        list_data_files,
    )
}

fn list_data_files(root: &Root, input: &Input) -> ToolResult<Output> {
    let path = root.parse_path(&input.path, Access::Read)?;
    let walk = Walk {
        recursive: input.recursive,
        hidden: false,
    };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let complete = walk.visit_entries(root, &path, |path, meta| match meta.kind {
        Kind::Folder if input.recursive => true,
        Kind::Folder if folders.len() == MAX_FOLDERS => false,
        Kind::Folder => {
            folders.push(path.to_string());
            true
        }
        Kind::File => match DataFormat::from_path(&path) {
            Some(_) if files.len() == MAX_FILES => false,
            Some(format) => {
                files.push(DataFile {
                    columns: read_columns(root, &path, format, meta.size),
                    path: path.to_string(),
                    format: format.to_string(),
                    bytes: meta.size,
                });
                true
            }
            None => true,
        },
        Kind::Link | Kind::Special => true,
    })?;
    let number = match files.len() {
        0 => "no data files".to_owned(),
        number => format_quantity(number, "data file"),
    };
    let end = if files.is_empty() { "." } else { ":" };
    let mut text = format!("{path} has {number}{end}");
    for file in &files {
        let size = format_size(file.bytes);
        let _ = write!(text, "\n{} ({}, {size})", file.path, file.format);
        if let Some(columns) = &file.columns {
            let _ = write!(text, ": {}", columns.join(", "));
        }
    }
    if !folders.is_empty() {
        let _ = write!(text, "\nFolders: {}", folders.join(", "));
    }
    if !complete {
        text.push_str("\nMore files exist. List a subfolder.");
    }
    Ok(ToolOutput {
        text,
        data: Output {
            path: path.to_string(),
            files,
            folders,
            truncated: !complete,
        },
    })
}

fn read_columns(
    root: &Root,
    path: &RelativePath,
    format: DataFormat,
    size: u64,
) -> Option<Vec<String>> {
    if root.name_rules().check_access(path, Access::Read).is_err() {
        return None;
    }
    let bytes = match format {
        DataFormat::Json if size > MAX_JSON_BYTES => return None,
        DataFormat::Json => root.read_head(path, MAX_JSON_BYTES),
        _ => root.read_head(path, HEAD_BYTES),
    };
    let bytes = bytes.ok()?;
    // The end of `bytes` may be inside of a character, so an incomplete last character is removed.
    let head = match std::str::from_utf8(&bytes) {
        Ok(head) => head,
        Err(error) => std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?,
    };
    let head = head.strip_prefix('\u{feff}').unwrap_or(head);
    let mut names: Vec<String> = match format {
        DataFormat::Csv => csv::parse_header(head, csv::detect_delimiter(head)),
        DataFormat::Tsv => csv::parse_header(head, b'\t'),
        DataFormat::Json => parse_column_names(format, head)?,
        DataFormat::JsonLines => {
            parse_column_names(format, head.lines().find(|line| !line.trim().is_empty())?)?
        }
    };
    names.truncate(MAX_LISTED_COLUMNS);
    Some(names)
}

fn parse_column_names(format: DataFormat, text: &str) -> Option<Vec<String>> {
    let columns = format.parse_table(text).ok()?.columns;
    Some(columns.into_iter().map(|column| column.name).collect())
}
