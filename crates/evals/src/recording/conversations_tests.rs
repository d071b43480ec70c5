//! Concurrent conversations in one recording.

use switchboard_domain::ToolOutput;

use super::*;

/// A host whose catalog has one more tool after each request for the catalog, and whose tool
/// returns the number of its call.
#[derive(Default)]
struct CountingTools {
    catalogs: AtomicUsize,
    calls: AtomicUsize,
}

#[async_trait]
impl ToolHost for CountingTools {
    async fn list_tools(&self) -> ToolCatalog {
        let count = self.catalogs.fetch_add(1, Ordering::Relaxed) + 1;
        let tool = |at: usize| {
            Arc::new(ToolDefinition::new(
                format!("tool{at}"),
                "",
                json!({"type": "object"}),
            ))
        };
        ToolCatalog {
            tools: (0..count).map(tool).collect(),
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(ToolOutput::text(format!("result {number}")))
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

/// Creates a model whose answer contains the number of its request.
fn counting_model() -> Arc<dyn ChatModel> {
    ScriptedModel::responding(|_, requests| Ok(text_response(&[&format!("answer {requests}")])))
}

fn request(messages: &[&str]) -> ChatRequest {
    ChatRequest::new(messages.iter().map(|text| Message::user(*text)))
}

async fn ask(model: &Arc<dyn ChatModel>, messages: &[&str]) -> Result<String, String> {
    let response = model.complete(&request(messages)).await;
    response
        .map(|response| response.message.text())
        .map_err(|error| error.to_string())
}

async fn call(host: &Arc<dyn ToolHost>) -> Result<String, String> {
    let call = ToolCall {
        name: "tool0".to_owned(),
        ..ToolCall::default()
    };
    let output = host.call_tool(call).await;
    output
        .map(|output| output.content[0].as_text())
        .map_err(|error| error.to_string())
}

fn model_and_tools(player: &Player) -> (Arc<dyn ChatModel>, Arc<dyn ToolHost>) {
    let model = player.replay_model(&ModelId::new("acme", "one")).unwrap();
    (model, player.replay_tools().unwrap())
}

/// Records two conversations with equal questions and calls but different responses.
async fn two_conversations() -> MemoryFile {
    let file = MemoryFile::default();
    let recorder = recorder(&file);
    let (model, host) = (counting_model(), Arc::new(CountingTools::default()));
    for (name, first) in [("run 1", "answer 0"), ("run 2", "answer 2")] {
        let recorder = recorder.with_conversation(name);
        let model = recorder.record_model(Arc::clone(&model));
        let host = recorder.record_tools(Arc::clone(&host) as Arc<dyn ToolHost>);
        host.list_tools().await;
        assert_eq!(ask(&model, &["Hello"]).await.unwrap(), first);
        let result = call(&host).await.unwrap();
        ask(&model, &["Hello", first, &result]).await.unwrap();
    }
    file
}

#[tokio::test]
async fn a_named_conversation_gets_only_its_own_responses() {
    let file = two_conversations().await;
    for matching in [RequestMatching::Exact, RequestMatching::Order] {
        let player = file.player().with_request_matching(matching);
        for (name, answer, result) in [
            ("run 2", "answer 2", "result 2"),
            ("run 1", "answer 0", "result 1"),
        ] {
            let (model, host) = model_and_tools(&player.select_conversation(name));
            assert_eq!(ask(&model, &["Hello"]).await.unwrap(), answer);
            assert_eq!(call(&host).await.unwrap(), result);
            let error = call(&host).await.unwrap_err();
            assert!(error.contains("no unused result of `tool0`"), "{error}");
        }
        assert_eq!(player.count_unused_responses(), 2);
        assert_eq!(player.missed_requests().len(), 2);
    }
    let player = file.player();
    let (model, _) = model_and_tools(&player.select_conversation("run 3"));
    let error = ask(&model, &["Hello"]).await.unwrap_err();
    let expected = "no response from acme/one to the request of `run 3` that ends with `\"Hello\"`";
    assert!(error.contains(expected), "{error}");
    // A model without a selected conversation can use all recorded responses.
    let (model, _) = model_and_tools(&player);
    assert_eq!(ask(&model, &["Hello"]).await.unwrap(), "answer 0");
}

#[tokio::test]
async fn an_unnamed_conversation_continues_with_the_recorded_one_of_its_first_response() {
    let player = two_conversations().await.player();
    let (first, second) = (player.detect_conversation(), player.detect_conversation());
    let ((model, host), (other_model, other_host)) =
        (model_and_tools(&first), model_and_tools(&second));
    assert_eq!(ask(&model, &["Hello"]).await.unwrap(), "answer 0");
    assert_eq!(ask(&other_model, &["Hello"]).await.unwrap(), "answer 2");
    // Both conversations make an equal call. The second conversation makes it first.
    assert_eq!(call(&other_host).await.unwrap(), "result 2");
    assert_eq!(call(&host).await.unwrap(), "result 1");
    let next = ["Hello", "answer 2", "result 2"];
    assert_eq!(ask(&other_model, &next).await.unwrap(), "answer 3");
    let next = ["Hello", "answer 0", "result 1"];
    assert_eq!(ask(&model, &next).await.unwrap(), "answer 1");
    assert_eq!(player.count_unused_responses(), 0);
    let (third, _) = model_and_tools(&player.detect_conversation());
    let error = ask(&third, &["Hello"]).await.unwrap_err();
    assert!(error.contains("restart the replay"), "{error}");
}

#[tokio::test]
async fn a_request_that_only_another_conversation_has_is_found_there() {
    let player = two_conversations().await.player();
    let (model, host) = model_and_tools(&player.detect_conversation());
    // A resumed run calls a tool before its first model request.
    assert_eq!(call(&host).await.unwrap(), "result 1");
    let next = ["Hello", "answer 2", "result 2"];
    assert_eq!(ask(&model, &next).await.unwrap(), "answer 3");
    let error = ask(&model, &next).await.unwrap_err();
    assert!(error.contains("already used"), "{error}");
    let error = ask(&model, &["Bye"]).await.unwrap_err();
    assert!(error.contains("now `\"Bye\"`"), "{error}");
}

#[tokio::test]
async fn in_recorded_order_each_conversation_follows_another_recorded_one() {
    let player = two_conversations().await.player();
    let player = player.with_request_matching(RequestMatching::Order);
    let (one, _) = model_and_tools(&player.detect_conversation());
    let (two, host) = model_and_tools(&player.detect_conversation());
    let question = ["It is Monday"];
    assert_eq!(ask(&one, &question).await.unwrap(), "answer 0");
    assert_eq!(ask(&two, &question).await.unwrap(), "answer 2");
    assert_eq!(call(&host).await.unwrap(), "result 2");
    assert_eq!(ask(&one, &question).await.unwrap(), "answer 1");
    assert!(ask(&one, &question).await.is_err());
    assert_eq!(ask(&two, &question).await.unwrap(), "answer 3");
}

#[tokio::test]
async fn an_error_recommends_a_new_conversation_after_a_missing_response() {
    let file = MemoryFile::default();
    let model = recorder(&file).record_model(counting_model());
    ask(&model, &["One"]).await.unwrap();
    let player = file.player();
    let model = player.replay_model(&player.recorded_models()[0]).unwrap();
    ask(&model, &["Zero"]).await.unwrap_err();
    let error = ask(&model, &["Zero", "One"]).await.unwrap_err();
    assert!(error.contains("/new"), "{error}");
    assert_eq!(ask(&model, &["One"]).await.unwrap(), "answer 0");
}

#[tokio::test]
async fn the_number_of_stored_misses_is_limited() {
    let player = two_conversations().await.player();
    let (model, _) = model_and_tools(&player.detect_conversation());
    for _ in 0..1_010 {
        assert!(ask(&model, &["Bye"]).await.is_err());
    }
    assert_eq!(player.missed_requests().len(), 1_000);
}

#[tokio::test]
async fn the_replayed_catalog_is_that_of_the_next_request() {
    let file = MemoryFile::default();
    let recorder = recorder(&file);
    let model = recorder.record_model(counting_model());
    let host = recorder.record_tools(Arc::new(CountingTools::default()));
    for question in ["a", "b", "c"] {
        host.list_tools().await;
        ask(&model, &[question]).await.unwrap();
    }
    let (model, host) = model_and_tools(&file.player());
    let mut counts = Vec::new();
    for question in ["a", "b", "c"] {
        counts.push(host.list_tools().await.tools.len());
        ask(&model, &[question]).await.unwrap();
    }
    counts.push(host.list_tools().await.tools.len());
    assert_eq!(counts, [1, 2, 3, 3]);
}

/// A tool that answers the later of two calls first.
struct ReversingTool(tokio::sync::Barrier);

#[async_trait]
impl ToolHost for ReversingTool {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog::default()
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let number = call.input.get("n").cloned().unwrap_or_default();
        self.0.wait().await;
        if number == 1 {
            // This call waits, so that the other call ends first.
            tokio::task::yield_now().await;
        }
        Ok(ToolOutput::text(number.to_string()))
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

#[tokio::test]
async fn concurrent_calls_get_their_own_results() {
    async fn call(host: &Arc<dyn ToolHost>, number: u32, token: &str) -> Option<String> {
        let input = json!({"n": number, "token": token});
        let call = ToolCall {
            name: "nap".to_owned(),
            input: input.as_object().unwrap().clone().into(),
            ..ToolCall::default()
        };
        let output = host.call_tool(call).await.ok()?;
        Some(output.content[0].as_text())
    }
    let file = MemoryFile::default();
    let barrier = tokio::sync::Barrier::new(2);
    let host = recorder(&file).record_tools(Arc::new(ReversingTool(barrier)));
    let live = tokio::join!(call(&host, 1, "a"), call(&host, 2, "b"));
    assert_eq!(live, (Some("1".to_owned()), Some("2".to_owned())));
    let text = file.text();
    let calls = text.lines().filter(|line| line.contains(r#""tool_call""#));
    let first: Vec<bool> = calls.map(|it| it.contains(r#""number":1"#)).collect();
    assert_eq!(first, [false, true], "the second call ended first: {text}");
    let replay =
        |matching| -> Arc<dyn ToolHost> { Arc::new(file.player().with_request_matching(matching)) };
    for matching in [RequestMatching::Exact, RequestMatching::Order] {
        let host = replay(matching);
        assert_eq!(tokio::join!(call(&host, 1, "a"), call(&host, 2, "b")), live);
        let host = replay(matching);
        let (second, first) = (call(&host, 2, "b").await, call(&host, 1, "a").await);
        assert_eq!((first, second), live);
    }
    // A call with another input gets a recorded result only with `RequestMatching::Order`.
    for (matching, expected) in [
        (RequestMatching::Exact, None),
        (RequestMatching::Order, Some("1")),
    ] {
        let host = replay(matching);
        assert_eq!(call(&host, 3, "c").await.as_deref(), expected);
    }
}
