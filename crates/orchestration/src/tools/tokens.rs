//! How many tokens a text is, about.
//!
//! No tokenizer is the right one for every model, and none is free; limits and trimming need a number
//! that is fast, the same everywhere, and rather too high than too low. Each character has a weight, and
//! the weights are added:
//!
//! | character | tokens | because |
//! |---|---|---|
//! | ASCII letter, space, line break | 1/4 | "four characters a token" of English prose |
//! | other ASCII (digits, `{`, `"`, `_`, …) | 1/2 | in JSON and code one token has one or two of them |
//! | two bytes in UTF-8 (Latin with accents, Greek, Cyrillic, Arabic, …) | 1/2 | |
//! | three bytes (Chinese, Japanese, Korean, Indian scripts, …) | 1 | |
//! | four bytes (emoji) | 2 | |
//!
//! Against OpenAI's `o200k_base` this is 1.1 times the truth for English documentation and 1.25 times for
//! Rust code; text in other scripts comes out at up to twice of it, and about right for `cl100k_base`.
//! Random letters and digits (hashes, base64) are up to twice what it says.

use serde_json::Value;
use switchboard_domain::{
    Document, Media, MediaSource, Message, Part, ToolContent, ToolDefinition, ToolInput, ToolResult,
};

/// Parts of a token in which the weights are whole numbers.
const UNIT: u64 = 12;
/// What a message costs beside its parts: its role and its borders.
const PER_MESSAGE: u64 = 4;
/// What a part other than text costs beside its contents: its kind and its ids.
const PER_PART: u64 = 6;
/// An image. Vendors count by its size in pixels, which we do not know: from 85 to about 1,600.
const PER_IMAGE: u64 = 1_500;
/// Bytes of audio that are one token: about 32 tokens a second, at 128 kbit/s.
const AUDIO_BYTES: u64 = 500;
/// Bytes of a document that is no text, such as a PDF, that are one token.
const DOCUMENT_BYTES: u64 = 20;

const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        weights[byte] = match byte {
            // Letters, space and line break.
            0x41..=0x5a | 0x61..=0x7a | 0x20 | 0x0a => 3,
            // Other ASCII, and the first of two bytes.
            0x00..=0x7f | 0xc0..=0xdf => 6,
            // Bytes that go on with a character that has been counted.
            0x80..=0xbf => 0,
            0xe0..=0xef => 12,
            _ => 24,
        };
        byte += 1;
    }
    weights
};

/// The tokens of a text, rounded up.
pub fn estimate(text: &str) -> u64 {
    weigh(text).div_ceil(UNIT)
}

/// The tokens of a value written as compact JSON, rounded up.
pub fn estimate_value(value: &Value) -> u64 {
    weigh_value(value).div_ceil(UNIT)
}

/// The tokens of a message with everything in it.
pub fn estimate_message(message: &Message) -> u64 {
    PER_MESSAGE + message.parts.iter().map(part).sum::<u64>()
}

/// The tokens of what a tool gave back, as the model gets it.
pub fn estimate_content(content: &[ToolContent]) -> u64 {
    content.iter().map(piece).sum()
}

/// Whether [`estimate_content`] is at most so many tokens. Most results are far from any limit: that is seen from
/// their length, without a look at each character.
pub(crate) fn content_fits(content: &[ToolContent], tokens: u64) -> bool {
    // No byte weighs more than a digit.
    const BYTES_PER_TOKEN: u64 = 2;
    let most = |piece: &ToolContent| match piece {
        ToolContent::Text { text } => u64::try_from(text.len())
            .ok()
            .map(|bytes| bytes.div_ceil(BYTES_PER_TOKEN)),
        _ => None,
    };
    let most: Option<u64> = content.iter().map(most).sum();
    most.is_some_and(|most| most <= tokens) || estimate_content(content) <= tokens
}

/// The tokens of a tool's declaration: name, description and input schema.
pub fn estimate_tool(tool: &ToolDefinition) -> u64 {
    let text = weigh(&tool.name) + weigh(&tool.description) + weigh_value(&tool.input_schema);
    PER_PART + text.div_ceil(UNIT)
}

/// The longest beginning of `text` that is at most `tokens` long, in bytes; at a character's border.
pub(crate) fn prefix_of(text: &str, tokens: u64) -> usize {
    let most = tokens.saturating_mul(UNIT);
    let mut sum = 0;
    for (at, byte) in text.bytes().enumerate() {
        sum += u64::from(WEIGHTS[usize::from(byte)]);
        if sum > most {
            // The byte that goes over it begins a character: only those have a weight.
            return at;
        }
    }
    text.len()
}

fn weigh(text: &str) -> u64 {
    /// Bytes that are weighed side by side: what a compiler makes one instruction of.
    const LANES: usize = 16;
    /// So many of the heaviest bytes fit into one lane.
    const ROWS: usize = 10;
    let mut sum = 0;
    let mut rest = text.as_bytes();
    // Results of tools are long, and are weighed several times on their way into the history.
    while let Some((block, behind)) = rest.split_at_checked(LANES * ROWS) {
        let mut lanes = [0_u8; LANES];
        for row in block.as_chunks::<LANES>().0 {
            for (lane, byte) in lanes.iter_mut().zip(row) {
                *lane += weight(*byte);
            }
        }
        sum += lanes.iter().copied().map(u64::from).sum::<u64>();
        rest = behind;
    }
    let rest = rest.iter();
    sum + rest
        .map(|byte| u64::from(WEIGHTS[usize::from(*byte)]))
        .sum::<u64>()
}

/// What [`WEIGHTS`] says, without a look into memory.
fn weight(byte: u8) -> u8 {
    let is_common = (byte | 0x20).wrapping_sub(b'a') < 26 || byte == b' ' || byte == b'\n';
    6 * u8::from(byte < 0x80)
        + 6 * u8::from(byte >= 0xc0)
        + 6 * u8::from(byte >= 0xe0)
        + 12 * u8::from(byte >= 0xf0)
        - 3 * u8::from(is_common)
}

fn weigh_value(value: &Value) -> u64 {
    const MARK: u64 = 6;
    match value {
        Value::Null | Value::Bool(true) => 4 * 3,
        Value::Bool(false) => 5 * 3,
        Value::Number(number) => weigh_number(number),
        Value::String(text) => weigh_string(text),
        // Two brackets, and a comma between each two.
        Value::Array(items) => {
            let inside: u64 = items.iter().map(weigh_value).sum();
            MARK * (2 + commas(items.len())) + inside
        }
        Value::Object(object) => {
            let inside: u64 = object
                .iter()
                .map(|(key, value)| weigh_string(key) + MARK + weigh_value(value))
                .sum();
            MARK * (2 + commas(object.len())) + inside
        }
    }
}

fn commas(items: usize) -> u64 {
    u64::try_from(items.saturating_sub(1)).unwrap_or(u64::MAX)
}

/// With its quotes. An escaped character counts like its two, as far as that is common.
fn weigh_string(text: &str) -> u64 {
    let escapes = text
        .bytes()
        .filter(|byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\t' | b'\r'))
        .count();
    12 + weigh(text) + 6 * u64::try_from(escapes).unwrap_or(u64::MAX)
}

fn weigh_number(number: &serde_json::Number) -> u64 {
    const DIGIT: u64 = 6;
    if let Some(number) = number.as_u64() {
        return DIGIT * (1 + u64::from(number.checked_ilog10().unwrap_or(0)));
    }
    if let Some(number) = number.as_i64() {
        return 6 + DIGIT * (1 + u64::from(number.unsigned_abs().checked_ilog10().unwrap_or(0)));
    }
    // Most have few digits, some have seventeen.
    DIGIT * 8
}

fn part(part: &Part) -> u64 {
    match part {
        Part::Text(text) => estimate(&text.text),
        Part::Image(_) => PER_IMAGE,
        Part::Audio(media) => PER_PART + audio(media),
        Part::Document(given) => PER_PART + document(given),
        Part::Reasoning(reasoning) => PER_PART + estimate(&reasoning.text),
        Part::ToolUse(tool_use) => {
            let input = match &tool_use.input {
                ToolInput::Object(object) => object
                    .iter()
                    .map(|(key, value)| weigh_string(key) + 12 + weigh_value(value))
                    .sum::<u64>()
                    .div_ceil(UNIT),
                ToolInput::Malformed { raw, .. } => estimate(raw),
            };
            PER_PART + estimate(&tool_use.name) + input
        }
        Part::ToolResult(result) => PER_PART + tool_result(result),
        Part::Opaque(opaque) => PER_PART + estimate_value(&opaque.provider_state.data),
        _ => PER_PART,
    }
}

fn tool_result(result: &ToolResult) -> u64 {
    match &result.structured {
        // What the model reads is the content; the data only where there is none.
        Some(structured) if result.content.is_empty() => estimate_value(structured),
        _ => estimate_content(&result.content),
    }
}

fn piece(piece: &ToolContent) -> u64 {
    match piece {
        ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } => estimate(text),
        ToolContent::Image(_) => PER_IMAGE,
        ToolContent::Audio(media) => PER_PART + audio(media),
        ToolContent::Resource {
            uri,
            blob: Some(blob),
            ..
        } => PER_PART + estimate(uri) + decoded(blob) / DOCUMENT_BYTES,
        ToolContent::Resource { uri, .. } => PER_PART + estimate(uri),
        ToolContent::ResourceLink {
            uri,
            name,
            description,
            ..
        } => PER_PART + estimate(uri) + estimate(name) + description.as_deref().map_or(0, estimate),
        ToolContent::Unknown { value } => PER_PART + estimate_value(value),
        _ => PER_PART,
    }
}

fn audio(media: &Media) -> u64 {
    bytes(media) / AUDIO_BYTES
}

fn document(document: &Document) -> u64 {
    let is_text = document.media.media_type.starts_with("text/");
    let title = document.title.as_deref().map_or(0, estimate);
    title + bytes(&document.media) / if is_text { 4 } else { DOCUMENT_BYTES }
}

/// What is elsewhere is taken for an image's worth of bytes.
fn bytes(media: &Media) -> u64 {
    match &media.source {
        MediaSource::Base64(data) => decoded(data),
        _ => PER_IMAGE * DOCUMENT_BYTES,
    }
}

fn decoded(base64: &str) -> u64 {
    u64::try_from(base64.len() / 4 * 3).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_weighs_what_its_bytes_do() {
        for byte in 0..=255 {
            assert_eq!(weight(byte), WEIGHTS[usize::from(byte)], "{byte}");
        }
        let text = "Größe 12 {\"a\": [\"日本\", \"🦀\"]}\n".repeat(40);
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let bytes = text[..end].bytes();
            let sum: u64 = bytes
                .map(|byte| u64::from(WEIGHTS[usize::from(byte)]))
                .sum();
            assert_eq!(weigh(&text[..end]), sum, "{end}");
        }
    }

    use proptest::prelude::*;
    use serde_json::json;
    use switchboard_domain::{Role, ToolUse};

    #[test]
    fn known_texts_are_about_what_tokenizers_say() {
        // Counts of `o200k_base`, by gpt-tokenizer 4.
        let texts = [
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("Wie viele Kunden haben im letzten Monat etwas gekauft?", 10),
            (
                r#"{"customer_id":42,"name":"Ada Lovelace","active":true}"#,
                17,
            ),
        ];
        for (text, truth) in texts {
            let estimate = estimate(text);
            assert!(
                estimate >= truth && estimate <= truth * 3 / 2,
                "{text}: {estimate} for {truth}"
            );
        }
    }

    #[test]
    fn every_kind_of_part_counts() {
        let text = Message::user("Hello?");
        let mut result = ToolResult::text("1", "t", "x".repeat(4_000));
        let large = estimate_message(&Message::tool_results([result.clone()]));
        assert!((1_000..1_020).contains(&large), "{large}");
        result.content = vec![ToolContent::Image(Media::base64("image/png", "AA=="))].into();
        let image = estimate_message(&Message::tool_results([result]));
        assert!(image >= PER_IMAGE);
        let tool_use = Part::ToolUse(ToolUse::new("1", "t", ToolInput::parse(r#"{"a":"b"}"#)));
        let tool_use = estimate_message(&Message::new(Role::Assistant, [tool_use]));
        assert!(tool_use > estimate_message(&text) - 2, "{tool_use}");
    }

    proptest! {
        #[test]
        fn a_whole_is_its_parts_within_one(a in ".{0,200}", b in ".{0,200}") {
            let (parts, whole) = (estimate(&a) + estimate(&b), estimate(&format!("{a}{b}")));
            prop_assert!(whole <= parts && parts <= whole + 1);
        }

        #[test]
        fn what_fits_is_what_weighs_no_more(texts in prop::collection::vec(".{0,60}", 0..4), tokens in 0_u64..160) {
            let mut content: Vec<_> = texts.iter().map(ToolContent::text).collect();
            prop_assert_eq!(content_fits(&content, tokens), estimate_content(&content) <= tokens);
            content.push(ToolContent::Unknown { value: Value::Null });
            prop_assert_eq!(content_fits(&content, tokens), estimate_content(&content) <= tokens);
        }

        #[test]
        fn a_prefix_is_the_longest_that_fits(text in ".{0,200}", tokens in 0_u64..80) {
            let end = prefix_of(&text, tokens);
            prop_assert!(estimate(&text[..end]) <= tokens);
            if let Some(next) = text[end..].chars().next() {
                prop_assert!(estimate(&text[..end + next.len_utf8()]) > tokens);
            }
        }

        #[test]
        fn a_value_counts_like_its_text(text in "[a-zA-Z0-9 \\n\"é漢]{0,80}", n in any::<i64>()) {
            let value = json!({"text": text, "list": [n, true, null, {}]});
            let (of_value, of_text) = (estimate_value(&value), estimate(&value.to_string()));
            prop_assert!(of_value.abs_diff(of_text) <= 1 + of_text / 10, "{of_value} {of_text}");
        }
    }
}
