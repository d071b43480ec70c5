//! What a wire costs: a domain request as the bytes of a body, and the bytes of an answer as domain events.

#![allow(
    clippy::print_stderr,
    reason = "where nothing can be measured it says why"
)]

mod answers;

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde::Serialize;
use serde_json::json;
use switchboard_domain::{
    ChatRequest, Message, ModelError, ModelErrorKind, ModelId, Part, Role, ToolDefinition,
    ToolInput, ToolResult, ToolUse,
};
use switchboard_providers_anthropic::{MessagesOptions, messages};
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_gemini::{GeminiOptions, generate};
use switchboard_providers_ollama::{ThinkForm, chat as ollama};
use switchboard_providers_openai::{
    Profile, chat,
    responses::{self, ResponsesOptions},
};
use switchboard_testkit::fixtures;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Bytes = Result<Vec<u8>, ModelError>;

/// The body of a request, as an adapter makes it.
type Mapping = fn(&ChatRequest) -> Bytes;

const MAPPINGS: [(&str, Mapping); 5] = [
    ("anthropic", to_anthropic),
    ("openai-chat", to_chat),
    ("openai-responses", to_responses),
    ("gemini", to_gemini),
    ("ollama", to_ollama),
];

fn written(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body).map_err(|fault| {
        let kind = ModelErrorKind::InvalidRequest { field: None };
        ModelError::new("bench", kind, fault.to_string())
    })
}

fn to_anthropic(request: &ChatRequest) -> Bytes {
    let model = fixtures::anthropic_model();
    let capabilities = switchboard_providers_anthropic::capabilities(&model.name);
    let options = MessagesOptions::default();
    written(
        &messages::to_wire(
            request,
            &model,
            &capabilities,
            &options,
            &ToolSchemas::default(),
        )?
        .body,
    )
}

fn to_chat(request: &ChatRequest) -> Bytes {
    let (model, profile) = (fixtures::openai_model(), Profile::openai());
    let capabilities = switchboard_providers_openai::capabilities(&model.name, &profile);
    written(
        &chat::to_wire(
            request,
            &model,
            &capabilities,
            &profile,
            &ToolSchemas::default(),
        )?
        .body,
    )
}

fn to_responses(request: &ChatRequest) -> Bytes {
    let (model, profile) = (fixtures::openai_model(), Profile::openai());
    let capabilities = switchboard_providers_openai::capabilities(&model.name, &profile);
    let options = ResponsesOptions::default();
    written(
        &responses::to_wire(
            request,
            &model,
            &capabilities,
            &profile,
            &options,
            &ToolSchemas::default(),
        )?
        .body,
    )
}

fn to_gemini(request: &ChatRequest) -> Bytes {
    let model = ModelId::new("gemini", "gemini-2.5-flash");
    let capabilities = switchboard_providers_gemini::capabilities(&model.name);
    let options = GeminiOptions::default();
    written(
        &generate::to_wire(
            request,
            &model,
            &capabilities,
            &options,
            &ToolSchemas::default(),
        )?
        .body,
    )
}

fn to_ollama(request: &ChatRequest) -> Bytes {
    let model = ModelId::new("ollama", "qwen3:8b");
    let capabilities = switchboard_providers_ollama::capabilities(&model.name, false);
    written(
        &ollama::to_wire(
            request,
            &model,
            &capabilities,
            ThinkForm::default(),
            &ToolSchemas::default(),
        )?
        .body,
    )
}

fn tools(count: usize) -> Vec<Arc<ToolDefinition>> {
    let tool = |number: usize| {
        let schema = json!({
            "type": "object",
            "properties": {
                "customer": {"type": "string", "description": "The customer's number or name."},
                "since": {"type": "string", "format": "date", "description": "The first day that counts."},
                "states": {"type": "array", "items": {"type": "string", "enum": ["open", "late", "sent"]}},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
            },
            "required": ["customer"],
        });
        let about = "Finds the orders of a customer, the newest first. Says of each its number, state and sum.";
        Arc::new(ToolDefinition::new(
            format!("shop__find_{number}"),
            about,
            schema,
        ))
    };
    (0..count).map(tool).collect()
}

/// A question, a call, its result and an answer, so often that there are `messages` of them.
fn conversation(messages: usize) -> Vec<Message> {
    let turn = |number: usize| {
        let id = format!("call_{number}");
        let input = ToolInput::parse(r#"{"customer":"4711","states":["open","late"],"limit":5}"#);
        let result =
            "Order 17 of customer 4711 is late: it left the warehouse on Monday.\n".repeat(4);
        [
            Message::user("Which orders of customer 4711 are late, and since when?"),
            Message::new(
                Role::Assistant,
                vec![Part::ToolUse(ToolUse::new(&id, "shop__find_0", input))],
            ),
            Message::tool_results([ToolResult::text(&id, "shop__find_0", result)]),
            Message::new(
                Role::Assistant,
                vec![Part::text(
                    "One: **order 17**, which left on Monday. Shall I write?",
                )],
            ),
        ]
    };
    (0..messages.div_ceil(4)).flat_map(turn).collect()
}

fn mapping(criterion: &mut Criterion) {
    let asked = |mut messages: Vec<Message>, count: usize| {
        messages.insert(
            0,
            Message::system("You answer questions about orders, shortly."),
        );
        messages.push(Message::user("And now?"));
        let request = ChatRequest::new(messages);
        ChatRequest {
            tools: tools(count),
            ..request
        }
    };
    let requests = [
        ("small", asked(Vec::new(), 0)),
        ("20 tools", asked(Vec::new(), 20)),
        ("100 messages", asked(conversation(100), 1)),
    ];
    let mut group = criterion.benchmark_group("request to body");
    for (wire, map) in MAPPINGS {
        for (name, request) in &requests {
            match map(request) {
                Ok(body) => group.throughput(Throughput::BytesDecimal(body.len() as u64)),
                // Nothing is measured of what does not work: the bench has to be mended.
                Err(error) => {
                    eprintln!("{wire}, {name}: {error}");
                    continue;
                }
            };
            group.bench_with_input(BenchmarkId::new(wire, name), request, |bencher, request| {
                bencher.iter(|| map(black_box(request)));
            });
        }
    }
    group.finish();
}

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("answer to events");
    for answer in answers::all() {
        if let Err(error) = answer.check() {
            eprintln!("{error}");
            continue;
        }
        group.throughput(Throughput::BytesDecimal(answer.size() as u64));
        let id = BenchmarkId::new(answer.wire, answer.about);
        group.bench_with_input(id, &answer, |bencher, answer| {
            bencher.iter(|| answer.read());
        });
    }
    group.finish();
}

criterion_group! {
    name = wires;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = mapping, decoding
}
criterion_main!(wires);
