//! Tests of tool calls that a model writes as text, by itself or because the prompt describes
//! tools.

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, ChatResponse, FinishReason, Message, ModelCapabilities, ModelErrorKind,
    ResponseFormat, ToolChoice, ToolChoiceOutcome, ToolDefinition, ToolResult, ToolUse,
    WarningKind,
};
use switchboard_providers_common::text_tool_calls::{TextCallFormat, TextCallFormats};
use switchboard_providers_ollama::{
    OllamaClient, OllamaConfig, OllamaModel, ToolsByPrompt, described_model,
};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Say},
    loopback::failure,
};

use super::{client, config, refusal, server, transcript};

const CALL: &str =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>";
/// Answer of a model that `format` constrains to a call.
const FORM: &str = "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Bonn\"}}";

fn model(fake: &FakeModel, change: impl FnOnce(&mut OllamaConfig)) -> OllamaModel {
    let mut config = config(fake);
    change(&mut config);
    OllamaModel::new(config, "gemma2:2b").expect("a valid configuration")
}

/// Returns a model whose capabilities are unknown.
fn telling(fake: &FakeModel, tools_by_prompt: ToolsByPrompt) -> OllamaModel {
    model(fake, |config| config.tools_by_prompt = tools_by_prompt)
}

fn toolless() -> ModelCapabilities {
    ModelCapabilities {
        tools: Some(false),
        ..switchboard_providers_ollama::capabilities("gemma2:2b", false)
    }
}

fn question() -> ChatRequest {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    let weather = ToolDefinition::new("get_weather", "The weather of a city.", schema);
    let other = ToolDefinition::new("list_cities", "All cities.", json!({"type": "object"}));
    ChatRequest::new([Message::user("Weather in Bonn?")]).with_tools([weather, other])
}

fn says(pieces: &[&str]) -> Answer {
    Answer::ollama(pieces.iter().map(|&it| Say::text(it)))
}

fn only_call(answer: &ChatResponse) -> &ToolUse {
    let calls: Vec<_> = answer.message.tool_uses().collect();
    assert_eq!(calls.len(), 1, "{:?}", answer.message);
    assert_eq!(calls[0].name, "get_weather");
    let input = calls[0].input.as_object().expect("an object");
    assert_eq!(json!(input), json!({"city": "Bonn"}));
    assert_eq!(answer.finish, FinishReason::ToolUse);
    calls[0]
}

fn is_emulated(answer: &ChatResponse) -> bool {
    matches!(answer.tool_choice, ToolChoiceOutcome::Emulated { .. })
}

/// Adds the answer and the result of its call to the request. The id of the call must be new.
fn go_on(request: &mut ChatRequest, answer: ChatResponse, result: &str) {
    let call = only_call(&answer).clone();
    let taken = |message: &Message| message.tool_uses().any(|it| it.id == call.id);
    assert!(!request.messages.iter().any(|it| taken(it)), "{}", call.id);
    let result = ToolResult::text(&call.id, &call.name, result);
    let results = Message::from_tool_results([result]);
    request
        .messages
        .extend([answer.message.into(), results.into()]);
}

/// Asserts that the tools were sent only as text, and returns that text.
fn words(body: &Value) -> String {
    assert!(body.get("tools").is_none(), "{body}");
    let messages = body["messages"].as_array().expect("a conversation");
    for message in messages {
        assert_ne!(message["role"], "tool", "{body}");
        assert!(message.get("tool_calls").is_none(), "{body}");
    }
    let contents = messages.iter().map(|it| it["content"].as_str());
    contents.map(Option::unwrap_or_default).collect()
}

#[tokio::test]
async fn a_call_in_text_becomes_a_tool_use() {
    let fake = server().await;
    let pieces = ["I look. ", "<tool", &CALL[5..40], &CALL[40..]];
    fake.otherwise(move |_, _| says(&pieces));
    let one_form = |config: &mut OllamaConfig| {
        config.text_calls = TextCallFormats::from_forms(&[TextCallFormat::ToolCallTag]);
    };
    for model in [model(&fake, |_| ()), model(&fake, one_form)] {
        let answer = model.complete(&question()).await.unwrap();
        only_call(&answer);
        assert_eq!(answer.message.text().trim(), "I look.");
        assert_eq!(answer.tool_choice, ToolChoiceOutcome::Native);
        assert!(answer.warnings.is_empty(), "{:?}", answer.warnings);
    }
    // The request declared the tools, although the model writes calls as text.
    let sent = fake.request(0).await;
    let expected = json!("get_weather");
    assert_eq!(sent.json()["tools"][0]["function"]["name"], expected);
    // A call in the text of a whole answer becomes a tool use, too.
    let body = json!({"message": {"content": format!("I look. {CALL}")}, "done": true});
    fake.answer(Answer::json(200, &body));
    let whole = model(&fake, |_| ()).complete(&question()).await.unwrap();
    only_call(&whole);
}

#[tokio::test]
async fn only_the_configured_forms_of_calls_are_recovered() {
    let fake = server().await;
    fake.otherwise(|_, _| says(&[CALL]));
    let other_form = |config: &mut OllamaConfig| {
        config.text_calls = TextCallFormats::from_forms(&[TextCallFormat::MistralToken]);
    };
    let no_form = |config: &mut OllamaConfig| config.text_calls = TextCallFormats::NONE;
    let free = question();
    let no_choice = question().with_tool_choice(ToolChoice::None);
    let mut other_tool = question();
    other_tool.tools.remove(0);
    for (model, request) in [
        (model(&fake, other_form), &free),
        (model(&fake, no_form), &free),
        (model(&fake, |_| ()), &no_choice),
        (model(&fake, |_| ()), &other_tool),
    ] {
        let answer = model.complete(request).await.unwrap();
        assert_eq!(answer.message.text(), CALL);
        assert_eq!(answer.message.tool_uses().count(), 0);
        assert_eq!(answer.finish, FinishReason::Stop);
    }
    // A structured answer is not searched for calls, even if it looks like one.
    let looks = json!({"name": "get_weather", "arguments": {"city": "Bonn"}}).to_string();
    let request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!({"type": "object"}),
        },
        ..question()
    };
    fake.answer(says(&["{\"response\": ", &looks, "}"]));
    let answer = model(&fake, |_| ()).complete(&request).await.unwrap();
    assert_eq!(answer.message.text(), looks);
    assert_eq!(answer.finish, FinishReason::Stop);
}

#[tokio::test]
async fn prompted_tools_work_over_a_whole_round() {
    let fake = server().await;
    let known = telling(&fake, ToolsByPrompt::Auto).with_capabilities(toolless());
    for model in [telling(&fake, ToolsByPrompt::Always), known] {
        let before = fake.requests().len();
        let mut request = question();
        fake.answer(says(&[CALL]));
        let answer = model.complete(&request).await.unwrap();
        assert!(is_emulated(&answer), "{:?}", answer.tool_choice);
        go_on(&mut request, answer, "12 degrees");
        // If the prompt describes the tools, calls in all formats are recognized.
        fake.answer(says(&["[get_weather(city='Bonn')]"]));
        let answer = model.complete(&request).await.unwrap();
        go_on(&mut request, answer, "12 degrees still");
        fake.answer(says(&["It is 12 degrees."]));
        let last = model.complete(&request).await.unwrap();
        assert_eq!(last.message.text(), "It is 12 degrees.");
        assert_eq!(last.finish, FinishReason::Stop);
        // In a request without tools, earlier calls and results are sent as text, too.
        request.tools.clear();
        fake.answer(says(&["12."]));
        let after = model.complete(&request).await.unwrap();
        assert_eq!(after.tool_choice, ToolChoiceOutcome::Native);

        for index in before..before + 4 {
            let sent = fake.request(index).await;
            let told = words(sent.json());
            let described = told.contains("The weather of a city.");
            assert_eq!(described, index < before + 3, "{told}");
            assert_eq!(told.contains("12 degrees"), index > before, "{told}");
            assert_eq!(sent.json().get("format"), None);
        }
        // A conversation without tools is sent unchanged.
        fake.answer(says(&["Hello."]));
        let plain = ChatRequest::new([Message::user("Hello?")]);
        let answer = model.complete(&plain).await.unwrap();
        assert_eq!(answer.tool_choice, ToolChoiceOutcome::Native);
        let sent = fake.request(before + 4).await;
        assert_eq!(words(sent.json()), "Hello?");
    }
}

#[tokio::test]
async fn tools_are_prompted_after_the_server_refused_them() {
    let fake = server().await;
    let refused = || {
        refusal(
            400,
            "registry.ollama.ai/library/gemma2:2b does not support tools",
        )
    };
    fake.answer(refused());
    fake.answer(says(&[CALL]));
    let auto = telling(&fake, ToolsByPrompt::Auto);
    let answer = auto.complete(&question()).await.unwrap();
    only_call(&answer);
    assert!(is_emulated(&answer), "{:?}", answer.tool_choice);
    assert!(fake.request(0).await.json()["tools"].is_array());
    assert!(words(fake.request(1).await.json()).contains("The weather of a city."));
    // A model with tool support gets the tools in the field `tools`.
    fake.answer(transcript("two-calls.ndjson"));
    let answer = auto.complete(&question()).await.unwrap();
    assert_eq!(answer.tool_choice, ToolChoiceOutcome::Native);
    assert_eq!(fake.requests().len(), 3);

    // With `ToolsByPrompt::Never`, the refusal of the server is returned, with advice.
    let never = telling(&fake, ToolsByPrompt::Never);
    fake.answer(refused());
    let error = failure(&never, &question()).await.unwrap();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
    assert!(error.message().contains("tools_by_prompt"), "{error}");
    assert_eq!(fake.requests().len(), 4);
    // If the capabilities are known, no request is sent.
    let error = failure(&never.with_capabilities(toolless()), &question())
        .await
        .unwrap();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
    assert!(error.message().contains("tools_by_prompt"), "{error}");
    assert_eq!(fake.requests().len(), 4);
}

#[tokio::test]
async fn a_forced_prompted_call_is_constrained_by_format() {
    let fake = server().await;
    let auto = telling(&fake, ToolsByPrompt::Auto).with_capabilities(toolless());
    let mut request = question().with_tool_choice(ToolChoice::Only(vec!["get_weather".into()]));
    for step in 0..2 {
        fake.answer(says(&[&FORM[..20], &FORM[20..]]));
        let answer = auto.complete(&request).await.unwrap();
        assert!(is_emulated(&answer), "{:?}", answer.tool_choice);
        go_on(&mut request, answer, "12 degrees");
        let sent = fake.request(step).await;
        let format = &sent.json()["format"];
        assert_eq!(format["properties"]["name"]["enum"], json!(["get_weather"]));
        let told = words(sent.json());
        assert!(told.contains("The weather of a city."), "{told}");
        assert_eq!(told.contains("12 degrees"), step > 0, "{told}");
    }

    // The server ignores `format`, so the text is searched for calls.
    fake.answer(says(&[CALL]));
    let answer = auto.complete(&request).await.unwrap();
    only_call(&answer);
    assert_eq!(answer.warnings[0].kind, WarningKind::ToolChoiceRelaxed);

    // The server cannot constrain the answer, so the prompt asks for the call, with a warning.
    let free = auto.with_capabilities(ModelCapabilities {
        tools: Some(false),
        ..switchboard_providers_ollama::capabilities("gemma2:cloud", true)
    });
    let before = fake.requests().len();
    fake.answer(says(&[CALL]));
    let answer = free.complete(&request).await.unwrap();
    only_call(&answer);
    assert!(matches!(
        answer.tool_choice,
        ToolChoiceOutcome::Relaxed { .. }
    ));
    assert_eq!(answer.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
    let sent = fake.request(before).await;
    assert_eq!(sent.json().get("format"), None);
    let told = words(sent.json());
    assert!(told.contains("must be a tool call"), "{told}");
    assert!(!told.contains("All cities."), "{told}");

    // A tool choice that names an undeclared tool fails before a request is sent.
    let absent = question().with_tool_choice(ToolChoice::Only(vec!["absent".into()]));
    let error = failure(&free, &absent).await.unwrap();
    assert!(
        matches!(&error.kind, ModelErrorKind::InvalidRequest { field: Some(field) } if field == "tool_choice"),
        "{error:?}"
    );
    assert_eq!(fake.requests().len(), before + 1);
}

#[tokio::test]
async fn a_call_or_an_answer_share_one_constraint_for_prompted_tools() {
    let fake = server().await;
    let always = telling(&fake, ToolsByPrompt::Always);
    let mut request = ChatRequest {
        response_format: ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!({"type": "object", "properties": {"degrees": {"type": "number"}}}),
        },
        ..question()
    };
    fake.answer(says(&[FORM]));
    let answer = always.complete(&request).await.unwrap();
    go_on(&mut request, answer, "12 degrees");
    fake.answer(says(&["{\"response\": {\"degrees\": 12}}"]));
    let last = always.complete(&request).await.unwrap();
    assert_eq!(last.message.text(), "{\"degrees\": 12}");
    let sent = fake.request(1).await;
    assert!(words(sent.json()).contains("12 degrees"));
    let forms = sent.json()["format"]["anyOf"].as_array().unwrap().len();
    assert_eq!(forms, 3);
}

#[tokio::test]
async fn the_stop_sequences_of_the_prompt_do_not_replace_the_models_own() {
    let fake = server().await;
    let ours = "<tool_response";
    let shown = json!({
        "capabilities": ["completion"],
        "parameters": "stop                           \"<end_of_turn>\"\nstop   \"<start_of_turn>\"",
    });
    fake.answer(Answer::json(200, &shown));
    let mut by_prompt = config(&fake);
    by_prompt.tools_by_prompt = ToolsByPrompt::Auto;
    let by_prompt = OllamaClient::new(by_prompt).unwrap();
    let shown = described_model(&by_prompt, "gemma2:2b").await.unwrap();
    fake.otherwise(|_, _| says(&["Yes."]));
    let unknown = telling(&fake, ToolsByPrompt::Always);
    let mut own = question();
    own.sampling.stop = vec!["END".into()];
    let plain = ChatRequest::new([Message::user("Hello?")]);
    for (number, (model, request, expected)) in [
        (
            &shown,
            &question(),
            json!([ours, "<end_of_turn>", "<start_of_turn>"]),
        ),
        (&shown, &own, json!(["END", ours])),
        (&shown, &plain, Value::Null),
        (&unknown, &question(), Value::Null),
        (&unknown, &own, json!(["END", ours])),
    ]
    .into_iter()
    .enumerate()
    {
        model.complete(request).await.unwrap();
        let sent = fake.request(number + 1).await;
        assert_eq!(sent.json()["options"]["stop"], expected, "{number}");
    }
    // By default, a request with tools fails for a model without tool support.
    fake.answer(Answer::json(200, &json!({"capabilities": ["completion"]})));
    let refused = described_model(&client(&fake), "gemma2:2b").await.unwrap();
    let error = failure(&refused, &question()).await.unwrap();
    assert!(matches!(error.kind, ModelErrorKind::Unsupported { .. }));
}
