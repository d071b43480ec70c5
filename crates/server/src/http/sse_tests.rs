use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;

#[test]
fn a_frame_contains_id_type_and_data() {
    assert_eq!(
        frame(Some(7), Some("text_delta"), "{\"a\":1}"),
        "id: 7\nevent: text_delta\ndata: {\"a\":1}\n\n"
    );
    assert_eq!(frame(None, None, ""), "data: \n\n");
    assert_eq!(
        frame(None, None, "a\nb\r\nc\rd"),
        "data: a\ndata: b\ndata: c\ndata: d\n\n"
    );
}

proptest! {
    /// Text of a model cannot end a frame and begin another one.
    #[test]
    fn any_data_is_exactly_one_event(data in "[a\n\r: id]{0,40}") {
        let frame = frame(Some(1), Some("x"), &data);
        let text = std::str::from_utf8(&frame).unwrap();
        prop_assert!(text.ends_with("\n\n"));
        prop_assert!(!text[..text.len() - 1].contains("\n\n"));
        prop_assert!(!text.contains('\r'));
        let lines = text.trim_end_matches('\n').lines();
        let mut read = Vec::new();
        for line in lines {
            let (field, value) = line.split_once(": ").unwrap();
            prop_assert!(["id", "event", "data"].contains(&field), "{}", line);
            if field == "data" {
                read.push(value);
            }
        }
        let whole = data.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(read.join("\n"), whole);
    }
}

#[tokio::test(start_paused = true)]
async fn comments_are_sent_during_silence_until_the_stream_ends() {
    let late = stream::once(async {
        // sleep: the clock is paused
        tokio::time::sleep(Duration::from_secs(25)).await;
        frame(None, None, "late")
    });
    let mut frames = Box::pin(with_comments(late, Duration::from_secs(10)));
    assert_eq!(frames.next().await, Some(COMMENT));
    assert_eq!(frames.next().await, Some(COMMENT));
    assert_eq!(frames.next().await, Some(frame(None, None, "late")));
    assert_eq!(frames.next().await, None);
}

#[test]
fn a_reader_continues_after_the_larger_of_two_numbers() {
    let with = |last: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", HeaderValue::from_static(last));
        headers
    };
    assert_eq!(after(None, &HeaderMap::new()).unwrap(), 0);
    assert_eq!(after(Some(3), &HeaderMap::new()).unwrap(), 3);
    assert_eq!(after(Some(3), &with("9")).unwrap(), 9);
    assert_eq!(after(Some(9), &with("3")).unwrap(), 9);
    assert_eq!(after(Some(2), &with("")).unwrap(), 2);
    assert_eq!(after(None, &with("x")).unwrap_err().status, 400);
    assert_eq!(after(None, &with("-1")).unwrap_err().status, 400);
}
