//! The tool `data_list`, which lists data files with their columns.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{DataFormat, csv, read_table};
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
    /// Lists the first records of this data file instead: its name without the extension.
    #[schemars(length(min = 1))]
    collection: Option<String>,
    /// Maximum number of files (at most 200) or records to list.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    path: String,
    files: Vec<DataFile>,
    /// The subfolders, if `recursive` is not set.
    folders: Vec<String>,
    /// The first records of `collection`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records: Vec<Map<String, Value>>,
    /// Whether further files, folders or records exist that are not listed.
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
         columns, and its subfolders; or lists the first records of one data file.",
        root,
        list_data_files,
    )
}

fn list_data_files(root: &Root, input: &Input) -> ToolResult<Output> {
    if let Some(collection) = &input.collection {
        return list_records(root, input, collection);
    }
    let path = root.parse_path(&input.path, Access::Read)?;
    let max_files = input.limit.map_or(MAX_FILES, |limit| limit.min(MAX_FILES));
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
            Some(_) if files.len() == max_files => false,
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
    let mut text = match files.len() {
        0 => format!("{path} has no data files."),
        number => format!("{path} has {}:", format_quantity(number, "data file")),
    };
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
    let data = Output {
        path: path.to_string(),
        files,
        folders,
        truncated: !complete,
        records: Vec::new(),
    };
    Ok(ToolOutput { text, data })
}

fn list_records(root: &Root, input: &Input, collection: &str) -> ToolResult<Output> {
    if !input.path.is_empty() {
        return Err("Set either path or collection. A collection is found in any folder.".into());
    }
    let read = read_table::Input {
        collection: Some(collection.to_owned()),
        limit: input.limit.unwrap_or(50),
        ..read_table::Input::default()
    };
    let ToolOutput { text, data } = read_table::read(root, &read)?;
    let data = Output {
        path: data.path,
        records: data.records,
        truncated: data.next_offset.is_some(),
        ..Output::default()
    };
    Ok(ToolOutput { text, data })
}

fn read_columns(
    root: &Root,
    path: &RelativePath,
    format: DataFormat,
    size: u64,
) -> Option<Vec<String>> {
    if root.rules.check_access(path, Access::Read).is_err() {
        return None;
    }
    let bytes = match format {
        DataFormat::Json if size > MAX_JSON_BYTES => return None,
        DataFormat::Json => root.read_head(path, MAX_JSON_BYTES),
        _ => root.read_head(path, HEAD_BYTES),
    };
    let bytes = bytes.ok()?;
    // The end of `bytes` may be inside of a character, so an incomplete last character is removed.
    let head = bytes.utf8_chunks().next().map_or("", |it| it.valid());
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
