//! The guard against OAuth requests to internal services (server-side request forgery).
//!
//! A hostile server could announce URLs that only this machine can reach. So every discovered URL
//! must use `https` and be public. If the configured server or issuer is on this machine or in a
//! private network, URLs in that network are allowed too.
//!
//! - A server counts as on this machine only if its URL contains a loopback address or `localhost`.
//!   Other names can resolve to any address, and loopback URLs may use `http`.
//! - A server counts as in a private network if its name resolves only to private addresses. Such
//!   URLs must use `https`, which authenticates the host.
//! - The addresses of a host name are checked when the client connects. A configured proxy resolves
//!   names itself, so only literal addresses are checked then.

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

use crate::{auth::error::AuthError, primitives::sync::lock_mutex};

const PLAIN: &str = "it does not use https";
const USER_INFO: &str = "it contains a user name or password";
const NO_HOST: &str = "it has no host";
const INSIDE: &str = "it is on a network that the server does not belong to";

/// Class of network that an IP address belongs to. OAuth requests may use only some classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkClass {
    Public,
    Loopback,
    Private,
    LinkLocal,
    /// Multicast, unspecified or reserved address, which no OAuth request may use.
    Reserved,
}

/// Networks that the OAuth requests for one server may reach, in addition to the public internet.
/// These are the networks of the configured URLs.
#[derive(Debug, Clone, Default)]
pub(in crate::auth) struct NetworkGuard(Vec<NetworkClass>);

impl NetworkGuard {
    /// Creates a guard that allows the public internet and the networks of `urls`. These are the
    /// configured URLs of a server and of its authorization server.
    pub(in crate::auth) async fn from_configured_urls(urls: &[Url]) -> Self {
        let mut allowed = Vec::new();
        for url in urls {
            if let Some(network) = classify_host(url) {
                allowed.push(network);
            } else if let Some(host) = url.host_str()
                // A host name that cannot be resolved here adds no network: the host is
                // unreachable, or only a proxy can resolve its name.
                && let Ok(addresses) = lookup_host((host, 0)).await
            {
                let mut networks = addresses
                    .map(|address| classify_address(address.ip()))
                    .peekable();
                if networks.peek().is_some()
                    && networks.all(|network| network == NetworkClass::Private)
                {
                    allowed.push(NetworkClass::Private);
                }
            }
        }
        allowed.retain(|network| *network != NetworkClass::Reserved);
        Self(allowed)
    }

    fn allows_network(&self, network: NetworkClass) -> bool {
        network == NetworkClass::Public || self.0.contains(&network)
    }

    /// Returns whether a configured URL of the server has a loopback address or `localhost` as its
    /// host.
    pub(in crate::auth) fn is_loopback(&self) -> bool {
        self.0.contains(&NetworkClass::Loopback)
    }

    /// Parses a URL. Returns an error if the URL is invalid or not allowed for OAuth requests, for
    /// example because it does not use `https`. The addresses of a host name are checked later, by
    /// the resolver of [`Self::build_resolver`].
    pub(in crate::auth) fn parse_url(
        &self,
        what: &'static str,
        url: &str,
    ) -> Result<Url, AuthError> {
        let parsed = Url::parse(url).map_err(|error| {
            AuthError::Failed(format!("the {what} is not a valid URL: {error}"))
        })?;
        self.check_url(what, &parsed)?;
        Ok(parsed)
    }

    pub(in crate::auth) fn check_url(
        &self,
        what: &'static str,
        url: &Url,
    ) -> Result<(), AuthError> {
        self.check_url_rules(url)
            .map_err(|reason| AuthError::Guarded {
                what,
                url: url.to_string(),
                reason,
            })
    }

    fn check_url_rules(&self, url: &Url) -> Result<(), &'static str> {
        let network = classify_host(url);
        match url.scheme() {
            "https" => {}
            "http" if self.is_loopback() && network == Some(NetworkClass::Loopback) => {}
            _ => return Err(PLAIN),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(USER_INFO);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(NO_HOST);
        }
        match network {
            Some(network) if !self.allows_network(network) => Err(INSIDE),
            _ => Ok(()),
        }
    }

    /// Creates a DNS resolver that omits addresses in forbidden networks for the host names in
    /// `targets`. A lookup without a remaining address fails.
    pub(in crate::auth) fn build_resolver(&self, targets: TargetHosts) -> Arc<dyn Resolve> {
        let guard = self.clone();
        Arc::new(GuardedResolver { guard, targets })
    }
}

/// Host names that OAuth requests are sent to. The guarded resolver does not check other names:
/// these are configured proxies, whose addresses may be internal.
#[derive(Clone, Default)]
pub(in crate::auth) struct TargetHosts(Arc<Mutex<HashSet<String>>>);

impl TargetHosts {
    pub(in crate::auth) fn add_host(&self, url: &Url) {
        if let Some(host) = url.host_str() {
            lock_mutex(&self.0).insert(host.to_ascii_lowercase());
        }
    }
}

struct GuardedResolver {
    guard: NetworkGuard,
    targets: TargetHosts,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard.clone();
        let is_proxy = !lock_mutex(&self.targets.0).contains(&name.as_str().to_ascii_lowercase());
        Box::pin(async move {
            let found: Vec<_> = lookup_host((name.as_str(), 0))
                .await?
                .filter(|address| is_proxy || guard.allows_network(classify_address(address.ip())))
                .collect();
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, INSIDE).into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Returns the network of a URL whose host is an IP address or `localhost`. Returns `None` for
/// other hosts, because their network is known only after a DNS lookup.
fn classify_host(url: &Url) -> Option<NetworkClass> {
    let host = url.host_str()?;
    let bare = host.trim_matches(['[', ']']);
    if let Ok(address) = bare.parse() {
        return Some(classify_address(address));
    }
    // `localhost` and its subdomains always mean this machine (RFC 6761).
    let name = host.trim_end_matches('.');
    (name == "localhost" || name.ends_with(".localhost")).then_some(NetworkClass::Loopback)
}

fn classify_address(address: IpAddr) -> NetworkClass {
    match address {
        IpAddr::V4(address) => classify_ipv4(address),
        IpAddr::V6(address) => classify_ipv6(address),
    }
}

fn classify_ipv4(address: Ipv4Addr) -> NetworkClass {
    let [a, b, c, _] = address.octets();
    if address.is_loopback() {
        NetworkClass::Loopback
    } else if address.is_private() || matches!((a, b), (100, 64..=127)) {
        // 100.64.0.0/10 is the address space behind a provider's carrier-grade NAT (RFC 6598).
        NetworkClass::Private
    } else if address.is_link_local() {
        NetworkClass::LinkLocal
    } else if address.is_documentation()
        || matches!((a, b, c), (0 | 224.., ..) | (192, 0, 0) | (198, 18 | 19, _))
    {
        NetworkClass::Reserved
    } else {
        NetworkClass::Public
    }
}

fn classify_ipv6(address: Ipv6Addr) -> NetworkClass {
    let v4 = |high: u16, low: u16| {
        let bits = u32::from(high) << 16 | u32::from(low);
        classify_ipv4(Ipv4Addr::from_bits(bits))
    };
    // IPv6 blocks for protocol assignments (RFC 2928, including Teredo) and for documentation (RFC
    // 3849, RFC 9637) are not public.
    let is_special = matches!(
        address.segments(),
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..]
    );
    match address.segments() {
        _ if address.is_loopback() => NetworkClass::Loopback,
        _ if address.is_unique_local() => NetworkClass::Private,
        _ if address.is_unicast_link_local() => NetworkClass::LinkLocal,
        // An IPv6 address that embeds an IPv4 address belongs to the network of the IPv4 address.
        // The patterns match IPv4-compatible, IPv4-mapped, NAT64 and 6to4 addresses.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        [0x2000..=0x3fff, ..] if !is_special => NetworkClass::Public,
        _ => NetworkClass::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(guard: &NetworkGuard, url: &str) -> Option<&'static str> {
        guard.check_url_rules(&Url::parse(url).unwrap()).err()
    }

    #[test]
    fn a_public_server_may_name_only_public_https_urls() {
        let guard = NetworkGuard::default();
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
        let loopback = NetworkGuard(vec![NetworkClass::Loopback]);
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
        let private = NetworkGuard(vec![NetworkClass::Private]);
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
        use NetworkClass::{LinkLocal, Loopback, Private};
        for (url, expected) in [
            ("http://127.0.0.1:8080/mcp", Some(Loopback)),
            ("http://localhost:8080/mcp", Some(Loopback)),
            ("https://192.168.0.7/mcp", Some(Private)),
            ("https://169.254.1.1/mcp", Some(LinkLocal)),
            ("https://224.0.0.1/mcp", None),
            ("https://93.184.216.34/mcp", None),
        ] {
            let NetworkGuard(mut allowed) =
                NetworkGuard::from_configured_urls(&[Url::parse(url).unwrap()]).await;
            allowed.retain(|network| *network != NetworkClass::Public);
            assert_eq!(allowed, Vec::from_iter(expected), "{url}");
        }
    }

    #[tokio::test]
    async fn names_are_checked_by_their_addresses() {
        let name = || "localhost".parse::<Name>().unwrap();
        let targets = TargetHosts::default();
        targets.add_host(&Url::parse("https://LOCALHOST/").unwrap());
        let strict = NetworkGuard::default();
        let error = strict
            .build_resolver(targets.clone())
            .resolve(name())
            .await
            .err();
        assert!(error.unwrap().to_string().contains(INSIDE));
        let here = NetworkGuard(vec![NetworkClass::Loopback]);
        let proxy = strict.build_resolver(TargetHosts::default());
        for resolver in [here.build_resolver(targets), proxy] {
            let mut found = resolver.resolve(name()).await.unwrap();
            assert!(found.all(|address| address.ip().is_loopback()));
        }
    }
}
