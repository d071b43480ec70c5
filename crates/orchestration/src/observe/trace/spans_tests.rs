use std::{sync::Arc, time::Duration};

use serde_json::json;
use switchboard_domain::{
    FinishReason, Message, ModelErrorKind, Part, Role, ToolContent, ToolDefinition, ToolInput,
    ToolUse,
};

use super::*;
use crate::{
    RunError, RunErrorKind,
    observe::{
        events,
        trace::{CONTENT, capture::CapturedTrace},
    },
};

fn model() -> ModelId {
    ModelId::new("gemini", "flash")
}

fn report(outcome: Outcome, error: Option<RunErrorKind>) -> RunReport {
    let error = error.map(|kind| RunError::new(kind, "it went wrong"));
    RunReport {
        answer: "nothing that a span may hold".into(),
        steps: 2,
        usage: Usage {
            input_tokens: Some(30),
            output_tokens: Some(4),
            ..Usage::default()
        },
        ..events::report(outcome, error)
    }
}

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![
            Arc::new(Message::system("be kind")),
            Arc::new(Message::user("what is my password=hunter22?")),
        ],
        tools: vec![Arc::new(ToolDefinition::new("add", "", json!({})))],
        tool_choice: ToolChoice::Only(vec!["add".into()]),
        max_output_tokens: Some(100),
        delivery: Delivery::Whole,
        ..ChatRequest::default()
    }
}

fn answer() -> ChatResponse {
    let input = ToolInput::parse_input(r#"{"n": 1, "api_key": "abc"}"#);
    ChatResponse {
        message: Message::new(
            Role::Assistant,
            [Part::ToolUse(ToolUse::new("c1", "add", input))],
        ),
        finish: FinishReason::ToolUse,
        finish_raw: None,
        usage: Usage {
            input_tokens: Some(10),
            output_tokens: Some(2),
            cache_read_tokens: Some(3),
            ..Usage::default()
        },
        tool_choice: ToolChoiceOutcome::Relaxed { why: "no".into() },
        warnings: Vec::new(),
        response_id: Some("resp-1".into()),
        model: Some("flash-001".into()),
    }
}

/// Emits the spans of a run with one model call and one tool call.
fn a_run() {
    let run = AgentTrace::open_span(Some("support"), "run-1", &model(), Some("session-1"));
    run.clone_span().in_scope(|| {
        let chat = ChatTrace::open_span(1, &model(), &request(), Some("session-1"));
        chat.record_first_chunk();
        chat.close_with_answer(&answer());
        let Some(input) = json!({"n": 1, "api_key": "abc"}).as_object().cloned() else {
            panic!("an object");
        };
        let tool = ToolTrace::open_span("c1", Some("math"), "add", &input);
        tool.close_with_result(&Ok(ToolOutput::text("2, token=abcdef")), 1);
    });
    run.close_with_run_report(&report(Outcome::Completed, None));
}

#[test]
fn runs_and_calls_are_spans_of_the_conventions() {
    let captured = CapturedTrace::of(false, a_run);
    let (parent, run) = captured.span("invoke_agent support");
    assert_eq!(parent, None);
    for (name, value) in [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "support"),
        ("gen_ai.provider.name", "gcp.gemini"),
        ("gen_ai.request.model", "flash"),
        ("gen_ai.conversation.id", "session-1"),
        ("gen_ai.response.finish_reasons", "stop"),
        ("gen_ai.usage.input_tokens", "30"),
        ("gen_ai.usage.output_tokens", "4"),
        ("switchboard.run.id", "run-1"),
        ("switchboard.run.outcome", "completed"),
        ("switchboard.run.steps", "2"),
        ("otel.kind", "internal"),
    ] {
        assert_eq!(run.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!run.contains_key("error.type") && !run.contains_key("otel.status_code"));

    let (parent, chat) = captured.span("chat flash");
    assert_eq!(parent.as_deref(), Some("invoke_agent support"));
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.response.id", "resp-1"),
        ("gen_ai.response.model", "flash-001"),
        ("gen_ai.response.finish_reasons", "tool_use"),
        ("gen_ai.request.max_tokens", "100"),
        ("gen_ai.request.stream", "false"),
        ("gen_ai.usage.cache_read.input_tokens", "3"),
        ("switchboard.tool_choice.asked", "only add"),
        ("switchboard.tool_choice.outcome", "relaxed: no"),
        ("otel.kind", "client"),
    ] {
        assert_eq!(chat.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(chat.contains_key("gen_ai.response.time_to_first_chunk"));
    // A token count that the provider does not report has no attribute.
    assert!(!chat.contains_key("gen_ai.usage.reasoning.output_tokens"));

    let (parent, tool) = captured.span("execute_tool add");
    assert_eq!(parent.as_deref(), Some("invoke_agent support"));
    for (name, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "add"),
        ("gen_ai.tool.call.id", "c1"),
        ("gen_ai.tool.type", "function"),
        ("switchboard.server", "math"),
        ("switchboard.tool.attempts", "1"),
    ] {
        assert_eq!(tool.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn content_is_emitted_only_if_its_target_is_enabled() {
    let captured = CapturedTrace::of(false, a_run);
    let all = format!("{captured:?}");
    for said in ["be kind", "hunter22", "abc", "token=", "nothing that"] {
        assert!(!all.contains(said), "{said} in {all}");
    }

    let captured = CapturedTrace::of(true, a_run);
    let lines = captured.lines(CONTENT);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].contains("gen_ai.input.messages") && lines[0].contains("be kind"));
    assert!(lines[1].contains(r#""type":"tool_call""#) && lines[1].contains("finish_reason"));
    assert!(lines[2].contains("gen_ai.tool.call.arguments") && lines[2].contains(r#""n":1"#));
    assert!(lines[3].contains("gen_ai.tool.call.result"));
    // Secrets are redacted in any case.
    for secret in ["hunter22", "abc"] {
        assert!(!lines.join("\n").contains(secret), "{lines:?}");
    }
}

#[test]
fn failures_have_an_error_type() {
    let captured = CapturedTrace::of(false, || {
        let chat = ChatTrace::open_span(1, &model(), &request(), None);
        let kind = ModelErrorKind::RateLimited { retry_after: None };
        chat.close_with_error(&ModelError::new("gemini", kind, "slow down, abc").with_status(429));
        let timeout = ToolCallError::Timeout {
            server: "math".into(),
            tool: "add".into(),
            after: Duration::from_secs(1),
        };
        ToolTrace::open_span("c1", None, "late", &JsonObject::new())
            .close_with_result(&Err(timeout), 2);
        let failed = ToolOutput {
            content: vec![ToolContent::text("no")],
            is_error: true,
            ..ToolOutput::default()
        };
        ToolTrace::open_span("c2", None, "bad", &JsonObject::new())
            .close_with_result(&Ok(failed), 1);
    });
    let (_, chat) = captured.span("chat flash");
    assert_eq!(chat["error.type"], "rate_limited");
    assert_eq!(chat["http.response.status_code"], "429");
    let expected = "timeout";
    assert_eq!(captured.span("execute_tool late").1["error.type"], expected);
    let expected = "tool_error";
    assert_eq!(captured.span("execute_tool bad").1["error.type"], expected);
    assert!(!format!("{captured:?}").contains("abc"));
}

#[test]
fn dropped_spans_are_cancelled() {
    let captured = CapturedTrace::of(false, || {
        let run = AgentTrace::open_span(None, "run-1", &model(), None);
        let _in_run = run.clone_span().entered();
        drop(ChatTrace::open_span(1, &model(), &request(), None));
        drop(ToolTrace::open_span("c1", None, "add", &JsonObject::new()));
        drop(run);
    });
    for name in ["chat flash", "execute_tool add", "invoke_agent switchboard"] {
        assert_eq!(captured.span(name).1["error.type"], "cancelled", "{name}");
    }
}

#[test]
fn completed_and_limited_runs_are_not_errors() {
    for (outcome, error, expected) in [
        (Outcome::Completed, None, None),
        (Outcome::Limited, Some(RunErrorKind::StepLimit), None),
        (Outcome::Cancelled, None, Some("cancelled")),
        (
            Outcome::Failed,
            Some(RunErrorKind::Refusal),
            Some("refusal"),
        ),
        (
            Outcome::Failed,
            Some(RunErrorKind::Model("timeout".into())),
            Some("timeout"),
        ),
        (Outcome::Failed, None, Some("_OTHER")),
    ] {
        let captured = CapturedTrace::of(false, || {
            AgentTrace::open_span(None, "run-1", &model(), None)
                .close_with_run_report(&report(outcome, error));
        });
        let (_, span) = captured.span("invoke_agent switchboard");
        assert_eq!(
            span.get("error.type").map(String::as_str),
            expected,
            "{outcome:?}"
        );
    }
}

#[test]
fn a_summary_call_has_a_purpose() {
    let captured = CapturedTrace::of(false, || {
        let chat = ChatTrace::open_span(2, &model(), &request(), None).mark_as_summary();
        chat.close_with_answer(&answer());
    });
    let (_, fields) = captured.span("chat flash");
    assert_eq!(fields["switchboard.purpose"], "summary");
    assert_eq!(fields["switchboard.step"], "2");
    let captured = CapturedTrace::of(false, || {
        ChatTrace::open_span(2, &model(), &request(), None).close_with_answer(&answer());
    });
    assert!(
        !captured
            .span("chat flash")
            .1
            .contains_key("switchboard.purpose")
    );
}
