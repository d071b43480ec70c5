//! Which names stand before a secret.

use serde_json::Value;

/// A name that ends with one of these words is a secret's: `github_token`, `clientSecret`.
const LAST_WORDS: [&str; 24] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pwd",
    "secret",
    "secretkey",
    "secrets",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "idtoken",
    "token",
];

/// A name that ends with these two words is one: `api_key`, `AWS_SECRET_ACCESS_KEY`.
const LAST_PAIRS: [(&str, &str); 9] = [
    ("access", "key"),
    ("api", "key"),
    ("encryption", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("subscription", "key"),
    ("auth", "key"),
    ("connection", "string"),
];

/// Tokens that open nothing: where a list goes on.
const HARMLESS_TOKENS: [&str; 6] = ["page", "continuation", "sync", "next", "progress", "cancel"];

/// Whether what is called so is taken for a secret, whatever its spelling: `api_key`, `apiKey`,
/// `X-API-Key`, `set-cookie`.
///
/// Counts are none (`max_tokens`, `token_count`), and neither is `page_token`.
pub(super) fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    let before = before.last().map(String::as_str).unwrap_or_default();
    if last == "token" && HARMLESS_TOKENS.contains(&before) {
        return false;
    }
    // `Authorization1`, `password2`: forms repeat their fields so.
    let last = last.trim_end_matches(|c: char| c.is_ascii_digit());
    LAST_WORDS.contains(&last) || LAST_PAIRS.contains(&(before, last))
}

/// Whether what is called so and is this value is taken for a secret: what [`is_secret_name`] says, and several under one
/// name (`tokens`, `api_keys`). Under these, numbers are counts: `tokens: 12`.
pub(super) fn is_secret(name: &str, value: &Value) -> bool {
    if is_secret_name(name) {
        return true;
    }
    let several = name.strip_suffix(['s', 'S']);
    several.is_some_and(|one| is_secret_name(one) && !is_vocabulary(one)) && holds_text(value)
}

/// Tokens that are words to a model, such as `stop_tokens`.
fn is_vocabulary(name: &str) -> bool {
    const BEFORE: [&str; 12] = [
        "stop", "special", "bos", "eos", "pad", "mask", "unk", "added", "word", "sub", "bad",
        "suppress",
    ];
    let words = words(name);
    let before = words.len().checked_sub(2).and_then(|at| words.get(at));
    before.is_some_and(|word| BEFORE.contains(&word.as_str()))
}

/// Whether there is a text in it that is no mere number.
fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(|c: char| !c.is_ascii_digit() && !",. _".contains(c)),
        Value::Array(items) => items.iter().any(holds_text),
        Value::Object(fields) => fields.values().any(holds_text),
        _ => false,
    }
}

/// The words of a name in lower case: `clientSecret`, `client_secret` and `CLIENT-SECRET` alike.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut before = ' ';
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        if c.is_alphanumeric() {
            let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
            let begins = c.is_uppercase()
                && (before.is_lowercase() || (before.is_uppercase() && next_is_lower));
            if !open || begins {
                words.push(String::new());
            }
            open = true;
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        } else {
            open = false;
        }
        before = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_known_by_their_names_in_every_spelling() {
        for name in [
            "token",
            "api_key",
            "apiKey",
            "APIKey",
            "apikey",
            "X-API-Key",
            "access_token",
            "accessToken",
            "accesstoken",
            "Authorization",
            "proxy-authorization",
            "cookie",
            "Set-Cookie",
            "client_secret",
            "clientSecret",
            "CLIENT_SECRET",
            "password",
            "newPassword",
            "password2",
            "db.passwd",
            "AWS_SECRET_ACCESS_KEY",
            "private_key",
            "GITHUB_TOKEN",
            "bearer",
            "credentials",
            "session-token",
            "connectionString",
        ] {
            assert!(is_secret_name(name), "{name}: {:?}", words(name));
        }
    }

    #[test]
    fn several_secrets_are_hidden_and_counts_are_shown() {
        for (name, value) in [
            ("tokens", json!(["hunter2"])),
            ("refreshTokens", json!({"ada": {"value": "hunter2"}})),
            ("api_keys", json!("hunter2, hunter3")),
            ("PRIVATE_KEYS", json!([["hunter2"]])),
            ("passphrases", json!([12, "hunter2"])),
            ("password", json!(12)),
        ] {
            assert!(is_secret(name, &value), "{name}: {value}");
        }
        for (name, value) in [
            ("tokens", json!(12)),
            ("tokens", json!("1,200")),
            ("tokens", json!({"input": 3, "output": [4]})),
            ("max_tokens", json!(4096)),
            ("total_tokens", json!(12)),
            ("token_ids", json!([1, 2])),
            ("tokens", json!([101, 2023])),
            ("stop_tokens", json!(["</s>"])),
            ("page_tokens", json!(["abc"])),
            ("keys", json!(["abc"])),
            ("s", json!("abc")),
        ] {
            assert!(!is_secret(name, &value), "{name}: {value}");
        }
    }

    #[test]
    fn names_that_only_sound_so_are_shown() {
        for name in [
            "",
            "_",
            "max_tokens",
            "maxTokens",
            "token_count",
            "tokens",
            "page_token",
            "nextPageToken",
            "author",
            "authority",
            "secretary",
            "key",
            "primary_key",
            "keyboard",
            "password_policy",
            "cookie_count",
            "customer_id",
        ] {
            assert!(!is_secret_name(name), "{name}: {:?}", words(name));
        }
    }
}
