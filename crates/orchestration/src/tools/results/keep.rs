//! Results that were cut, kept whole, and the tool that reads them piece by piece.

use std::{
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolAnnotations, ToolDefinition, ToolOutput};

use super::ResultLimit;
use crate::tools::tokens;

/// The name of the tool that reads kept results.
pub const READ_TOOL: &str = "read_tool_result";

/// Bytes that one read gives if not told otherwise.
const PAGE: usize = 8_000;
/// Bytes kept in a run at most; the newest result is kept in any case.
const MOST_BYTES: usize = 16 << 20;
/// Lines that one search shows.
const MOST_LINES: usize = 20;
/// Bytes shown on either side of what was found.
const AROUND: usize = 120;
/// Tokens of a page that are left for what is said about it.
const FOR_WORDS: u64 = 200;

/// The whole of a result that was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
    /// The tool use it belongs to; the model reads it by this.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Its length.
    pub tokens: u64,
    /// Its text; data as JSON.
    pub text: Arc<str>,
}

/// The results of a run that were cut, oldest first. Part of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptResults {
    results: Vec<KeptResult>,
}

impl KeptResults {
    /// Keeps a result; in the place of one with the same id. The oldest ones go when all of them have more
    /// than 16 MiB.
    pub fn keep(&mut self, result: KeptResult) {
        self.results.retain(|other| other.id != result.id);
        self.results.push(result);
        let mut bytes: usize = self.results.iter().map(|result| result.text.len()).sum();
        while bytes > MOST_BYTES && self.results.len() > 1 {
            bytes -= self.results.remove(0).text.len();
        }
    }

    /// Whether there are none; the tool need not be offered then.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The result of a tool use.
    pub fn get(&self, id: &str) -> Option<&KeptResult> {
        self.results.iter().find(|result| result.id == id)
    }

    /// Runs the tool [`READ_TOOL`]: a piece of a kept result, or the lines in which a text was found.
    /// Never longer than `limit` allows. What cannot be read is a result that is an error and says why.
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
            let there = match ids.as_slice() {
                [] => "no result is kept".to_owned(),
                ids => format!("these are kept: {}", ids.join(", ")),
            };
            return Err(format!("There is no result of this id; {there}."));
        };
        let text = &*result.text;
        let number = |name: &str| {
            let number = input.get(name).and_then(Value::as_u64);
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let offset = number("offset").unwrap_or(0);
        if offset >= text.len() && !text.is_empty() {
            return Err(format!(
                "The result has {} bytes: there is nothing at offset {offset}.",
                text.len()
            ));
        }
        let offset = text.floor_char_boundary(offset);
        let most_tokens = limit.max_tokens.saturating_sub(FOR_WORDS);
        match input.get("search").and_then(Value::as_str) {
            Some(wanted) if !wanted.is_empty() => Ok(search(text, wanted, offset, most_tokens)),
            _ => {
                let most = number("limit").unwrap_or(PAGE);
                Ok(page(text, offset, most, most_tokens))
            }
        }
    }
}

/// The tool that reads kept results; the same `Arc` every time. It changes nothing and reaches nothing
/// but the run itself.
pub fn read_tool() -> Arc<ToolDefinition> {
    static TOOL: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
        let mut tool = ToolDefinition::new(
            READ_TOOL,
            "Reads a tool result that was too long to be shown in full: a piece of it from an offset on, \
             or the lines in which a text occurs.",
            json!({
                "type": "object",
                "properties": {
                    "result_id": {
                        "type": "string",
                        "description": "The id that stands where the result was cut.",
                    },
                    "offset": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Where to begin, in bytes. Default 0.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "How many bytes to read at most. Default 8000.",
                    },
                    "search": {
                        "type": "string",
                        "description": "Show the lines with this text (upper or lower case) instead.",
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

fn page(text: &str, offset: usize, most: usize, most_tokens: u64) -> String {
    let rest = &text[offset..];
    let most = rest.floor_char_boundary(most);
    let mut length = tokens::prefix_of(&rest[..most], most_tokens);
    if length == 0 {
        // At least one character, or reading would never come to an end.
        length = rest.chars().next().map_or(0, char::len_utf8);
    }
    let end = offset + length;
    let go_on = if end < text.len() {
        format!("go on with offset {end}")
    } else {
        "this is the end".to_owned()
    };
    format!(
        "{}\n[bytes {offset} to {end} of {}; {go_on}]",
        &rest[..length],
        text.len()
    )
}

/// The lines with `wanted` from `offset` on, each with the offset at which it was found.
fn search(text: &str, wanted: &str, offset: usize, most_tokens: u64) -> String {
    // Both keep their length, so that offsets stay right; other scripts are searched as they are.
    let (lower, wanted_lower) = (
        text[offset..].to_ascii_lowercase(),
        wanted.to_ascii_lowercase(),
    );
    let mut out = String::new();
    let mut lines = 0;
    // What comes before this has been shown.
    let mut shown_to = offset;
    let mut next = None;
    for (at, found) in lower.match_indices(&wanted_lower) {
        let (at, end) = (offset + at, offset + at + found.len());
        if at < shown_to {
            continue;
        }
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[end..]
            .find('\n')
            .map_or(text.len(), |newline| end + newline);
        let start = line_start.max(text.ceil_char_boundary(at.saturating_sub(AROUND)));
        let stop = line_end.min(text.floor_char_boundary(end.saturating_add(AROUND)));
        let line = format!("{at}: {}\n", text[start..stop].trim());
        if lines == MOST_LINES || tokens::estimate(&out) + tokens::estimate(&line) > most_tokens {
            next = Some(at);
            break;
        }
        lines += 1;
        out.push_str(&line);
        shown_to = stop;
    }
    // Writing to a string cannot fail.
    let _ = match (lines, next) {
        (_, Some(next)) => write!(out, "[there is more: search on from offset {next}]"),
        (0, None) => write!(out, "[not found between bytes {offset} and {}]", text.len()),
        (_, None) => write!(out, "[no more of it; the numbers are offsets]"),
    };
    out
}

#[cfg(test)]
#[path = "keep_tests.rs"]
mod tests;
