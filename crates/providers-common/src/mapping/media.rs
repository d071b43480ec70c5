//! Functions for media types and base64 data.

use std::borrow::Cow;

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Returns the media type without its parameters.
pub fn media_type_essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Returns whether data of this media type is text, such as `text/csv`, `application/json` and
/// `image/svg+xml`.
pub fn is_text_media_type(media_type: &str) -> bool {
    let media_type = media_type_essence(media_type).to_ascii_lowercase();
    let suffix = media_type.rsplit(['+', '/']).next().unwrap_or_default();
    media_type.starts_with("text/")
        || matches!(
            suffix,
            "json" | "xml" | "yaml" | "x-yaml" | "toml" | "javascript" | "sql" | "x-ndjson" | "csv"
        )
}

/// Base64 decoder that accepts data with and without padding, because MCP servers send both.
const LENIENT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes base64 into text and ignores white space. Returns `None` for invalid base64 or UTF-8.
pub fn decode_text(base64: &str) -> Option<String> {
    let mut symbols = Cow::Borrowed(base64.as_bytes());
    if symbols.iter().any(u8::is_ascii_whitespace) {
        symbols.to_mut().retain(|byte| !byte.is_ascii_whitespace());
    }
    let bytes = LENIENT_BASE64.decode(&symbols).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::decode_text;

    #[test]
    fn base64_of_text_is_decoded() {
        for (base64, text) in [
            ("", ""),
            ("YQ==", "a"),
            ("YWI=", "ab"),
            ("YWJj", "abc"),
            ("w6TDtsO8Cg==", "äöü\n"),
            ("YWJ\nj", "abc"),
            ("YQ", "a"),
            ("Pz8+Pz8/", "??>???"),
        ] {
            assert_eq!(decode_text(base64).as_deref(), Some(text), "{base64}");
        }
    }

    #[test]
    fn invalid_base64_and_other_data_are_not_decoded() {
        for base64 in ["YQ==YQ==", "Y", "*", "data:text/plain,x", "/w==", "Y*Q="] {
            assert_eq!(decode_text(base64), None, "{base64}");
        }
    }
}
