//! The cost of the state machine: a run gets responses and results, without a driver.

#![allow(
    clippy::print_stderr,
    reason = "where nothing can be measured it says why"
)]

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use serde_json::json;
use switchboard_domain::{
    ChatResponse, FinishReason, Message, ModelEvent, ModelId, PartStart, ResponseAccumulator,
    ToolChoiceOutcome, ToolDefinition, ToolOrigin, ToolOutput, Usage,
};
use switchboard_orchestration::{Outcome, Run, RunOptions, Step, ToolCallOutcome};

/// Calls in each answer of the model but the last.
const CALLS: u32 = 2;

fn tools() -> Vec<Arc<ToolDefinition>> {
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {"customer": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1}}, "required": ["customer"]});
        let mut tool = ToolDefinition::new(format!("shop__{name}"), "Looks something up.", schema);
        tool.annotations.read_only = Some(true);
        tool.origin = Some(ToolOrigin {
            server: "shop".to_owned(),
            tool: name.to_owned(),
        });
        Arc::new(tool)
    };
    ["orders", "customers", "prices", "stock"].map(tool).into()
}

/// Returns the response of one step: text, and calls unless it is the last.
fn events(step: u32, is_last: bool) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::Started {
        response_id: Some(format!("answer_{step}")),
        model: None,
        tool_choice: ToolChoiceOutcome::Native,
    }];
    let part = PartStart::Text;
    events.push(ModelEvent::PartStarted { index: 0, part });
    for word in
        "I look at the orders of this customer first, and then at the stock.".split_inclusive(' ')
    {
        let text = word.to_owned();
        events.push(ModelEvent::TextDelta { index: 0, text });
    }
    events.push(ModelEvent::PartFinished { index: 0 });
    let calls = if is_last { 0 } else { CALLS };
    for index in 1..=calls {
        let part = PartStart::ToolUse {
            id: format!("call_{step}_{index}"),
            name: "shop__orders".to_owned(),
        };
        events.push(ModelEvent::PartStarted { index, part });
        for json in [
            "{\"customer\": ",
            &format!("\"{step}-{index}\", "),
            "\"limit\": 5}",
        ] {
            let json = json.to_owned();
            events.push(ModelEvent::ToolInputDelta { index, json });
        }
        events.push(ModelEvent::PartFinished { index });
    }
    let usage = Usage {
        input_tokens: Some(400),
        output_tokens: Some(40),
        ..Usage::default()
    };
    let usage = Box::new(usage);
    events.push(ModelEvent::Usage { usage });
    let reason = FinishReason::Stop.given_tool_uses(calls > 0);
    events.push(ModelEvent::Finished { reason, raw: None });
    events
}

fn assembled(events: &[ModelEvent]) -> Option<ChatResponse> {
    let mut answer = ResponseAccumulator::default();
    events
        .iter()
        .try_for_each(|event| answer.push(event))
        .ok()?;
    answer.finish().ok()
}

/// Runs this number of steps and returns the number of events; `None` if the run refused an input.
fn run(tools: &[Arc<ToolDefinition>], answers: &[Vec<ModelEvent>]) -> Option<usize> {
    let question = Arc::new(Message::user("Which orders are late?"));
    let mut options = RunOptions::default();
    options.limits.max_steps = u32::try_from(answers.len()).ok()?;
    let model = ModelId::new("bench", "m");
    let mut run = Run::new("run", model, vec![question], options);
    run.set_declared_tools(tools.to_vec());
    let mut answers = answers.iter();
    let mut told = 0;
    let mut now = Timestamp::UNIX_EPOCH;
    loop {
        now += Duration::from_millis(20);
        run.tick(now);
        match run.next_step() {
            Step::CallModel => {
                told += run.begin_model_call(tools.to_vec()).events.len();
                let answer = assembled(answers.next()?)?;
                told += run.model_answered(answer).ok()?.len();
            }
            Step::CallTools(calls) => {
                for call in &calls {
                    told += run.tool_started(&call.id).ok()?.len();
                }
                for call in &calls {
                    let result =
                        ToolOutput::text("Order 17 is late: it left the warehouse on Monday.");
                    let answer = ToolCallOutcome::new(Ok(result), 12);
                    told += run.tool_finished(&call.id, answer).ok()?.len();
                }
            }
            _ => break,
        }
    }
    (run.outcome() == Some(Outcome::Completed)).then_some(told)
}

fn machine(criterion: &mut Criterion) {
    let tools = tools();
    let mut group = criterion.benchmark_group("run without ports");
    for steps in [1, 8, 32] {
        let answers: Vec<_> = (1..=steps)
            .map(|step| events(step, step == steps))
            .collect();
        if run(&tools, &answers).is_none() {
            // A failed run is not measured.
            eprintln!("a run of {steps} steps was not taken");
            continue;
        }
        group.throughput(Throughput::Elements(steps.into()));
        let id = BenchmarkId::new("steps with two calls each", steps);
        group.bench_with_input(id, &answers, |bencher, answers| {
            bencher.iter(|| run(&tools, black_box(answers)));
        });
    }
    group.finish();
}

fn stored(criterion: &mut Criterion) {
    let messages = |count: usize| {
        let message = |number: usize| {
            let text = format!("Order {number} is late: it left the warehouse on Monday.");
            Arc::new(if number.is_multiple_of(2) {
                Message::user(text)
            } else {
                Message::assistant(text)
            })
        };
        (0..=count).map(message).collect::<Vec<_>>()
    };
    let mut group = criterion.benchmark_group("run as JSON");
    for count in [10, 100] {
        let run = Run::new(
            "run",
            ModelId::new("bench", "m"),
            messages(count),
            RunOptions::default(),
        );
        group.throughput(Throughput::Elements(count as u64));
        let id = BenchmarkId::new("messages", count);
        group.bench_with_input(id, &run, |bencher, run| {
            bencher.iter(|| serde_json::to_string(black_box(run)));
        });
    }
    group.finish();
}

criterion_group! {
    name = machines;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = machine, stored
}
criterion_main!(machines);
