//! Full results of calls whose result was cut, and the tool that reads them.

use std::{
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolAnnotations, ToolDefinition, ToolOutput};

use super::ResultLimit;
use crate::tools::tokens;

/// The name of the tool that reads full results.
pub const READ_TOOL: &str = "read_tool_result";

/// Default size of a page in bytes.
const DEFAULT_PAGE_BYTES: usize = 8_000;
/// Maximum size of all full results of a run in bytes. The newest result is always stored.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of lines that a search returns.
const MAX_LINES: usize = 20;
/// Number of bytes before and after a match.
const CONTEXT_BYTES: usize = 120;
/// Tokens of a page that are reserved for its description.
const RESERVED_TOKENS: u64 = 200;

/// The full result of a call whose result was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullResult {
    /// Id of the tool use. The model reads the result by this id.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Estimated number of tokens.
    pub tokens: u64,
    /// Text of the result. Structured content is JSON.
    pub text: Arc<str>,
}

/// The full results of a run, oldest first. Part of the stored run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FullResults {
    results: Vec<FullResult>,
}

impl FullResults {
    /// Stores a result and replaces one with the same id. Removes the oldest results beyond 16 MiB.
    pub fn store(&mut self, result: FullResult) {
        self.results.retain(|other| other.id != result.id);
        self.results.push(result);
        let mut bytes: usize = self.results.iter().map(|result| result.text.len()).sum();
        while bytes > MAX_BYTES && self.results.len() > 1 {
            bytes -= self.results.remove(0).text.len();
        }
    }

    /// Returns whether all results are shown in full. The tool is not offered then.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Returns the full result of a tool use.
    pub fn get(&self, id: &str) -> Option<&FullResult> {
        self.results.iter().find(|result| result.id == id)
    }

    /// Executes [`READ_TOOL`]: returns a page of a result, or the lines that contain a text. The
    /// output respects `limit`. Invalid requests return an error result.
    pub fn read(&self, input: &JsonObject, limit: &ResultLimit) -> ToolOutput {
        match self.try_read(input, limit) {
            Ok(text) => ToolOutput::text(text),
            Err(why) => ToolOutput {
                is_error: true,
                ..ToolOutput::text(why)
            },
        }
    }

    fn try_read(&self, input: &JsonObject, limit: &ResultLimit) -> Result<String, String> {
        let id = input.get("result_id").and_then(Value::as_str);
        let Some(result) = id.and_then(|id| self.get(id)) else {
            let ids: Vec<_> = self
                .results
                .iter()
                .map(|result| result.id.as_str())
                .collect();
            let available = match ids.as_slice() {
                [] => "no results are available".to_owned(),
                ids => format!("available: {}", ids.join(", ")),
            };
            return Err(format!("Unknown result id; {available}."));
        };
        let text = &*result.text;
        let number = |name: &str| {
            let number = input.get(name).and_then(Value::as_u64);
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let offset = number("offset").unwrap_or(0);
        if offset >= text.len() && !text.is_empty() {
            return Err(format!(
                "The result has {} bytes; offset {offset} is beyond its end.",
                text.len()
            ));
        }
        let offset = text.floor_char_boundary(offset);
        let max_tokens = limit.max_tokens.saturating_sub(RESERVED_TOKENS);
        match input.get("search").and_then(Value::as_str) {
            Some(query) if !query.is_empty() => Ok(search(text, query, offset, max_tokens)),
            _ => {
                let max_bytes = number("limit").unwrap_or(DEFAULT_PAGE_BYTES);
                Ok(page(text, offset, max_bytes, max_tokens))
            }
        }
    }
}

/// Returns the definition of [`READ_TOOL`]; the same `Arc` each time.
pub fn read_tool() -> Arc<ToolDefinition> {
    static TOOL: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
        let mut tool = ToolDefinition::new(
            READ_TOOL,
            "Reads a tool result that was too long to be shown in full: a part of it from an offset, \
             or the lines that contain a text.",
            json!({
                "type": "object",
                "properties": {
                    "result_id": {
                        "type": "string",
                        "description": "The id from the marker in the cut result.",
                    },
                    "offset": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Start of the part, in bytes. Default 0.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "Maximum number of bytes. Default 8000.",
                    },
                    "search": {
                        "type": "string",
                        "description": "Returns the lines that contain this text instead, ignoring case.",
                    },
                },
                "required": ["result_id"],
                "additionalProperties": false,
            }),
        );
        tool.title = Some("Read a long result".to_owned());
        tool.annotations = ToolAnnotations {
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
        };
        Arc::new(tool)
    });
    Arc::clone(&TOOL)
}

fn page(text: &str, offset: usize, max_bytes: usize, max_tokens: u64) -> String {
    let rest = &text[offset..];
    let max_bytes = rest.floor_char_boundary(max_bytes);
    let mut length = tokens::prefix_of(&rest[..max_bytes], max_tokens);
    if length == 0 {
        // At least one character, so that reading makes progress.
        length = rest.chars().next().map_or(0, char::len_utf8);
    }
    let end = offset + length;
    let next = if end < text.len() {
        format!("continue with offset {end}")
    } else {
        "end of the result".to_owned()
    };
    format!(
        "{}\n[bytes {offset} to {end} of {}; {next}]",
        &rest[..length],
        text.len()
    )
}

/// Returns the lines that contain `query` at or after `offset`, each with its offset.
fn search(text: &str, query: &str, offset: usize, max_tokens: u64) -> String {
    // ASCII case conversion keeps the offsets.
    let (lower, query_lower) = (
        text[offset..].to_ascii_lowercase(),
        query.to_ascii_lowercase(),
    );
    let mut out = String::new();
    let mut lines = 0;
    // End of the part that is already shown.
    let mut shown_to = offset;
    let mut next = None;
    for (at, found) in lower.match_indices(&query_lower) {
        let (at, end) = (offset + at, offset + at + found.len());
        if at < shown_to {
            continue;
        }
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[end..]
            .find('\n')
            .map_or(text.len(), |newline| end + newline);
        let start = line_start.max(text.ceil_char_boundary(at.saturating_sub(CONTEXT_BYTES)));
        let stop = line_end.min(text.floor_char_boundary(end.saturating_add(CONTEXT_BYTES)));
        let line = format!("{at}: {}\n", text[start..stop].trim());
        if lines == MAX_LINES || tokens::estimate(&out) + tokens::estimate(&line) > max_tokens {
            next = Some(at);
            break;
        }
        lines += 1;
        out.push_str(&line);
        shown_to = stop;
    }
    // Writing to a string cannot fail.
    let _ = match (lines, next) {
        (_, Some(next)) => write!(out, "[more matches: search again from offset {next}]"),
        (0, None) => write!(out, "[not found between bytes {offset} and {}]", text.len()),
        (_, None) => write!(out, "[no more matches; the numbers are offsets]"),
    };
    out
}

#[cfg(test)]
#[path = "full_results_tests.rs"]
mod tests;
