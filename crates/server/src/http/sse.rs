//! Formats run events as server-sent events, and creates streaming responses.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::time::timeout;

use crate::{
    Problem,
    hub::{LoggedEvent, event_type},
};

/// An empty comment as a server-sent event. It prevents proxies from closing an idle connection,
/// and it detects that the client has closed the connection.
const COMMENT: Bytes = Bytes::from_static(b": \n\n");

/// Formats a run event as a server-sent event whose id is `number`.
pub(crate) fn format_sse_event(number: u64, event: &LoggedEvent) -> Bytes {
    // A line break would end the field `data`. In JSON text, it can be replaced by a space.
    let json = event.json.replace(['\n', '\r'], " ");
    let kind = event_type(&json);
    format!("id: {number}\nevent: {kind}\ndata: {json}\n\n").into()
}

/// Creates a response that streams server-sent events. A comment is sent whenever `frames` yields
/// nothing for the time `keep_alive`.
pub(crate) fn stream_response(
    frames: impl Stream<Item = Bytes> + Send + 'static,
    keep_alive: Duration,
) -> Response {
    let frames = add_keep_alive_comments(frames, keep_alive);
    let mut response = Body::from_stream(frames.map(Ok::<_, Infallible>)).into_response();
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_TYPE, "text/event-stream; charset=utf-8");
    set(header::CACHE_CONTROL, "no-store");
    // nginx buffers a stream unless this header is set.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn add_keep_alive_comments(
    frames: impl Stream<Item = Bytes> + Send + 'static,
    keep_alive: Duration,
) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(Box::pin(frames), move |mut frames| async move {
        let frame = match timeout(keep_alive, frames.next()).await {
            Ok(frame) => frame?,
            Err(_) => COMMENT,
        };
        Some((frame, frames))
    })
}

/// Returns the number of the last event that the client received: from the query parameter `query`
/// or the header `Last-Event-ID`, or 0 without both. A browser that reconnects sends both, so the
/// larger number counts. Fails with status 400 if the header is not a number.
pub(crate) fn parse_last_event_id(query: Option<u64>, headers: &HeaderMap) -> Result<u64, Problem> {
    let query = query.unwrap_or(0);
    let header = headers.get("last-event-id");
    let header = header.and_then(|it| it.to_str().ok()).map(str::trim);
    match header {
        None | Some("") => Ok(query),
        Some(last) => last
            .parse::<u64>()
            .map(|last| last.max(query))
            .map_err(|_| {
                Problem::malformed_request(
                    "the header Last-Event-ID is not an event number: omit it to read all events",
                )
            }),
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
