//! Full texts of truncated tool results, and the tool with which the model reads them.

use std::{
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_domain::{
    JsonObject, Message, Role, ToolContent, ToolDefinition, ToolOutput, ToolResult,
};

use super::ResultLimit;
use crate::tools::{annotations::BUILTIN_TOOL, create_error_output, tokens};

/// Name of the tool with which the model reads the full text of a truncated result.
pub const READ_TOOL: &str = "read_tool_result";

/// Default size in bytes of a page that [`READ_TOOL`] returns.
const DEFAULT_PAGE_BYTES: usize = 8_000;
/// Maximum total size in bytes of the full texts of truncated results that a run keeps. Above it,
/// the oldest texts are removed.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of lines that a search in a full tool result returns.
const MAX_LINES: usize = 20;
/// Number of bytes of text before and after each match that a search in a full result shows.
const CONTEXT_BYTES: usize = 120;
/// Number of tokens in the output of [`READ_TOOL`] that are reserved for the line about the page.
const RESERVED_TOKENS: u64 = 200;

/// The full text of a tool result that was truncated for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullResult {
    /// Id of the tool use, with which the model requests the full result.
    id: String,
    /// Position of the full text among the messages of the conversation: the number of messages
    /// that the conversation had when the result was stored.
    position: usize,
    /// The full text as a message, or `None` if the text was removed. It is not serialized with the
    /// run's state, which is stored at each checkpoint. A message is stored only once.
    #[serde(skip)]
    message: Option<Arc<Message>>,
}

impl FullResult {
    /// Creates the full result of the tool use `id` of the tool `tool`. `text` is the full text,
    /// including structured content as JSON.
    pub(super) fn new(id: &str, tool: &str, text: String) -> Self {
        let message = Message::from_tool_results([ToolResult::text(id, tool, text)]);
        Self {
            id: id.to_owned(),
            position: 0,
            message: Some(Arc::new(message)),
        }
    }

    /// Returns the full text of the tool result; empty if it was removed.
    pub fn full_text(&self) -> &str {
        let results = self
            .message
            .iter()
            .flat_map(|message| message.tool_results());
        let mut content = results.flat_map(|result| &*result.content);
        match content.next() {
            Some(ToolContent::Text { text }) => text,
            _ => "",
        }
    }
}

/// The full texts of a run's truncated tool results, oldest first.
///
/// The stored state contains their ids and positions. The texts are stored as messages between the
/// messages of the conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FullResults {
    results: Vec<FullResult>,
}

impl FullResults {
    /// Stores a full result, replacing a result with the same id. Removes the texts of the oldest
    /// results if the total size exceeds 16 MiB. `position` is the number of messages in the
    /// conversation.
    pub fn store_result(&mut self, result: FullResult, position: usize) {
        for other in &mut self.results {
            if other.id == result.id {
                other.message = None;
            }
        }
        self.results.push(FullResult { position, ..result });
        self.remove_oldest();
    }

    fn remove_oldest(&mut self) {
        let mut bytes: usize = self
            .results
            .iter()
            .map(|result| result.full_text().len())
            .sum();
        let newest = self.results.len().saturating_sub(1);
        for result in &mut self.results[..newest] {
            if bytes <= MAX_BYTES {
                break;
            }
            bytes -= result.full_text().len();
            result.message = None;
        }
    }

    /// Returns the number of results, including results whose texts were removed.
    pub(crate) fn result_count(&self) -> usize {
        self.results.len()
    }

    /// Returns the conversation with each full result inserted as a message at its position.
    pub(crate) fn insert_into_messages(&self, conversation: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let mut stored = Vec::with_capacity(conversation.len() + self.results.len());
        let mut results = self.results.iter().peekable();
        for position in 0..=conversation.len() {
            while let Some(result) = results.next_if(|result| result.position == position) {
                let removed = || Arc::new(Message::new(Role::Tool, []));
                stored.push(result.message.clone().unwrap_or_else(removed));
            }
            stored.extend(conversation.get(position).cloned());
        }
        stored
    }

    /// Restores the full texts from messages that [`FullResults::insert_into_messages`] returned.
    /// Returns the conversation without these texts, or `None` if a text is missing.
    pub(crate) fn restore_from_messages(
        &mut self,
        stored: Vec<Arc<Message>>,
    ) -> Option<Vec<Arc<Message>>> {
        let mut conversation = Vec::with_capacity(stored.len());
        let mut results = self.results.iter_mut().peekable();
        for message in stored {
            match results.next_if(|result| result.position == conversation.len()) {
                Some(result) => result.message = Some(message),
                None => conversation.push(message),
            }
        }
        if results.peek().is_some() {
            return None;
        }
        self.remove_oldest();
        Some(conversation)
    }

    /// Returns `true` if no tool result of the run was truncated. [`READ_TOOL`] is then not
    /// offered.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Returns the full result of the tool use with this id. Returns `None` if the result was not
    /// truncated or its text was removed.
    pub fn find_result(&self, id: &str) -> Option<&FullResult> {
        let mut available = self.available_results();
        available.find(|result| result.id == id)
    }

    fn available_results(&self) -> impl Iterator<Item = &FullResult> {
        let results = self.results.iter();
        results.filter(|result| result.message.is_some())
    }

    /// Executes a call of [`READ_TOOL`]: returns a page of a full result, or the lines that contain
    /// a search text. The output respects `limit`. Invalid requests return an error result.
    pub fn execute_result_read(&self, input: &JsonObject, limit: &ResultLimit) -> ToolOutput {
        self.try_execute_result_read(input, limit)
            .map_or_else(create_error_output, ToolOutput::text)
    }

    fn try_execute_result_read(
        &self,
        input: &JsonObject,
        limit: &ResultLimit,
    ) -> Result<String, String> {
        let id = input.get("result_id").and_then(Value::as_str);
        let Some(result) = id.and_then(|id| self.find_result(id)) else {
            let ids: Vec<_> = self
                .available_results()
                .map(|result| result.id.as_str())
                .collect();
            let available = match ids.as_slice() {
                [] => "no results are available".to_owned(),
                ids => format!("available: {}", ids.join(", ")),
            };
            return Err(format!("Unknown result id; {available}."));
        };
        let text = result.full_text();
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
            Some(query) if !query.is_empty() => Ok(search_lines(text, query, offset, max_tokens)),
            _ => {
                let max_bytes = number("limit").unwrap_or(DEFAULT_PAGE_BYTES);
                Ok(read_page(text, offset, max_bytes, max_tokens))
            }
        }
    }
}

/// Returns the definition of [`READ_TOOL`]. Returns the same `Arc` each time.
pub fn result_reading_tool() -> Arc<ToolDefinition> {
    static TOOL: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
        let mut tool = ToolDefinition::new(
            READ_TOOL,
            "Reads a tool result that was too long to be shown in full: a part of it from an \
             offset, or the lines that contain a text.",
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
                        "description": "Returns the lines that contain this text instead, ignoring \
                                        case.",
                    },
                },
                "required": ["result_id"],
                "additionalProperties": false,
            }),
        );
        tool.title = Some("Read a long result".to_owned());
        tool.annotations = BUILTIN_TOOL;
        Arc::new(tool)
    });
    Arc::clone(&TOOL)
}

fn read_page(text: &str, offset: usize, max_bytes: usize, max_tokens: u64) -> String {
    let rest = &text[offset..];
    let max_bytes = rest.floor_char_boundary(max_bytes);
    let mut length = tokens::prefix_length_for_tokens(&rest[..max_bytes], max_tokens);
    if length == 0 {
        // A page has at least one character, so that reading page by page reaches the end.
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

/// Returns the lines that contain `query` at or after the byte `offset`, ignoring ASCII case. Each
/// line starts with the byte offset of its match.
fn search_lines(text: &str, query: &str, offset: usize, max_tokens: u64) -> String {
    // ASCII case conversion does not change the byte offsets of matches.
    let (lower, query_lower) = (
        text[offset..].to_ascii_lowercase(),
        query.to_ascii_lowercase(),
    );
    let mut out = String::new();
    let mut lines = 0;
    // End of the text that the output already contains, in bytes. Earlier matches are skipped.
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
        if lines == MAX_LINES
            || tokens::estimate_text(&out) + tokens::estimate_text(&line) > max_tokens
        {
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
