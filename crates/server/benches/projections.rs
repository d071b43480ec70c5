//! What it costs to tell a run to a client, in each dialect.

#![allow(
    clippy::print_stderr,
    reason = "where nothing can be measured it says why"
)]

use std::{
    collections::VecDeque,
    error::Error,
    hint::black_box,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, ModelCapabilities, ModelError, ModelEvent, ModelId,
    ModelStream, PartStart, ToolCall, ToolCallError, ToolCatalog, ToolDefinition, ToolHost,
    ToolHostChanges, ToolOrigin, ToolOutput, Usage,
};
use switchboard_orchestration::{Agent, RunEvent};
use switchboard_server::Dialect;

/// Words of the answer, each of which comes alone.
const WORDS: usize = 600;

/// Says what it was given to say, an answer for each question.
#[derive(Debug)]
struct Scripted {
    id: ModelId,
    capabilities: ModelCapabilities,
    answers: Mutex<VecDeque<Vec<ModelEvent>>>,
}

#[async_trait]
impl ChatModel for Scripted {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, _: &ChatRequest) -> Result<ModelStream, ModelError> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let events = answers.pop_front().unwrap_or_default();
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}

/// Looks something up.
#[derive(Debug)]
struct Shop;

#[async_trait]
impl ToolHost for Shop {
    async fn tools(&self) -> ToolCatalog {
        let schema = json!({"type": "object", "properties": {"customer": {"type": "string"}}});
        let mut tool = ToolDefinition::new("shop__orders", "Finds orders.", schema);
        tool.origin = Some(ToolOrigin {
            server: "shop".to_owned(),
            tool: "orders".to_owned(),
        });
        ToolCatalog {
            tools: vec![Arc::new(tool)],
            problems: Vec::new(),
        }
    }

    async fn call(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let text = "Order 17 is late: it left the warehouse on Monday.\n".repeat(20);
        Ok(ToolOutput::text(text))
    }

    fn changes(&self) -> ToolHostChanges {
        Box::pin(stream::empty())
    }
}

fn part(index: u32, part: PartStart, deltas: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::PartStarted { index, part }];
    events.extend(deltas);
    events.push(ModelEvent::PartFinished { index });
    events
}

fn answer(parts: &[Vec<ModelEvent>], reason: FinishReason) -> Vec<ModelEvent> {
    let mut events = parts.concat();
    let usage = Usage {
        input_tokens: Some(400),
        output_tokens: Some(40),
        ..Usage::default()
    };
    let usage = Box::new(usage);
    events.push(ModelEvent::Usage { usage });
    events.push(ModelEvent::Finished { reason, raw: None });
    events
}

/// A run as servers have most: the model thinks, calls a tool, reads its result and answers.
fn events() -> Result<Vec<RunEvent>, Box<dyn Error>> {
    let words =
        "Order 17 of customer **4711** is late,\nand has been \"in transit\" since Monday. ";
    let words = words.split_inclusive(' ').cycle();
    let thoughts = words.clone().take(60).map(|word| {
        let text = word.to_owned();
        ModelEvent::ReasoningDelta { index: 0, text }
    });
    let input = ["{\"cust", "omer\":", " \"47", "11\"}"].map(|json| {
        let json = json.to_owned();
        ModelEvent::ToolInputDelta { index: 1, json }
    });
    let call = PartStart::ToolUse {
        id: "call_1".to_owned(),
        name: "shop__orders".to_owned(),
    };
    let text = words.take(WORDS).map(|word| {
        let text = word.to_owned();
        ModelEvent::TextDelta { index: 0, text }
    });
    let asks = vec![
        part(0, PartStart::Reasoning, thoughts.collect()),
        part(1, call, input.into()),
    ];
    let answers = vec![part(0, PartStart::Text, text.collect())];
    let model = Scripted {
        id: ModelId::new("bench", "m"),
        capabilities: ModelCapabilities::default(),
        answers: Mutex::new(VecDeque::from([
            answer(&asks, FinishReason::ToolUse),
            answer(&answers, FinishReason::Stop),
        ])),
    };
    let agent = Agent::new(Arc::new(model)).with_tools(Arc::new(Shop));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let events: Vec<RunEvent> = runtime.block_on(agent.ask("Which orders are late?").collect());
    if events.len() < WORDS {
        return Err(format!(
            "the run has {} events only: {:?}",
            events.len(),
            events.last()
        )
        .into());
    }
    Ok(events)
}

fn projections(criterion: &mut Criterion) {
    let events = match events() {
        Ok(events) => events,
        // Nothing is measured of what does not work: the bench has to be mended.
        Err(error) => return eprintln!("{error}"),
    };
    let mut group = criterion.benchmark_group("run to frames");
    for (name, dialect) in Dialect::ALL {
        group.throughput(Throughput::Elements(events.len() as u64));
        let id = BenchmarkId::new(name, format!("{} events", events.len()));
        group.bench_with_input(id, &events, |bencher, events| {
            bencher.iter(|| dialect.told(black_box(events)));
        });
    }
    group.finish();
}

criterion_group! {
    name = dialects;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = projections
}
criterion_main!(dialects);
