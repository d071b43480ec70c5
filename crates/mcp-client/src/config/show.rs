//! Descriptions of a configuration without secrets.

use reqwest::Url;

/// Returns a URL without its user info, query and fragment, which may contain secrets.
pub(crate) fn shown_url(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        return "(invalid URL)".to_owned();
    };
    // The setters fail only for URLs without a host.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.to_string()
}

/// Returns a command line in which probable secrets are replaced by an ellipsis.
pub(crate) fn shown_command(command: &str, args: &[String]) -> String {
    let shown = parsed_args(args).map(|(shown, _)| shown);
    [command.to_owned()]
        .into_iter()
        .chain(shown)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the secrets that [`shown_command`] removes from arguments.
pub(crate) fn secrets_of_args(args: &[String]) -> Vec<String> {
    parsed_args(args).flat_map(|(_, secrets)| secrets).collect()
}

/// Returns each argument without its probable secrets, together with these secrets.
fn parsed_args(args: &[String]) -> impl Iterator<Item = (String, Vec<String>)> {
    let mut after_secret_flag = false;
    args.iter().map(move |arg| {
        let is_secret = after_secret_flag;
        after_secret_flag =
            !is_secret && arg.starts_with('-') && !arg.contains('=') && looks_secret(arg);
        match arg.split_once('=') {
            _ if is_secret => ("…".to_owned(), secrets_of_header(arg)),
            // A URL argument may contain `=` in its query, but is not an option.
            Some((flag, value)) if !flag.contains("://") => {
                let (shown, secrets) = if looks_secret(flag) && !value.is_empty() {
                    ("…".to_owned(), secrets_of_header(value))
                } else {
                    parsed_value(value)
                };
                (format!("{flag}={shown}"), secrets)
            }
            _ => parsed_value(arg),
        }
    })
}

fn parsed_value(value: &str) -> (String, Vec<String>) {
    if value.contains("://") {
        return (shown_url(value), secrets_of_url(value));
    }
    match value.split_once(':') {
        // Matches a header argument such as `Authorization: Bearer …`.
        Some((name, _)) if looks_secret(name) => ("…".to_owned(), secrets_of_header(value)),
        _ => (value.to_owned(), Vec::new()),
    }
}

/// Returns the secrets in a header argument: the text `Name: Bearer token`, its value and its
/// token.
fn secrets_of_header(text: &str) -> Vec<String> {
    let value = text.split_once(':').map_or(text, |(_, value)| value).trim();
    let token = value.split_once(' ').map(|(_, token)| token.trim());
    let secrets = [Some(text), Some(value), token];
    secrets.into_iter().flatten().map(str::to_owned).collect()
}

/// Returns the secrets that [`shown_url`] removes from a URL.
pub(crate) fn secrets_of_url(url: &str) -> Vec<String> {
    let Ok(parsed) = Url::parse(url) else {
        return Vec::new();
    };
    // In URLs such as `https://TOKEN@…` the user name is the secret.
    let login = parsed.password().unwrap_or(parsed.username());
    let mut values = vec![login.to_owned()];
    values.extend(parsed.query_pairs().map(|(_, value)| value.into_owned()));
    values.extend(parsed.query().map(str::to_owned));
    values
}

fn looks_secret(name: &str) -> bool {
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
            shown_url("https://u:p@example.org:8443/mcp?key=s#f"),
            "https://example.org:8443/mcp"
        );
        assert_eq!(shown_url("not one"), "(invalid URL)");
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
            shown_command("npx", &args),
            "npx -y server --api-key … --token=… --port=80 postgres://db/x --db=postgres://db/y \
             --header … … last"
        );
        let hidden = secrets_of_args(&args);
        for value in ["sk-1", "t", "p", "k", "Bearer b", "b", "c"] {
            assert!(hidden.iter().any(|hidden| hidden == value), "{hidden:?}");
        }
        for value in ["-y", "server", "80", "last"] {
            assert!(!hidden.iter().any(|hidden| hidden == value), "{hidden:?}");
        }
    }
}
