//! Tool calls: arguments, results, tool search and Rust functions as tools.

mod annotations;
pub mod arguments;
pub(crate) mod definition_cache;
mod failure;
pub mod functions;
pub mod name_pattern;
pub mod results;
pub mod search;
pub mod tokens;

use switchboard_domain::ToolOutput;

pub use annotations::is_read_only;
pub use failure::ToolFailure;

/// Creates an error result that contains `text`.
pub(crate) fn create_error_output(text: impl Into<String>) -> ToolOutput {
    ToolOutput {
        is_error: true,
        ..ToolOutput::text(text)
    }
}

/// Joins the words of a text with single spaces. If the text has more than `max_chars` characters,
/// it is cut after a word and an ellipsis is added.
pub(crate) fn shorten_text(text: &str, max_chars: usize) -> String {
    let mut short = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        length += word.chars().count() + 1;
        if length > max_chars + 1 {
            // If the first word alone is longer than `max_chars` characters, it is cut inside the
            // word.
            if short.is_empty() {
                short.extend(word.chars().take(max_chars));
            }
            short.push('…');
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    short
}
