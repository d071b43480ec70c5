//! What a recording costs: secrets are looked for in everything that is written down, so that a long one must not take longer
//! for each byte than a short one.

#![allow(
    clippy::print_stderr,
    reason = "where nothing can be measured it says why"
)]

use std::{hint::black_box, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use switchboard_domain::redact::Redactor;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Message, ModelCapabilities, ModelError, ModelEvent,
    ModelId, ModelStream, Part, PartStart, Role, ToolChoiceOutcome, ToolInput, ToolResult, ToolUse,
};
use switchboard_evals::recording::{Player, Recorder};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of what is recorded.
const SIZES: [(&str, usize); 3] = [
    ("100 kB", 100_000),
    ("1 MB", 1_000_000),
    ("10 MB", 10_000_000),
];

/// Bytes of one tool's result.
const RESULT: usize = 20_000;

/// Keys that a configuration may hold. The first one stands in every tenth result.
fn keys() -> impl Iterator<Item = String> {
    (0..20).map(|number| format!("key-{number:02}-of-a-configuration"))
}

/// Answers one word to everything.
struct Short {
    id: ModelId,
    capabilities: ModelCapabilities,
}

#[async_trait]
impl ChatModel for Short {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let events = [
            ModelEvent::Started {
                response_id: None,
                model: None,
                tool_choice: ToolChoiceOutcome::default(),
            },
            ModelEvent::PartStarted {
                index: 0,
                part: PartStart::Text,
            },
            ModelEvent::TextDelta {
                index: 0,
                text: "One.".to_owned(),
            },
            ModelEvent::PartFinished { index: 0 },
            ModelEvent::Finished {
                reason: FinishReason::Stop,
                raw: None,
            },
        ];
        Ok(Box::pin(stream::iter(events.map(Ok))))
    }
}

/// A conversation with results of so many bytes: half of them rows as JSON, half of them prose.
fn conversation(bytes: usize) -> ChatRequest {
    let mut messages = vec![Arc::new(Message::user("Which orders are late?"))];
    for number in 0..bytes.div_ceil(RESULT) {
        let id = format!("call_{number}");
        let input = ToolInput::parse(&format!(r#"{{"page":{number},"page_token":"t{number}"}}"#));
        let call = Part::ToolUse(ToolUse::new(&id, "orders", input));
        messages.push(Arc::new(Message::new(Role::Assistant, [call])));
        let mut text = if number % 2 == 0 {
            rows(number).to_string()
        } else {
            prose(number)
        };
        if number % 10 == 1 {
            text.extend(keys().next());
        }
        let result = ToolResult::text(&id, "orders", text);
        messages.push(Arc::new(Message::tool_results([result])));
    }
    ChatRequest::new(messages)
}

fn rows(of: usize) -> Value {
    let row = |number: usize| {
        json!({
            "order_id": of * 1_000 + number,
            "customer": {"name": "Ada Lovelace", "email": "ada@example.org"},
            "state": "late",
            "note": "It left the warehouse on Monday, and nobody has seen it since.",
        })
    };
    let each = row(0).to_string().len() + 1;
    (0..RESULT / each).map(row).collect()
}

fn prose(of: usize) -> String {
    let line = format!(
        "Order {of} is late: it left the warehouse on Monday, see https://example.org/orders/{of}.\n"
    );
    line.repeat(RESULT / line.len())
}

/// Records one request and its answer.
fn record(request: &ChatRequest, to: impl io::Write + Send + 'static) -> Result<(), String> {
    let recorder = Recorder::new(to, "bench", Redactor::default().with_secrets(keys()));
    let recorder = recorder.map_err(|fault| fault.to_string())?;
    let model = recorder.model(Arc::new(Short {
        id: ModelId::new("bench", "short"),
        capabilities: ModelCapabilities::default(),
    }));
    let asked = async {
        let stream = model.stream(request).await;
        let mut stream = stream.map_err(|fault| fault.to_string())?;
        while stream.next().await.is_some() {}
        Ok(())
    };
    let asked = asked.now_or_never();
    asked.unwrap_or_else(|| Err("it waits for something".to_owned()))?;
    recorder.finish().map_err(|fault| fault.to_string())
}

/// A file in memory.
#[derive(Clone, Default)]
struct Paper(Arc<std::sync::Mutex<Vec<u8>>>);

impl io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut paper = self.0.lock().map_err(|_| io::ErrorKind::Other)?;
        paper.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn recordings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recording");
    for (size, bytes) in SIZES {
        let request = conversation(bytes);
        let paper = Paper::default();
        if let Err(why) = record(&request, paper.clone()) {
            eprintln!("{size}: {why}");
            continue;
        }
        let written = match paper.0.lock() {
            Ok(paper) => paper.clone(),
            Err(fault) => fault.into_inner().clone(),
        };
        group.throughput(Throughput::BytesDecimal(written.len() as u64));
        group.bench_with_input(
            BenchmarkId::new("written without secrets", size),
            &request,
            |bencher, request| bencher.iter(|| record(black_box(request), io::sink())),
        );
        group.bench_with_input(
            BenchmarkId::new("read", size),
            &written,
            |bencher, written| {
                let read =
                    |redactor| Player::with_redactor(black_box(written.as_slice()), redactor);
                bencher.iter_batched(
                    || Redactor::default().with_secrets(keys()),
                    read,
                    BatchSize::PerIteration,
                );
            },
        );
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = recordings
}
criterion_main!(benches);
