//! Estimates of token counts.
//!
//! Limits and trimming need an estimate that is fast to compute, equal on every platform, and
//! rather too high than too low. A tokenizer is slow and fits only some models. The estimate is the
//! sum of the weights of all characters:
//!
//! | character | tokens | reason |
//! |---|---|---|
//! | ASCII letter, space, line break | 1/4 | English prose has four characters per token |
//! | other ASCII (digits, `{`, `"`, …) | 1/2 | JSON and code have one or two of them per token |
//! | two bytes in UTF-8 (Latin with accents, Greek, Cyrillic, Arabic, …) | 1/2 | |
//! | three bytes (Chinese, Japanese, Korean, Indian scripts, …) | 1 | |
//! | four bytes (emoji) | 2 | |
//!
//! Compared with OpenAI's `o200k_base`, the estimate is 1.1 times the count for English
//! documentation, 1.25 times for Rust code, and up to twice the count for other scripts. It is
//! close to `cl100k_base` for these scripts. For random letters and digits (hashes, base64) it is
//! as low as half the count.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    Document, Media, MediaSource, Message, Part, ToolContent, ToolDefinition, ToolInput, ToolResult,
};

/// Number of weight units in one token. With 12 units per token, each character has a whole number
/// of units as its weight.
const UNIT: u64 = 12;
/// Number of tokens for the role and the delimiters of a message, in addition to its parts.
const PER_MESSAGE: u64 = 4;
/// Number of tokens for the type and the ids of a non-text part, in addition to its content.
const PER_PART: u64 = 6;
/// Number of tokens of an image. Providers count 85 to about 1,600 tokens by its size in pixels,
/// which is unknown here.
const PER_IMAGE: u64 = 1_500;
/// Number of audio bytes per token, assuming 32 tokens per second and 128 kbit/s.
const AUDIO_BYTES: u64 = 500;
/// Number of bytes per token of a binary document such as a PDF.
const DOCUMENT_BYTES: u64 = 20;

const WEIGHTS: [u8; 256] = {
    let mut weights = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        weights[byte] = match byte {
            // ASCII letters, the space and the line break weigh a quarter of a token.
            0x41..=0x5a | 0x61..=0x7a | 0x20 | 0x0a => 3,
            // Other ASCII and the first bytes of two-byte characters weigh half a token.
            0x00..=0x7f | 0xc0..=0xdf => 6,
            // Continuation bytes weigh nothing: the first byte has the weight of its character.
            0x80..=0xbf => 0,
            0xe0..=0xef => 12,
            _ => 24,
        };
        byte += 1;
    }
    weights
};

/// Estimates the tokens of a text, rounded up.
pub fn estimate_text(text: &str) -> u64 {
    let weights = text.bytes().map(|byte| WEIGHTS[usize::from(byte)]);
    weights.map(u64::from).sum::<u64>().div_ceil(UNIT)
}

/// Estimates the tokens of a JSON value in compact form, rounded up.
pub fn estimate_json(value: &Value) -> u64 {
    estimate_text(&serde_json::to_string(value).unwrap_or_default())
}

/// Estimates the tokens of a message with all its parts.
pub fn estimate_message(message: &Message) -> u64 {
    PER_MESSAGE + message.parts.iter().map(estimate_message_part).sum::<u64>()
}

/// Estimates the total tokens of the content items of a tool result. Structured content is not
/// included.
pub fn estimate_content(content: &[ToolContent]) -> u64 {
    content.iter().map(estimate_content_item).sum()
}

/// Estimates the tokens of a tool definition: its name, description and input schema.
pub fn estimate_tool(tool: &ToolDefinition) -> u64 {
    let schema = estimate_json(&tool.input_schema);
    PER_PART + estimate_text(&tool.name) + estimate_text(&tool.description) + schema
}

/// Estimates the total tokens of several tool definitions.
pub(crate) fn estimate_tools(tools: &[Arc<ToolDefinition>]) -> u64 {
    tools.iter().map(|tool| estimate_tool(tool)).sum()
}

/// Returns the length in bytes of the longest prefix of `text` with at most `tokens` tokens. The
/// prefix ends at a character boundary.
pub(crate) fn prefix_length_for_tokens(text: &str, tokens: u64) -> usize {
    let max_weight = tokens.saturating_mul(UNIT);
    let mut sum = 0;
    for (at, byte) in text.bytes().enumerate() {
        sum += u64::from(WEIGHTS[usize::from(byte)]);
        if sum > max_weight {
            // `at` is a character boundary, because `sum` only grows at the first byte of a
            // character.
            return at;
        }
    }
    text.len()
}

fn estimate_message_part(part: &Part) -> u64 {
    match part {
        Part::Text(text) => estimate_text(&text.text),
        Part::Image(_) => PER_IMAGE,
        Part::Audio(media) => PER_PART + estimate_media(media, AUDIO_BYTES),
        Part::Document(given) => PER_PART + estimate_document(given),
        Part::Reasoning(reasoning) => PER_PART + estimate_text(&reasoning.text),
        Part::ToolUse(tool_use) => {
            let input = match &tool_use.input {
                ToolInput::Object(object) => estimate_json(object.as_value()),
                ToolInput::Malformed { raw, .. } => estimate_text(raw),
            };
            PER_PART + estimate_text(&tool_use.name) + input
        }
        Part::ToolResult(result) => PER_PART + estimate_tool_result(result),
        Part::Opaque(opaque) => PER_PART + estimate_json(&opaque.provider_state.data),
        _ => PER_PART,
    }
}

fn estimate_tool_result(result: &ToolResult) -> u64 {
    match &result.structured {
        // The model reads structured content only if the result has no other content.
        Some(structured) if result.content.is_empty() => estimate_json(structured),
        _ => estimate_content(&result.content),
    }
}

fn estimate_content_item(piece: &ToolContent) -> u64 {
    match piece {
        ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } => estimate_text(text),
        ToolContent::Image(_) => PER_IMAGE,
        ToolContent::Audio(media) => PER_PART + estimate_media(media, AUDIO_BYTES),
        ToolContent::Resource {
            uri,
            blob: Some(blob),
            ..
        } => PER_PART + estimate_text(uri) + decoded_base64_size(blob) / DOCUMENT_BYTES,
        ToolContent::Resource { uri, .. } => PER_PART + estimate_text(uri),
        ToolContent::ResourceLink {
            uri,
            name,
            description,
            ..
        } => {
            PER_PART
                + estimate_text(uri)
                + estimate_text(name)
                + description.as_deref().map_or(0, estimate_text)
        }
        ToolContent::Unknown { value } => PER_PART + estimate_json(value),
        _ => PER_PART,
    }
}

fn estimate_document(document: &Document) -> u64 {
    let is_text = document.media.media_type.starts_with("text/");
    let title = document.title.as_deref().map_or(0, estimate_text);
    title + estimate_media(&document.media, if is_text { 4 } else { DOCUMENT_BYTES })
}

/// Estimates the tokens of media. Media that are only a URL count as one image, because their size
/// is unknown.
fn estimate_media(media: &Media, bytes_per_token: u64) -> u64 {
    match &media.source {
        MediaSource::Base64(data) => decoded_base64_size(data) / bytes_per_token,
        _ => PER_IMAGE,
    }
}

fn decoded_base64_size(base64: &str) -> u64 {
    u64::try_from(base64.len() / 4 * 3).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use switchboard_domain::{Role, ToolUse};

    use super::*;

    #[test]
    fn estimates_are_close_to_a_tokenizer() {
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
            let estimate = estimate_text(text);
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
        let large = estimate_message(&Message::from_tool_results([result.clone()]));
        assert!((1_000..1_020).contains(&large), "{large}");
        result.content = vec![ToolContent::Image(Media::from_base64("image/png", "AA=="))].into();
        let image = estimate_message(&Message::from_tool_results([result]));
        assert!(image >= PER_IMAGE);
        let tool_use = Part::ToolUse(ToolUse::new(
            "1",
            "t",
            ToolInput::parse_input(r#"{"a":"b"}"#),
        ));
        let tool_use = estimate_message(&Message::new(Role::Assistant, [tool_use]));
        assert!(tool_use > estimate_message(&text) - 2, "{tool_use}");
    }

    proptest! {
        #[test]
        fn an_estimate_of_a_text_is_the_sum_of_its_parts_within_one(a in ".{0,200}", b in ".{0,200}") {
            let (parts, whole) = (estimate_text(&a) + estimate_text(&b), estimate_text(&format!("{a}{b}")));
            prop_assert!(whole <= parts && parts <= whole + 1);
        }

        #[test]
        fn a_prefix_is_the_longest_that_fits(text in ".{0,200}", tokens in 0_u64..80) {
            let end = prefix_length_for_tokens(&text, tokens);
            prop_assert!(estimate_text(&text[..end]) <= tokens);
            if let Some(next) = text[end..].chars().next() {
                prop_assert!(estimate_text(&text[..end + next.len_utf8()]) > tokens);
            }
        }
    }
}
