//! Descriptions of a configuration without secrets.

use reqwest::Url;

/// Returns a URL without user info, query and fragment, which may contain secrets.
pub(crate) fn shown_url(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        return "(invalid URL)".to_owned();
    };
    // These fail only for URLs without a host.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.to_string()
}

/// Returns a command line without probable secrets.
pub(crate) fn shown_command(command: &str, args: &[String]) -> String {
    let mut shown = vec![command.to_owned()];
    for (arg, hidden) in with_flags(args) {
        shown.push(if hidden {
            "…".to_owned()
        } else {
            shown_arg(arg)
        });
    }
    shown.join(" ")
}

/// Returns the secrets that [`shown_command`] removes.
pub(crate) fn secrets_of_args(args: &[String]) -> Vec<String> {
    let mut values = Vec::new();
    for (arg, hidden) in with_flags(args) {
        if hidden {
            add_header(arg, &mut values);
            continue;
        }
        match arg.split_once('=') {
            Some((flag, value)) if !flag.contains("://") => {
                if looks_secret(flag) {
                    add_header(value, &mut values);
                } else {
                    add_value(value, &mut values);
                }
            }
            _ => add_value(arg, &mut values),
        }
    }
    values
}

fn add_value(value: &str, values: &mut Vec<String>) {
    if value.contains("://") {
        values.extend(secrets_of_url(value));
    } else if value
        .split_once(':')
        .is_some_and(|(name, _)| looks_secret(name))
    {
        add_header(value, values);
    }
}

/// Adds the whole text `Name: Bearer token`, its value and the token.
fn add_header(text: &str, values: &mut Vec<String>) {
    values.push(text.to_owned());
    let value = text.split_once(':').map_or(text, |(_, value)| value).trim();
    values.push(value.to_owned());
    if let Some((_, token)) = value.split_once(' ') {
        values.push(token.trim().to_owned());
    }
}

/// Returns the secrets that [`shown_url`] removes.
pub(crate) fn secrets_of_url(url: &str) -> Vec<String> {
    let Ok(parsed) = Url::parse(url) else {
        return Vec::new();
    };
    // In `https://TOKEN@…` the user name is the secret.
    let login = parsed.password().unwrap_or(parsed.username());
    let mut values = vec![login.to_owned()];
    values.extend(parsed.query_pairs().map(|(_, value)| value.into_owned()));
    values.extend(parsed.query().map(str::to_owned));
    values
}

/// Returns every argument, and whether it is the value of a flag for a secret.
fn with_flags(args: &[String]) -> impl Iterator<Item = (&str, bool)> {
    let mut after_secret_flag = false;
    args.iter().map(move |arg| {
        let hidden = after_secret_flag;
        after_secret_flag = !hidden && arg.starts_with('-') && is_secret_flag(arg);
        (arg.as_str(), hidden)
    })
}

fn shown_arg(arg: &str) -> String {
    match arg.split_once('=') {
        // The query of a URL contains `=` too.
        Some((flag, value)) if !flag.contains("://") => {
            if looks_secret(flag) && !value.is_empty() {
                format!("{flag}=…")
            } else {
                format!("{flag}={}", shown_value(value))
            }
        }
        _ => shown_value(arg),
    }
}

fn shown_value(value: &str) -> String {
    if value.contains("://") {
        return shown_url(value);
    }
    match value.split_once(':') {
        // A header argument such as `Authorization: Bearer …`.
        Some((name, _)) if looks_secret(name) => "…".to_owned(),
        _ => value.to_owned(),
    }
}

fn is_secret_flag(arg: &str) -> bool {
    !arg.contains('=') && looks_secret(arg)
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
            "npx -y server --api-key … --token=… --port=80 postgres://db/x --db=postgres://db/y --header … … last"
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
