//! Server-sent events: the frames, and a response made of them.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_core::Stream;
use futures_util::StreamExt as _;
use tokio::time::Sleep;

use crate::Problem;

/// A comment. It keeps proxies from taking the connection for dead, and finds out that a client is gone.
const COMMENT: Bytes = Bytes::from_static(b": \n\n");

/// One event. Data with several lines becomes several lines of data.
pub(crate) fn frame(id: Option<u64>, event: Option<&str>, data: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(data.len() + 48);
    if let Some(id) = id {
        line(&mut frame, "id", &id.to_string());
    }
    if let Some(event) = event {
        line(&mut frame, "event", event);
    }
    // What a reader takes for the end of a line: `\n`, `\r\n` and `\r`.
    let mut rest = data;
    while let Some(end) = rest.find(['\n', '\r']) {
        line(&mut frame, "data", &rest[..end]);
        let length = if rest[end..].starts_with("\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + length..];
    }
    line(&mut frame, "data", rest);
    frame.put_u8(b'\n');
    frame.freeze()
}

fn line(frame: &mut BytesMut, field: &str, value: &str) {
    frame.put_slice(field.as_bytes());
    frame.put_slice(b": ");
    frame.put_slice(value.as_bytes());
    frame.put_u8(b'\n');
}

/// A response that is a stream of frames, with a comment where nothing came for `keep_alive`.
pub(crate) fn response(
    frames: impl Stream<Item = Bytes> + Send + 'static,
    keep_alive: Duration,
) -> Response {
    let frames = KeepAlive {
        frames: Box::pin(frames),
        every: keep_alive,
        next: Box::pin(tokio::time::sleep(keep_alive)),
        ended: false,
    };
    let mut response = Body::from_stream(frames.map(Ok::<_, Infallible>)).into_response();
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_TYPE, "text/event-stream; charset=utf-8");
    set(header::CACHE_CONTROL, "no-store");
    // For nginx, which else collects a stream before it hands it on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct KeepAlive {
    frames: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    every: Duration,
    next: Pin<Box<Sleep>>,
    ended: bool,
}

impl Stream for KeepAlive {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        let item = match this.frames.as_mut().poll_next(cx) {
            Poll::Ready(item) => item,
            Poll::Pending => match this.next.as_mut().poll(cx) {
                Poll::Ready(()) => Some(COMMENT),
                Poll::Pending => return Poll::Pending,
            },
        };
        this.ended = item.is_none();
        let next = tokio::time::Instant::now() + this.every;
        this.next.as_mut().reset(next);
        Poll::Ready(item)
    }
}

/// The number after which a client wants to go on: `after`, else the header that a browser sends when it comes
/// back; 0 for everything.
pub(crate) fn after(query: Option<u64>, headers: &HeaderMap) -> Result<u64, Problem> {
    // A browser repeats the address that it was given, and adds where it stands.
    let Some(last) = headers.get("last-event-id") else {
        return Ok(query.unwrap_or(0));
    };
    let last = last
        .to_str()
        .ok()
        .map(str::trim)
        .filter(|it| !it.is_empty());
    match last.map(str::parse::<u64>) {
        None => Ok(query.unwrap_or(0)),
        Some(Ok(last)) => Ok(last.max(query.unwrap_or(0))),
        Some(Err(_)) => Err(Problem::malformed(
            "the header Last-Event-ID is no number of an event: leave it out to read from the beginning",
        )),
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
