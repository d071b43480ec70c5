use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use switchboard_domain::StoredEvent;

use super::*;

proptest! {
    /// Checks that no text of a model can end its frame and begin another one.
    #[test]
    fn any_event_is_exactly_one_frame(text in "[a\"\n\r: id]{0,40}") {
        let json = format!("{{\"type\":\"warning\",\"text\":\"{text}\"}}");
        let event = StoredEvent { seq: 1, json: json.clone().into() };
        let frame = format_sse_event(7, &event.into());
        let data = json.replace(['\n', '\r'], " ");
        let expected = format!("id: 7\nevent: warning\ndata: {data}\n\n");
        prop_assert_eq!(frame, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn comments_are_sent_during_silence_until_the_stream_ends() {
    let late = stream::once(async {
        // sleep: the clock is paused
        tokio::time::sleep(Duration::from_secs(25)).await;
        Bytes::from_static(b"late")
    });
    let mut frames = Box::pin(add_keep_alive_comments(late, Duration::from_secs(10)));
    assert_eq!(frames.next().await, Some(COMMENT));
    assert_eq!(frames.next().await, Some(COMMENT));
    assert_eq!(frames.next().await, Some(Bytes::from_static(b"late")));
    assert_eq!(frames.next().await, None);
}

#[test]
fn a_reader_continues_after_the_larger_of_two_numbers() {
    let with = |last: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", HeaderValue::from_static(last));
        headers
    };
    assert_eq!(parse_last_event_id(None, &HeaderMap::new()).unwrap(), 0);
    assert_eq!(parse_last_event_id(Some(3), &HeaderMap::new()).unwrap(), 3);
    assert_eq!(parse_last_event_id(Some(3), &with("9")).unwrap(), 9);
    assert_eq!(parse_last_event_id(Some(9), &with("3")).unwrap(), 9);
    assert_eq!(parse_last_event_id(Some(2), &with("")).unwrap(), 2);
    assert_eq!(
        parse_last_event_id(None, &with("x")).unwrap_err().status,
        400
    );
    assert_eq!(
        parse_last_event_id(None, &with("-1")).unwrap_err().status,
        400
    );
}
