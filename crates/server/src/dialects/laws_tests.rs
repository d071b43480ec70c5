//! Checks that the responses of each dialect to any run follow the rules of its clients.

#[path = "answer_schema_tests.rs"]
mod answer_schema;
#[path = "client_rules_tests.rs"]
mod client_rules;
#[path = "scripted_runs_tests.rs"]
mod scripted_runs;

use proptest::prelude::*;
use switchboard_domain::FinishReason;
use switchboard_orchestration::{Outcome, RunEvent, RunEventKind, RunReport};

use super::{
    SseFrames,
    ag_ui::AgUiStream,
    ai_sdk::AiSdkStream,
    anthropic_messages::AnthropicMessagesStream,
    event_encoder::{EventEncoder, SequencedEncoder},
    openai_chat::OpenAiChatStream,
    response::collected_response::CollectedResponse,
    response::response_state::ResponseState,
    tools::client_tools::{ClientTools, build_tool_definition},
};
use client_rules::{AgUi, Ui, frames};
use scripted_runs::{End, Piece, Script, Turn, crashed};

/// Encodes a whole run as one response.
fn told(encoder: impl EventEncoder, events: &[RunEvent]) -> Vec<client_rules::Frame> {
    let mut encoder = SequencedEncoder::new(encoder);
    let mut out = SseFrames::default();
    for event in events {
        encoder.encode_event(event, &mut out);
    }
    assert!(encoder.is_closed());
    frames(&out.take_bytes())
}

/// Encodes a run as several responses: one ends where the run waits for a person, and the next
/// begins there.
fn told_in_pieces<P: EventEncoder>(
    events: &[RunEvent],
    encoder: impl Fn() -> P,
    mut read: impl FnMut(&[client_rules::Frame], bool),
) {
    let mut seen = 0;
    while seen < events.len() {
        let parked = events[seen..]
            .iter()
            .position(|event| matches!(event.kind, RunEventKind::RunParked { .. }));
        let end = parked.map_or(events.len(), |at| seen + at + 1);
        let mut encoder = SequencedEncoder::new(encoder());
        let mut out = SseFrames::default();
        for event in &events[..seen] {
            encoder.encode_event(event, &mut out);
        }
        if seen > 0 {
            encoder.encode_run_pause(&mut out);
            let _ = out.take_bytes();
            encoder.encode_run_resume(&mut out);
        }
        for event in &events[seen..end] {
            encoder.encode_event(event, &mut out);
        }
        let is_over = end == events.len();
        assert_eq!(encoder.is_closed(), is_over);
        if !is_over {
            assert!(encoder.waits_for_client_request());
            encoder.encode_run_pause(&mut out);
        }
        assert!(encoder.is_closed());
        read(&frames(&out.take_bytes()), is_over);
        seen = end;
    }
}

/// Encodes a response that ends before the end of the run.
fn broken(encoder: impl EventEncoder, events: &[RunEvent]) -> Vec<client_rules::Frame> {
    let mut encoder = SequencedEncoder::new(encoder);
    let mut out = SseFrames::default();
    for event in events {
        encoder.encode_event(event, &mut out);
    }
    encoder.encode_run_interruption("the server stops", &mut out);
    assert!(encoder.is_closed());
    frames(&out.take_bytes())
}

fn report(events: &[RunEvent]) -> &RunReport {
    match &events.last().unwrap().kind {
        RunEventKind::RunFinished { report } => report,
        other => panic!("{other:?}"),
    }
}

/// Checks the rules of every dialect for a run. `is_whole` states that no process ended during the
/// run, so that no text occurs twice.
fn assert_laws(events: &[RunEvent], is_whole: bool) {
    let report = report(events);
    let has_answer = report.outcome == Outcome::Completed;

    let mut ui = Ui::default();
    told_in_pieces(
        events,
        || AiSdkStream::new(Some("chat".into())),
        |frames, is_over| {
            ui.read(frames, is_over);
        },
    );
    // A client that opens the stream again receives the run from its beginning.
    let mut again = Ui::default();
    again.read(&told(AiSdkStream::new(None), events), true);
    assert_eq!(ui.texts, again.texts);

    for with_usage in [false, true] {
        let said = client_rules::chat(&told(chat(None, with_usage), events));
        match said {
            // This dialect cannot discard text that was already sent.
            Ok(content) if has_answer => assert!(
                !is_whole || content.ends_with(&report.answer),
                "{content:?} does not end with {:?}",
                report.answer
            ),
            Ok(_) => assert_ne!(report.outcome, Outcome::Cancelled),
            Err(_) => assert!(!has_answer),
        }
    }

    let blocks = client_rules::messages(&told(messages(None), events));
    match blocks {
        Ok(texts) if has_answer => assert!(texts.concat().ends_with(&report.answer)),
        Ok(_) => assert_ne!(report.outcome, Outcome::Cancelled),
        Err(_) => assert!(!has_answer),
    }

    let mut ag_ui = AgUi::default();
    let mut texts = Vec::new();
    told_in_pieces(
        events,
        || AgUiStream::new("thread", "client", "thread"),
        |frames, is_over| {
            texts.extend(ag_ui.read(frames, is_over));
        },
    );
    if has_answer {
        assert!(texts.concat().ends_with(&report.answer));
        assert!(again.texts.concat().ends_with(&report.answer));
    }
}

fn pieces() -> impl Strategy<Value = Piece> {
    let input = prop_oneof![
        6 => Just(r#"{"n":1}"#),
        1 => Just(r#"{"n":"no number"}"#),
        1 => Just(r#"{"n":"#),
        1 => Just("[1]"),
    ];
    let tool = prop_oneof![
        3 => Just("desk__look"),
        3 => Just("desk__change"),
        1 => Just("desk__fail"),
        1 => Just("desk__draw"),
        1 => Just("desk__nothing"),
    ];
    prop_oneof![
        3 => prop_oneof![Just("I look it up."), Just("It is 7.")].prop_map(Piece::Text),
        2 => Just(Piece::Thought("Let me see.")),
        1 => Just(Piece::Block),
        1 => tool.clone().prop_map(|tool| Piece::WholeCall(tool, "whole")),
        5 => (tool, prop_oneof![Just("a"), Just("b"), Just("")], input)
            .prop_map(|(tool, id, input)| Piece::Call(tool, id, input)),
    ]
}

fn turns() -> impl Strategy<Value = Turn> {
    let end = prop_oneof![
        8 => Just(FinishReason::Stop).prop_map(End::Finishes),
        1 => Just(FinishReason::Length).prop_map(End::Finishes),
        1 => Just(FinishReason::Refusal).prop_map(End::Finishes),
        1 => Just(FinishReason::ContentFilter).prop_map(End::Finishes),
        1 => Just(FinishReason::Paused).prop_map(End::Finishes),
        1 => Just(FinishReason::ContextOverflow).prop_map(End::Finishes),
        1 => Just(FinishReason::MalformedToolCall).prop_map(End::Finishes),
        1 => Just(FinishReason::Other("odd".into())).prop_map(End::Finishes),
        1 => Just(End::Breaks),
        1 => Just(End::FailsAtOnce),
    ];
    (proptest::collection::vec(pieces(), 0..5), end).prop_map(|(pieces, end)| Turn { pieces, end })
}

fn scripts() -> impl Strategy<Value = Script> {
    let turns = proptest::collection::vec(turns(), 1..5);
    let person = prop_oneof![3 => Just(3_u8), 1 => 0_u8..3, 2 => Just(4_u8)];
    let people = proptest::collection::vec(person, 0..5);
    let cancelled_at = proptest::option::weighted(0.2, 1_usize..40);
    (
        turns,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        people,
        cancelled_at,
        1_u32..6,
    )
        .prop_map(
            |(turns, has_second_model, formats, asks, people, cancelled_at, max_steps)| Script {
                turns,
                has_second_model,
                formats,
                asks,
                people,
                cancelled_at,
                max_steps,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_responses_to_any_run_follow_the_rules_of_the_clients(script in scripts(), at in 0_usize..60) {
        let events = script.played();
        assert_laws(&events, true);
        assert_laws(&crashed(&events, at), false);
    }

    /// Checks that clients can read a response that the server ends early.
    #[test]
    fn a_response_that_breaks_off_has_an_end(script in scripts(), at in 1_usize..60) {
        let events = script.played();
        let events = &events[..at.min(events.len() - 1)];
        let last = |frames: &[client_rules::Frame], back: usize| {
            frames[frames.len() - back].data.clone().unwrap()
        };
        let ui = broken(AiSdkStream::new(None), events);
        prop_assert_eq!(&last(&ui, 3)["errorText"], "the server stops");
        let chat = broken(chat(None, true), events);
        prop_assert_eq!(client_rules::chat(&chat), Err("interrupted".to_owned()));
        let messages = broken(messages(None), events);
        prop_assert_eq!(client_rules::messages(&messages), Err("overloaded_error".to_owned()));
        let ag_ui = broken(AgUiStream::new("t", "r", "t"), events);
        prop_assert_eq!(&last(&ag_ui, 1)["code"], "interrupted");
    }
}

fn finishes(pieces: Vec<Piece>) -> Turn {
    Turn {
        pieces,
        end: End::Finishes(FinishReason::Stop),
    }
}

/// Plays a run with all usual events: reasoning, text before tool calls, two calls, an approval
/// with another input, a failed call, an answer.
fn usual() -> Vec<RunEvent> {
    let mut script = Script::of(vec![
        finishes(vec![
            Piece::Thought("I need two things."),
            Piece::Text("I look it up."),
            Piece::Call("desk__draw", "call_1", r#"{"n":1}"#),
            Piece::Call("desk__change", "call_2", r#"{"n":2}"#),
        ]),
        finishes(vec![Piece::Call("desk__fail", "call_3", r#"{"n":3}"#)]),
        finishes(vec![Piece::Text("It is **7**.")]),
    ]);
    script.asks = true;
    script.people = vec![3, 1];
    script.played()
}

/// Shows one run in the format of each dialect.
#[test]
fn one_run_in_every_dialect() {
    let events = usual();
    let mut written = String::new();
    for event in &events {
        written.push_str(&serde_json::to_string(event).unwrap());
        written.push('\n');
    }
    insta::assert_snapshot!("one_run__events", written);
    insta::assert_snapshot!("one_run__chat", body(chat(Some("test/one"), true), &events));
    insta::assert_snapshot!(
        "one_run__messages",
        body(messages(Some("test/one")), &events)
    );
    // In these dialects, a response ends where the run waits for a person.
    let mut pieces = String::new();
    let mut write = |body: &[client_rules::Frame], _| {
        for frame in body {
            match &frame.data {
                Some(data) => pieces.extend(["data: ", &data.to_string(), "\n"]),
                None => pieces.push_str("data: [DONE]\n\n"),
            }
        }
    };
    told_in_pieces(
        &events,
        || AiSdkStream::new(Some("chat".into())),
        &mut write,
    );
    insta::assert_snapshot!("one_run__ui", pieces);
    let mut pieces = String::new();
    let mut write = |body: &[client_rules::Frame], _| {
        for frame in body {
            let data = frame.data.as_ref().unwrap();
            pieces.extend(["data: ", &data.to_string(), "\n"]);
        }
        pieces.push('\n');
    };
    told_in_pieces(
        &events,
        || AgUiStream::new("thread", "client-run", "thread"),
        &mut write,
    );
    insta::assert_snapshot!("one_run__ag_ui", pieces);
}

/// Returns the bytes of a response.
fn body(encoder: impl EventEncoder, events: &[RunEvent]) -> String {
    let mut encoder = SequencedEncoder::new(encoder);
    let mut out = SseFrames::default();
    for event in events {
        encoder.encode_event(event, &mut out);
    }
    String::from_utf8(out.take_bytes().to_vec()).unwrap()
}

fn chat(model: Option<&str>, with_usage: bool) -> OpenAiChatStream {
    OpenAiChatStream::new(
        model.map(str::to_owned),
        with_usage,
        ResponseState::default(),
    )
}

fn messages(model: Option<&str>) -> AnthropicMessagesStream {
    AnthropicMessagesStream::new(model.map(str::to_owned), ResponseState::default())
}

/// Returns the state of a response that begins after the event `seen`.
fn after(seen: u64) -> ResponseState {
    ResponseState {
        last_seen: Some(seen),
        ..ResponseState::default()
    }
}

/// Encodes a response that ends where the client must execute a call.
fn first(encoder: impl EventEncoder, events: &[RunEvent]) -> Vec<client_rules::Frame> {
    let mut encoder = SequencedEncoder::new(encoder);
    let mut out = SseFrames::default();
    for event in events {
        encoder.encode_event(event, &mut out);
    }
    assert!(!encoder.is_closed() && encoder.waits_for_client_request());
    let calls = encoder.waiting_client_calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].1, "call_1");
    encoder.encode_run_pause(&mut out);
    assert!(encoder.is_closed());
    frames(&out.take_bytes())
}

/// Changes the events of a run, so that the tool of the call `call` belongs to the client.
fn as_clients(mut events: Vec<RunEvent>, call: &str) -> Vec<RunEvent> {
    for event in &mut events {
        if let RunEventKind::ToolPlanned { id, server, .. } = &mut event.kind
            && id == call
        {
            *server = Some("the client".to_owned());
        }
    }
    events
}

/// Checks that a call of a client's tool ends the response, and that another response contains the
/// following events.
#[test]
fn a_call_of_the_client_ends_its_response() {
    let mut script = Script::of(vec![
        finishes(vec![
            Piece::Text("I ask you."),
            Piece::Call("desk__change", "call_1", r#"{"n":1}"#),
            Piece::Call("desk__look", "call_2", r#"{"n":2}"#),
        ]),
        finishes(vec![Piece::Text("It is 7.")]),
    ]);
    script.asks = true;
    script.people = vec![3];
    let events = as_clients(script.played(), "call_1");
    let parked = events
        .iter()
        .position(|event| matches!(event.kind, RunEventKind::RunParked { .. }));
    let (before, rest) = events.split_at(parked.unwrap());
    let seen = before.len() as u64;
    let chat = first(chat(None, true), before);
    assert_eq!(client_rules::chat(&chat).as_deref(), Ok("I ask you."));
    let calls: Vec<_> = chat
        .iter()
        .filter_map(|frame| frame.data.as_ref()?["choices"][0]["delta"].get("tool_calls"))
        .collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0][0]["function"]["arguments"], r#"{"n":1}"#);
    assert_eq!(calls[0][0]["id"], "sb_run_call_1");
    let chat_rest = told(OpenAiChatStream::new(None, true, after(seen)), rest);
    assert_eq!(client_rules::chat(&chat_rest).as_deref(), Ok("It is 7."));
    // Each response reports only its own usage.
    let cost = |frames: &[client_rules::Frame]| {
        frames[frames.len() - 2].data.clone().unwrap()["usage"]["completion_tokens"].clone()
    };
    assert_eq!((cost(&chat), cost(&chat_rest)), (20.into(), 20.into()));

    let messages = first(messages(None), before);
    assert_eq!(client_rules::messages(&messages).unwrap(), ["I ask you."]);
    let messages_rest = told(AnthropicMessagesStream::new(None, after(seen)), rest);
    assert_eq!(
        client_rules::messages(&messages_rest).unwrap(),
        ["It is 7."]
    );

    let mut whole = SequencedEncoder::new(CollectedResponse::default());
    let mut out = SseFrames::default();
    for event in before {
        whole.encode_event(event, &mut out);
    }
    assert!(whole.waits_for_client_request());
    whole.encode_run_pause(&mut out);
    let said = whole.encoder;
    assert_eq!(said.text, "I ask you.");
    assert_eq!(said.calls.len(), 1);
}

/// Checks that a call of the client's tool waits for its result even if no approval is needed, and
/// that calls of the server's tools do not wait.
#[test]
fn a_tool_of_the_client_waits_where_nothing_else_has_to() {
    let script = Script::of(vec![
        finishes(vec![
            Piece::Call("desk__change", "call_1", r#"{"n":1}"#),
            Piece::Call("mine", "call_2", "{}"),
        ]),
        finishes(vec![Piece::Text("Done.")]),
    ]);
    let mine = build_tool_definition(
        "mine",
        "Mine.".into(),
        serde_json::json!({"type": "object"}),
    );
    let tools = ClientTools::from_definitions(vec![mine]);
    let events = script.played_with(Box::new(|agent| {
        agent.with_tools_requiring_approval("the client", tools)
    }));
    let asked: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            RunEventKind::ToolAwaitingApproval { id } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(asked, ["call_2"]);
    let failed = |id: &str| {
        let mut calls = report(&events).tool_calls.iter();
        calls.find(|call| call.id == id).unwrap().is_error
    };
    // The approval of the second call is not a result: only the client can return one.
    assert_eq!((failed("call_1"), failed("call_2")), (false, true));
}

/// Shows runs with other finish reasons in the format of each dialect.
#[test]
fn other_ends_in_every_dialect() {
    let ends = |reason| {
        Script::of(vec![Turn {
            pieces: vec![Piece::Text("So")],
            end: End::Finishes(reason),
        }])
        .played()
    };
    let last = |frames: Vec<client_rules::Frame>, back: usize| {
        frames[frames.len() - back].data.clone().unwrap()
    };
    let refused = ends(FinishReason::Refusal);
    let frame = last(told(messages(None), &refused), 2);
    assert_eq!(frame["delta"]["stop_reason"], "refusal");
    let declined = told(chat(None, false), &refused);
    let frame = last(declined.clone(), 2);
    assert_eq!(frame["choices"][0]["finish_reason"], "stop");
    assert!(last(declined, 3)["choices"][0]["delta"]["refusal"].is_string());
    let frame = last(told(AiSdkStream::new(None), &refused), 3);
    assert_eq!(frame["type"], "error");
    let frame = last(told(AgUiStream::new("t", "r", "t"), &refused), 1);
    assert_eq!(frame["code"], "refusal");

    let filtered = ends(FinishReason::ContentFilter);
    let frame = last(told(chat(None, false), &filtered), 2);
    assert_eq!(frame["choices"][0]["finish_reason"], "content_filter");

    let mut script = Script::of(vec![finishes(vec![Piece::Text("So")])]);
    script.cancelled_at = Some(3);
    let cancelled = script.played();
    let frame = last(told(AiSdkStream::new(None), &cancelled), 2);
    assert_eq!(frame["type"], "abort");
    let frame = last(told(AgUiStream::new("t", "r", "t"), &cancelled), 1);
    assert_eq!(frame["outcome"]["type"], "cancelled");
    assert_eq!(
        client_rules::chat(&told(chat(None, false), &cancelled)),
        Err("cancelled".into())
    );

    let mut script = Script::of(vec![finishes(vec![
        Piece::Text("So"),
        Piece::Call("desk__look", "a", r#"{"n":1}"#),
    ])]);
    script.max_steps = 1;
    let limited = script.played();
    assert_eq!(report(&limited).outcome, Outcome::Limited);
    let frame = last(told(chat(None, false), &limited), 2);
    assert_eq!(frame["choices"][0]["finish_reason"], "length");
    let frame = last(told(messages(None), &limited), 2);
    assert_eq!(frame["delta"]["stop_reason"], "max_tokens");
    let frame = last(told(AiSdkStream::new(None), &limited), 2);
    assert_eq!(frame["finishReason"], "other");
    let frame = last(told(AgUiStream::new("t", "r", "t"), &limited), 1);
    assert_eq!(frame["result"]["error"]["kind"], "step_limit");
}
