//! Sends spans in batches.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use switchboard_domain::ModelError;
use switchboard_domain::redact::{Redactor, SizeLimits};
use switchboard_providers_common::{
    HttpRequest, HttpTransport, RetryPolicy, StatusClassifier, TransportConfig, read_to_end,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

use super::{
    encode,
    layer::{EndedSpan, Queue},
    protobuf,
    settings::{Form, Settings},
};

/// Spans that wait to be sent, as the specification's batch processor has it.
const WAITING: usize = 2_048;
/// Spans of one request at most, likewise.
const BATCH: usize = 512;
/// How long a span waits for others to go along.
const DELAY: Duration = Duration::from_secs(1);
/// How long the end of the program waits for the collector.
const PATIENCE: Duration = Duration::from_secs(3);
/// Of an answer, which says how many spans were not taken and why.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// What errors call the collector.
const COLLECTOR: &str = "the OTLP collector";
/// Texts of spans may be long only if they hold what was said.
const TEXTS: SizeLimits = SizeLimits {
    text: 64_000,
    items: 1,
    total: 64_000,
};

/// The task that sends spans.
pub(in crate::observe) struct Export {
    flush: mpsc::Sender<oneshot::Sender<()>>,
    state: Arc<State>,
}

/// What became of the spans.
#[derive(Debug, Default)]
struct State {
    /// Those that did not fit into the queue.
    dropped: Arc<AtomicU64>,
    /// Those that the collector did not take.
    refused: AtomicU64,
    sent: AtomicU64,
    why: Mutex<Option<String>>,
}

struct Sender {
    spans: mpsc::Receiver<EndedSpan>,
    flush: mpsc::Receiver<oneshot::Sender<()>>,
    transport: HttpTransport,
    request: HttpRequest,
    form: Form,
    resource: Vec<(String, String)>,
    redactor: Redactor,
    state: Arc<State>,
}

impl Export {
    /// Starts the task on the current runtime, and gives the queue to it.
    pub(super) fn start(settings: Settings, redactor: Redactor) -> Result<(Queue, Self), String> {
        let config = TransportConfig {
            connect_timeout: settings.timeout.min(Duration::from_secs(5)),
            first_byte_timeout: settings.timeout,
            idle_timeout: settings.timeout,
            retry: RetryPolicy {
                max_attempts: 3,
                min_delay: Duration::from_millis(200),
                max_delay: Duration::from_secs(2),
                max_retry_after: Duration::from_secs(30),
            },
            ..TransportConfig::default()
        };
        let in_words = |error: ModelError| error.to_string();
        let transport = HttpTransport::new(COLLECTOR, &config).map_err(in_words)?;
        settings.headers.check(COLLECTOR).map_err(in_words)?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        let (spans, waiting) = mpsc::channel(WAITING);
        let (flush, flushes) = mpsc::channel(1);
        let state = Arc::new(State::default());
        let sender = Sender {
            spans: waiting,
            flush: flushes,
            transport,
            request: HttpRequest::new(settings.url).with_headers(&settings.headers),
            form: settings.form,
            resource: settings.resource,
            redactor: redactor.with_limits(TEXTS),
            state: Arc::clone(&state),
        };
        runtime.spawn(sender.run());
        let queue = Queue {
            spans,
            dropped: Arc::clone(&state.dropped),
        };
        Ok((queue, Self { flush, state }))
    }

    /// Sends what waits, for three seconds at most. Says what was lost, if anything was.
    pub(in crate::observe) async fn finish(&self) -> Option<String> {
        let (done, is_done) = oneshot::channel();
        let flushed = async { self.flush.send(done).await.is_ok() && is_done.await.is_ok() };
        let in_time = timeout(PATIENCE, flushed).await.unwrap_or(false);
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let lost = count(&self.state.dropped) + count(&self.state.refused);
        let why = self.state.why();
        match (in_time, lost) {
            (true, 0) => None,
            (true, _) => Some(format!(
                "{lost} of {} spans were not exported: {}",
                lost + count(&self.state.sent),
                why.unwrap_or_else(|| "there were too many at once".to_owned()),
            )),
            (false, _) => Some(format!(
                "spans were not exported: {}",
                why.unwrap_or_else(|| format!("{COLLECTOR} did not take them within {PATIENCE:?}")),
            )),
        }
    }
}

impl State {
    fn why(&self) -> Option<String> {
        self.why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn refused(&self, spans: u64, why: String) {
        self.refused.fetch_add(spans, Ordering::Relaxed);
        // Not as a span's or run's own: it must not come back here.
        tracing::debug!(target: "switchboard::otlp", spans, why, "spans were not exported");
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

impl Sender {
    async fn run(mut self) {
        let mut batch = Vec::new();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                biased;
                done = self.flush.recv() => {
                    let Some(done) = done else { return };
                    while let Ok(span) = self.spans.try_recv() {
                        batch.push(span);
                        if batch.len() >= BATCH {
                            self.send(&mut batch).await;
                        }
                    }
                    self.send(&mut batch).await;
                    // Whoever asked has gone on if this took too long.
                    let _ = done.send(());
                }
                span = self.spans.recv() => {
                    let Some(span) = span else { return };
                    if batch.is_empty() {
                        due = Instant::now() + DELAY;
                    }
                    batch.push(span);
                    if batch.len() >= BATCH {
                        self.send(&mut batch).await;
                    }
                }
                () = sleep_until(due), if !batch.is_empty() => self.send(&mut batch).await,
            }
        }
    }

    async fn send(&self, batch: &mut Vec<EndedSpan>) {
        if batch.is_empty() {
            return;
        }
        let spans = batch.len() as u64;
        let request = self.request.clone();
        let request = match self.form {
            Form::Json => {
                let body = encode::request(batch, &self.resource, &self.redactor);
                request.with_json(body.to_string())
            }
            Form::Binary => {
                let body = protobuf::request(batch, &self.resource, &self.redactor);
                let request = request.with_json(body);
                request.with_header("content-type", "application/x-protobuf")
            }
        };
        batch.clear();
        let rejected = match self.post(&request).await {
            Ok(None) => 0,
            Ok(Some((rejected, why))) => {
                let rejected = rejected.min(spans);
                self.state.refused(rejected, why);
                rejected
            }
            Err(error) => {
                self.state.refused(spans, error.to_string());
                spans
            }
        };
        self.state
            .sent
            .fetch_add(spans - rejected, Ordering::Relaxed);
    }

    /// Sends a request. Gives how many spans of it were rejected, and why.
    async fn post(&self, request: &HttpRequest) -> Result<Option<(u64, String)>, ModelError> {
        let answer = self.transport.post(request, &StatusClassifier).await?;
        let context = answer.context();
        let is_binary = answer.media_type().as_deref() == Some("application/x-protobuf");
        // The spans were taken, whatever comes of the rest.
        let Ok(body) = read_to_end(COLLECTOR, answer.body, MAX_ANSWER_BYTES).await else {
            return Ok(None);
        };
        let complaint = if is_binary {
            protobuf::rejected(&body)
        } else {
            rejected(&body)
        };
        let Some((rejected, why)) = complaint.filter(|(rejected, _)| *rejected > 0) else {
            return Ok(None);
        };
        let message = why.unwrap_or_else(|| "it did not say why".to_owned());
        let kind = switchboard_domain::ModelErrorKind::InvalidRequest { field: None };
        // What the collector echoes of its own key is taken out.
        let error = context.apply(ModelError::new(COLLECTOR, kind, message));
        Ok(Some((rejected, error.to_string())))
    }
}

/// `partialSuccess` of an answer in JSON: how many spans were rejected, and why.
fn rejected(answer: &[u8]) -> Option<(u64, Option<String>)> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    // Whole numbers of 64 bits are text in this mapping, and numbers with many servers.
    let spans = partial.get("rejectedSpans").and_then(|spans| match spans {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    });
    let why = partial.get("errorMessage").and_then(Value::as_str);
    Some((spans.unwrap_or(0), why.map(str::to_owned)))
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
