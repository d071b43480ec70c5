//! Percent encoding of URL paths and queries.

use std::fmt::Write as _;

/// Percent-encodes all bytes of `text` except letters, digits, `-._~` and the byte `also` (RFC
/// 3986, section 2.3).
pub(crate) fn percent_encode(text: &str, also: u8) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || byte == also;
        if is_plain {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::percent_encode;

    #[test]
    fn reserved_characters_are_escaped() {
        assert_eq!(percent_encode("a+/=b c", b'-'), "a%2B%2F%3Db%20c");
        assert_eq!(
            percent_encode("a/b?c#d%ü-._~", b'/'),
            "a/b%3Fc%23d%25%C3%BC-._~"
        );
    }
}
