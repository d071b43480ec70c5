//! What of our environment a server's process gets to see.

use std::ffi::{OsStr, OsString};

use secrecy::{ExposeSecret, SecretString};

/// What a program needs to run at all, to find its own files, and to get out through a proxy.
/// Nothing here is a credential by its purpose; keys of model providers stay with us.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TMPDIR",
    "TEMP",
    "TMP",
    "TZ",
    // Proxies, in both spellings that programs read, and the certificates behind them.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Windows programs do not start without these. Names there have no case.
const INHERITED_ON_WINDOWS: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The whole environment of a server: what it inherits of `ours`, then what is configured.
pub(crate) fn child_environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &[(String, SecretString)],
) -> Vec<(OsString, OsString)> {
    let inherited = ours.into_iter().filter(|(name, value)| {
        // An exported shell function is code; a later shell would run it.
        inherits(name) && !value.as_encoded_bytes().starts_with(b"()")
    });
    let configured = configured
        .iter()
        .map(|(name, value)| (name.into(), value.expose_secret().into()));
    inherited.chain(configured).collect()
}

fn inherits(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    if cfg!(windows) {
        let name = name.to_ascii_uppercase();
        return INHERITED.contains(&name.as_str()) || INHERITED_ON_WINDOWS.contains(&name.as_str());
    }
    INHERITED.contains(&name)
        || INHERITED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// The value that counts: of two of the same name, the later.
pub(crate) fn lookup<'a>(
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
    fn credentials_stay_and_configured_values_win() {
        let ours = [
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
        let environment = child_environment(ours, &configured);
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
        assert_eq!(lookup(&environment, "PATH").unwrap(), "/opt/bin");
    }
}
