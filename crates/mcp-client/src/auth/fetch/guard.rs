//! Which addresses may be asked that somebody else named.
//!
//! Metadata are found by following what servers say, so a hostile server could make this machine ask
//! services that only it can reach (SSRF). Every discovered address must be `https` and public, unless
//! the configured server is itself on this machine or in a private network: then others there may be
//! asked too, since the person who configured it lives there. The same holds for where a configured
//! issuer is. That a server is on this machine must be written in its address: a name can be made to
//! resolve to anything, and here it would allow `http`. For a private network it is enough that the name
//! resolves to nothing else, since there `https` proves the host. Names are judged by what they resolve to,
//! at the moment of connecting. Where a proxy is set, it does the resolving, and only addresses that are
//! written as numbers are judged here.

use std::{
    collections::HashSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use tokio::net::lookup_host;

use crate::auth::error::AuthError;

const PLAIN: &str = "it is not https";
const USER_INFO: &str = "it holds a user name or password";
const NO_HOST: &str = "it has no host";
const INSIDE: &str = "it leads into a network that the server is not part of";

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Public,
    Loopback,
    Private,
    LinkLocal,
    /// Multicast, unspecified and reserved ones: never a server.
    Nowhere,
}

/// The rules for one configured server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::auth) struct Guard {
    loopback: bool,
    private: bool,
    link_local: bool,
}

impl Guard {
    /// The rules for what a server may name, if these addresses are configured: its own, and those of
    /// its authorization server.
    pub(in crate::auth) async fn of_configured(urls: &[Url]) -> Self {
        let mut guard = Self::default();
        for url in urls {
            if let Some(place) = place_of_host(url) {
                guard.allow(place);
            } else if let Some(host) = url.host_str()
                // A name that cannot be resolved here is reached through a proxy, or not at all.
                && let Ok(addresses) = lookup_host((host, 0)).await
            {
                let mut places = addresses.map(|address| place(address.ip())).peekable();
                if places.peek().is_some() && places.all(|place| place == Place::Private) {
                    guard.allow(Place::Private);
                }
            }
        }
        guard
    }

    fn allow(&mut self, place: Place) {
        match place {
            Place::Loopback => self.loopback = true,
            Place::Private => self.private = true,
            Place::LinkLocal => self.link_local = true,
            Place::Public | Place::Nowhere => {}
        }
    }

    fn allows(self, place: Place) -> bool {
        match place {
            Place::Public => true,
            Place::Loopback => self.loopback,
            Place::Private => self.private,
            Place::LinkLocal => self.link_local,
            Place::Nowhere => false,
        }
    }

    /// Whether the configured server is on this machine.
    pub(in crate::auth) fn is_loopback(self) -> bool {
        self.loopback
    }

    /// Reads an address and judges what can be judged before it is resolved.
    pub(in crate::auth) fn parse(self, what: &'static str, url: &str) -> Result<Url, AuthError> {
        let parsed = Url::parse(url).map_err(|error| AuthError::BadAnswer {
            what,
            url: String::new(),
            reason: format!("it is no address: {error}"),
        })?;
        self.check(what, &parsed)?;
        Ok(parsed)
    }

    pub(in crate::auth) fn check(self, what: &'static str, url: &Url) -> Result<(), AuthError> {
        self.verdict(url).map_err(|reason| AuthError::Guarded {
            what,
            url: url.to_string(),
            reason,
        })
    }

    fn verdict(self, url: &Url) -> Result<(), &'static str> {
        let place = place_of_host(url);
        match url.scheme() {
            "https" => {}
            "http" if self.loopback && place == Some(Place::Loopback) => {}
            _ => return Err(PLAIN),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(USER_INFO);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(NO_HOST);
        }
        match place {
            Some(place) if !self.allows(place) => Err(INSIDE),
            _ => Ok(()),
        }
    }

    /// Resolves the names of targets to what may be asked only.
    pub(in crate::auth) fn resolver(self, targets: Targets) -> Arc<dyn Resolve> {
        Arc::new(GuardedResolver {
            guard: self,
            targets,
        })
    }
}

/// The hosts that requests are for. Other names that are to be resolved are those of proxies, which
/// somebody here has set and which mostly are inside.
#[derive(Clone, Default)]
pub(in crate::auth) struct Targets(Arc<Mutex<HashSet<String>>>);

impl Targets {
    pub(in crate::auth) fn add(&self, url: &Url) {
        if let Some(host) = url.host_str() {
            self.lock().insert(host.to_ascii_lowercase());
        }
    }

    fn has(&self, name: &str) -> bool {
        self.lock().contains(&name.to_ascii_lowercase())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct GuardedResolver {
    guard: Guard,
    targets: Targets,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.guard;
        let is_proxy = !self.targets.has(name.as_str());
        Box::pin(async move {
            let found: Vec<_> = lookup_host((name.as_str(), 0))
                .await?
                .filter(|address| is_proxy || guard.allows(place(address.ip())))
                .collect();
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, INSIDE).into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Where a host is that needs no resolving.
fn place_of_host(url: &Url) -> Option<Place> {
    let host = url.host_str()?;
    let bare = host.trim_matches(['[', ']']);
    if let Ok(address) = bare.parse() {
        return Some(place(address));
    }
    // RFC 6761: these names never leave the machine.
    let name = host.trim_end_matches('.');
    (name == "localhost" || name.ends_with(".localhost")).then_some(Place::Loopback)
}

fn place(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(address) => place_v4(address),
        IpAddr::V6(address) => place_v6(address),
    }
}

fn place_v4(address: Ipv4Addr) -> Place {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Place::Loopback,
        // 100.64/10 is shared by the customers of a provider (RFC 6598).
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Place::Private,
        (169, 254, _) => Place::LinkLocal,
        (0 | 224.., ..) | (192, 0, 0 | 2) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => {
            Place::Nowhere
        }
        _ => Place::Public,
    }
}

fn place_v6(address: Ipv6Addr) -> Place {
    if address.is_loopback() {
        return Place::Loopback;
    }
    let parts = address.segments();
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        place_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // Those that carry an address of the other family: mapped, compatible, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            v4(high, low)
        }
        [0x2002, high, low, ..] => v4(high, low),
        [first, ..] => match first {
            0xfc00..=0xfdff => Place::Private,
            0xfe80..=0xfebf => Place::LinkLocal,
            0x2000..=0x3fff if !is_special(parts) => Place::Public,
            _ => Place::Nowhere,
        },
    }
}

/// Returns whether an address is in the public range, and not the address of a server: protocol assignments
/// (RFC 2928), of which Teredo carries an address of the other family, and documentation (RFC 3849, RFC 9637).
fn is_special(parts: [u16; 8]) -> bool {
    matches!(
        parts,
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..]
    )
}

#[cfg(test)]
#[path = "guard_range_tests.rs"]
mod range_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(guard: Guard, url: &str) -> Option<&'static str> {
        guard.verdict(&Url::parse(url).unwrap()).err()
    }

    #[test]
    fn a_public_server_names_public_https_addresses_only() {
        let guard = Guard::default();
        for (url, expected) in [
            ("https://auth.example.org/", None),
            ("https://93.184.216.34/", None),
            ("https://[2606:4700::1]/", None),
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
            ("https://172.31.0.1/", Some(INSIDE)),
            ("https://192.168.1.1/", Some(INSIDE)),
            ("https://100.100.100.200/", Some(INSIDE)),
            ("https://169.254.169.254/latest/meta-data/", Some(INSIDE)),
            ("https://224.0.0.1/", Some(INSIDE)),
            ("https://255.255.255.255/", Some(INSIDE)),
            ("https://[::1]/", Some(INSIDE)),
            ("https://[::]/", Some(INSIDE)),
            ("https://[fe80::1]/", Some(INSIDE)),
            ("https://[fd00::1]/", Some(INSIDE)),
            ("https://[ff02::1]/", Some(INSIDE)),
            ("https://[::ffff:127.0.0.1]/", Some(INSIDE)),
            ("https://[::ffff:169.254.169.254]/", Some(INSIDE)),
            ("https://[64:ff9b::10.0.0.1]/", Some(INSIDE)),
            ("https://[2002:a00:1::]/", Some(INSIDE)),
            ("https://[2001:0:5db8:d822:0:ffff:f5ff:fffe]/", Some(INSIDE)),
        ] {
            assert_eq!(judged(guard, url), expected, "{url}");
        }
    }

    #[test]
    fn a_server_inside_names_its_neighbours() {
        let loopback = Guard {
            loopback: true,
            ..Guard::default()
        };
        for (url, expected) in [
            ("http://127.0.0.1:80/", None),
            ("http://localhost:80/", None),
            ("http://[::1]/", None),
            ("https://auth.example.org/", None),
            ("http://auth.example.org/", Some(PLAIN)),
            ("https://10.0.0.1/", Some(INSIDE)),
            ("https://169.254.169.254/", Some(INSIDE)),
        ] {
            assert_eq!(judged(loopback, url), expected, "{url}");
        }
        let private = Guard {
            private: true,
            ..Guard::default()
        };
        for (url, expected) in [
            ("https://10.0.0.1/", None),
            ("http://10.0.0.1/", Some(PLAIN)),
            ("https://127.0.0.1/", Some(INSIDE)),
            ("https://169.254.169.254/", Some(INSIDE)),
        ] {
            assert_eq!(judged(private, url), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn the_rules_follow_from_where_the_server_is() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/mcp", (true, false, false)),
            ("http://localhost:8080/mcp", (true, false, false)),
            ("https://192.168.0.7/mcp", (false, true, false)),
            ("https://169.254.1.1/mcp", (false, false, true)),
            ("https://93.184.216.34/mcp", (false, false, false)),
        ] {
            let guard = Guard::of_configured(&[Url::parse(url).unwrap()]).await;
            let allowed = (guard.loopback, guard.private, guard.link_local);
            assert_eq!(allowed, expected, "{url}");
        }
    }

    #[tokio::test]
    async fn names_are_judged_by_what_they_resolve_to() {
        let name = || "localhost".parse::<Name>().unwrap();
        let targets = Targets::default();
        targets.add(&Url::parse("https://LOCALHOST/").unwrap());
        let strict = Guard::default();
        let error = strict.resolver(targets.clone()).resolve(name()).await.err();
        assert!(error.unwrap().to_string().contains(INSIDE));
        let here = Guard {
            loopback: true,
            ..strict
        };
        let proxy = strict.resolver(Targets::default());
        for resolver in [here.resolver(targets), proxy] {
            let mut found = resolver.resolve(name()).await.unwrap();
            assert!(found.all(|address| address.ip().is_loopback()));
        }
    }
}
