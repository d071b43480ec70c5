//! The tool `data_read`, which returns records of a data file.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{load_table, max_shown_bytes, shorten_value};
use crate::{
    text::{format_quantity, suggest_name},
    tool::{BundledTool, ToolError, ToolOutput, ToolResult, default_number},
    workspace::root::{Root, create_blocking_tool, path::Access},
};

/// Maximum size of all returned records, in bytes. The size is approximate, and long values are
/// shortened.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Input {
    /// The path of the data file from the root folder.
    #[schemars(length(min = 1))]
    path: String,
    /// Number of records to skip.
    #[serde(default)]
    offset: usize,
    /// Maximum number of records to read.
    #[serde(default = "default_number::<50>")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// The columns to return, in this order. The default is all columns.
    columns: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::workspace) struct Output {
    path: String,
    columns: Vec<ReadColumn>,
    records: Vec<Map<String, Value>>,
    /// Number of skipped records.
    offset: usize,
    /// Number of records of the file.
    total: usize,
    /// The offset for the next call. Missing if no records follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    next_offset: Option<usize>,
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
        "Reads records of a data file (CSV, TSV, JSON, JSON Lines) in pages. Use data_query to \
         count, sum, filter or join.",
        root,
        read,
    )
}

fn read(root: &Root, input: &Input) -> ToolResult<Output> {
    let path = root.parse_path(&input.path, Access::Read)?;
    let (table, _) = load_table(root, &path, root.max_file_bytes())?;
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
    if input.offset > 0 && input.offset >= total {
        return Err(format!("{path} has only {}.", format_quantity(total, "record")).into());
    }
    let shown = max_shown_bytes(MAX_BYTES, indexes.len());
    let mut lines = String::new();
    let mut records = Vec::new();
    for row in table.rows.iter().skip(input.offset).take(input.limit) {
        let values = indexes.iter().filter_map(|&index| row.get(index));
        let values: Vec<Value> = values.map(|value| shorten_value(value, shown)).collect();
        let line = serde_json::to_string(&values).unwrap_or_default();
        if lines.len() + line.len() > MAX_BYTES && !records.is_empty() {
            break;
        }
        lines.push('\n');
        lines.push_str(&line);
        let members = indexes.iter().zip(values).filter_map(|(&index, value)| {
            let column = table.columns.get(index)?;
            Some((column.name.clone(), value))
        });
        records.push(members.collect());
    }
    let columns = indexes.iter().filter_map(|&index| table.columns.get(index));
    let columns = columns.map(|column| ReadColumn {
        name: column.name.clone(),
        kind: column.kind.name(),
    });
    let columns: Vec<ReadColumn> = columns.collect();
    let next = input.offset + records.len();
    let next_offset = (next < total).then_some(next);
    let mut text = if records.is_empty() {
        format!("{path} has no records.")
    } else {
        let described = columns.iter();
        let described: Vec<_> = described
            .map(|it| format!("{} ({})", it.name, it.kind))
            .collect();
        format!(
            "{path}, records {} to {next} of {total}, as lists of {}:{lines}",
            input.offset + 1,
            described.join(", ")
        )
    };
    if let Some(next) = next_offset {
        let _ = write!(text, "\nMore records follow: read them with offset {next}.");
    }
    Ok(ToolOutput {
        text,
        data: Output {
            path: path.to_string(),
            columns,
            records,
            offset: input.offset,
            total,
            next_offset,
        },
    })
}
