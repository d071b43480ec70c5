//! The guard against requests to internal services (SSRF).
//!
//! A hostile server could name URLs that only this machine can reach. So every discovered URL must
//! be `https` and public. If the configured server or issuer is on this machine or in a private
//! network, URLs there are allowed too.
//!
//! - A server is on this machine only if its URL contains a loopback address or `localhost`,
//!   because other names can resolve to anything and loopback also allows `http`.
//! - A server is in a private network if its name resolves only to private addresses, because
//!   `https` proves the host.
//! - Names are checked by their addresses when the connection is made. A configured proxy resolves
//!   names itself; then only literal addresses are checked.

use std::{
    collections::HashSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex},
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use tokio::net::lookup_host;

use crate::{auth::error::AuthError, primitives::sync::lock};

const PLAIN: &str = "it is not https";
const USER_INFO: &str = "it holds a user name or password";
const NO_HOST: &str = "it has no host";
const INSIDE: &str = "it is in a network that the server is not part of";

/// Network that an IP address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    Public,
    Loopback,
    Private,
    LinkLocal,
    /// Network of multicast, unspecified and reserved addresses.
    Reserved,
}

/// Rules for the network access of one configured server. Allowed are the public network and the
/// networks of its configured URLs.
#[derive(Debug, Clone, Default)]
pub(in crate::auth) struct Guard(Vec<Network>);

impl Guard {
    /// Creates the rules for a server. `urls` are its configured URL and those of its authorization
    /// server.
    pub(in crate::auth) async fn of_configured(urls: &[Url]) -> Self {
        let mut allowed = Vec::new();
        for url in urls {
            if let Some(network) = network_of_host(url) {
                allowed.push(network);
            } else if let Some(host) = url.host_str()
                // A host name that cannot be resolved is unreachable, or only a proxy can resolve
                // it.
                && let Ok(addresses) = lookup_host((host, 0)).await
            {
                let mut networks = addresses.map(|address| network_of(address.ip())).peekable();
                if networks.peek().is_some() && networks.all(|network| network == Network::Private)
                {
                    allowed.push(Network::Private);
                }
            }
        }
        allowed.retain(|network| *network != Network::Reserved);
        Self(allowed)
    }

    fn allows(&self, network: Network) -> bool {
        network == Network::Public || self.0.contains(&network)
    }

    /// Returns whether the configured server is on this machine.
    pub(in crate::auth) fn is_loopback(&self) -> bool {
        self.0.contains(&Network::Loopback)
    }

    /// Parses a URL and checks it before its name is resolved.
    pub(in crate::auth) fn parse(&self, what: &'static str, url: &str) -> Result<Url, AuthError> {
        let parsed = Url::parse(url).map_err(|error| {
            AuthError::Failed(format!(
                "the {what} is not used: it is not a valid URL: {error}"
            ))
        })?;
        self.check(what, &parsed)?;
        Ok(parsed)
    }

    pub(in crate::auth) fn check(&self, what: &'static str, url: &Url) -> Result<(), AuthError> {
        self.violated_rule(url)
            .map_err(|reason| AuthError::Guarded {
                what,
                url: url.to_string(),
                reason,
            })
    }

    fn violated_rule(&self, url: &Url) -> Result<(), &'static str> {
        let network = network_of_host(url);
        match url.scheme() {
            "https" => {}
            "http" if self.is_loopback() && network == Some(Network::Loopback) => {}
            _ => return Err(PLAIN),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(USER_INFO);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(NO_HOST);
        }
        match network {
            Some(network) if !self.allows(network) => Err(INSIDE),
            _ => Ok(()),
        }
    }

    /// Returns a DNS resolver that returns only the allowed addresses of target hosts.
    pub(in crate::auth) fn resolver(&self, targets: Targets) -> Arc<dyn Resolve> {
        let guard = self.clone();
        Arc::new(GuardedResolver { guard, targets })
    }
}

/// Hosts that are requested. Other resolved names belong to configured proxies, which may be
/// internal.
#[derive(Clone, Default)]
pub(in crate::auth) struct Targets(Arc<Mutex<HashSet<String>>>);

impl Targets {
    pub(in crate::auth) fn add(&self, url: &Url) {
        if let Some(host) = url.host_str() {
            lock(&self.0).insert(host.to_ascii_lowercase());
        }
    }

    fn has(&self, name: &str) -> bool {
        lock(&self.0).contains(&name.to_ascii_lowercase())
    }
}

struct GuardedResolver {
    guard: Guard,
    targets: Targets,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard.clone();
        let is_proxy = !self.targets.has(name.as_str());
        Box::pin(async move {
            let found: Vec<_> = lookup_host((name.as_str(), 0))
                .await?
                .filter(|address| is_proxy || guard.allows(network_of(address.ip())))
                .collect();
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, INSIDE).into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Returns the network of a host that needs no DNS lookup: an IP address or a local name.
fn network_of_host(url: &Url) -> Option<Network> {
    let host = url.host_str()?;
    let bare = host.trim_matches(['[', ']']);
    if let Ok(address) = bare.parse() {
        return Some(network_of(address));
    }
    // Names below `localhost` never leave the machine (RFC 6761).
    let name = host.trim_end_matches('.');
    (name == "localhost" || name.ends_with(".localhost")).then_some(Network::Loopback)
}

fn network_of(address: IpAddr) -> Network {
    match address {
        IpAddr::V4(address) => network_of_v4(address),
        IpAddr::V6(address) => network_of_v6(address),
    }
}

fn network_of_v4(address: Ipv4Addr) -> Network {
    let [a, b, c, _] = address.octets();
    if address.is_loopback() {
        Network::Loopback
    } else if address.is_private() || matches!((a, b), (100, 64..=127)) {
        // The customers of one provider share 100.64.0.0/10 (RFC 6598).
        Network::Private
    } else if address.is_link_local() {
        Network::LinkLocal
    } else if address.is_documentation()
        || matches!((a, b, c), (0 | 224.., ..) | (192, 0, 0) | (198, 18 | 19, _))
    {
        Network::Reserved
    } else {
        Network::Public
    }
}

fn network_of_v6(address: Ipv6Addr) -> Network {
    let v4 = |high: u16, low: u16| {
        let bits = u32::from(high) << 16 | u32::from(low);
        network_of_v4(Ipv4Addr::from_bits(bits))
    };
    // Addresses for protocol assignments (RFC 2928, including Teredo) and for documentation (RFC
    // 3849, RFC 9637).
    let is_special = matches!(
        address.segments(),
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..]
    );
    match address.segments() {
        _ if address.is_loopback() => Network::Loopback,
        _ if address.is_unique_local() => Network::Private,
        _ if address.is_unicast_link_local() => Network::LinkLocal,
        // IPv6 addresses that contain an IPv4 address: mapped, compatible, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        [0x2000..=0x3fff, ..] if !is_special => Network::Public,
        _ => Network::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(guard: &Guard, url: &str) -> Option<&'static str> {
        guard.violated_rule(&Url::parse(url).unwrap()).err()
    }

    #[test]
    fn a_public_server_may_name_only_public_https_urls() {
        let guard = Guard::default();
        for (url, expected) in [
            ("https://auth.example.org/", None),
            ("https://93.184.216.34/", None),
            ("https://[2606:4700::1]/", None),
            // The neighbours of internal ranges.
            ("https://9.255.255.255/", None),
            ("https://11.0.0.0/", None),
            ("https://100.63.255.255/", None),
            ("https://100.128.0.0/", None),
            ("https://172.15.255.255/", None),
            ("https://172.32.0.0/", None),
            ("https://[2001:200::]/", None),
            ("http://auth.example.org/", Some(PLAIN)),
            ("ftp://auth.example.org/", Some(PLAIN)),
            ("javascript:alert(1)", Some(PLAIN)),
            ("file:///etc/passwd", Some(PLAIN)),
            ("http://127.0.0.1/", Some(PLAIN)),
            ("https://u:p@auth.example.org/", Some(USER_INFO)),
            ("https://localhost/", Some(INSIDE)),
            ("https://LOCALHOST./", Some(INSIDE)),
            ("https://a.localhost/", Some(INSIDE)),
            ("https://127.1/", Some(INSIDE)),
            ("https://0x7f000001/", Some(INSIDE)),
            ("https://2130706433/", Some(INSIDE)),
            ("https://0.0.0.0/", Some(INSIDE)),
            ("https://10.0.0.1/", Some(INSIDE)),
            ("https://172.16.0.0/", Some(INSIDE)),
            ("https://172.31.255.255/", Some(INSIDE)),
            ("https://100.64.0.0/", Some(INSIDE)),
            ("https://100.127.255.255/", Some(INSIDE)),
            ("https://192.0.0.1/", Some(INSIDE)),
            ("https://198.19.255.255/", Some(INSIDE)),
            ("https://203.0.113.1/", Some(INSIDE)),
            ("https://240.0.0.0/", Some(INSIDE)),
            ("https://192.168.1.1/", Some(INSIDE)),
            ("https://100.100.100.200/", Some(INSIDE)),
            ("https://169.254.169.254/latest/meta-data/", Some(INSIDE)),
            ("https://224.0.0.1/", Some(INSIDE)),
            ("https://255.255.255.255/", Some(INSIDE)),
            ("https://[::1]/", Some(INSIDE)),
            ("https://[::]/", Some(INSIDE)),
            ("https://[fe80::1]/", Some(INSIDE)),
            ("https://[febf::1]/", Some(INSIDE)),
            ("https://[fec0::1]/", Some(INSIDE)),
            ("https://[2001:db8::1]/", Some(INSIDE)),
            ("https://[::10.0.0.1]/", Some(INSIDE)),
            ("https://[fd00::1]/", Some(INSIDE)),
            ("https://[ff02::1]/", Some(INSIDE)),
            ("https://[::ffff:127.0.0.1]/", Some(INSIDE)),
            ("https://[::ffff:169.254.169.254]/", Some(INSIDE)),
            ("https://[64:ff9b::10.0.0.1]/", Some(INSIDE)),
            ("https://[2002:a00:1::]/", Some(INSIDE)),
            ("https://[2001:0:5db8:d822:0:ffff:f5ff:fffe]/", Some(INSIDE)),
        ] {
            assert_eq!(violation(&guard, url), expected, "{url}");
        }
    }

    #[test]
    fn an_internal_server_may_name_urls_in_its_network() {
        let loopback = Guard(vec![Network::Loopback]);
        for (url, expected) in [
            ("http://127.0.0.1:80/", None),
            ("http://localhost:80/", None),
            ("http://[::1]/", None),
            ("https://auth.example.org/", None),
            ("http://auth.example.org/", Some(PLAIN)),
            ("https://10.0.0.1/", Some(INSIDE)),
            ("https://169.254.169.254/", Some(INSIDE)),
        ] {
            assert_eq!(violation(&loopback, url), expected, "{url}");
        }
        let private = Guard(vec![Network::Private]);
        for (url, expected) in [
            ("https://10.0.0.1/", None),
            ("http://10.0.0.1/", Some(PLAIN)),
            ("https://127.0.0.1/", Some(INSIDE)),
            ("https://169.254.169.254/", Some(INSIDE)),
        ] {
            assert_eq!(violation(&private, url), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn the_rules_depend_on_the_network_of_the_server() {
        use Network::{LinkLocal, Loopback, Private};
        for (url, expected) in [
            ("http://127.0.0.1:8080/mcp", Some(Loopback)),
            ("http://localhost:8080/mcp", Some(Loopback)),
            ("https://192.168.0.7/mcp", Some(Private)),
            ("https://169.254.1.1/mcp", Some(LinkLocal)),
            ("https://224.0.0.1/mcp", None),
            ("https://93.184.216.34/mcp", None),
        ] {
            let Guard(mut allowed) = Guard::of_configured(&[Url::parse(url).unwrap()]).await;
            allowed.retain(|network| *network != Network::Public);
            assert_eq!(allowed, Vec::from_iter(expected), "{url}");
        }
    }

    #[tokio::test]
    async fn names_are_checked_by_their_addresses() {
        let name = || "localhost".parse::<Name>().unwrap();
        let targets = Targets::default();
        targets.add(&Url::parse("https://LOCALHOST/").unwrap());
        let strict = Guard::default();
        let error = strict.resolver(targets.clone()).resolve(name()).await.err();
        assert!(error.unwrap().to_string().contains(INSIDE));
        let here = Guard(vec![Network::Loopback]);
        let proxy = strict.resolver(Targets::default());
        for resolver in [here.resolver(targets), proxy] {
            let mut found = resolver.resolve(name()).await.unwrap();
            assert!(found.all(|address| address.ip().is_loopback()));
        }
    }
}
