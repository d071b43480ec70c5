//! The tool `data_read`, which returns records of a data file.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Table, find_collection, load_table, max_shown_bytes, shorten_value};
use crate::{
    text::{format_quantity, suggest_name},
    tool::{BundledTool, ToolError, ToolOutput, ToolResult, default_number},
    workspace::root::{Root, create_blocking_tool, path::Access},
};

/// Maximum size of all returned records, in bytes. The size is approximate, and long values are
/// shortened.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The path of the data file from the root folder.
    #[schemars(length(min = 1))]
    pub(super) path: Option<String>,
    /// The name of the data file without the extension, in any folder. Replaces `path`.
    #[schemars(length(min = 1))]
    pub(super) collection: Option<String>,
    /// Reads only the record whose column `id` has this value.
    #[schemars(extend("type" = ["string", "integer"]))]
    pub(super) id: Option<Value>,
    /// Number of records to skip.
    #[serde(default)]
    pub(super) offset: usize,
    /// Maximum number of records to read.
    #[serde(default = "default_number::<50>")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: usize,
    /// The columns to return, in this order. The default is all columns.
    pub(super) columns: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    pub(super) path: String,
    columns: Vec<ReadColumn>,
    pub(super) records: Vec<Map<String, Value>>,
    /// Number of skipped records.
    offset: usize,
    /// Number of records of the file.
    total: usize,
    /// The offset for the next call. Missing if no records follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    pub(super) next_offset: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct ReadColumn {
    name: String,
    /// The type of the values: integer, number, text or mixed.
    #[serde(rename = "type")]
    kind: &'static str,
}

pub(in crate::workspace) fn data_read_tool(root: &Arc<Root>) -> BundledTool {
    create_blocking_tool(
        "data_read",
        "Read data",
        "Reads records of a data file (CSV, TSV, JSON, JSON Lines) in pages, or one record by \
         its id. Use data_query to count, sum, filter or join.",
        root,
        read,
    )
}

pub(super) fn read(root: &Root, input: &Input) -> ToolResult<Output> {
    let path = match (&input.path, &input.collection) {
        (Some(path), None) => root.parse_path(path, Access::Read)?,
        (None, Some(collection)) => find_collection(root, collection)?,
        _ => return Err("Set either path or collection. data_list lists the data files.".into()),
    };
    let (table, _) = load_table(root, &path, root.max_file_bytes)?;
    let names = || table.columns.iter().map(|column| column.name.as_str());
    let indexes: Vec<usize> = match &input.columns {
        Some(wanted) if !wanted.is_empty() => {
            let found = wanted.iter().map(|wanted| {
                names().position(|name| name == wanted).ok_or_else(|| {
                    let suggestion = suggest_name(wanted, names());
                    let known = names().collect::<Vec<_>>().join(", ");
                    ToolError::from(format!(
                        "{path} has no column {wanted}.{suggestion} Available columns: {known}."
                    ))
                })
            });
            found.collect::<Result<_, _>>()?
        }
        _ => (0..table.columns.len()).collect(),
    };
    let total = table.rows.len();
    let (offset, limit) = match &input.id {
        None => (input.offset, input.limit),
        Some(_) if input.offset > 0 => return Err("Set either id or offset.".into()),
        Some(id) => (
            find_record(&table, id).map_err(|it| format!("{path} {it}"))?,
            1,
        ),
    };
    if offset > 0 && offset >= total {
        return Err(format!("{path} has only {}.", format_quantity(total, "record")).into());
    }
    let columns = indexes.iter().filter_map(|&index| table.columns.get(index));
    let columns = columns.map(|column| ReadColumn {
        name: column.name.clone(),
        kind: column.kind.name(),
    });
    let columns: Vec<ReadColumn> = columns.collect();
    let shown = max_shown_bytes(MAX_BYTES, columns.len());
    let mut lines = String::new();
    let mut records = Vec::new();
    for row in table.rows.iter().skip(offset).take(limit) {
        let values = indexes.iter().filter_map(|&index| row.get(index));
        let values: Vec<Value> = values.map(|value| shorten_value(value, shown)).collect();
        let line = serde_json::to_string(&values).unwrap_or_default();
        if lines.len() + line.len() > MAX_BYTES && !records.is_empty() {
            break;
        }
        lines.push('\n');
        lines.push_str(&line);
        let names = columns.iter().map(|column| column.name.clone());
        records.push(names.zip(values).collect());
    }
    let next = offset + records.len();
    let next_offset = (next < total && input.id.is_none()).then_some(next);
    let mut text = if records.is_empty() {
        format!("{path} has no records.")
    } else {
        let describe = |column: &ReadColumn| format!("{} ({})", column.name, column.kind);
        let described: Vec<_> = columns.iter().map(describe).collect();
        format!(
            "{path}, records {} to {next} of {total}, as lists of {}:{lines}",
            offset + 1,
            described.join(", ")
        )
    };
    if let Some(next) = next_offset {
        let _ = write!(
            text,
            "\nMore records follow: data_read reads them with offset {next}."
        );
    }
    let data = Output {
        path: path.to_string(),
        columns,
        records,
        offset,
        total,
        next_offset,
    };
    Ok(ToolOutput { text, data })
}

/// Returns the index of the record whose column `id` has the value `id`, compared as text. The
/// error has no subject: the caller writes the path before it.
fn find_record(table: &Table, id: &Value) -> Result<usize, String> {
    let to_text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let id = to_text(id);
    let mut columns = table.columns.iter();
    let column = columns.position(|it| ["id", "_id"].contains(&&*it.name.to_ascii_lowercase()));
    let column = column.ok_or("has no column id. Find the record with data_query.")?;
    let is_wanted = |row: &Vec<Value>| row.get(column).is_some_and(|it| to_text(it) == id);
    let record = table.rows.iter().position(is_wanted);
    record.ok_or_else(|| format!("has no record with the id {id}."))
}
