//! Detection of a configured proxy.
//!
//! Without a proxy, the client need not match each address against proxy rules, which is expensive.

use std::ffi::OsString;

/// The variables that name a proxy, as hyper-util 0.1.21 reads them (`client::proxy::matcher`).
/// `NO_PROXY` only names exceptions.
const VARIABLES: [&str; 6] = [
    "ALL_PROXY",
    "all_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
];

/// Whether the environment or the system's settings may name a proxy. True on systems whose
/// settings this program does not read.
pub(super) fn may_be_configured() -> bool {
    cfg!(any(windows, target_vendor = "apple")) || is_named(|variable| std::env::var_os(variable))
}

fn is_named(value: impl Fn(&str) -> Option<OsString>) -> bool {
    VARIABLES
        .iter()
        .any(|variable| value(variable).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proxy_variable_counts_unless_it_is_empty() {
        assert!(!is_named(|_| None));
        assert!(!is_named(|_| Some(OsString::new())));
        for named in VARIABLES {
            let only = |variable: &str| (variable == named).then(|| OsString::from("http://proxy"));
            assert!(is_named(only), "{named}");
        }
    }

    #[test]
    fn exceptions_without_a_proxy_configure_none() {
        assert!(!is_named(|variable| {
            (variable == "NO_PROXY").then(|| OsString::from("localhost"))
        }));
    }
}
