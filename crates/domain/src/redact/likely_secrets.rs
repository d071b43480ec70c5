//! Recognition of secrets in free text by their form, such as `Bearer TOKEN` or `password=…`.

use super::{
    REDACTED,
    secret_names::{is_secret_name, is_secret_parameter},
};

/// Prefixes of the API keys of well-known issuers.
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

/// Minimum size in bytes of an API key without its prefix. A shorter text is an ordinary word.
const MIN_KEY_BYTES: usize = 16;

/// Minimum size in bytes of a token after `Bearer`. A text such as `Bearer of news` is prose.
const MIN_TOKEN_BYTES: usize = 8;

/// Replaces likely secrets by [`REDACTED`]: the values of `name=value` and `"name": "value"` if the
/// name is that of a secret, tokens after `Bearer` and `Basic`, user names and passwords in URLs,
/// and API keys of well-known issuers.
///
/// Takes linear time. Redacting the result again does not change it.
pub(super) fn redact_likely_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word_char) {
        let (before, from_word) = rest.split_at(start);
        clean.push_str(before);
        let length = from_word
            .find(|c| !is_word_char(c))
            .unwrap_or(from_word.len());
        let (word, after) = from_word.split_at(length);
        rest = after;
        if let Some(prefix) = find_api_key_prefix(word) {
            clean.push_str(prefix);
            clean.push_str(REDACTED);
            continue;
        }
        clean.push_str(word);
        let in_url = before.ends_with(['?', '&']) && after.starts_with('=');
        let secret = if is_auth_scheme(word) {
            find_auth_header_token(after)
        } else if let Some(authority) = after.strip_prefix("://") {
            find_url_login(authority).map(|length| (3, length))
        } else if is_secret_name(word) || (in_url && is_secret_parameter(word)) {
            find_value_after_name(after)
        } else {
            None
        };
        if let Some((skipped, length)) = secret {
            let value = &after[skipped..];
            let length = length.max(partly_redacted_length(value));
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

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns whether a value without quotes may contain the character.
fn is_unquoted_value_char(c: char) -> bool {
    !c.is_whitespace() && !"\"',;&}])<>".contains(c)
}

fn is_auth_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// Returns the prefix of a word that looks like an API key, such as `sk-`. The prefix is not
/// redacted. Returns `None` for other words.
fn find_api_key_prefix(word: &str) -> Option<&'static str> {
    KEY_PREFIXES.into_iter().find(|prefix| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            // A key contains digits, unlike a name such as `sk-learn-something`.
            rest.len() >= MIN_KEY_BYTES && rest.contains(|c: char| c.is_ascii_digit())
        })
    })
}

/// Returns the position in `after` and the length, both in bytes, of the token that follows
/// `Bearer` or `Basic`. Returns `None` if the token is shorter than [`MIN_TOKEN_BYTES`].
fn find_auth_header_token(after: &str) -> Option<(usize, usize)> {
    let length = matching_prefix_length(after.strip_prefix(' ')?, is_unquoted_value_char);
    (length >= MIN_TOKEN_BYTES).then_some((1, length))
}

/// Returns the length in bytes of `user:password` or `user` before the `@` of a URL, or `None` if
/// the URL contains neither. `authority` is the text after `://`.
fn find_url_login(authority: &str) -> Option<usize> {
    let authority =
        &authority[..matching_prefix_length(authority, |c| c != '/' && is_unquoted_value_char(c))];
    let login = &authority[..authority.rfind('@')?];
    // A `?` or `#` ends the host of a URL, but a password may contain them without escapes.
    let is_login = login.contains(':') || !login.contains(['?', '#']);
    (is_login && !login.is_empty()).then_some(login.len())
}

/// Returns the position in `after` and the length, both in bytes, of the value that follows a name.
/// `after` starts directly after the name: `: "…"`, `=…`, `\": \"…\"`. Returns `None` if there is
/// no value.
fn find_value_after_name(after: &str) -> Option<(usize, usize)> {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '\\');
    let rest = after.trim_start_matches(is_quote).trim_start_matches(' ');
    let value = rest.strip_prefix(['=', ':'])?.trim_start_matches(' ');
    let unquoted = value.trim_start_matches(is_quote);
    let is_quoted = unquoted.len() < value.len();
    // In `Authorization: Bearer abc`, only `abc` is secret, not the scheme `Bearer`.
    let (scheme, token) = unquoted.split_at(matching_prefix_length(unquoted, char::is_alphabetic));
    let token = token.strip_prefix(' ').filter(|_| is_auth_scheme(scheme));
    let secret = token.unwrap_or(unquoted);
    let is_json = after.starts_with('"') && !is_quoted;
    let length = if is_json && secret.starts_with(['[', '{']) {
        json_container_length(secret)
    } else if is_quoted {
        matching_prefix_length(secret, |c| !is_quote(c) && c != '\n')
    } else {
        matching_prefix_length(secret, is_unquoted_value_char)
    };
    (length > 0).then_some((after.len() - secret.len(), length))
}

/// Returns the length in bytes of a value that starts with [`REDACTED`], because a secret in it was
/// already replaced. Returns 0 for other values.
fn partly_redacted_length(value: &str) -> usize {
    value.strip_prefix(REDACTED).map_or(0, |rest| {
        REDACTED.len() + matching_prefix_length(rest, |c| is_unquoted_value_char(c) && c != '\\')
    })
}

/// Returns the length in bytes of the JSON array or object with which `json` starts. Returns the
/// length of the whole text if the closing bracket is missing.
fn json_container_length(json: &str) -> usize {
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

fn matching_prefix_length(text: &str, is_part: impl Fn(char) -> bool) -> usize {
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
            (
                "https://s3cr3t@example.org/x",
                "https://[redacted]@example.org/x",
            ),
            ("https://@example.org", "https://@example.org"),
            ("https://example.org/a@b:c", "https://example.org/a@b:c"),
            ("https://example.org?to=a@b", "https://example.org?to=a@b"),
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
            assert_eq!(redact_likely_secrets(text), expected, "{text}");
            assert_eq!(redact_likely_secrets(expected), expected, "twice is once");
        }
    }

    #[test]
    fn many_names_without_values_take_linear_time() {
        let text = "token:,".repeat(200_000);
        assert_eq!(redact_likely_secrets(&text), text);
    }

    #[test]
    fn a_secret_name_without_a_value_stays() {
        let text = "Ünïcode ✓ — “quotes” and token ✓";
        assert_eq!(redact_likely_secrets(text), text);
    }
}
