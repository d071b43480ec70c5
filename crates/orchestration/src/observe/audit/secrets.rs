//! Secrets in running text.

use super::{names::is_secret_name, redact::REDACTED};

/// How keys and tokens of well-known issuers begin. The rest of one is at least [`MIN_REST`] long.
const PREFIXES: [&str; 14] = [
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

/// Shorter ones are words.
const MIN_REST: usize = 16;

/// What follows `Bearer` is at least so long; `Bearer of news` is prose.
const MIN_BEARER: usize = 8;

/// `text` without what reads like a secret: the values of `name=value` and `"name": "value"` with a
/// secret's name, what follows `Bearer` and `Basic`, passwords in addresses, and keys that begin as
/// those of well-known issuers do. Linear in the text.
pub(super) fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (between, from) = rest.split_at(start);
        clean.push_str(between);
        let length = from.find(|c| !is_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(length);
        rest = after;
        if let Some(shown) = beginning_of_key(word) {
            clean.push_str(shown);
            clean.push_str(REDACTED);
            continue;
        }
        clean.push_str(word);
        let hidden = if is_scheme(word) {
            after_scheme(after)
        } else if let Some(login) = after.strip_prefix("://") {
            login_length(login).map(|length| (3, length))
        } else if is_secret_name(word) {
            value_after_name(after)
        } else {
            None
        };
        if let Some((skip, length)) = hidden {
            let value = &after[skip..];
            let length = hidden_before(value).map_or(length, |before| before.max(length));
            // What was hidden before stays as it is, unless more of it is to be seen.
            if &value[..length] != REDACTED {
                clean.push_str(&after[..skip]);
                clean.push_str(REDACTED);
                rest = &value[length..];
            }
        }
    }
    clean.push_str(rest);
    clean
}

/// What a name or a key consists of.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// What a value consists of that stands without quotes.
fn is_value(c: char) -> bool {
    !c.is_whitespace()
        && !matches!(
            c,
            '"' | '\'' | ',' | ';' | '&' | '}' | ']' | ')' | '<' | '>'
        )
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// The part of a well-known key that may be shown, if the word is one.
fn beginning_of_key(word: &str) -> Option<&'static str> {
    PREFIXES.into_iter().find(|prefix| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            // `sk-learn-something` is a name; keys have digits.
            rest.len() >= MIN_REST && rest.contains(|c: char| c.is_ascii_digit())
        })
    })
}

/// Where the token after `Bearer` stands: how much to skip and how long it is, in bytes.
fn after_scheme(after: &str) -> Option<(usize, usize)> {
    let token = after.strip_prefix(' ')?;
    let length = token.find(|c| !is_value(c)).unwrap_or(token.len());
    (length >= MIN_BEARER).then_some((1, length))
}

/// The length of a value whose beginning was hidden already.
fn hidden_before(value: &str) -> Option<usize> {
    let more = value.strip_prefix(REDACTED)?;
    let more = more
        .find(|c| !is_value(c) || c == '\\')
        .unwrap_or(more.len());
    Some(REDACTED.len() + more)
}

/// The length of `user:password` before the `@` of an address.
fn login_length(after: &str) -> Option<usize> {
    let end = after
        .find(|c: char| c == '/' || !is_value(c))
        .unwrap_or(after.len());
    let at = after[..end].rfind('@')?;
    after[..at].contains(':').then_some(at)
}

/// Where the value stands that belongs to a name: `: "…"`, `=…`, `\": \"…\"`.
fn value_after_name(after: &str) -> Option<(usize, usize)> {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '\\');
    let rest = after.trim_start_matches(is_quote).trim_start_matches(' ');
    let rest = rest.strip_prefix(['=', ':'])?;
    let value = rest.trim_start_matches(' ');
    let unquoted = value.trim_start_matches(is_quote);
    let quoted = unquoted.len() < value.len();
    // `Authorization: Bearer abc`: the scheme says nothing, the rest of the line is the secret.
    let body = unquoted
        .split_once(' ')
        .filter(|(first, _)| is_scheme(first))
        .map_or(unquoted, |(_, token)| token);
    let is_json = after.starts_with('"') && !quoted;
    let length = if is_json && body.starts_with(['[', '{']) {
        bracketed(body)
    } else if quoted {
        body.find(['"', '\'', '\\', '\n']).unwrap_or(body.len())
    } else {
        body.find(|c| !is_value(c)).unwrap_or(body.len())
    };
    (length > 0).then_some((after.len() - body.len(), length))
}

/// The length of a list or an object of JSON, which may be cut off.
fn bracketed(json: &str) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for (at, c) in json.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_text,
            '"' => in_text = !in_text,
            '[' | '{' if !in_text => depth += 1,
            ']' | '}' if !in_text => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_text_are_hidden_and_the_rest_stays() {
        for (text, expected) in [
            ("nothing here", "nothing here"),
            ("password=hunter2 and more", "password=[redacted] and more"),
            ("?api_key=abc&page=2", "?api_key=[redacted]&page=2"),
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
            // A part of it was known and hidden before.
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
            // Code, and no JSON.
            (
                "let token = { read() };",
                "let token = [redacted] read() };",
            ),
        ] {
            assert_eq!(without_secrets(text), expected, "{text}");
            assert_eq!(without_secrets(expected), expected, "twice is once");
        }
    }

    #[test]
    fn a_word_that_stands_in_the_text_of_a_tool_s_answer_stays_readable() {
        let text = "Ünïcode ✓ — “quotes” and token ✓";
        assert_eq!(without_secrets(text), text);
    }
}
