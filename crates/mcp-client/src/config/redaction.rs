//! Redaction of secrets in URLs and command lines from the configuration.

use reqwest::Url;

/// Returns a URL without its user info, query and fragment, which may contain secrets.
pub(crate) fn redact_url(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        return "(invalid URL)".to_owned();
    };
    // The setters fail only for URLs without a host, which cannot contain user info.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.to_string()
}

/// Returns a command line with `…` in place of probable secrets, such as the value of `--token`.
pub(crate) fn redact_command(command: &str, args: &[String]) -> String {
    let shown = separate_arg_secrets(args).map(|(shown, _)| shown);
    let words: Vec<String> = std::iter::once(command.to_owned()).chain(shown).collect();
    words.join(" ")
}

/// Returns the probable secrets that [`redact_command`] replaces in the arguments.
pub(crate) fn find_argument_secrets(args: &[String]) -> Vec<String> {
    separate_arg_secrets(args)
        .flat_map(|(_, secrets)| secrets)
        .collect()
}

/// Splits each argument into a text that may be shown and the list of its probable secrets. The
/// text contains `…` in place of these secrets.
fn separate_arg_secrets(args: &[String]) -> impl Iterator<Item = (String, Vec<String>)> {
    let mut after_secret_flag = false;
    args.iter().map(move |arg| {
        let is_secret = after_secret_flag;
        after_secret_flag =
            !is_secret && arg.starts_with('-') && !arg.contains('=') && is_sensitive_name(arg);
        match arg.split_once('=') {
            _ if is_secret => ("…".to_owned(), find_header_secrets(arg)),
            // A URL argument is not an option, although its query may contain `=`.
            Some((flag, value)) if !flag.contains("://") => {
                let (shown, secrets) = if is_sensitive_name(flag) && !value.is_empty() {
                    ("…".to_owned(), find_header_secrets(value))
                } else {
                    separate_value_secrets(value)
                };
                (format!("{flag}={shown}"), secrets)
            }
            _ => separate_value_secrets(arg),
        }
    })
}

fn separate_value_secrets(value: &str) -> (String, Vec<String>) {
    if value.contains("://") {
        return (redact_url(value), find_url_secrets(value));
    }
    match value.split_once(':') {
        // This arm handles header arguments such as `Authorization: Bearer …`.
        Some((name, _)) if is_sensitive_name(name) => ("…".to_owned(), find_header_secrets(value)),
        _ => (value.to_owned(), Vec::new()),
    }
}

/// Returns the secrets in a header argument `Name: Bearer token`: the whole text, the value and the
/// token.
fn find_header_secrets(text: &str) -> Vec<String> {
    let value = text.split_once(':').map_or(text, |(_, value)| value).trim();
    let token = value.split_once(' ').map(|(_, token)| token.trim());
    let secrets = [Some(text), Some(value), token];
    secrets.into_iter().flatten().map(str::to_owned).collect()
}

/// Returns the probable secrets in a URL: the password (or the user name of a URL without
/// password), each query value, and the whole query. Returns an empty list for an invalid URL.
pub(crate) fn find_url_secrets(url: &str) -> Vec<String> {
    let Ok(parsed) = Url::parse(url) else {
        return Vec::new();
    };
    // In URLs such as `https://TOKEN@…`, the user name is the secret.
    let login = parsed.password().unwrap_or(parsed.username());
    let mut values = vec![login.to_owned()];
    values.extend(parsed.query_pairs().map(|(_, value)| value.into_owned()));
    values.extend(parsed.query().map(str::to_owned));
    values
}

fn is_sensitive_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "key",
        "token",
        "secret",
        "passw",
        "auth",
        "credential",
        "cookie",
        "header",
    ]
    .iter()
    .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_user_info_query_and_fragment() {
        assert_eq!(
            redact_url("https://u:p@example.org:8443/mcp?key=s#f"),
            "https://example.org:8443/mcp"
        );
        assert_eq!(redact_url("not one"), "(invalid URL)");
    }

    #[test]
    fn command_lines_are_shown_without_probable_secrets() {
        let args = [
            "-y",
            "server",
            "--api-key",
            "sk-1",
            "--token=t",
            "--port=80",
            "postgres://u:p@db/x?sslkey=k",
            "--db=postgres://u:p@db/y",
            "--header",
            "Authorization: Bearer b",
            "Cookie: c",
            "last",
        ]
        .map(str::to_owned);
        assert_eq!(
            redact_command("npx", &args),
            "npx -y server --api-key … --token=… --port=80 postgres://db/x --db=postgres://db/y \
             --header … … last"
        );
        let hidden = find_argument_secrets(&args);
        for value in ["sk-1", "t", "p", "k", "Bearer b", "b", "c"] {
            assert!(hidden.iter().any(|hidden| hidden == value), "{hidden:?}");
        }
        for value in ["-y", "server", "80", "last"] {
            assert!(!hidden.iter().any(|hidden| hidden == value), "{hidden:?}");
        }
    }
}
