//! No secret is in a recording, and it can be had again all the same.

use super::*;

#[tokio::test]
async fn no_secret_is_written() {
    let (paper, ran) = (Paper::default(), Arc::new(AtomicUsize::new(0)));
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::new([KEY])).unwrap();
    let model = Scripted::saying(|_, asked| {
        Ok(match asked {
            0 => calls(
                "call_a",
                "echo",
                r#"{"password":"hunter2-is-mine","word":"Bearer abcdefgh12345678","data":{"token":"hunter3"}}"#,
            ),
            1 => says(&[
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
    let model = recorder.model(model);
    let one = agent(Arc::clone(&model), recorder.tools(tools(&ran)));
    events(&one, &format!("Use {KEY} and api_key=0123456789abcdef0123")).await;
    assert!(
        model
            .stream(&ChatRequest::new([Message::user("again")]))
            .await
            .is_err()
    );
    recorder.finish().unwrap();
    let text = paper.text();
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
    // The schema has a field of that name, which is no secret.
    assert!(text.contains(r#""password":{"type":"string"}"#), "{text}");
    // And it is found again when the same secret is asked with.
    let player =
        Player::with_scrubber(BufReader::new(text.as_bytes()), Scrubber::new([KEY])).unwrap();
    let again = agent(
        player.model(&player.models()[0]).unwrap(),
        player.tools().unwrap(),
    );
    let replayed = events(
        &again,
        &format!("Use {KEY} and api_key=0123456789abcdef0123"),
    )
    .await;
    let RunEventKind::RunFinished { report } = &replayed.last().unwrap().kind else {
        panic!()
    };
    assert_eq!(report.answer, "The key is [redacted], and sk-[redacted].");
}

/// Whatever tools and models call it, and wherever it stands.
#[tokio::test]
async fn what_tools_give_is_searched_whole() {
    let (paper, given) = (
        Paper::default(),
        json!({
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
        }),
    );
    let image = "iVBORw0KGgo".repeat(20) + "+AKIA0123456789ABCDEFG";
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::new(["98765432", KEY])).unwrap();
    let output = ToolOutput {
        content: vec![
            switchboard_domain::ToolContent::text(given.to_string()),
            switchboard_domain::ToolContent::text(format!(
                "It is {}",
                json!({"k": format!("{KEY}\"")})
            )),
            switchboard_domain::ToolContent::Image(switchboard_domain::Media::base64(
                "image/png",
                &image,
            )),
        ],
        structured: Some(given),
        ..ToolOutput::default()
    };
    let definition = ToolDefinition::new("echo", "", json!({"type": "object"}));
    let body = move |_: ToolCall| {
        let output = output.clone();
        async move { Ok::<_, String>(output) }
    };
    let host: Arc<dyn ToolHost> =
        Arc::new(FunctionTools::new().with_function(Function::raw(definition, body)));
    let model = Scripted::saying(|_, asked| {
        Ok(match asked {
            0 => calls(
                "call_a",
                "echo",
                r#"{"data":"sk-proj-abcdefgh0123456789KLMNop","tokens":[{"token":["of-an-input"]}],"#,
            ),
            1 => calls("call_b", "echo", "{}"),
            _ => says(&["Done."]),
        })
    });
    let run = events(&agent(recorder.model(model), recorder.tools(host)), "Go").await;
    recorder.finish().unwrap();
    let text = paper.text();
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
    // What is no secret is as it was: bytes in which a key's beginning stands by chance, and plain values.
    assert!(
        text.contains(&image) && text.contains(r#""has_cookie":true"#),
        "{text}"
    );
    assert!(
        text.contains(r#""token":null"#) && text.contains("port 12345678"),
        "{text}"
    );
    assert!(
        text.contains(r#""max_tokens":4096"#)
            && text.contains(r#""usage":{"tokens":12,"total_tokens":40}"#),
        "{text}"
    );
    // And the run is had again.
    let player = paper.player();
    let again = agent(
        player.model(&player.models()[0]).unwrap(),
        player.tools().unwrap(),
    );
    let replayed = events(&again, "Go").await;
    assert_eq!((player.left(), player.missed()), (0, Vec::new()));
    assert_eq!(replayed.len(), run.len());
}

/// `POSTGRES_PASSWORD=assistant`: words like these are in names, roles and schemas, by which the rest is found again.
#[tokio::test]
async fn a_secret_that_is_a_word_leaves_a_recording_that_can_be_had_again() {
    let words = ["password", "assistant", "resource", "tool_use", "required"];
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::new(words)).unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"resource": {"type": "string", "enum": ["assistant"]}},
        "required": ["resource"],
    });
    let definition = ToolDefinition::new("required", "An assistant.", schema);
    let resource = switchboard_domain::ToolContent::Resource {
        uri: "x://y".to_owned(),
        media_type: None,
        text: Some("The assistant said it.".to_owned()),
        blob: None,
    };
    let output = ToolOutput {
        content: vec![resource],
        ..ToolOutput::default()
    };
    let body = move |_: ToolCall| {
        let output = output.clone();
        async move { Ok::<_, String>(output) }
    };
    let host: Arc<dyn ToolHost> =
        Arc::new(FunctionTools::new().with_function(Function::raw(definition, body)));
    let model = Scripted::saying(|_, asked| {
        Ok(match asked {
            0 => calls("call_a", "required", r#"{"resource":"assistant"}"#),
            _ => says(&["Done."]),
        })
    });
    events(&agent(recorder.model(model), recorder.tools(host)), "Go").await;
    recorder.finish().unwrap();
    assert!(!paper.text().contains("The assistant"), "{}", paper.text());
    let player = paper.player();
    let again = agent(
        player.model(&player.models()[0]).unwrap(),
        player.tools().unwrap(),
    );
    let replayed = events(&again, "Go").await;
    assert_eq!(player.missed(), Vec::<String>::new());
    let RunEventKind::RunFinished { report } = &replayed.last().unwrap().kind else {
        panic!()
    };
    assert_eq!(report.answer, "Done.");
}

#[test]
fn what_a_provider_wants_back_is_only_searched_for_what_is_known() {
    let scrubber = Scrubber::new([KEY]);
    let state = json!({"provider": "a", "data": {"token": "eyJhbGciOiJIUzI1NiJ9abc", "k": KEY}});
    let clean =
        json!({"provider": "a", "data": {"token": "eyJhbGciOiJIUzI1NiJ9abc", "k": "[redacted]"}});
    let message = |state: &Value| {
        json!({"role": "assistant", "parts": [
            {"type": "reasoning", "text": "", "provider_state": state},
        ]})
    };
    assert_eq!(scrubber.message(message(&state)), message(&clean));
    let request =
        |state: &Value| json!({"messages": [message(state)], "sampling": {"seed": 12_345_678}});
    assert_eq!(scrubber.request(request(&state)), request(&clean));
    let event = |state: &Value| json!({"type": "part_state", "index": 0, "state": state});
    assert_eq!(scrubber.event(event(&state)), event(&clean));
    let whole = |state: &Value| {
        json!({"type": "part_started", "index": 0, "part": {"kind": "whole", "part": {
            "type": "opaque", "kind": "x", "provider_state": state,
        }}})
    };
    assert_eq!(scrubber.event(whole(&state)), whole(&clean));
    // The same as a tool's argument is data.
    let input = json!({"parts": [{"provider_state": state}]});
    let clean = scrubber.value(input).to_string();
    assert!(!clean.contains("eyJhbGci"), "{clean}");
}

/// Its schema refuses what stands in a secret's place: recording anew would not help.
#[tokio::test]
async fn a_call_whose_input_was_struck_out_does_not_end_the_replay() {
    let schema = json!({
        "type": "object",
        "properties": {"token": {"type": "string", "pattern": "^[a-z]{3}-[0-9]{3}$"}},
        "required": ["token"],
    });
    let definition = ToolDefinition::new("login", "", schema);
    let body = |_: ToolCall| async { Ok::<_, String>(ToolOutput::text("welcome")) };
    let host: Arc<dyn ToolHost> =
        Arc::new(FunctionTools::new().with_function(Function::raw(definition, body)));
    let model = Scripted::saying(|_, asked| {
        Ok(match asked {
            0 => calls("call_a", "login", r#"{"token":"abc-123"}"#),
            1 => calls("call_b", "login", r#"{"token":"abc-124"}"#),
            _ => says(&["Done."]),
        })
    });
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::default()).unwrap();
    events(&agent(recorder.model(model), recorder.tools(host)), "Go").await;
    recorder.finish().unwrap();
    let ask = |player: &Player| {
        agent(
            player.model(&player.models()[0]).unwrap(),
            player.tools().unwrap(),
        )
    };
    let player = paper.player();
    let replayed = events(&ask(&player), "Go").await;
    let RunEventKind::RunFinished { report } = &replayed.last().unwrap().kind else {
        panic!()
    };
    assert_eq!(report.answer, "Done.");
    assert_eq!(player.missed(), Vec::<String>::new());
    // Another question is another run.
    let player = paper.player();
    events(&ask(&player), "Stop").await;
    let missed = player.missed();
    assert!(missed[0].contains("Record it anew"), "{missed:?}");
    // What cannot be had again is not to be recorded anew.
    let player = paper.player();
    let model = player.model(&player.models()[0]).unwrap();
    let mut use_of = Message::user("");
    use_of.role = switchboard_domain::Role::Assistant;
    use_of.parts = vec![switchboard_domain::Part::ToolUse(
        switchboard_domain::ToolUse::new(
            "a",
            "login",
            switchboard_domain::ToolInput::parse(r#"{"token":"[redacted]"}"#),
        ),
    )];
    let request = ChatRequest::new([Message::user("Go"), use_of]);
    let error = model.stream(&request).await.err().unwrap().to_string();
    assert!(error.contains("recording it anew does not help"), "{error}");
}

/// What a gateway says again, and what clients call models and conversations.
#[tokio::test]
async fn what_is_said_beside_messages_has_no_secret_either() {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), "test", Scrubber::new([KEY])).unwrap();
    let says = |_: &ChatRequest, _| {
        let kind = ModelErrorKind::InvalidRequest {
            field: Some(format!("field {KEY}")),
        };
        Err(ModelError::new("acme", kind, format!("no {KEY}"))
            .with_request_id(Some(format!("req-{KEY}"))))
    };
    let model = Arc::new(Scripted {
        id: ModelId::new("acme", KEY),
        capabilities: ModelCapabilities::default(),
        asked: AtomicUsize::new(0),
        says: Box::new(says),
    });
    let track = format!("run of acme/{KEY}");
    let model = recorder.track(&track).model(model);
    let hello = ChatRequest::new([Message::user("Hello")]);
    assert!(model.stream(&hello).await.is_err());
    recorder.finish().unwrap();
    let text = paper.text();
    assert!(!text.contains(KEY), "{text}");
    assert!(text.contains("\"request_id\":\"req-[redacted]\""), "{text}");
    // It is had again, under the name that it has now.
    let player = Player::with_scrubber(text.as_bytes(), Scrubber::new([KEY])).unwrap();
    let player = player.track(&track);
    let id = &player.models()[0];
    assert_eq!(*id, ModelId::new("acme", "[redacted]"));
    let told = player
        .model(id)
        .unwrap()
        .stream(&hello)
        .await
        .err()
        .unwrap();
    assert!(told.to_string().contains("no [redacted]"), "{told}");
    assert_eq!(player.missed(), Vec::<String>::new());
}

#[test]
fn what_a_model_wrote_itself_is_told_from_what_was_struck_out() {
    let use_of = |index: u32, id: &str, pieces: &[&str]| {
        let part = switchboard_domain::PartStart::ToolUse {
            id: id.to_owned(),
            name: "a".to_owned(),
        };
        let begun = ModelEvent::PartStarted { index, part };
        let deltas = pieces.iter().map(move |json| ModelEvent::ToolInputDelta {
            index,
            json: (*json).to_owned(),
        });
        std::iter::once(begun).chain(deltas).collect::<Vec<_>>()
    };
    let events = [
        use_of(0, "one", &[r#"{"note":"[reda"#, r#"cted]"}"#]),
        use_of(
            1,
            "two",
            &[r#"{"token":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}"#],
        ),
        use_of(2, "three", &[r#"{"a":["\u005bredacted]"]}"#]),
    ];
    let mut events: Vec<(u64, ModelEvent)> =
        events.concat().into_iter().map(|it| (0, it)).collect();
    let scrubber = Scrubber::default();
    assert_eq!(scrubber.marked(&events), ["one", "three"]);
    scrubber.events(&mut events);
    assert_eq!(scrubber.marked(&events), ["one", "two", "three"]);
}
