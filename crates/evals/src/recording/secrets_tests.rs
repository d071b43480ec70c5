//! Redaction of secrets in recordings, and the replay of redacted recordings.

use switchboard_domain::{Media, PartStart, ToolContent, ToolInput, ToolUse};

use super::*;

fn redacting_recorder(file: &MemoryFile, redactor: Redactor) -> Recorder {
    Recorder::new(file.clone(), "test", redactor).unwrap()
}

fn tool_with_output(definition: ToolDefinition, output: ToolOutput) -> Arc<dyn ToolHost> {
    let body = move |_: ToolCall| {
        let output = output.clone();
        async move { Ok::<_, String>(output) }
    };
    Arc::new(FunctionTools::new().with_function(Function::from_definition(definition, body)))
}

/// Replays a question with the first model of the recording.
async fn replay(player: &Player, question: &str) -> Vec<RunEvent> {
    let model = player.replay_model(&player.recorded_models()[0]).unwrap();
    events(&agent(model, player.replay_tools().unwrap()), question).await
}

#[tokio::test]
async fn no_secret_is_written() {
    let (file, calls) = (MemoryFile::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = redacting_recorder(&file, redactor());
    let model = ScriptedModel::responding(|_, requests| {
        Ok(match requests {
            0 => tool_call_response(
                "call_a",
                "echo",
                r#"{"password":"hunter2-is-mine","word":"Bearer abcdefgh12345678","data":{"token":"hunter3"}}"#,
            ),
            1 => text_response(&[
                "The key is correct-ho",
                "rse-bat",
                "tery, and sk-proj-",
                "abcdefgh0123456789KLMNop",
                ".",
            ]),
            _ => {
                return Err(ModelError::new(
                    "acme",
                    ModelErrorKind::Authentication,
                    format!("no key {KEY}"),
                ));
            }
        })
    });
    let model = recorder.record_model(model);
    let live = agent(Arc::clone(&model), recorder.record_tools(echo_tool(&calls)));
    let question = format!("Use {KEY} and api_key=0123456789abcdef0123");
    events(&live, &question).await;
    let again = ChatRequest::new([Message::user("again")]);
    assert!(model.stream(&again).await.is_err());
    recorder.finish_recording().unwrap();
    let text = file.text();
    for secret in [
        KEY,
        "hunter2",
        "hunter3",
        "abcdefgh12345678",
        "abcdefgh0123456789KLMNop",
        "0123456789abcdef0123",
        "battery",
        "correct-ho",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.matches("[redacted]").count() >= 8, "{text}");
    // The name of a property in a schema is not a secret, even if it is `password`.
    assert!(text.contains(r#""password":{"type":"string"}"#), "{text}");
    // A replay with the same secrets finds the request.
    let player = Player::read_redacted(text.as_bytes(), redactor()).unwrap();
    let replayed = replay(&player, &question).await;
    assert_eq!(
        answer(&replayed),
        "The key is [redacted], and sk-[redacted]."
    );
}

#[tokio::test]
async fn tool_outputs_are_searched_completely() {
    let data = json!({
        "data": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "provider_state": {"password": "of-a-state"},
        "rows": [{"blob": "Bearer of-a-blob-1", "uri": "x"}],
        "Authorization": ["of-a-list"],
        "password": 12_345_678_901_u64,
        "pin": 98_765_432,
        "credentials": {"user": "u", "value": "of-an-object"},
        "token": null,
        "tokens": ["of-several", 7],
        "api_keys": {"ada": "of-a-person"},
        "max_tokens": 4096,
        "usage": {"tokens": 12, "total_tokens": 40},
        "has_cookie": true,
        "note": "port 12345678",
    });
    let image = "iVBORw0KGgo".repeat(20) + "+AKIA0123456789ABCDEFG";
    let output = ToolOutput {
        content: vec![
            ToolContent::text(data.to_string()),
            ToolContent::text(format!("It is {}", json!({"k": format!("{KEY}\"")}))),
            ToolContent::Image(Media::from_base64("image/png", &image)),
        ],
        structured: Some(data),
        ..ToolOutput::default()
    };
    let definition = ToolDefinition::new("echo", "", json!({"type": "object"}));
    let host = tool_with_output(definition, output);
    let model = ScriptedModel::responding(|_, requests| {
        Ok(match requests {
            0 => tool_call_response(
                "call_a",
                "echo",
                r#"{"data":"sk-proj-abcdefgh0123456789KLMNop","tokens":[{"token":["of-an-input"]}],"#,
            ),
            1 => tool_call_response("call_b", "echo", "{}"),
            _ => text_response(&["Done."]),
        })
    });
    let file = MemoryFile::default();
    let recorder = redacting_recorder(&file, redactor().with_secrets(["98765432"]));
    let run = events(
        &agent(recorder.record_model(model), recorder.record_tools(host)),
        "Go",
    )
    .await;
    let text = file.text();
    for secret in [
        "klmnopqrstuv",
        "of-a-state",
        "of-a-blob-1",
        "of-a-list",
        "12345678901",
        "98765432",
        "of-an-object",
        "of-several",
        "of-a-person",
        "KLMNop",
        KEY,
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    for harmless in [
        image.as_str(),
        r#""has_cookie":true"#,
        r#""token":null"#,
        "port 12345678",
        r#""max_tokens":4096"#,
        r#""usage":{"tokens":12,"total_tokens":40}"#,
    ] {
        assert!(text.contains(harmless), "{harmless}: {text}");
    }
    let player = file.player();
    let replayed = replay(&player, "Go").await;
    assert_eq!(player.count_unused_responses(), 0);
    assert_eq!(player.missed_requests(), Vec::<String>::new());
    assert_eq!(replayed.len(), run.len());
}

/// A secret may be a word that the format or a schema contains, as in
/// `POSTGRES_PASSWORD=assistant`.
#[tokio::test]
async fn a_recording_is_replayed_if_a_secret_is_a_common_word() {
    let words = ["password", "assistant", "resource", "tool_use", "required"];
    let schema = json!({
        "type": "object",
        "properties": {"resource": {"type": "string", "enum": ["assistant"]}},
        "required": ["resource"],
    });
    let definition = ToolDefinition::new("required", "An assistant.", schema);
    let output = ToolOutput {
        content: vec![ToolContent::Resource {
            uri: "x://y".to_owned(),
            media_type: None,
            text: Some("The assistant said it.".to_owned()),
            blob: None,
        }],
        ..ToolOutput::default()
    };
    let model = ScriptedModel::responding(|_, requests| {
        Ok(match requests {
            0 => tool_call_response("call_a", "required", r#"{"resource":"assistant"}"#),
            _ => text_response(&["Done."]),
        })
    });
    let file = MemoryFile::default();
    let recorder = redacting_recorder(&file, Redactor::default().with_secrets(words));
    let host = recorder.record_tools(tool_with_output(definition, output));
    events(&agent(recorder.record_model(model), host), "Go").await;
    assert!(!file.text().contains("The assistant"), "{}", file.text());
    let player = file.player();
    let replayed = replay(&player, "Go").await;
    assert_eq!(player.missed_requests(), Vec::<String>::new());
    assert_eq!(answer(&replayed), "Done.");
}

#[test]
fn only_known_secrets_are_removed_from_provider_state() {
    let data = |key: &str| json!({"token": "eyJhbGciOiJIUzI1NiJ9abc", "k": key});
    let message = |key: &str| -> Message {
        let part = json!({
            "type": "reasoning", "text": "",
            "provider_state": {"provider": "a", "data": data(key)},
        });
        serde_json::from_value(json!({"role": "assistant", "parts": [part]})).unwrap()
    };
    let redacted = redaction().redact_item(&message(KEY)).unwrap();
    assert_eq!(redacted, message("[redacted]"));
    let state = |key: &str| -> Vec<ModelEvent> {
        let state = json!({"provider": "a", "data": data(key)});
        let event = json!({"type": "part_state", "index": 0, "state": state});
        vec![serde_json::from_value(event).unwrap()]
    };
    let mut redacted = state(KEY);
    redaction().redact_events(&mut redacted).unwrap();
    assert_eq!(redacted, state("[redacted]"));
    // A tool input with the same data is redacted too.
    let input = redaction().redact_value(&data(KEY)).to_string();
    assert!(!input.contains("eyJhbGci"), "{input}");
}

/// The schema rejects the redacted input. So the call in the replay fails, although it succeeded
/// when it was recorded.
#[tokio::test]
async fn a_replay_continues_after_a_call_with_rejected_redacted_input() {
    let schema = json!({
        "type": "object",
        "properties": {"token": {"type": "string", "pattern": "^[a-z]{3}-[0-9]{3}$"}},
        "required": ["token"],
    });
    let definition = ToolDefinition::new("login", "", schema);
    let host = tool_with_output(definition, ToolOutput::text("welcome"));
    let model = ScriptedModel::responding(|_, requests| {
        Ok(match requests {
            0 => tool_call_response("call_a", "login", r#"{"token":"abc-123"}"#),
            1 => tool_call_response("call_b", "login", r#"{"token":"abc-124"}"#),
            _ => text_response(&["Done."]),
        })
    });
    let file = MemoryFile::default();
    let recorder = recorder(&file);
    events(
        &agent(recorder.record_model(model), recorder.record_tools(host)),
        "Go",
    )
    .await;
    let player = file.player();
    let replayed = replay(&player, "Go").await;
    assert_eq!(answer(&replayed), "Done.");
    assert_eq!(player.missed_requests(), Vec::<String>::new());
    // A question that was not recorded is reported as a missed request.
    let player = file.player();
    replay(&player, "Stop").await;
    let missed = player.missed_requests();
    assert!(missed[0].contains("Record it again"), "{missed:?}");
}

#[tokio::test]
async fn errors_and_names_are_redacted() {
    let respond = |_: &ChatRequest, _| {
        let kind = ModelErrorKind::InvalidRequest {
            field: Some(format!("field {KEY}")),
        };
        Err(ModelError::new("acme", kind, format!("no {KEY}"))
            .with_request_id(Some(format!("req-{KEY}"))))
    };
    let model = Arc::new(ScriptedModel {
        id: ModelId::new("acme", KEY),
        capabilities: ModelCapabilities::default(),
        requests: AtomicUsize::new(0),
        respond: Box::new(respond),
    });
    let file = MemoryFile::default();
    let name = format!("run of acme/{KEY}");
    let recorder = redacting_recorder(&file, redactor());
    let model = recorder.with_conversation(&name).record_model(model);
    let hello = ChatRequest::new([Message::user("Hello")]);
    assert!(model.stream(&hello).await.is_err());
    let text = file.text();
    assert!(!text.contains(KEY), "{text}");
    assert!(text.contains("\"request_id\":\"req-[redacted]\""), "{text}");
    // The player also redacts the names of models in the recording.
    let player = Player::read_redacted(text.as_bytes(), redactor()).unwrap();
    let player = player.select_conversation(&name);
    let id = &player.recorded_models()[0];
    assert_eq!(*id, ModelId::new("acme", "[redacted]"));
    let model = player.replay_model(id).unwrap();
    let error = model.stream(&hello).await.err().unwrap();
    assert!(error.to_string().contains("no [redacted]"), "{error}");
    assert_eq!(player.missed_requests(), Vec::<String>::new());
}

#[test]
fn tool_uses_with_redacted_input_are_listed() {
    let tool_use = |index: u32, id: &str, pieces: &[&str]| {
        let part = PartStart::ToolUse {
            id: id.to_owned(),
            name: "a".to_owned(),
        };
        let start = ModelEvent::PartStarted { index, part };
        let deltas = pieces.iter().map(move |json| ModelEvent::ToolInputDelta {
            index,
            json: (*json).to_owned(),
        });
        std::iter::once(start).chain(deltas).collect::<Vec<_>>()
    };
    let token = r#"{"token":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}"#;
    let whole = PartStart::Whole {
        part: Box::new(switchboard_domain::Part::ToolUse(ToolUse::new(
            "three",
            "a",
            ToolInput::parse_input(token),
        ))),
    };
    let mut events = [
        // The model itself wrote the text `[redacted]`.
        tool_use(0, "one", &[r#"{"note":"[reda"#, r#"cted]"}"#]),
        tool_use(1, "two", &[token]),
        vec![ModelEvent::PartStarted {
            index: 2,
            part: whole,
        }],
    ]
    .concat();
    let mut redacted = redaction().redact_events(&mut events).unwrap();
    redacted.sort();
    assert_eq!(redacted, ["three", "two"]);
}
