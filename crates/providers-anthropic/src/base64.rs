//! Base64 → text: the one place where this wire wants the text of a document and not its bytes.

/// The text in standard base64 (RFC 4648 section 4, padding optional, white space skipped); `None`
/// if it is no base64 or no UTF-8.
pub(crate) fn decode_text(base64: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(base64.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    let mut symbols = base64.bytes().filter(|byte| !byte.is_ascii_whitespace());
    for symbol in symbols.by_ref() {
        if symbol == b'=' {
            break;
        }
        bits = (bits << 6) | value(symbol)?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    // A single symbol over, or anything but padding after padding, was cut or mixed up.
    let whole = count < 6 && symbols.all(|symbol| symbol == b'=');
    whole.then(|| String::from_utf8(bytes).ok()).flatten()
}

fn value(symbol: u8) -> Option<u32> {
    let value = match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::decode_text;

    #[test]
    fn text_comes_back() {
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
    fn what_is_no_base64_or_no_text_is_none() {
        for base64 in ["YQ==YQ==", "Y", "*", "data:text/plain,x", "/w==", "Y*Q="] {
            assert_eq!(decode_text(base64), None, "{base64}");
        }
    }
}
