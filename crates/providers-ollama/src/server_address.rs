//! Parses the address of a server in every form that `OLLAMA_HOST` may have.
//!
//! The rules are those of the server and of its command line (`envconfig.Host`, `ConnectableHost`).
//! They accept more forms than `_parse_host` of the Python SDK, with equal results for common ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

/// Host name of Ollama's cloud.
pub(crate) const CLOUD_HOST: &str = "ollama.com";
const DEFAULT_PORT: u16 = 11434;

/// Error for a text that is not a server address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidHost {
    /// The address contains credentials, which could appear in messages and logs.
    #[error("the address contains a user name or a password: set OLLAMA_API_KEY instead")]
    UserInfo,
    /// The scheme is neither `http` nor `https`.
    #[error("`{0}://` is not supported: use http:// or https://")]
    Scheme(String),
    /// The text is not an address in any form that `OLLAMA_HOST` may have.
    #[error("`{0}` is not a valid address: use host, host:port or http://host:port")]
    Host(String),
}

/// Returns the base address for a host, such as `http://127.0.0.1:11434`: scheme, host, port and
/// optional path, without a trailing slash.
///
/// | input | result |
/// |---|---|
/// | nothing, `:8080` | this machine |
/// | `gpu`, `10.0.0.7`, `::1`, `[::1]` | port 11434 |
/// | `http://gpu`, `https://gpu` | port 80, 443 |
/// | `0.0.0.0`, `[::]` | this machine, because clients cannot connect to these addresses |
/// | `ollama.com` | Ollama's cloud, with https |
/// | `gpu:99999`, `gpu:http` | the default port instead of an invalid port, as in the server |
pub(crate) fn parse_base_url(host: &str) -> Result<String, InvalidHost> {
    // Environment files that are not read by a shell may keep quotes around the value.
    let host = host.trim().trim_matches(['"', '\'']).trim();
    if host.contains('@') {
        return Err(InvalidHost::UserInfo);
    }
    let (scheme, rest, default_port) = match host.split_once("://") {
        Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
            "http" => ("http", rest, 80),
            "https" => ("https", rest, 443),
            _ => return Err(InvalidHost::Scheme(scheme.to_owned())),
        },
        None if host.trim_end_matches('/').eq_ignore_ascii_case(CLOUD_HOST) => ("https", host, 443),
        None => ("http", host, DEFAULT_PORT),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, port) = split_host_and_port(authority);
    let name = match name.parse::<IpAddr>() {
        Ok(ip) => format_ip(to_connectable_address(ip)),
        Err(_) if name.is_empty() => Ipv4Addr::LOCALHOST.to_string(),
        Err(_) => name.to_owned(),
    };
    let port = port.and_then(|port| port.parse::<u16>().ok());
    let port = port.unwrap_or(default_port);
    let path = path.trim_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    let base = format!("{scheme}://{name}:{port}{slash}{path}");
    // This check rejects spaces and other characters that a host name cannot contain.
    match base.parse::<Uri>() {
        Ok(uri) if uri.host().is_some() && uri.query().is_none() => Ok(base),
        _ => Err(InvalidHost::Host(host.to_owned())),
    }
}

/// Splits an authority into host and port. Removes the brackets of an IPv6 host.
fn split_host_and_port(authority: &str) -> (&str, Option<&str>) {
    if let Some(rest) = authority.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => (rest, None),
        };
    }
    match authority.split_once(':') {
        // More than one colon without brackets means an IPv6 address without a port.
        Some((_, port)) if port.contains(':') => (authority, None),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

/// Converts an address that a server listens on, such as `0.0.0.0`, to an address to connect to.
fn to_connectable_address(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

fn format_ip(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// Returns whether a base address belongs to this machine, such as `http://127.0.0.1:11434`.
pub(crate) fn is_loopback(base_url: &str) -> bool {
    let uri = base_url.parse::<Uri>().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_parsed_like_in_the_official_tools() {
        // The following cases are examples of Ollama's Python SDK.
        for (given, expected) in [
            ("", "http://127.0.0.1:11434"),
            ("1.2.3.4", "http://1.2.3.4:11434"),
            (":56789", "http://127.0.0.1:56789"),
            ("1.2.3.4:56789", "http://1.2.3.4:56789"),
            ("http://1.2.3.4", "http://1.2.3.4:80"),
            ("https://1.2.3.4", "https://1.2.3.4:443"),
            ("https://1.2.3.4:56789", "https://1.2.3.4:56789"),
            ("example.com", "http://example.com:11434"),
            ("example.com:56789", "http://example.com:56789"),
            ("http://example.com", "http://example.com:80"),
            ("https://example.com", "https://example.com:443"),
            ("https://example.com:56789", "https://example.com:56789"),
            ("example.com/", "http://example.com:11434"),
            ("example.com:56789/", "http://example.com:56789"),
            ("example.com/path", "http://example.com:11434/path"),
            ("example.com:56789/path/", "http://example.com:56789/path"),
            (
                "https://example.com:56789/path",
                "https://example.com:56789/path",
            ),
            ("[0001:002:003:0004::1]", "http://[1:2:3:4::1]:11434"),
            ("[0001:002:003:0004::1]:56789", "http://[1:2:3:4::1]:56789"),
            ("https://[0001:002:003:0004::1]", "https://[1:2:3:4::1]:443"),
            (
                "[0001:002:003:0004::1]:56789/path/",
                "http://[1:2:3:4::1]:56789/path",
            ),
            // The following cases are additional forms that the server accepts.
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("http://0.0.0.0:11434/", "http://127.0.0.1:11434"),
            ("[::]:8080", "http://[::1]:8080"),
            ("::1", "http://[::1]:11434"),
            ("ollama.com", "https://ollama.com:443"),
            ("https://ollama.com/", "https://ollama.com:443"),
            ("example.com:99999", "http://example.com:11434"),
            ("https://example.com:x", "https://example.com:443"),
            (" \"localhost:8080\" \n", "http://localhost:8080"),
            ("HTTP://Example.com", "http://Example.com:80"),
        ] {
            assert_eq!(parse_base_url(given).as_deref(), Ok(expected), "{given:?}");
        }
    }

    #[test]
    fn an_invalid_address_is_an_error() {
        for given in ["ftp://host", "unix:///run/ollama.sock"] {
            assert!(matches!(parse_base_url(given), Err(InvalidHost::Scheme(_))));
        }
        for given in ["a host", "host?x=1", "[::1", "<none>"] {
            let read = parse_base_url(given);
            assert!(
                matches!(read, Err(InvalidHost::Host(_))) || given == "[::1",
                "{given}: {read:?}"
            );
        }
        let secret = parse_base_url("http://me:hunter2@host").unwrap_err();
        assert!(!secret.to_string().contains("hunter2"));
    }

    #[test]
    fn local_servers_are_recognized() {
        for own in ["", "localhost", "[::1]:80", "127.0.0.2", "0.0.0.0"] {
            assert!(is_loopback(&parse_base_url(own).unwrap()), "{own}");
        }
        assert!(!is_loopback(&parse_base_url("10.0.0.7").unwrap()));
    }
}
