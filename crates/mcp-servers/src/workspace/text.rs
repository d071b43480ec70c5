//! Functions for text files: hashes, line numbers and sizes.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::root::path::RelativePath;
use crate::{text::format_quantity, tool::ToolError};

/// Returns a short hash of the content of a file: the first 8 bytes of its SHA-256 hash as 16
/// hexadecimal digits, which a model can copy without errors.
pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let start = digest.iter().take(8);
    format!(
        "{:016x}",
        start.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    )
}

/// Decodes the content of a text file. Returns an error for the model if the content is not UTF-8
/// or contains the character NUL.
pub(super) fn decode_text_file(path: &RelativePath, bytes: Vec<u8>) -> Result<String, ToolError> {
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|text| !text.contains('\0'));
    text.ok_or_else(|| ToolError::Refused(format!("{path} is not a text file in UTF-8.")))
}

/// Counts the lines of a text. A last line without a line break counts too.
pub(super) fn count_lines(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// Prefixes each line with a line break, its number and a tab. `first` is the number of the first
/// line.
pub(super) fn add_line_numbers(text: &str, first: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let width = (first + lines.len()).to_string().len();
    let mut numbered = String::with_capacity(text.len() + lines.len() * (width + 2));
    for (offset, line) in lines.into_iter().enumerate() {
        let _ = write!(numbered, "\n{:>width$}\t{line}", first + offset);
    }
    numbered
}

/// Formats a size in bytes: "1 byte", "2 bytes".
pub(super) fn format_size(bytes: u64) -> String {
    format_quantity(usize::try_from(bytes).unwrap_or(usize::MAX), "byte")
}

/// Shortens a text to a maximum number of bytes, without splitting a character.
pub(super) fn truncate_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
