use super::*;

fn names(hosts: &[&str], bound: Option<&str>) -> AllowedHostNames {
    let options = ServerOptions {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        ..ServerOptions::default()
    };
    let bound = bound.unwrap_or("127.0.0.1");
    AllowedHostNames::new(&options, bound.parse().unwrap())
}

#[test]
fn only_addresses_and_configured_names_are_accepted() {
    let loopback = names(&[], Some("127.0.0.1"));
    for accepted in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]"] {
        assert!(loopback.contains(accepted), "{accepted}");
    }
    for other in [
        "evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "[::2]",
        "",
        "127.0.0.1.nip.io",
    ] {
        assert!(!loopback.contains(other), "{other}");
    }
    let one = names(&["Box.Example"], Some("10.0.0.1"));
    assert!(one.contains("10.0.0.1") && one.contains("box.example") && !one.contains("10.0.0.2"));
    // A server on all interfaces does not know its addresses, so it accepts any address.
    let all = names(&[], Some("0.0.0.0"));
    assert!(all.contains("10.0.0.2") && all.contains("[fe80::1]") && !all.contains("box.example"));
}

#[test]
fn an_own_origin_has_the_host_and_port_of_the_request() {
    let same = |origin: &'static str, authority: &'static str| {
        let origin = HeaderValue::from_static(origin);
        is_same_origin(&origin, HostPort::parse_authority(authority).unwrap())
    };
    assert!(same("http://localhost:8484", "localhost:8484"));
    assert!(same("http://LOCALHOST:8484", "localhost:8484"));
    assert!(same("https://box.example", "box.example"));
    assert!(same("https://box.example", "box.example:443"));
    assert!(same("http://[::1]:1", "[::1]:1"));
    for other in [
        "null",
        "",
        "http://localhost",
        "http://localhost:8485",
        "http://127.0.0.1:8484",
        "file://localhost:8484",
        "http://localhost:8484.evil.example",
        "http://evil@localhost:1",
        "http://evil@localhost:8484",
        "http://localhost:8484/",
    ] {
        assert!(!same(other, "localhost:8484"), "{other}");
    }
}

#[test]
fn the_head_length_is_the_number_of_sent_bytes() {
    for (uri, sent) in [
        (
            "/",
            "GET / HTTP/1.1\r\nhost: localhost\r\nx: a\r\nx: bc\r\n\r\n",
        ),
        (
            "/sessions?limit=1",
            "GET /sessions?limit=1 HTTP/1.1\r\nhost: localhost\r\nx: a\r\nx: bc\r\n\r\n",
        ),
        (
            "http://localhost:1/x",
            "GET http://localhost:1/x HTTP/1.1\r\nhost: localhost\r\nx: a\r\nx: bc\r\n\r\n",
        ),
    ] {
        let request = Request::builder().uri(uri).header("host", "localhost");
        let request = request.header("x", "a").header("x", "bc");
        let request = request.body(axum::body::Body::empty()).unwrap();
        assert_eq!(request_head_length(&request), sent.len(), "{uri}");
    }
}

#[test]
fn hosts_are_parsed_strictly() {
    for (text, host, port) in [
        ("localhost", "localhost", None),
        ("localhost:", "localhost", None),
        ("127.0.0.1:8484", "127.0.0.1", Some(8484)),
        ("[::1]", "[::1]", None),
        ("[fe80::1]:65535", "[fe80::1]", Some(65535)),
    ] {
        assert_eq!(
            HostPort::parse_authority(text),
            Some(HostPort { host, port }),
            "{text}"
        );
    }
    for wrong in [
        "",
        ":80",
        "localhost:99999",
        "localhost:+80",
        "localhost:80:80",
        "localhost:x",
        "[localhost]",
        "[::1",
        "[127.0.0.1]",
        "[::1]80",
        "[::1]]",
        "::1",
        "]",
        "user@localhost",
        "user:word@localhost",
        "local host",
        "localhost/x",
        "schlüssel",
    ] {
        assert_eq!(HostPort::parse_authority(wrong), None, "{wrong}");
    }
    // An invalid port is not the default port.
    let origin = HeaderValue::from_static("http://localhost:99999");
    assert!(!is_same_origin(
        &origin,
        HostPort::parse_authority("localhost").unwrap()
    ));
}

#[test]
fn a_token_is_in_one_of_two_headers() {
    let with = |name: &'static str, value: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        access_token(&headers).map(<[u8]>::to_vec)
    };
    assert_eq!(
        with("authorization", "Bearer abc").as_deref(),
        Some(&b"abc"[..])
    );
    assert_eq!(
        with("authorization", "bearer  abc ").as_deref(),
        Some(&b"abc"[..])
    );
    assert_eq!(with("x-api-key", "abc").as_deref(), Some(&b"abc"[..]));
    assert_eq!(with("authorization", "Basic abc"), None);
    assert_eq!(with("authorization", "Bearer"), None);
    assert_eq!(access_token(&HeaderMap::new()), None);
}
