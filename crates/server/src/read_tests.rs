use axum::http::HeaderValue;
use serde_json::Value;

use super::*;

#[test]
fn json_content_types_are_recognized() {
    let is = |kind: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        is_json(&headers)
    };
    for kind in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/vnd.api+json",
    ] {
        assert!(is(kind), "{kind}");
    }
    for kind in [
        "text/plain",
        "text/json",
        "application/jsonp",
        "application",
        "json",
        "",
    ] {
        assert!(!is(kind), "{kind}");
    }
    assert!(!is_json(&HeaderMap::new()));
}

#[tokio::test]
async fn a_body_above_the_limit_is_not_read() {
    let body = |text: &str| Body::from(text.to_owned());
    let none = HeaderMap::new();
    assert_eq!(read_body(&none, body("1234"), 4).await.unwrap(), "1234");
    let refused = read_body(&none, body("12345"), 4).await.unwrap_err();
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    // A body with too large a length is not read at all.
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("5"));
    let unread = Body::from_stream(futures_util::stream::pending::<Result<Bytes, axum::Error>>());
    let refused = read_body(&headers, unread, 4).await.unwrap_err();
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[test]
fn malformed_json_and_invalid_values_are_different_errors() {
    let status = |bytes: &[u8]| parse::<Vec<u8>>(bytes).map_err(|problem| problem.status.as_u16());
    assert_eq!(status(b"[1]"), Ok(vec![1]));
    assert_eq!(status(b""), Err(400));
    assert_eq!(status(b"[1"), Err(400));
    assert_eq!(status(b"[1]]"), Err(400));
    assert_eq!(status(b"\xff"), Err(400));
    assert_eq!(status(b"{}"), Err(422));
    assert_eq!(status(b"[256]"), Err(422));
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse::<Value>(nested(96).as_bytes()).is_ok());
    let refused = parse::<Value>(nested(97).as_bytes()).unwrap_err();
    assert_eq!(refused.status, 400);
    assert!(
        refused.detail.contains("nested more than 96 levels deep"),
        "{refused}"
    );
    let deep = "[".repeat(1_000_000);
    assert_eq!(parse::<Value>(deep.as_bytes()).unwrap_err().status, 400);
}

#[test]
fn invalid_ids_and_texts_are_refused() {
    let problem = || Problem::no_run("x");
    assert!(check_id("0198-ab", problem).is_ok());
    for wrong in ["", "a\0b", "a\nb", &"x".repeat(513)] {
        assert_eq!(check_id(wrong, problem).unwrap_err().status, 404);
    }
    assert!(check_text("message", "any\ntext").is_ok());
    let field = |levels: usize| {
        let value = (1..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        check_object("input", [("a".to_owned(), value)].into_iter().collect())
    };
    assert!(field(64).is_ok());
    assert_eq!(&*field(65).unwrap_err().field.unwrap(), "input");
    assert_eq!(
        &*check_text("message", "a\0").unwrap_err().field.unwrap(),
        "message"
    );
}
