//! JSON that is nested more deeply than the stores can read, through every input.

use axum::{Json, Router, http::StatusCode, response::IntoResponse as _, routing::post};
use serde_json::{Value, json};
use switchboard_domain::MAX_JSON_DEPTH;
use switchboard_testkit::fake::{Answer, FakeModel, Say};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    serving::{Serving, place},
    support::Place,
};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({"k": inner}))
}

/// An MCP server with a tool that returns data of the requested depth.
struct Digger {
    url: String,
    task: JoinHandle<()>,
}

impl Digger {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().route("/mcp", post(dig));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, task }
    }

    fn config(&self, approve: &str) -> Value {
        json!({"mcpServers": {"pit": {"url": self.url}}, "approve": approve})
    }
}

impl Drop for Digger {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn dig(Json(message): Json<Value>) -> axum::response::Response {
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "pit", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "dig", "description": "Digs.", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => {
            let levels = params["arguments"]["levels"].as_u64().unwrap();
            let levels = usize::try_from(levels).unwrap();
            json!({
                "content": [{"type": "text", "text": "dug"}],
                "structuredContent": nested(levels),
            })
        }
        method if method.starts_with("notifications/") => {
            return StatusCode::ACCEPTED.into_response();
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                .into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

/// Ends the server and imports the session into another store. Returns the session from there.
async fn moved(server: Serving, from: &Place, session: &str) -> Value {
    server.kill().await;
    let exported = from.run(["sessions", "export", session]).await;
    assert_eq!(exported.code, 0, "{exported}");
    let to = Place::new().with_file("export.json", &exported.stdout);
    let imported = to.run(["sessions", "import", "export.json"]).await;
    assert_eq!(imported.code, 0, "{imported}");
    let shown = to.run(["sessions", "show", session, "-o", "json"]).await;
    assert_eq!(shown.code, 0, "{shown}");
    serde_json::from_str(&shown.stdout).unwrap()
}

#[tokio::test]
async fn a_result_of_125_levels_is_stored_and_exported() {
    let (pit, fake) = (Digger::start().await, FakeModel::start().await.unwrap());
    let place = place(&fake, &pit.config("all"));
    let server = Serving::start(&place, &[]).await;
    let mut asked = json!({"message": "Dig."});
    for levels in [MAX_JSON_DEPTH, MAX_JSON_DEPTH + 1, 125] {
        fake.answer(Answer::openai_chat([Say::call(
            format!("call_{levels}"),
            "pit__dig",
            json!({"levels": levels}),
        )]));
        fake.answer(Answer::openai_chat([Say::text("Done.")]));
        let answered = server.post("/chat", &asked).await.expect(200);
        assert_eq!(answered["outcome"], "completed", "{answered}");
        let call = &answered["tool_calls"][0];
        let fits = levels == MAX_JSON_DEPTH;
        assert_eq!(call["is_error"], !fits, "{call}");
        if fits {
            assert_eq!(call["result"]["structured"], nested(levels));
        } else {
            let message = call["result"]["content"][0]["text"].as_str().unwrap();
            assert!(
                message.contains("nested more than 64 levels deep"),
                "{message}"
            );
        }
        let session = &answered["session_id"];
        asked["session_id"] = session.clone();
        let path = format!("/sessions/{}", session.as_str().unwrap());
        server.get(&path).await.expect(200);
    }
    let session = asked["session_id"].as_str().unwrap().to_owned();
    let shown = moved(server, &place, &session).await;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 12, "{shown}");
}

#[tokio::test]
async fn a_call_with_124_levels_of_arguments_is_decided() {
    let (pit, fake) = (Digger::start().await, FakeModel::start().await.unwrap());
    fake.answer(Answer::openai_chat([Say::call(
        "call_1",
        "pit__dig",
        nested(124),
    )]));
    fake.answer(Answer::openai_chat([Say::text("Done.")]));
    let place = place(&fake, &pit.config("ask"));
    let server = Serving::start(&place, &[]).await;
    let asked = json!({"message": "Dig."});
    let answered = server.post("/chat", &asked).await.expect(200);
    let call = &answered["tool_calls"][0];
    assert_eq!(call["failure"], "malformed_input", "{call}");
    let message = call["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        message.contains("nested more than 64 levels deep"),
        "{message}"
    );
    let run = answered["run_id"].as_str().unwrap();
    server.get(&format!("/runs/{run}")).await.expect(200);
    let session = answered["session_id"].as_str().unwrap().to_owned();
    moved(server, &place, &session).await;
}

#[tokio::test]
async fn the_depth_of_client_input_is_limited() {
    let (pit, fake) = (Digger::start().await, FakeModel::start().await.unwrap());
    let place = place(&fake, &pit.config("ask"));
    let server = Serving::start(&place, &[]).await;
    let deep = json!({"message": "Dig.", "more": nested(100)});
    assert_eq!(server.post("/chat", &deep).await.problem(400), "malformed");
    let parameters = nested(MAX_JSON_DEPTH + 1);
    let tool = json!({"type": "function", "function": {"name": "own", "parameters": parameters}});
    let said = json!([{"role": "user", "content": "Dig."}]);
    let asked = json!({"model": "default", "messages": said, "tools": [tool]});
    let refused = server.post("/v1/chat/completions", &asked).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(
        refused.text.contains("nested more than 64 levels deep"),
        "{refused:?}"
    );

    fake.answer(Answer::openai_chat([Say::call(
        "call_1",
        "pit__dig",
        json!({"levels": 1}),
    )]));
    fake.answer(Answer::openai_chat([Say::text("Done.")]));
    let accepted = server.post("/chat", &json!({"message": "Dig."})).await;
    let run = accepted.expect(202)["run_id"].as_str().unwrap().to_owned();
    let path = format!("/runs/{run}/approvals/call_1");
    for levels in [MAX_JSON_DEPTH + 1, 90] {
        let edited = json!({"decision": "allow", "input": nested(levels)});
        assert_eq!(server.post(&path, &edited).await.problem(422), "invalid");
    }
    // The call still waits.
    let allowed = json!({"decision": "allow"});
    server.post(&path, &allowed).await.expect(202);
    let events = server
        .follow(&format!("/runs/{run}/events"))
        .await
        .rest()
        .await;
    let report = &events.last().unwrap().data["report"];
    assert_eq!(report["outcome"], "completed", "{report}");
}
