//! A model that writes slowly, as models do, and says when.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{Outcome, process::serve_with};

/// Words of an answer.
pub(super) const WORDS: u64 = 40;
/// From one word to the next.
const PAUSE: Duration = Duration::from_millis(250);
/// Answers begin so far apart that the words of all are spread evenly.
const STEP: Duration = Duration::from_micros(500);

/// Nanoseconds; the machine has one clock.
fn now() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_nanos()
}

/// How late a word is, in microseconds.
#[allow(clippy::cast_precision_loss, reason = "some seconds at most")]
pub(super) fn lateness(word: &str) -> Option<f64> {
    let written: u128 = word.trim().parse().ok()?;
    Some(now().saturating_sub(written) as f64 / 1e3)
}

fn chunk(delta: &Value, finish: Option<&str>) -> Bytes {
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "slow",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    });
    format!("data: {chunk}\n\n").into()
}

async fn answer(State(count): State<Arc<AtomicU32>>, _request: Bytes) -> Response {
    let number = count.fetch_add(1, Ordering::Relaxed);
    let shift = STEP * number;
    // Within one pause of each other.
    let shift = Duration::from_nanos(
        u64::try_from(shift.as_nanos() % PAUSE.as_nanos()).unwrap_or_default(),
    );
    let begin = Instant::now() + shift;
    let words = stream::iter(0..WORDS).then(move |word| async move {
        let at = begin + PAUSE * u32::try_from(word).unwrap_or_default();
        // sleep: this is how slowly the model writes.
        sleep_until(at).await;
        chunk(&json!({"content": format!("{} ", now())}), None)
    });
    let end = stream::iter([
        chunk(&json!({}), Some("stop")),
        Bytes::from_static(b"data: [DONE]\n\n"),
    ]);
    let body = Body::from_stream(words.chain(end).map(Ok::<_, Infallible>));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

pub(super) async fn serve() -> Outcome<()> {
    let routes = Router::new()
        .route("/v1/chat/completions", post(answer))
        .with_state(Arc::default());
    serve_with(routes).await
}
