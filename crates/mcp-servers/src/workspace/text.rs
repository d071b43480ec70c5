//! Text files: lines, and what tells one version from another.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::{path::RelativePath, root::FileFault};
use crate::tool::ToolError;

/// The start of the SHA-256 of a file, in hexadecimal: enough to tell its versions apart, and short
/// enough to be copied by a model.
pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let start = digest.iter().take(8);
    format!(
        "{:016x}",
        start.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    )
}

/// The contents as text, or why they are none.
pub(super) fn decode(path: &RelativePath, bytes: Vec<u8>) -> Result<String, ToolError> {
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|text| !text.contains('\0'));
    text.ok_or_else(|| ToolError::Refused(format!("{path} is not a text file in UTF-8.")))
}

/// How many lines there are. The last one may lack its line break.
pub(super) fn count_lines(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// Lines with their numbers in front, the first one being `first`.
pub(super) fn numbered(text: &str, first: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let width = (first + lines.len()).to_string().len();
    let mut numbered = String::with_capacity(text.len() + lines.len() * (width + 2));
    for (offset, line) in lines.into_iter().enumerate() {
        let _ = write!(numbered, "\n{:>width$}\t{line}", first + offset);
    }
    numbered
}

/// "1 line", "2 lines".
pub(super) fn counted(number: usize, thing: &str) -> String {
    match (number, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        _ => format!("{number} {thing}s"),
    }
}

/// "1 byte", "2 bytes".
pub(super) fn sized(bytes: u64) -> String {
    let plural = if bytes == 1 { "" } else { "s" };
    format!("{bytes} byte{plural}")
}

/// A text cut to at most this many bytes, between two characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

impl From<FileFault> for ToolError {
    fn from(fault: FileFault) -> Self {
        Self::Refused(fault.to_string())
    }
}
