//! The environment variables of a server process.

use std::ffi::OsString;

use secrecy::{ExposeSecret, SecretString};
use switchboard_domain::child_environment::is_inherited_variable;

/// Names of environment variables for terminals, proxies and certificates. Server processes inherit
/// these variables in addition to basic ones, such as `PATH` and `HOME`.
const INHERITED: &[&str] = &[
    "TERM",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
];

/// Returns the environment of a server process: the inherited variables, followed by the configured
/// ones. If a name occurs twice, the later (configured) value applies.
pub(crate) fn child_environment(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &[(String, SecretString)],
) -> Vec<(OsString, OsString)> {
    let inherited = own.into_iter().filter(|(name, value)| {
        // Exported shell functions (values that start with `()`) are code, so they are excluded.
        is_inherited_variable(name, INHERITED) && !value.as_encoded_bytes().starts_with(b"()")
    });
    let configured = configured
        .iter()
        .map(|(name, value)| (name.into(), value.expose_secret().into()));
    inherited.chain(configured).collect()
}

/// Returns the value of an environment variable, or `None` if the variable is not set. If it has
/// several entries, the last one counts.
pub(crate) fn find_variable<'a>(
    environment: &'a [(OsString, OsString)],
    name: &str,
) -> Option<&'a OsString> {
    environment
        .iter()
        .rev()
        .find(|(key, _)| {
            key == name || cfg!(windows) && key.to_string_lossy().eq_ignore_ascii_case(name)
        })
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_inherited_and_configured_values_win() {
        let own = [
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C"),
            ("XDG_CACHE_HOME", "/c"),
            ("HTTPS_PROXY", "http://p"),
            ("ANTHROPIC_API_KEY", "sk"),
            ("LD_PRELOAD", "x.so"),
            ("TERM", "() { echo; }"),
        ]
        .map(|(name, value)| (name.into(), value.into()));
        let configured = [
            ("PATH".to_owned(), "/opt/bin".into()),
            ("TOKEN".to_owned(), "t".into()),
        ];
        let environment = child_environment(own, &configured);
        let names: Vec<_> = environment
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "PATH",
                "HOME",
                "LC_ALL",
                "XDG_CACHE_HOME",
                "HTTPS_PROXY",
                "PATH",
                "TOKEN"
            ]
        );
        assert_eq!(find_variable(&environment, "PATH").unwrap(), "/opt/bin");
    }
}
