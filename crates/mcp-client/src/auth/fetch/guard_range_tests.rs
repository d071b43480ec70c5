//! The first and the last address of every range, and their neighbours outside.

use super::*;

const V4: [(&str, &str, Network); 14] = [
    ("0.0.0.0", "0.255.255.255", Network::Reserved),
    ("10.0.0.0", "10.255.255.255", Network::Private),
    ("100.64.0.0", "100.127.255.255", Network::Private),
    ("127.0.0.0", "127.255.255.255", Network::Loopback),
    ("169.254.0.0", "169.254.255.255", Network::LinkLocal),
    ("172.16.0.0", "172.31.255.255", Network::Private),
    ("192.0.0.0", "192.0.0.255", Network::Reserved),
    ("192.0.2.0", "192.0.2.255", Network::Reserved),
    ("192.168.0.0", "192.168.255.255", Network::Private),
    ("198.18.0.0", "198.19.255.255", Network::Reserved),
    ("198.51.100.0", "198.51.100.255", Network::Reserved),
    ("203.0.113.0", "203.0.113.255", Network::Reserved),
    ("224.0.0.0", "239.255.255.255", Network::Reserved),
    ("240.0.0.0", "255.255.255.255", Network::Reserved),
];

/// Addresses of interest with the network of each.
fn v4() -> Vec<(Ipv4Addr, Network)> {
    let number = |text: &str| text.parse::<Ipv4Addr>().unwrap().to_bits();
    let ranges = V4.map(|(first, last, network)| (number(first), number(last), network));
    let expected = |address: u32| {
        let range = ranges
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&address));
        range.map_or(Network::Public, |(.., network)| *network)
    };
    ranges
        .iter()
        .flat_map(|(first, last, _)| {
            [
                first.checked_sub(1),
                Some(*first),
                Some(*last),
                last.checked_add(1),
            ]
        })
        .flatten()
        .map(|address| (Ipv4Addr::from_bits(address), expected(address)))
        .collect()
}

#[test]
fn every_range_of_ipv4_ends_where_it_should() {
    let all = v4();
    for (address, expected) in &all {
        assert_eq!(network_of(IpAddr::V4(*address)), *expected, "{address}");
    }
    let public = all
        .iter()
        .filter(|(_, network)| *network == Network::Public);
    assert_eq!(public.count(), 24);
}

#[test]
fn an_ipv6_address_that_carries_another_is_where_that_is() {
    for (carried, expected) in v4() {
        let [a, b, c, d] = carried.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        for address in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 0),
            Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5),
        ] {
            assert_eq!(network_of(IpAddr::V6(address)), expected, "{address}");
        }
    }
}

#[test]
fn every_range_of_ipv6_ends_where_it_should() {
    for (first, last, inside, before, after) in [
        (
            "::1",
            "::1",
            Network::Loopback,
            Network::Reserved,
            Network::Reserved,
        ),
        // What carries nothing, beside what does.
        (
            "::1:0:0",
            "::fffe:ffff:ffff",
            Network::Reserved,
            Network::Reserved,
            Network::Reserved,
        ),
        (
            "::1:0:0:0",
            "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Reserved,
            Network::Reserved,
            Network::Reserved,
        ),
        (
            "64:ff9b::1:0:0",
            "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Reserved,
            Network::Reserved,
            Network::Public,
        ),
        (
            "2001::",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Reserved,
            Network::Public,
            Network::Public,
        ),
        // Teredo.
        (
            "2001::",
            "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Reserved,
            Network::Public,
            Network::Reserved,
        ),
        (
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Reserved,
            Network::Public,
            Network::Public,
        ),
        (
            "2003::",
            "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Public,
            // 6to4 with 255.255.255.255.
            Network::Reserved,
            Network::Reserved,
        ),
        (
            "3fff:1000::",
            "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Public,
            Network::Reserved,
            Network::Reserved,
        ),
        (
            "fc00::",
            "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::Private,
            Network::Reserved,
            Network::Reserved,
        ),
        (
            "fe80::",
            "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            Network::LinkLocal,
            Network::Reserved,
            Network::Reserved,
        ),
    ] {
        let number = |text: &str| text.parse::<Ipv6Addr>().unwrap().to_bits();
        let (first, last) = (number(first), number(last));
        for (number, expected) in [
            (first - 1, before),
            (first, inside),
            (last, inside),
            (last + 1, after),
        ] {
            let address = Ipv6Addr::from_bits(number);
            assert_eq!(network_of(IpAddr::V6(address)), expected, "{address}");
        }
    }
    for address in ["::", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"] {
        assert_eq!(
            network_of(address.parse().unwrap()),
            Network::Reserved,
            "{address}"
        );
    }
}

#[test]
fn each_kind_of_place_is_allowed_by_its_own_rule_alone() {
    let none = Guard::default();
    assert!(none.allows(Network::Public));
    for (network, guard) in [
        (
            Network::Loopback,
            Guard {
                loopback: true,
                ..none
            },
        ),
        (
            Network::Private,
            Guard {
                private: true,
                ..none
            },
        ),
        (
            Network::LinkLocal,
            Guard {
                link_local: true,
                ..none
            },
        ),
    ] {
        let mut made = none;
        made.allow(network);
        assert_eq!(made, guard);
        assert_eq!(guard.is_loopback(), network == Network::Loopback);
        for other in [
            Network::Loopback,
            Network::Private,
            Network::LinkLocal,
            Network::Reserved,
        ] {
            assert_eq!(
                guard.allows(other),
                other == network,
                "{network:?}: {other:?}"
            );
            assert!(!none.allows(other));
        }
    }
    let mut made = none;
    made.allow(Network::Public);
    made.allow(Network::Reserved);
    assert_eq!(made, none);
}
