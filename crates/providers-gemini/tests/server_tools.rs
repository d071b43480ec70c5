//! Server tools: their declarations, and their calls and results, which are sent back unchanged.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel as _, ChatRequest, ChatResponse, FinishReason, JsonObject, Message, Part, ToolChoice,
    ToolDefinition, ToolResult, WarningKind,
};
use switchboard_providers_common::TransportConfig;
use switchboard_providers_gemini::{
    GeminiConfig, GeminiModel, GeminiOptions, ServerTool,
    server_tool::{GoogleSearch, TimeRange},
};
use switchboard_testkit::fake::{Answer, FakeModel};

const NEW: &str = "gemini-3.8-flash";

fn raw(name: &str) -> ServerTool {
    ServerTool::from_declaration(JsonObject::from_iter([(name.to_owned(), json!({}))]))
}

fn every_tool() -> Vec<ServerTool> {
    let search = GoogleSearch {
        images: true,
        time_range: Some(TimeRange {
            start: "2026-01-01T00:00:00Z".into(),
            end: "2026-02-01T00:00:00Z".into(),
        }),
    };
    vec![
        ServerTool::GoogleSearch(search),
        raw("urlContext"),
        raw("codeExecution"),
    ]
}

fn model(fake: &FakeModel, name: &str, streaming: bool) -> GeminiModel {
    let config = GeminiConfig {
        streaming,
        options: GeminiOptions {
            server_tools: every_tool(),
            ..GeminiOptions::default()
        },
        transport: TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        },
        ..GeminiConfig::for_compatible_server("gemini", fake.base_url()).with_api_key("secret-1")
    };
    GeminiModel::new(config, name).expect("a valid configuration")
}

fn question() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ChatRequest::new([Message::user("Weather in the northernmost city?")]).with_tools([
        ToolDefinition::new("get_weather", "Weather of a city.", schema),
    ])
}

/// Returns an answer with the parts `pieces`, streamed in one chunk each or whole.
fn answer(streaming: bool, pieces: &[Value], more: &Value) -> Answer {
    let candidate = |pieces: &[Value], is_last: bool| {
        let mut candidate = json!({"content": {"role": "model", "parts": pieces}, "index": 0});
        if is_last {
            candidate["finishReason"] = "STOP".into();
            for (name, value) in more.as_object().into_iter().flatten() {
                candidate[name] = value.clone();
            }
        }
        json!({"candidates": [candidate], "responseId": "r"})
    };
    if !streaming {
        return Answer::json(200, &candidate(pieces, true));
    }
    let last = pieces.len() - 1;
    let chunks = pieces.iter().enumerate().map(|(at, piece)| {
        let chunk = candidate(std::slice::from_ref(piece), at == last);
        format!("data: {chunk}\r\n\r\n")
    });
    Answer::sse(chunks.collect::<String>())
}

/// Returns a web search, executed code, and a function call with a signature.
fn pieces() -> Vec<Value> {
    let found = json!({"searchSuggestions": "<div>", "results": [{"title": "Utqiagvik",
                       "url": "https://a.example"}]});
    vec![
        json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1",
                            "args": {"queries": ["northernmost city"]}},
               "thoughtSignature": "c2lnbmF0dXJlLTE="}),
        json!({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": found},
               "thoughtSignature": "c2lnbmF0dXJlLTI="}),
        json!({"executableCode": {"language": "PYTHON", "code": "print(6*7)", "id": "c1"}}),
        json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n", "id": "c1"}}),
        json!({"functionCall": {"id": "f1", "name": "get_weather", "args": {"city": "Utqiagvik"}},
               "thoughtSignature": "c2lnbmF0dXJlLTM="}),
    ]
}

/// Asserts the opaque parts of an answer: their kinds and their texts, which are JSON.
fn assert_shown(answer: &ChatResponse, expected: &[(&str, Value)]) {
    let parts = answer.message.parts.iter();
    let shown: Vec<_> = parts
        .filter_map(|part| match part {
            Part::Opaque(it) => Some((it.kind.as_str(), it.text.clone().unwrap_or_default())),
            _ => None,
        })
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(kind, data)| (*kind, data.to_string()))
        .collect();
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn pieces_of_a_mixed_turn_go_back_as_they_came_streamed_and_whole() {
    for streaming in [true, false] {
        let fake = FakeModel::start().await.expect("a free port");
        let model = model(&fake, NEW, streaming);
        fake.answer(answer(streaming, &pieces(), &json!({})));
        fake.answer(answer(streaming, &[json!({"text": "-3 °C."})], &json!({})));
        let mut request = question();
        let first = model.complete(&request).await.unwrap();
        assert_eq!(first.finish, FinishReason::ToolUse);
        assert!(first.warnings.is_empty(), "{:?}", first.warnings);
        let expected = [
            (
                "toolCall",
                json!({"toolType": "GOOGLE_SEARCH_WEB",
                                "args": {"queries": ["northernmost city"]}}),
            ),
            (
                "toolResponse",
                json!({"toolType": "GOOGLE_SEARCH_WEB", "response": {
                "searchSuggestions": "<div>",
                "results": [{"title": "Utqiagvik", "url": "https://a.example"}]}}),
            ),
            (
                "executableCode",
                json!({"language": "PYTHON", "code": "print(6*7)"}),
            ),
            (
                "codeExecutionResult",
                json!({"outcome": "OUTCOME_OK", "output": "42\n"}),
            ),
        ];
        assert_shown(&first, &expected);
        let call = first.message.tool_uses().next().unwrap();
        let result = ToolResult::text(&call.id, &call.name, "-3 °C");
        request.messages.push(first.message.clone().into());
        request
            .messages
            .push(Message::from_tool_results([result]).into());
        let second = model.complete(&request).await.unwrap();
        assert_eq!(second.finish, FinishReason::Stop);
        assert!(second.warnings.is_empty(), "{:?}", second.warnings);
        let (asked, again) = (fake.request(0).await, fake.request(1).await);
        let (asked, again) = (asked.json(), again.json());
        for field in ["tools", "toolConfig"] {
            assert_eq!(again[field], asked[field], "{field}");
        }
        assert_eq!(
            again["toolConfig"]["includeServerSideToolInvocations"],
            true
        );
        let contents = again["contents"].as_array().unwrap();
        assert_eq!(contents.len(), 3);
        assert_eq!(contents[1], json!({"role": "model", "parts": pieces()}));
        let response = &contents[2]["parts"][0]["functionResponse"];
        assert_eq!(response["id"], "f1");
        insta::assert_json_snapshot!("request__gemini__own_tools_beside_functions", again);
        // A request whose contents have calls of server tools needs this setting even if it
        // declares none.
        request.tool_choice = ToolChoice::None;
        fake.answer(answer(streaming, &[json!({"text": "-3 °C."})], &json!({})));
        model.complete(&request).await.unwrap();
        let third = fake.request(2).await;
        let config = &third.json()["toolConfig"];
        let expected = json!({"functionCallingConfig": {"mode": "NONE"},
                              "includeServerSideToolInvocations": true});
        assert_eq!(*config, expected);
    }
}

#[tokio::test]
async fn what_an_answer_was_grounded_on_is_shown_and_not_sent_back() {
    for streaming in [true, false] {
        let fake = FakeModel::start().await.expect("a free port");
        let model = model(&fake, "gemini-2.5-flash", streaming);
        let beside = json!({
            "groundingMetadata": {"webSearchQueries": ["weather"],
                                  "groundingChunks": [{"web": {"uri": "https://a.example"}}]},
            "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "https://b.example"}]},
        });
        let text = [json!({"text": "It "}), json!({"text": "rains."})];
        fake.answer(answer(streaming, &text, &beside));
        fake.answer(answer(streaming, &[json!({"text": "Yes."})], &json!({})));
        let mut request = ChatRequest::new([Message::user("Weather?")]);
        let first = model.complete(&request).await.unwrap();
        assert_eq!(first.message.text(), "It rains.");
        let expected = ["groundingMetadata", "urlContextMetadata"];
        assert_shown(&first, &expected.map(|kind| (kind, beside[kind].clone())));
        request.messages.push(first.message.into());
        request.messages.push(Message::user("Sure?").into());
        let second = model.complete(&request).await.unwrap();
        assert!(second.warnings.is_empty(), "{:?}", second.warnings);
        let again = fake.request(1).await;
        let said = json!({"role": "model", "parts": [{"text": "It rains."}]});
        assert_eq!(again.json()["contents"][1], said);
        insta::assert_json_snapshot!("request__gemini__own_tools_alone", again.json());
    }
}

#[tokio::test]
async fn case_12_signatures_of_own_pieces_that_are_refused_are_left_out_once() {
    let fake = FakeModel::start().await.expect("a free port");
    let model = model(&fake, NEW, true);
    fake.answer(answer(true, &pieces(), &json!({})));
    let mut request = question();
    let first = model.complete(&request).await.unwrap();
    let call = first.message.tool_uses().next().unwrap();
    let result = Message::from_tool_results([ToolResult::text(&call.id, &call.name, "-3 °C")]);
    request
        .messages
        .extend([first.message.clone().into(), result.into()]);
    let refusal = json!({"error": {"code": 400, "message": "Corrupted thought signature.",
                                   "status": "INVALID_ARGUMENT"}});
    fake.answer(Answer::json(400, &refusal));
    fake.answer(answer(true, &[json!({"text": "-3 °C."})], &json!({})));
    let answer = model.complete(&request).await.unwrap();
    assert_eq!(answer.warnings[0].kind, WarningKind::PartDowngraded);
    let again = fake.request(2).await;
    let parts = &again.json()["contents"][1]["parts"];
    for (at, mut piece) in pieces().into_iter().enumerate().take(4) {
        let fields = piece.as_object_mut().expect("it is an object");
        fields.remove("thoughtSignature");
        assert_eq!(parts[at], piece);
    }
    // The API requires a signature of the call, or this placeholder.
    let stands_in = &parts[4]["thoughtSignature"];
    assert_eq!(stands_in, "skip_thought_signature_validator");
}
