use super::*;

#[test]
fn invalid_addresses_are_refused_without_their_text() {
    for given in [
        "",
        "bte.transltr.io/v1",
        "ftp://bte.transltr.io",
        "file:///etc/passwd",
        "https://user:hunter2@bte.transltr.io/v1",
        "https://bte.transltr.io/v1?key=hunter2",
    ] {
        let problem = ServiceClient::new(given, &BteOptions::new(given), None).unwrap_err();
        assert!(!problem.contains("hunter2"), "{problem}");
    }
}

#[test]
fn base_urls_are_normalized() {
    for (given, url) in [
        ("https://bte.transltr.io/v1", "https://bte.transltr.io/v1"),
        (
            " https://bte.transltr.io/v1/ ",
            "https://bte.transltr.io/v1",
        ),
        (
            "https://bte.transltr.io/v1/query",
            "https://bte.transltr.io/v1",
        ),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
    ] {
        let client = ServiceClient::new(given, &BteOptions::new(given), None).unwrap();
        let query = client.build_url("query", &[]);
        assert_eq!(query.as_str(), format!("{url}/query"));
    }
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = httpdate::parse_http_date("Sat, 21 Nov 2026 12:00:00 GMT").unwrap();
    for (value, expected) in [
        ("7", Some(7)),
        (" 0 ", Some(0)),
        ("Sat, 21 Nov 2026 12:00:30 GMT", Some(30)),
        ("Sat, 21 Nov 2026 11:00:00 GMT", Some(0)),
        ("-1", None),
        ("soon", None),
        ("99999999999999999999999", None),
    ] {
        assert_eq!(
            parse_retry_after(value, now),
            expected.map(Duration::from_secs),
            "{value}"
        );
    }
}
