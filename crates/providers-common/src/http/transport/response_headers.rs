//! Values that are read from response headers.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};

/// Names of the response headers that contain the request id, in the order of preference:
/// Anthropic's header, that of OpenAI and most other servers, and Azure's.
const REQUEST_IDS: [&str; 3] = ["request-id", "x-request-id", "apim-request-id"];

/// Maximum size of a request id in bytes. A longer value is ignored.
const MAX_REQUEST_ID_BYTES: usize = 200;

/// Pairs of response headers with the requested retry pause, in milliseconds and in seconds.
/// `LiteLLM` sends the second pair, with the values of the provider behind it.
const RETRY_AFTER: [(&str, &str); 2] = [
    ("retry-after-ms", "retry-after"),
    ("llm_provider-retry-after-ms", "llm_provider-retry-after"),
];

/// Returns the retry pause that the provider requests: `retry-after-ms`, else `retry-after` in
/// seconds or as a date. Invalid values count as absent; a date in the past is zero.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let header = |name| header_text(headers, &HeaderName::from_static(name));
    let number = |name| header(name)?.parse::<f64>().ok();
    // The conversion returns `None` for negative, infinite and very large numbers.
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    let date = |name| httpdate::parse_http_date(header(name)?).ok();
    RETRY_AFTER.iter().find_map(|(milliseconds, seconds)| {
        let pause = number(milliseconds).and_then(|ms| duration(ms / 1000.0));
        if pause.is_some() {
            return pause;
        }
        if let Some(seconds) = number(seconds) {
            return duration(seconds);
        }
        // The date in `retry-after` refers to the server's clock. The response header `date`
        // contains the time of that clock.
        let now = date("date").unwrap_or(now);
        Some(date(seconds)?.duration_since(now).unwrap_or_default())
    })
}

/// Returns the value of the header `x-should-retry`, with which a provider allows or forbids a
/// retry regardless of the HTTP status. Returns `None` unless the value is `true` or `false`.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    let word = header_text(headers, &HeaderName::from_static("x-should-retry"))?;
    word.to_ascii_lowercase().parse().ok()
}

/// Returns the provider's id of the request from the response headers. Returns `None` if the id is
/// missing, empty or longer than [`MAX_REQUEST_ID_BYTES`].
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = REQUEST_IDS
        .iter()
        .find_map(|name| header_text(headers, &HeaderName::from_static(name)))?;
    Some(id.to_owned()).filter(|id| !id.is_empty() && id.len() <= MAX_REQUEST_ID_BYTES)
}

/// Returns the media type of a response without its parameters, in lower case. Returns `None` if
/// `content-type` is missing or empty.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    media_type_essence(headers).map(str::to_ascii_lowercase)
}

/// Returns the media type of a response without its parameters, in its original case. Returns
/// `None` if `content-type` is missing or empty.
pub(super) fn media_type_essence(headers: &HeaderMap) -> Option<&str> {
    let value = header_text(headers, &header::CONTENT_TYPE)?;
    let essence = value.split(';').next()?.trim();
    (!essence.is_empty()).then_some(essence)
}

/// Returns the compression of a response body from the header `content-encoding`. Returns `None` if
/// the body is not compressed. Compression is an error, because the client does not request it.
pub(super) fn compression(headers: &HeaderMap) -> Option<&str> {
    header_text(headers, &header::CONTENT_ENCODING)
        .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
}

/// Returns whether the media type `actual` is one of the expected ones. An expected
/// `application/json` also accepts every type that ends with `+json`, such as
/// `application/problem+json`.
pub(super) fn is_expected_media_type(actual: &str, expected: &[&str]) -> bool {
    expected.iter().any(|expected| {
        actual.eq_ignore_ascii_case(expected)
            || (*expected == "application/json" && ends_with_ignore_case(actual, "+json"))
    })
}

/// Returns whether `text` ends with `end`, ignoring ASCII case.
pub(super) fn ends_with_ignore_case(text: &str, end: &str) -> bool {
    let start = text.len().checked_sub(end.len());
    let last = start.and_then(|start| text.get(start..));
    last.is_some_and(|last| last.eq_ignore_ascii_case(end))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Parses headers from lines such as `retry-after: 3`.
    fn headers(lines: &str) -> HeaderMap {
        let pairs = lines.lines().filter_map(|line| line.split_once(": "));
        let pairs = pairs.map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), value)
        });
        pairs.collect()
    }

    #[test]
    fn the_requested_pause_is_read_in_all_forms() {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 08:00:00 GMT").unwrap();
        let ms = |ms| Some(Duration::from_millis(ms));
        let table = [
            ("", None),
            ("retry-after: 3", ms(3000)),
            ("retry-after:  0.25 ", ms(250)),
            ("retry-after-ms: 1500\nretry-after: 9", ms(1500)),
            ("retry-after-ms: soon\nretry-after: 9", ms(9000)),
            ("retry-after-ms: -1\nretry-after: 9", ms(9000)),
            ("retry-after: Sat, 21 Nov 2026 08:00:05 GMT", ms(5000)),
            ("retry-after: Sat, 21 Nov 2026 07:00:00 GMT", ms(0)),
            (
                "retry-after: Sat, 21 Nov 2026 08:00:05 GMT\ndate: Sat, 21 Nov 2026 08:00:03 GMT",
                ms(2000),
            ),
            ("llm_provider-retry-after: 7", ms(7000)),
            ("retry-after: 2\nllm_provider-retry-after: 7", ms(2000)),
            ("retry-after: later", None),
            ("retry-after: -3", None),
            ("retry-after: NaN", None),
            ("retry-after: inf", None),
            ("retry-after: 1e300", None),
        ];
        for (lines, expected) in table {
            assert_eq!(retry_after(&headers(lines), now), expected, "{lines:?}");
        }
    }

    #[test]
    fn only_true_and_false_override_the_status() {
        for (word, expected) in [
            ("true", Some(true)),
            ("False", Some(false)),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(
                should_retry(&headers(&format!("x-should-retry: {word}"))),
                expected,
                "{word}"
            );
        }
    }

    #[test]
    fn the_request_id_is_found_where_providers_put_it() {
        let anthropic = headers("request-id: req_1\nx-request-id: other");
        assert_eq!(request_id(&anthropic).as_deref(), Some("req_1"));
        let openai = headers("x-request-id: req_2");
        assert_eq!(request_id(&openai).as_deref(), Some("req_2"));
        let mut long = HeaderMap::new();
        long.insert("request-id", "x".repeat(201).try_into().unwrap());
        assert_eq!(request_id(&long), None);
        assert_eq!(request_id(&headers("request-id: ")), None);
    }

    #[test]
    fn the_media_type_is_compared_without_parameters_and_case() {
        let stream = headers("content-type: Text/Event-Stream ; charset=utf-8");
        let actual = media_type(&stream).unwrap();
        assert!(is_expected_media_type(
            &actual,
            &["application/json", "text/event-stream"]
        ));
        assert!(!is_expected_media_type(&actual, &["application/json"]));
        assert!(is_expected_media_type(
            "application/problem+json",
            &["application/json"]
        ));
        assert!(is_expected_media_type(
            "Application/Problem+JSON",
            &["application/json"]
        ));
        assert!(!is_expected_media_type("+jso", &["application/json"]));
        assert!(!is_expected_media_type("text/html", &["text/event-stream"]));
        assert_eq!(media_type(&headers("content-type: ; x")), None);
        assert_eq!(
            compression(&headers("content-encoding: gzip")),
            Some("gzip")
        );
        assert_eq!(compression(&headers("content-encoding: Identity")), None);
    }
}
