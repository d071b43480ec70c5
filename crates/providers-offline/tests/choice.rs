//! What a request demands of the planner besides its question.

mod support;

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use support::{answer, calls, planner, request, tools, with_part};
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, Media, Message, ModelEvent, Part, ResponseFormat,
    ToolChoice, ToolChoiceOutcome, ToolInput, ToolResult, ToolUse, WarningKind,
};
use switchboard_providers_offline::Plan;

const ALL: &str = "customer_service everything filesystem git memory time";
const QUESTION: &str = "What is the account value of customer 42?";

fn asked(question: &str, choice: ToolChoice) -> ChatRequest {
    request(vec![Message::user(question)], &tools(ALL)).with_tool_choice(choice)
}

fn only(name: &str) -> ToolChoice {
    ToolChoice::Only(vec![name.to_owned()])
}

#[test]
fn none_means_no_call() {
    let response = answer(&asked(QUESTION, ToolChoice::None));
    assert!(calls(&response).is_empty());
    assert_eq!(response.tool_choice, ToolChoiceOutcome::Native);
    assert!(
        response.message.text().contains("may not call tools"),
        "{}",
        response.message.text()
    );
}

#[test]
fn none_still_answers_from_results() {
    let mut request = after_result(ToolResult::text(
        "call_1",
        "calculate_account_value",
        "12 EUR",
    ));
    request.tool_choice = ToolChoice::None;
    assert_eq!(answer(&request).message.text(), "12 EUR");
}

#[test]
fn required_calls_something_that_can_be_called_without_inventing() {
    let response = answer(&asked("Hello there!", ToolChoice::Required));
    let calls = calls(&response);
    assert_eq!(calls.len(), 1, "{calls:?}");
    let tool = tools(ALL)
        .into_iter()
        .find(|tool| tool.name == calls[0].0)
        .expect("a declared tool");
    assert_eq!(
        tool.annotations.read_only,
        Some(true),
        "forced, it rather looks than changes"
    );
    assert_eq!(calls[0].1, json!({}));
    assert_eq!(response.tool_choice, ToolChoiceOutcome::Native);
    assert_eq!(response.finish, FinishReason::ToolUse);
}

#[test]
fn only_leaves_no_other_tool() {
    let response = answer(&asked("Use 19 and 23, please", only("get-sum")));
    assert_eq!(
        calls(&response),
        [("get-sum".to_owned(), json!({"a": 19, "b": 23}))]
    );
}

#[test]
fn a_forced_tool_without_its_values_is_asked_for_and_the_choice_said_to_be_relaxed() {
    let response = answer(&asked("Hello there!", only("calculate_account_value")));
    assert!(calls(&response).is_empty());
    assert!(
        response.message.text().contains("customer id"),
        "{}",
        response.message.text()
    );
    assert!(matches!(
        response.tool_choice,
        ToolChoiceOutcome::Relaxed { .. }
    ));
    assert_eq!(response.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
}

#[test]
fn only_unknown_tools_is_no_tool() {
    let response = answer(&asked(QUESTION, only("absent")));
    assert!(calls(&response).is_empty());
    assert!(matches!(
        response.tool_choice,
        ToolChoiceOutcome::Relaxed { .. }
    ));
}

#[test]
fn without_parallel_use_calls_come_one_by_one() {
    let mut request = asked("account value of customers 42 and 7", ToolChoice::Auto);
    request.parallel_tool_use = Some(false);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let response = answer(&request);
        let tool_use = response.message.tool_uses().next().expect("a call").clone();
        assert_eq!(response.message.tool_uses().count(), 1);
        seen.extend(
            calls(&response)
                .into_iter()
                .map(|(_, input)| input["customer_id"].clone()),
        );
        request.messages.push(response.message.into());
        let result = ToolResult::text(
            &tool_use.id,
            &tool_use.name,
            format!("value {}", seen.len()),
        );
        request
            .messages
            .push(Message::tool_results([result]).into());
    }
    assert_eq!(seen, [json!(42), json!(7)]);
    let text = answer(&request).message.text();
    assert!(
        text.contains("value 1") && text.contains("value 2"),
        "{text}"
    );
}

/// The question, the call and a result of it.
fn after_result(result: ToolResult) -> ChatRequest {
    let input = ToolInput::parse(r#"{"customer_id":42}"#);
    let call = ToolUse::new("call_1", "calculate_account_value", input);
    let messages = vec![
        Message::user(QUESTION),
        Message::new(switchboard_domain::Role::Assistant, [Part::ToolUse(call)]),
        Message::tool_results([result]),
    ];
    request(messages, &tools(ALL))
}

#[test]
fn a_denied_call_is_told_and_not_made_again() {
    let denied = ToolResult::error(
        "call_1",
        "calculate_account_value",
        "The person denied the call.",
    );
    let response = answer(&after_result(denied));
    assert!(calls(&response).is_empty());
    assert!(
        response
            .message
            .text()
            .ends_with("failed: The person denied the call.")
    );
}

#[test]
fn the_same_question_in_a_new_turn_is_looked_up_anew_with_a_fresh_id() {
    let mut request = after_result(ToolResult::text(
        "call_1",
        "calculate_account_value",
        "12 EUR",
    ));
    request.messages.push(Message::assistant("12 EUR").into());
    request.messages.push(Message::user(QUESTION).into());
    let response = answer(&request);
    let ids: Vec<&str> = response
        .message
        .tool_uses()
        .map(|tool_use| tool_use.id.as_str())
        .collect();
    assert_eq!(ids, ["call_2"]);
}

#[test]
fn another_models_question_is_not_taken_for_its_own() {
    let messages = vec![
        Message::user("What is the account value?"),
        Message::assistant("Sure! Which customer would you like me to check?"),
        Message::user("echo 42"),
    ];
    let response = answer(&request(messages, &tools(ALL)));
    assert_eq!(
        calls(&response),
        [("echo".to_owned(), json!({"message": "42"}))]
    );
}

#[test]
fn options_that_mean_nothing_to_it_are_reported() {
    let mut request = asked(QUESTION, ToolChoice::Auto);
    request.sampling.stop = vec!["END".to_owned()];
    request.response_format = ResponseFormat::JsonSchema {
        name: "x".to_owned(),
        schema: json!({}),
    };
    request.messages =
        vec![with_part(QUESTION, Part::Image(Media::base64("image/png", "AA=="))).into()];
    let response = answer(&request);
    let kinds: Vec<WarningKind> = response
        .warnings
        .iter()
        .map(|warning| warning.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            WarningKind::OptionDropped,
            WarningKind::OptionDropped,
            WarningKind::PartDropped
        ]
    );
    assert_eq!(calls(&response).len(), 1);
}

#[test]
fn a_picture_alone_is_no_repetition_of_the_question_before() {
    let mut request = after_result(ToolResult::text(
        "call_1",
        "calculate_account_value",
        "12 EUR",
    ));
    request.messages.push(Message::assistant("12 EUR").into());
    let picture = Part::Image(Media::base64("image/png", "AA=="));
    request
        .messages
        .push(Message::new(switchboard_domain::Role::User, [picture]).into());
    let response = answer(&request);
    assert!(
        response.message.text().contains("not a language model"),
        "{}",
        response.message.text()
    );
    assert_eq!(response.warnings[0].kind, WarningKind::PartDropped);
}

#[test]
fn more_calls_than_sensible_are_not_made_and_that_is_said() {
    let listed: Vec<String> = (1..=20).map(|id| id.to_string()).collect();
    let question = format!(
        "What is the account value of customers {}?",
        listed.join(", ")
    );
    let mut request = asked(&question, ToolChoice::Auto);
    let response = answer(&request);
    let results: Vec<ToolResult> = response
        .message
        .tool_uses()
        .map(|it| ToolResult::text(&it.id, &it.name, "1 EUR"))
        .collect();
    assert_eq!(results.len(), 16);
    request.messages.push(response.message.into());
    request.messages.push(Message::tool_results(results).into());
    let text = answer(&request).message.text();
    assert!(
        text.contains("customer 16") && text.contains("4 more would be too many"),
        "{text}"
    );
}

#[test]
fn the_output_limit_counts_words() {
    let mut request = asked("What is the capital of France?", ToolChoice::Auto);
    request.max_output_tokens = Some(4);
    let response = answer(&request);
    assert_eq!(response.finish, FinishReason::Length);
    assert_eq!(response.message.text().trim_end(), "I am the offline");
}

#[test]
fn text_and_inputs_stream_in_several_pieces() {
    let deltas = |request: &ChatRequest| {
        let events = planner()
            .stream(request)
            .now_or_never()
            .expect("ready")
            .expect("no error");
        let events: Vec<_> = events.collect().now_or_never().expect("ready");
        events
            .into_iter()
            .filter(|event| {
                matches!(
                    event,
                    Ok(ModelEvent::TextDelta { .. } | ModelEvent::ToolInputDelta { .. })
                )
            })
            .count()
    };
    assert!(deltas(&asked("Hello!", ToolChoice::Auto)) > 10);
    assert_eq!(deltas(&asked(QUESTION, ToolChoice::Auto)), 2);
}

#[test]
fn plan_and_stream_say_the_same() {
    for question in [QUESTION, "Create a support ticket", "Hello!"] {
        let request = asked(question, ToolChoice::Auto);
        let (plan, response) = (planner().plan(&request), answer(&request));
        assert_eq!(plan.text().unwrap_or_default(), response.message.text());
        let planned: Vec<(String, Value)> = plan
            .calls()
            .iter()
            .map(|call| (call.name.clone(), Value::Object(call.input.clone())))
            .collect();
        assert_eq!(planned, calls(&response));
    }
    let plan = planner().plan(&asked("Create a support ticket", ToolChoice::Auto));
    let Plan::Ask(ask) = plan else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (ask.tool.as_str(), ask.missing),
        (
            "create_support_ticket",
            vec!["customer_id".into(), "subject".into()]
        )
    );
}

#[test]
fn it_is_named_and_knows_what_it_can() {
    let planner = planner();
    assert_eq!(planner.id().to_string(), "offline/planner");
    assert_eq!(planner.capabilities().tools, Some(true));
    assert_eq!(planner.capabilities().structured_output, Some(false));
}
