//! Text out of base64: this wire has no place for documents, but a document of text can be said.

/// Bytes of text that a document may bring into a message. Longer ones are named only.
const MAX_TEXT: usize = 1024 * 1024;

/// Decodes standard base64 (RFC 4648 section 4) to text. Returns `None` if the input is invalid
/// base64, not UTF-8 or too long.
pub(crate) fn text(base64: &str) -> Option<String> {
    let digits = base64.trim_end_matches('=');
    if base64.len().saturating_sub(digits.len()) > 2 || digits.len() / 4 > MAX_TEXT / 3 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.as_bytes().chunks(4) {
        let mut bits: u32 = 0;
        for digit in group {
            bits = bits << 6 | u32::from(value(*digit)?);
        }
        // A group of n digits holds n - 1 bytes; its first digits are the highest bits.
        let missing = u32::try_from(4_usize.saturating_sub(group.len())).ok()?;
        let [_, high, middle, low] = (bits << (6 * missing)).to_be_bytes();
        let held = group.len().checked_sub(1).filter(|held| *held > 0)?;
        bytes.extend([high, middle, low].iter().take(held));
    }
    String::from_utf8(bytes).ok()
}

fn value(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (base64, expected) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
            ("w7_wn4yK".replace('_', "/").as_str(), "ÿ🌊"),
        ] {
            assert_eq!(text(base64).as_deref(), Some(expected), "{base64}");
        }
    }

    #[test]
    fn invalid_base64_and_binary_data_are_none() {
        for odd in ["Z", "Zm9v!", "Zm 9v", "Zg===", "/////w==", "Zm9vY"] {
            assert_eq!(text(odd), None, "{odd}");
        }
        assert_eq!(text(&"A".repeat(MAX_TEXT * 2)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(base64 in ".{0,20}", digits in "[A-Za-z0-9+/]{0,24}={0,3}") {
            let _ = (text(&base64), text(&digits));
        }
    }
}
