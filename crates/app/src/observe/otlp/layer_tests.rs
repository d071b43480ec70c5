use switchboard_domain::{ChatRequest, JsonObject, Message, ModelId, ToolOutput};
use switchboard_orchestration::observe::trace::{AgentTrace, ChatTrace, ToolTrace};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

/// The spans that end while `work` is done.
fn ended(content: bool, room: usize, work: impl FnOnce()) -> (Vec<EndedSpan>, u64) {
    let (spans, mut waiting) = mpsc::channel(room);
    let queue = Queue {
        spans,
        dropped: Arc::default(),
    };
    let layer = SpanLayer::new(queue.clone(), content);
    let subscriber = tracing_subscriber::registry().with(layer.filtered());
    tracing::subscriber::with_default(subscriber, work);
    let mut all = Vec::new();
    while let Ok(span) = waiting.try_recv() {
        all.push(span);
    }
    (all, queue.dropped.load(Ordering::Relaxed))
}

fn a_run() {
    let model = ModelId::new("acme", "large");
    let run = AgentTrace::begin(None, "run-1", &model, None);
    run.span().in_scope(|| {
        // What others say in between is not ours.
        let other = tracing::info_span!(target: "another", "another");
        other.in_scope(|| {
            let request = ChatRequest {
                messages: vec![Arc::new(Message::user("a question"))],
                ..ChatRequest::default()
            };
            drop(ChatTrace::begin(1, &model, &request, None));
            tracing::info!("noise");
        });
        let tool = ToolTrace::begin("c1", None, "add", &JsonObject::new());
        tool.ended(&Ok(ToolOutput::text("a result")), 1);
    });
    drop(run);
}

fn text(span: &EndedSpan, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| match value {
        Attribute::Text(text) => text.clone(),
        other => format!("{other:?}"),
    })
}

#[test]
fn spans_know_their_parents_also_across_those_of_others() {
    let (spans, dropped) = ended(false, 10, a_run);
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        ["chat large", "execute_tool add", "invoke_agent switchboard"]
    );
    assert_eq!(dropped, 0);
    let run = &spans[2];
    assert_eq!(run.parent, None);
    for child in &spans[..2] {
        assert_eq!((child.trace, child.parent), (run.trace, Some(run.id)));
        assert!(child.since >= run.since && child.until <= run.until);
    }
    assert_ne!(spans[0].id, spans[1].id);
    assert!(spans[0].client && spans[0].failed);
    assert!(!spans[1].client && !spans[1].failed);
    assert_eq!(text(&spans[0], "error.type").as_deref(), Some("cancelled"));
    assert_eq!(
        text(&spans[0], "switchboard.step").as_deref(),
        Some("Whole(1)")
    );
    // What tells name, kind and status is no attribute.
    assert!(spans.iter().all(|span| text(span, "otel.name").is_none()));
}

#[test]
fn what_was_said_is_taken_only_if_it_is_wanted() {
    let (spans, _) = ended(false, 10, a_run);
    let all = format!("{spans:?}");
    assert!(
        !all.contains("a question") && !all.contains("a result"),
        "{all}"
    );
    let (spans, _) = ended(true, 10, a_run);
    assert!(
        text(&spans[0], "gen_ai.input.messages")
            .unwrap()
            .contains("a question")
    );
    assert!(
        text(&spans[1], "gen_ai.tool.call.result")
            .unwrap()
            .contains("a result")
    );
}

#[test]
fn what_does_not_fit_is_counted_and_nobody_waits() {
    let (spans, dropped) = ended(false, 1, a_run);
    assert_eq!((spans.len(), dropped), (1, 2));
}

#[test]
fn every_run_has_a_trace_of_its_own() {
    let (spans, _) = ended(false, 10, || {
        a_run();
        a_run();
    });
    assert_ne!(spans[2].trace, spans[5].trace);
}
