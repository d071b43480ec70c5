//! Secrets in free text that are recognized by their form.

use super::{
    REDACTED,
    secret_names::{is_secret_name, is_secret_parameter},
};

/// Prefixes of keys of well-known issuers.
const KEY_PREFIXES: [&str; 14] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AIza",
    "AKIA",
    "eyJ",
    "hf_",
];

/// Minimum bytes of a key after its prefix. Shorter texts are words.
const MIN_KEY_BYTES: usize = 16;

/// Minimum bytes of a token after `Bearer`. `Bearer of news` is prose.
const MIN_TOKEN_BYTES: usize = 8;

/// Removes the values of `name=value` and `"name": "value"` with a secret's name, tokens after
/// `Bearer` and `Basic`, passwords in URLs, and keys of well-known issuers.
///
/// Takes linear time. A second pass changes nothing.
pub(super) fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from_word) = rest.split_at(start);
        clean.push_str(before);
        let length = from_word.find(|c| !is_word(c)).unwrap_or(from_word.len());
        let (word, after) = from_word.split_at(length);
        rest = after;
        if let Some(prefix) = key_prefix(word) {
            clean.push_str(prefix);
            clean.push_str(REDACTED);
            continue;
        }
        clean.push_str(word);
        let in_url = before.ends_with(['?', '&']) && after.starts_with('=');
        let secret = if is_scheme(word) {
            token(after)
        } else if let Some(authority) = after.strip_prefix("://") {
            login(authority).map(|length| (3, length))
        } else if is_secret_name(word) || (in_url && is_secret_parameter(word)) {
            named_value(after)
        } else {
            None
        };
        if let Some((skipped, length)) = secret {
            let value = &after[skipped..];
            let length = length.max(partly_redacted(value));
            if &value[..length] != REDACTED {
                clean.push_str(&after[..skipped]);
                clean.push_str(REDACTED);
                rest = &value[length..];
            }
        }
    }
    clean.push_str(rest);
    clean
}

/// Returns whether a name or key may contain the character.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns whether a value without quotes may contain the character.
fn is_value(c: char) -> bool {
    !c.is_whitespace() && !"\"',;&}])<>".contains(c)
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// Returns the prefix that may be shown, if the word is a key.
fn key_prefix(word: &str) -> Option<&'static str> {
    KEY_PREFIXES.into_iter().find(|prefix| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            // `sk-learn-something` is a name; keys have digits.
            rest.len() >= MIN_KEY_BYTES && rest.contains(|c: char| c.is_ascii_digit())
        })
    })
}

/// Returns the position and length of the token after a scheme, in bytes.
fn token(after: &str) -> Option<(usize, usize)> {
    let length = length_while(after.strip_prefix(' ')?, is_value);
    (length >= MIN_TOKEN_BYTES).then_some((1, length))
}

/// Returns the length of `user:password` before the `@` of a URL.
fn login(authority: &str) -> Option<usize> {
    let authority = &authority[..length_while(authority, |c| c != '/' && is_value(c))];
    let at = authority.rfind('@')?;
    authority[..at].contains(':').then_some(at)
}

/// Returns the position and length of the value after a name: `: "…"`, `=…`, `\": \"…\"`.
fn named_value(after: &str) -> Option<(usize, usize)> {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '\\');
    let rest = after.trim_start_matches(is_quote).trim_start_matches(' ');
    let value = rest.strip_prefix(['=', ':'])?.trim_start_matches(' ');
    let unquoted = value.trim_start_matches(is_quote);
    let is_quoted = unquoted.len() < value.len();
    // `Authorization: Bearer abc`: the scheme may be shown.
    let (scheme, token) = unquoted.split_at(length_while(unquoted, char::is_alphabetic));
    let token = token.strip_prefix(' ').filter(|_| is_scheme(scheme));
    let secret = token.unwrap_or(unquoted);
    let is_json = after.starts_with('"') && !is_quoted;
    let length = if is_json && secret.starts_with(['[', '{']) {
        bracketed(secret)
    } else if is_quoted {
        length_while(secret, |c| !is_quote(c) && c != '\n')
    } else {
        length_while(secret, is_value)
    };
    (length > 0).then_some((after.len() - secret.len(), length))
}

/// Returns the length of a value whose beginning is already redacted, else 0.
fn partly_redacted(value: &str) -> usize {
    value.strip_prefix(REDACTED).map_or(0, |rest| {
        REDACTED.len() + length_while(rest, |c| is_value(c) && c != '\\')
    })
}

/// Returns the length of a JSON list or object, which may be cut.
fn bracketed(json: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, c) in json.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            '[' | '{' if !in_string => depth += 1,
            ']' | '}' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + c.len_utf8();
                }
            }
            _ => {}
        }
    }
    json.len()
}

fn length_while(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_text_are_redacted_and_the_rest_stays() {
        for (text, expected) in [
            ("nothing here", "nothing here"),
            ("password=hunter2 and more", "password=[redacted] and more"),
            ("?api_key=abc&page=2", "?api_key=[redacted]&page=2"),
            (
                "/x?key=abc&sig=d-e, key=f",
                "/x?key=[redacted]&sig=[redacted], key=f",
            ),
            (
                r#"{"token": "abc", "n": 1}"#,
                r#"{"token": "[redacted]", "n": 1}"#,
            ),
            (r#"{"token": "a b c"#, r#"{"token": "[redacted]"#),
            (r#"{\"secret\":\"x y\"}"#, r#"{\"secret\":\"[redacted]\"}"#),
            (
                "Authorization: Bearer abcdef",
                "Authorization: Bearer [redacted]",
            ),
            (
                "authorization: Basic dXNlcjpw==\nHost: a",
                "authorization: Basic [redacted]\nHost: a",
            ),
            (
                "use Bearer abcdefgh.ij-k please",
                "use Bearer [redacted] please",
            ),
            ("the bearer of news", "the bearer of news"),
            ("postgres://me:pa:ss@db/x", "postgres://[redacted]@db/x"),
            ("https://example.org/a@b:c", "https://example.org/a@b:c"),
            ("key sk-abcdefgh12345678XYZ.", "key sk-[redacted]."),
            ("sk-learn-is-a-library-name", "sk-learn-is-a-library-name"),
            (
                "max_tokens=5, token_count: 7",
                "max_tokens=5, token_count: 7",
            ),
            ("the password is long", "the password is long"),
            // A part was redacted before.
            (
                r#"{"token": "[redacted].deadbeef"}"#,
                r#"{"token": "[redacted]"}"#,
            ),
            ("token=[redacted].deadbeef, x", "token=[redacted], x"),
            ("password:", "password:"),
            (
                r#"{"tokens": 1, "token": ["a]", {"b": 2}], "n": 1}"#,
                r#"{"tokens": 1, "token": [redacted], "n": 1}"#,
            ),
            (
                r#"{"credentials":{"user":"u","value":"cut o"#,
                r#"{"credentials":[redacted]"#,
            ),
            // Code, not JSON.
            (
                "let token = { read() };",
                "let token = [redacted] read() };",
            ),
        ] {
            assert_eq!(redact(text), expected, "{text}");
            assert_eq!(redact(expected), expected, "twice is once");
        }
    }

    #[test]
    fn many_names_without_values_take_linear_time() {
        let text = "token:,".repeat(200_000);
        assert_eq!(redact(&text), text);
    }

    #[test]
    fn a_secret_name_without_a_value_stays() {
        let text = "Ünïcode ✓ — “quotes” and token ✓";
        assert_eq!(redact(text), text);
    }
}
