use axum::http::HeaderValue;
use serde_json::Value;

use super::*;
use crate::hub::is_valid_id;

#[test]
fn json_content_types_are_recognized() {
    let is = |kind: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        has_json_content_type(&headers)
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
    assert!(!has_json_content_type(&HeaderMap::new()));
}

#[test]
fn invalid_ids_and_texts_are_refused() {
    assert!(is_valid_id("0198-ab"));
    for wrong in ["", "a\0b", "a\nb", &"x".repeat(513)] {
        assert!(!is_valid_id(wrong));
    }
    assert!(reject_nul_character("message", "any\ntext").is_ok());
    let field = |levels: usize| {
        let value = (1..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        check_object_depth("input", [("a".to_owned(), value)].into_iter().collect())
    };
    assert!(field(64).is_ok());
    assert_eq!(&*field(65).unwrap_err().field.unwrap(), "input");
    assert_eq!(
        &*reject_nul_character("message", "a\0")
            .unwrap_err()
            .field
            .unwrap(),
        "message"
    );
}
