use std::collections::HashMap;

use serde_json::json;
use switchboard_domain::{
    ChatResponse, FinishReason, Part, ToolChoiceOutcome, ToolInput, ToolOutput, ToolUse,
};

use super::*;
use crate::{ApprovalPolicy, ResponseRetries, RunErrorKind, RunEventKind};

fn tool(name: &str, read_only: Option<bool>) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(
        name,
        "",
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    );
    tool.annotations.read_only = read_only;
    tool.origin = Some(ToolOrigin {
        server: "srv".into(),
        tool: name.into(),
    });
    Arc::new(tool)
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    vec![tool("look", Some(true)), tool("write", None)]
}

fn run(options: RunOptions) -> Run {
    let messages = vec![Arc::new(Message::user("go"))];
    Run::new("run-1", ModelId::new("p", "m"), messages, options)
}

pub(super) fn answer(parts: Vec<Part>, finish: FinishReason) -> ChatResponse {
    ChatResponse {
        message: Message::new(Role::Assistant, parts),
        finish,
        finish_raw: None,
        // The counts are fixed, because estimated counts would change the size of the state.
        usage: Usage {
            input_tokens: Some(100),
            output_tokens: Some(1),
            ..Usage::default()
        },
        tool_choice: ToolChoiceOutcome::Native,
        warnings: Vec::new(),
        response_id: None,
        model: None,
    }
}

fn call(id: &str, name: &str, input: &str) -> Part {
    Part::ToolUse(ToolUse::new(id, name, ToolInput::parse_input(input)))
}

fn done(text: &str) -> ToolCallOutcome {
    ToolCallOutcome::new(Ok(ToolOutput::text(text)), 1)
}

fn error_texts(run: &Run) -> Vec<String> {
    let report = run.build_report().unwrap();
    report
        .tool_calls
        .iter()
        .map(|c| {
            assert!(c.is_error);
            c.result.content[0].as_text()
        })
        .collect()
}

#[test]
fn calls_that_must_not_run_get_a_result_with_the_reason() {
    let mut run = run(RunOptions {
        approval: ApprovalPolicy::None.into(),
        ..RunOptions::default()
    });
    run.begin_model_call(tools());
    run.apply_model_response(answer(
        vec![
            call("cut", "look", r#"{"n":"#),
            call("unknown", "erase", "{}"),
            call("wrong", "look", r#"{"n":"one"}"#),
            call("denied", "write", r#"{"n":1}"#),
        ],
        FinishReason::ToolUse,
    ))
    .unwrap();
    assert_eq!(run.next_step(), RunStep::CallModel, "nothing to run");
    laws::assert_whole(run.messages());
    run.cancel_run(None, &HashMap::new());
    let texts = error_texts(&run);
    assert!(texts[0].contains("malformed"), "{texts:?}");
    assert!(
        texts[1].contains("unknown tool `erase`") && texts[1].contains("look, write"),
        "{texts:?}"
    );
    assert!(
        texts[2].contains("/n") && texts[2].contains("integer"),
        "{texts:?}"
    );
    assert!(texts[3].contains("are disabled"), "{texts:?}");
}

#[test]
fn unreported_tokens_are_estimated() {
    let mut run = run(RunOptions::default());
    run.begin_model_call(Vec::new());
    let mut response = answer(vec![Part::text("word ".repeat(100))], FinishReason::Stop);
    response.usage = Usage::default();
    run.apply_model_response(response).unwrap();
    let ledger = run.usage_ledger();
    assert!((1..20).contains(&ledger.input_tokens), "{ledger:?}");
    assert!((100..200).contains(&ledger.output_tokens), "{ledger:?}");
}

#[test]
fn an_unknown_finish_reason_is_reported() {
    let mut run = run(RunOptions::default());
    run.begin_model_call(Vec::new());
    let finish = FinishReason::Other("engine_crashed".into());
    let events = run
        .apply_model_response(answer(vec![Part::text("The total is 5")], finish))
        .unwrap();
    let told = events.iter().any(|event| {
        matches!(event, RunEventKind::Warning { warning } if warning.message.contains("engine_crashed"))
    });
    assert!(told, "{events:?}");
    let report = run.build_report().unwrap();
    assert_eq!(report.outcome, Outcome::Completed);
    assert_eq!(report.warnings.len(), 1);
}

#[test]
fn finish_reasons_without_tools_end_the_run() {
    let cases = [
        (FinishReason::Stop, "x", Outcome::Completed, None),
        (
            FinishReason::Stop,
            "",
            Outcome::Failed,
            Some(RunErrorKind::EmptyAnswer),
        ),
        (
            FinishReason::Length,
            "x",
            Outcome::Limited,
            Some(RunErrorKind::OutputLimit),
        ),
        (
            FinishReason::ContextOverflow,
            "",
            Outcome::Limited,
            Some(RunErrorKind::ContextOverflow),
        ),
        (
            FinishReason::ContentFilter,
            "",
            Outcome::Failed,
            Some(RunErrorKind::ContentFilter),
        ),
        (
            FinishReason::MalformedToolCall,
            "",
            Outcome::Failed,
            Some(RunErrorKind::MalformedToolCall),
        ),
    ];
    for (finish, text, outcome, error) in cases {
        let mut run = run(RunOptions {
            recovery: ResponseRetries {
                empty_answer: 0,
                malformed_call: 0,
                cut_off: 0,
                switch_after_refusal: false,
            },
            ..RunOptions::default()
        });
        run.begin_model_call(Vec::new());
        let parts = if text.is_empty() {
            Vec::new()
        } else {
            vec![Part::text(text)]
        };
        run.apply_model_response(answer(parts, finish.clone()))
            .unwrap();
        assert_eq!(run.next_step(), RunStep::Done);
        let report = run.build_report().unwrap();
        assert_eq!(
            (report.outcome, report.error.map(|e| e.kind)),
            (outcome, error),
            "{finish:?}"
        );
        assert_eq!(report.answer, text);
    }
}

#[test]
fn unexpected_input_of_the_driver_is_an_error() {
    let mut run = run(RunOptions::default());
    assert!(
        run.apply_model_response(answer(vec![], FinishReason::Stop))
            .is_err()
    );
    assert!(run.record_tool_start("x").is_err());
    run.begin_model_call(tools());
    run.apply_model_response(answer(
        vec![call("a", "look", r#"{"n":1}"#)],
        FinishReason::ToolUse,
    ))
    .unwrap();
    assert!(run.apply_tool_outcome("a", done("never started")).is_err());
    run.record_tool_start("a").unwrap();
    assert!(run.record_tool_start("a").is_err(), "nothing runs twice");
}

#[test]
fn contradictory_annotations_do_not_count_as_read_only() {
    let contradicting = || {
        let mut tool = (*tool("purge", Some(true))).clone();
        tool.annotations.destructive = Some(true);
        vec![Arc::new(tool)]
    };
    let asked = |approval| {
        let mut run = run(RunOptions {
            approval,
            ..RunOptions::default()
        });
        run.begin_model_call(contradicting());
        let parts = vec![call("a", "purge", r#"{"n":1}"#)];
        run.apply_model_response(answer(parts, FinishReason::ToolUse))
            .unwrap();
        run
    };
    assert!(matches!(
        asked(ApprovalPolicy::Ask.into()).next_step(),
        RunStep::AskApproval(requests) if requests.len() == 1
    ));
    let mut refused = asked(ApprovalPolicy::None.into());
    assert_eq!(refused.next_step(), RunStep::CallModel);
    let result = refused.messages()[2].tool_results().next().unwrap();
    assert!(
        result.is_error && result.as_text().contains("Not executed"),
        "{}",
        result.as_text()
    );

    let mut crashed = asked(ApprovalPolicy::All.into());
    assert!(matches!(crashed.next_step(), RunStep::CallTools(calls) if calls.len() == 1));
    crashed.record_tool_start("a").unwrap();
    crashed.recover_run();
    assert_eq!(
        crashed.next_step(),
        RunStep::CallModel,
        "it must not run a second time"
    );
}
