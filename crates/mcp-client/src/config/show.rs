//! What of a configuration may be shown.

use reqwest::Url;

/// An address without user info, query and fragment, which may hold secrets.
pub(crate) fn shown_url(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        return "(invalid address)".to_owned();
    };
    // These fail only for addresses that can hold no user info.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.set_fragment(None);
    parsed.to_string()
}

/// A command line with what looks like a secret left out.
pub(crate) fn shown_command(command: &str, args: &[String]) -> String {
    let mut shown = vec![command.to_owned()];
    let mut after_secret_flag = false;
    for arg in args {
        shown.push(if after_secret_flag {
            "…".to_owned()
        } else {
            shown_arg(arg)
        });
        after_secret_flag = !after_secret_flag && arg.starts_with('-') && is_secret_flag(arg);
    }
    shown.join(" ")
}

fn shown_arg(arg: &str) -> String {
    match arg.split_once('=') {
        // The query of an address has that sign too.
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
        // `Authorization: Bearer …`, as bridges take it.
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
    fn addresses_lose_user_info_query_and_fragment() {
        assert_eq!(
            shown_url("https://u:p@example.org:8443/mcp?key=s#f"),
            "https://example.org:8443/mcp"
        );
        assert_eq!(shown_url("not one"), "(invalid address)");
    }

    #[test]
    fn command_lines_lose_what_looks_like_a_secret() {
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
    }
}
