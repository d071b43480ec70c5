//! Names of JSON members, headers, environment variables and URL parameters that hold secrets.

use serde_json::Value;

/// Words at the end of a name that mark its value as a secret. `_` separates two words.
const LAST_WORDS: [&str; 33] = [
    "access_key",
    "accesstoken",
    "api_key",
    "apikey",
    "auth",
    "auth_key",
    "authorization",
    "authtoken",
    "bearer",
    "connection_string",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "encryption_key",
    "idtoken",
    "jwt",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "private_key",
    "pwd",
    "refreshtoken",
    "secret",
    "secret_key",
    "secretkey",
    "secrets",
    "signing_key",
    "subscription_key",
    "token",
];

/// Words before `token` that mark a harmless value, such as `page_token` or `eos_token`.
const HARMLESS_TOKENS: [&str; 18] = [
    "added",
    "bad",
    "bos",
    "cancel",
    "continuation",
    "eos",
    "mask",
    "next",
    "pad",
    "page",
    "progress",
    "special",
    "stop",
    "sub",
    "suppress",
    "sync",
    "unk",
    "word",
];

/// Names that mark a secret only if they are names of URL parameters.
const URL_PARAMETERS: [&str; 3] = ["key", "sig", "signature"];

/// Implements [`Redactor::is_secret_name`](super::Redactor::is_secret_name).
pub(super) fn is_secret_name(name: &str) -> bool {
    let words = to_snake_case(name);
    // Trailing digits are ignored, because web forms name a repeated field `password2`.
    let words = words.trim_end_matches(|c: char| c.is_ascii_digit());
    if let Some(rest) = words.strip_suffix("_token")
        && HARMLESS_TOKENS
            .iter()
            .any(|word| ends_with_word(rest, word))
    {
        return false;
    }
    LAST_WORDS.iter().any(|last| ends_with_word(words, last))
}

/// Implements [`Redactor::is_secret_parameter`](super::Redactor::is_secret_parameter).
pub(super) fn is_secret_parameter(name: &str) -> bool {
    is_secret_name(name)
        || URL_PARAMETERS
            .iter()
            .any(|it| name.eq_ignore_ascii_case(it))
}

/// Implements [`Redactor::is_secret`](super::Redactor::is_secret).
pub(super) fn is_secret(name: &str, value: &Value) -> bool {
    // A boolean or an empty text is not a secret: `{"has_token": true}`.
    if value.is_boolean() || value == "" {
        return false;
    }
    let singular = name.strip_suffix(['s', 'S']);
    is_secret_name(name)
        || (singular.is_some_and(is_secret_name) && contains_non_numeric_text(value))
}

fn contains_non_numeric_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(|c: char| !c.is_ascii_digit() && !",. _".contains(c)),
        Value::Array(items) => items.iter().any(contains_non_numeric_text),
        Value::Object(members) => members.values().any(contains_non_numeric_text),
        _ => false,
    }
}

fn ends_with_word(words: &str, last: &str) -> bool {
    let before = words.strip_suffix(last);
    before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
}

/// Returns the words of a name in lower case, separated by `_`: `client_secret` for `clientSecret`,
/// `CLIENT-SECRET` and `client.secret`.
fn to_snake_case(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut before = '_';
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
        let starts_word =
            c.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_lower));
        if (starts_word || !c.is_alphanumeric()) && !words.ends_with('_') {
            words.push('_');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        before = c;
    }
    words.trim_matches('_').to_owned()
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
            assert!(is_secret_name(name), "{name}: {:?}", to_snake_case(name));
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
            assert!(!is_secret_name(name), "{name}: {:?}", to_snake_case(name));
        }
    }
}
