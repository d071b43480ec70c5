//! Unusual requests of clients in each dialect, and the responses to them.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{Answered, Serving, call_left, no_servers, place, says, with_server},
    slow_server::SlowServer,
};

/// Returns the data of each frame of a stream. `null` stands for `[DONE]`.
fn frames(answered: &Answered) -> Vec<Value> {
    assert_eq!(answered.status, 200, "{answered:?}");
    let lines = answered.text.lines();
    let data = lines.filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| match data {
        "[DONE]" => Value::Null,
        json => serde_json::from_str(json).unwrap(),
    })
    .collect()
}

/// Returns the frames of one type.
fn of<'f>(frames: &'f [Value], kind: &str) -> Vec<&'f Value> {
    frames.iter().filter(|it| it["type"] == kind).collect()
}

/// Returns the text in a UI message stream of the AI SDK.
fn ui_text(frames: &[Value]) -> String {
    let deltas = of(frames, "text-delta");
    deltas
        .iter()
        .map(|it| it["delta"].as_str().unwrap())
        .collect()
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

async fn start_server(fake: &FakeModel) -> Serving {
    Serving::start_owned(place(fake, &no_servers()), &[]).await
}

#[tokio::test]
async fn late_tool_results_are_a_conflict() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::call("a", "mine", json!({}))]));
    let server = start_server(&fake).await;
    let tool =
        json!({"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}});
    let ask = |messages: Value| json!({"model": "default", "messages": messages, "tools": [tool]});
    let question = json!({"role": "user", "content": "?"});
    let begin = ask(json!([question]));
    let first = server.post("/v1/chat/completions", &begin).await;
    let run = first.header("x-switchboard-run-id").to_owned();
    let message = first.expect(200)["choices"][0]["message"].clone();
    let call = &message["tool_calls"][0]["id"];
    // The run is cancelled while it waits for the client's result. The client does not know this.
    let cancel = format!("/runs/{run}/cancel");
    assert_eq!(server.post(&cancel, &json!({})).await.status, 202);
    let result = json!({"role": "tool", "tool_call_id": call, "content": "17"});
    let late = ask(json!([question, message, result]));
    for _ in 0..2 {
        let refused = server.post("/v1/chat/completions", &late).await;
        let refused = refused.expect(409);
        assert_eq!(refused["error"]["code"], "conflict", "{refused}");
        assert_eq!(refused["error"]["param"], "messages", "{refused}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_requested_schema_is_an_error_in_every_dialect() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": false,
    });
    let messages = json!([{"role": "user", "content": "Who is Ann?"}]);
    let openai = json!({
        "model": "default", "messages": messages, "response_format": {
            "type": "json_schema", "json_schema": {"name": "person", "schema": schema},
        },
    });
    let anthropic = json!({
        "model": "default", "messages": messages, "max_tokens": 100,
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    });
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(|_, _| says(r#"{"a":20,"b":22}"#));
    let server = start_server(&fake).await;
    let requests = [
        ("/v1/chat/completions", openai),
        ("/v1/messages", anthropic),
    ];
    for (path, body) in &requests {
        let answered = server.post(path, body).await;
        assert_eq!(answered.status, 502, "{path}: {answered:?}");
        assert!(answered.text.contains("error"), "{path}: {answered:?}");
        // In a stream, the status 200 is already sent when the error occurs, so a frame contains
        // the error.
        let mut body = body.clone();
        body["stream"] = json!(true);
        let frames = frames(&server.post(path, &body).await);
        let errors = frames.iter().filter(|frame| frame["error"].is_object());
        assert_eq!(errors.count(), 1, "{path}: {frames:?}");
    }
    fake.otherwise(|_, _| says(r#"{"name":"Ann","age":30}"#));
    for (path, body) in &requests {
        let answered = server.post(path, body).await;
        assert_eq!(answered.status, 200, "{path}: {answered:?}");
        assert!(answered.text.contains("Ann"), "{path}: {answered:?}");
    }
}

/// Starts a server whose tool needs an approval, and a chat that waits for this approval.
async fn asked(fake: &FakeModel, slow: &SlowServer) -> (Serving, Value) {
    fake.answer(call_left());
    fake.answer(says("Done."));
    let mut config = with_server(slow);
    config["approve"] = json!("ask");
    let server = Serving::start_owned(place(fake, &config), &[]).await;
    let body = json!({"id": "chat", "messages": [user("1", "Look.")]});
    let first = frames(&server.post("/api/chat", &body).await);
    let end = of(&first, "finish");
    assert_eq!(end[0]["finishReason"], "tool-calls", "{first:?}");
    let metadata = end[0]["messageMetadata"].clone();
    (server, metadata)
}

/// Returns the request that the AI SDK sends after `addToolApprovalResponse`.
fn word(metadata: &Value) -> Value {
    let part = json!({
        "type": "dynamic-tool", "toolName": "slow__left", "toolCallId": "a", "state": "approval-responded",
        "input": {"far": 1}, "approval": {"id": "a", "approved": true},
    });
    let message = json!({"id": metadata["runId"], "role": "assistant", "metadata": metadata, "parts": [part]});
    json!({"id": "chat", "messages": [user("1", "Look."), message], "messageId": metadata["runId"]})
}

#[tokio::test]
async fn a_client_with_a_position_past_the_end_gets_the_rest() {
    let fake = FakeModel::start().await.unwrap();
    let mut slow = SlowServer::start().await;
    slow.answer(1);
    let (server, mut metadata) = asked(&fake, &slow).await;
    let seen = metadata["lastEvent"].clone();
    metadata["lastEvent"] = json!(1_000_000);
    let rest = frames(&server.post("/api/chat", &word(&metadata)).await);
    assert_eq!(ui_text(&rest), "Done.");
    assert_eq!(of(&rest, "tool-output-available").len(), 1, "{rest:?}");
    assert_eq!(rest.last(), Some(&Value::Null));
    slow.called().await;

    // The approval is sent again after the end of the run. The response contains nothing new, but
    // has a regular end.
    let last = of(&rest, "finish")[0]["messageMetadata"]["lastEvent"].clone();
    for seen in [seen, last, json!(u64::MAX)] {
        metadata["lastEvent"] = seen;
        let again = frames(&server.post("/api/chat", &word(&metadata)).await);
        assert_eq!(again[0]["type"], "start", "{again:?}");
        assert_eq!(of(&again, "finish").len(), 1, "{again:?}");
        assert_eq!(again.last(), Some(&Value::Null));
    }

    // AG-UI behaves like this too. Its interrupt ids contain the number of the last seen event.
    let run = metadata["runId"].as_str().unwrap();
    let resume = json!([{"interruptId": format!("{run}/999999/a"), "status": "cancelled"}]);
    let body = json!({"threadId": "chat", "runId": "r", "messages": [], "resume": resume});
    let events = frames(&server.post("/ag-ui", &body).await);
    assert_eq!(events[0]["type"], "RUN_STARTED");
    assert_eq!(events.last().unwrap()["result"]["answer"], "Done.");
}

#[tokio::test]
async fn a_regenerated_answer_replaces_the_first() {
    let fake = FakeModel::start().await.unwrap();
    for answer in ["One.", "First.", "Second."] {
        fake.answer(says(answer));
    }
    let server = start_server(&fake).await;
    let answer =
        |id: &str| json!({"id": id, "role": "assistant", "parts": [{"type": "text", "text": "…"}]});
    let (begin, ask) = (user("1", "Begin."), user("3", "Go on."));
    let post = |messages: Value, trigger: &str| {
        let body = json!({"id": "chat", "messages": messages, "trigger": trigger});
        let server = &server;
        async move { frames(&server.post("/api/chat", &body).await) }
    };
    let said = || async {
        let shown = server.get("/sessions/chat").await.expect(200);
        let messages = shown["messages"].as_array().unwrap().clone();
        let texts = messages.iter().map(|it| it["parts"][0]["text"].clone());
        texts.collect::<Vec<_>>()
    };
    post(json!([begin]), "submit-message").await;
    let first = post(json!([begin, answer("2"), ask]), "submit-message").await;
    assert_eq!(said().await, ["Begin.", "One.", "Go on.", "First."]);

    let regenerate = json!([begin, answer("2"), ask]);
    let second = post(regenerate, "regenerate-message").await;
    assert_eq!(ui_text(&second), "Second.");
    assert_eq!(said().await, ["Begin.", "One.", "Go on.", "Second."]);
    // The request to the model does not contain the answer that is replaced.
    let request = fake.request(2).await.json().to_string();
    assert!(
        request.contains("One.") && !request.contains("First."),
        "{request}"
    );
    // The record of the first run still contains its answer.
    let run = first[0]["messageId"].as_str().unwrap();
    let record = server.run(run).await;
    assert_eq!(record["report"]["answer"], "First.", "{record}");
    assert_ne!(second[0]["messageId"], run);
}

#[tokio::test]
async fn an_ag_ui_client_executes_its_own_tool() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([
        Say::text("I ask you."),
        Say::call("a", "mine", json!({"city": "Paris"})),
    ]));
    fake.answer(says("It rains."));
    let server = start_server(&fake).await;
    let tool = json!({"name": "mine", "description": "Mine.", "parameters": {"type": "object"}});
    let question = json!({"id": "1", "role": "user", "content": "?"});
    let run = |messages: Value| {
        let body = json!({"threadId": "t", "runId": "r", "messages": messages, "tools": [tool]});
        let server = &server;
        async move { server.post("/ag-ui", &body).await }
    };
    let first = frames(&run(json!([question])).await);
    let call = of(&first, "TOOL_CALL_START")[0];
    assert_eq!(call["toolCallName"], "mine");
    assert_eq!(of(&first, "TOOL_CALL_RESULT").len(), 0);
    let end = first.last().unwrap();
    assert_eq!(
        end["outcome"],
        json!({"type": "success", "pendingToolCallIds": ["a"]})
    );
    let calls = json!({"id": "2", "role": "assistant", "content": "I ask you.", "toolCalls": [
        {"id": "a", "type": "function", "function": {"name": "mine", "arguments": "{\"city\":\"Paris\"}"}}]});
    let result =
        |text: &str| json!({"id": "3", "role": "tool", "toolCallId": "a", "content": text});
    // A result with a NUL character is refused, because no store accepts it. The run still waits.
    let refused = run(json!([question, calls, result("a\u{0}")])).await;
    assert_eq!(refused.problem(400), "malformed");

    let messages = json!([question, calls, result("17 degrees and rain")]);
    let second = frames(&run(messages.clone()).await);
    assert_eq!(second[0]["type"], "RUN_STARTED");
    assert_eq!(of(&second, "TOOL_CALL_RESULT").len(), 0, "{second:?}");
    assert_eq!(second.last().unwrap()["result"]["answer"], "It rains.");
    let received = fake.request(1).await.json()["messages"].clone();
    let received = received.as_array().unwrap().last().unwrap().to_string();
    assert!(received.contains("17 degrees and rain"), "{received}");
    // The run has received its result, so a second result is refused.
    assert_eq!(run(messages).await.problem(409), "conflict");
    // The session has the call with its result.
    let shown = server.get("/sessions/t").await.expect(200).to_string();
    assert!(shown.contains("17 degrees and rain"), "{shown}");
}

#[tokio::test]
async fn a_new_ag_ui_message_ends_the_open_client_call() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::call("a", "mine", json!({}))]));
    fake.answer(says("Something else."));
    let server = start_server(&fake).await;
    let tool = json!({"name": "mine", "description": "Mine.", "parameters": {"type": "object"}});
    let question = json!({"id": "1", "role": "user", "content": "?"});
    let run = |messages: Value| json!({"threadId": "t", "runId": "r", "messages": messages, "tools": [tool]});
    frames(&server.post("/ag-ui", &run(json!([question]))).await);
    let other = json!({"id": "2", "role": "user", "content": "Never mind."});
    let answered = server.post("/ag-ui", &run(json!([question, other]))).await;
    let events = frames(&answered);
    assert_eq!(
        events.last().unwrap()["result"]["answer"],
        "Something else."
    );
    let result = json!({"id": "3", "role": "tool", "toolCallId": "a", "content": "17"});
    let late = server.post("/ag-ui", &run(json!([question, result]))).await;
    assert_eq!(late.problem(409), "conflict");
}
