//! Spellings of a secret in JSON, URLs, base64 and hexadecimal.

use std::collections::BTreeSet;

use serde_json::Value;

/// Characters besides letters and digits that URL encoders do not escape. One entry for each kind
/// of encoder: strict, paths, `encodeURIComponent`, path segments, HTML forms.
const UNESCAPED_IN_URLS: [&str; 5] = ["-._~", "-._~/", "-._~!'()*", "-._~!$&'()*+,;=:@", "-._*"];

const BASE64_DIGITS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the spellings of a secret in JSON, URLs and HTML forms, without duplicates. Also returns
/// its hexadecimal and base64 forms if `encoded` is `true`.
pub(super) fn list_secret_spellings(secret: &str, encoded: bool) -> BTreeSet<String> {
    let json = escape_json(secret);
    let mut spellings = BTreeSet::from([
        secret.to_owned(),
        // JSON inside of a JSON string is escaped twice.
        escape_json(&json),
        // Go's JSON encoder also escapes `<`, `>` and `&`.
        escape_as_unicode(&json, false, |c| matches!(c, '<' | '>' | '&')),
    ]);
    for capital in [true, false] {
        // Python (`ensure_ascii`) and PHP escape non-ASCII characters. PHP also escapes slashes.
        let ascii = escape_as_unicode(&json, capital, |c| !c.is_ascii());
        spellings.insert(ascii.replace('/', "\\/"));
        spellings.insert(ascii);
        for unescaped in UNESCAPED_IN_URLS {
            let url = percent_encode(secret, capital, unescaped);
            // HTML forms write a space as `+`.
            spellings.insert(url.replace("%20", "+"));
            spellings.insert(url);
        }
        if encoded {
            let bytes = secret.bytes();
            let hexadecimal = bytes.map(|byte| format_hex(byte.into(), 2, capital));
            spellings.insert(hexadecimal.collect());
        }
    }
    if encoded {
        for offset in 0..3 {
            let base64 = encode_base64_at_offset(secret, offset);
            spellings.insert(base64.replace('+', "-").replace('/', "_"));
            spellings.insert(base64);
        }
    }
    spellings.insert(json);
    spellings
}

/// Returns the text as a JSON string without its quotes.
fn escape_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Replaces each character for which `is_escaped` returns `true` by `\uXXXX`, once for each UTF-16
/// code unit. `capital` selects upper-case hexadecimal digits.
fn escape_as_unicode(text: &str, capital: bool, is_escaped: impl Fn(char) -> bool) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                result.push_str("\\u");
                result.push_str(&format_hex(*unit, 4, capital));
            }
        } else {
            result.push(c);
        }
    }
    result
}

fn percent_encode(text: &str, capital: bool, unescaped: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || unescaped.as_bytes().contains(&byte) {
            result.push(char::from(byte));
        } else {
            result.push('%');
            result.push_str(&format_hex(byte.into(), 2, capital));
        }
    }
    result
}

fn format_hex(value: u16, width: usize, capital: bool) -> String {
    if capital {
        format!("{value:0width$X}")
    } else {
        format!("{value:0width$x}")
    }
}

/// Returns the base64 digits that depend only on the secret, not on adjacent text.
///
/// The secret may be encoded together with other text, such as `user:secret`. `offset` is the
/// number of bytes of other text before the secret, modulo 3.
fn encode_base64_at_offset(secret: &str, offset: usize) -> String {
    let mut bytes = vec![0; offset];
    bytes.extend(secret.bytes());
    let first = (offset * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    let digits = (first..end).map(|digit| {
        let bit = digit * 6;
        let next = bytes.get(bit / 8 + 1).copied().unwrap_or_default();
        let pair = u16::from_be_bytes([bytes[bit / 8], next]);
        let value = (pair >> (10 - bit % 8)) & 63;
        char::from(BASE64_DIGITS[usize::from(value)])
    });
    digits.collect()
}
