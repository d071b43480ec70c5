//! Context values of tools: two users on one server with one graph server.

use futures_util::future::join_all;
use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Request, Say};

use crate::{
    serving::{ANN, Answered, BOB, Serving, no_servers, place, read},
    support::program,
};

/// A secret without a typical form. It is a secret because a client sends it for a tool.
const SECRET: &str = "mother of pearl";

fn graph_with(context: Option<Value>) -> Value {
    let mut config = json!({
        "mcp_servers": {"graph": {"command": program(), "args": ["mcp-server", "graph"]}},
        "serve": {"tokens": [{"token": ANN, "user": "ann"}, {"token": BOB, "user": "bob"}]},
    });
    if let Some(context) = context {
        config["context"] = context;
    }
    config
}

/// A model that adds the node that the question names, if any. Then it reads the graph and lists
/// its nodes.
fn librarian(number: usize, request: &Request) -> Answer {
    let asked = request.json();
    let declared = asked["tools"].to_string();
    assert!(!declared.contains("databaseContext"), "{declared}");
    let messages = asked["messages"].as_array().unwrap();
    let question = messages
        .iter()
        .rposition(|it| it["role"] == "user")
        .unwrap();
    let results: Vec<&str> = messages[question..]
        .iter()
        .filter(|it| it["role"] == "tool")
        .map(|it| it["content"].as_str().unwrap())
        .collect();
    let node = messages[question]["content"].as_str().unwrap();
    let node = node.strip_prefix("add ");
    match (node, results.as_slice()) {
        (Some(node), []) => {
            let node = json!({"id": node, "type": "Gene", "label": node});
            let input = json!({"nodes": [node]});
            Answer::openai_chat([Say::call(format!("a{number}"), "graph__add_nodes", input)])
        }
        (Some(_), [_]) | (None, []) => {
            let call = format!("s{number}");
            Answer::openai_chat([Say::call(call, "graph__get_graph_state", json!({}))])
        }
        (_, results) => Answer::openai_chat([Say::text(*results.last().unwrap())]),
    }
}

/// Returns the ids of the nodes that the last call of a run read.
fn nodes(report: &Value) -> Vec<String> {
    let calls = report["tool_calls"].as_array().unwrap();
    assert!(
        calls.iter().all(|call| call["is_error"] == false),
        "{report}"
    );
    let nodes = calls.last().unwrap()["result"]["structured"]["nodes"].as_array();
    let ids = nodes.unwrap().iter().map(|node| node["id"].as_str());
    ids.map(|id| id.unwrap().to_owned()).collect()
}

async fn chat(server: &Serving, token: &str, body: &Value) -> Answered {
    let request = server.posting("/chat", body).bearer_auth(token);
    read(request.send().await.unwrap()).await
}

#[tokio::test]
async fn sessions_have_separate_graphs() {
    const TURNS: usize = 25;
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(librarian);
    let server = Serving::start_owned(place(&fake, &graph_with(None)), &[]).await;
    let server = &server;
    let talks = [(ANN, "a1"), (BOB, "b1"), (ANN, "a2"), (BOB, "b2")];
    join_all(talks.map(|(token, name)| async move {
        let made = server.posting("/sessions", &json!({})).bearer_auth(token);
        let session = read(made.send().await.unwrap()).await.expect(201)["id"].clone();
        let mut expected = Vec::new();
        for turn in 0..TURNS {
            let node = format!("{name}:{turn}");
            let body = json!({"message": format!("add {node}"), "session_id": session});
            let report = chat(server, token, &body).await.expect(200);
            expected.push(node);
            assert_eq!(nodes(&report), expected, "{report}");
        }
    }))
    .await;
    // New sessions and runs without session start with an empty graph.
    for token in [ANN, BOB] {
        let report = chat(server, token, &json!({"message": "show"})).await;
        assert_eq!(nodes(&report.expect(200)), [""; 0]);
        let said = json!({"model": "default", "messages": [{"role": "user", "content": "show"}]});
        let said = server
            .posting("/v1/chat/completions", &said)
            .bearer_auth(token);
        let said = read(said.send().await.unwrap()).await.expect(200);
        for name in ["a1", "a2", "b1", "b2"] {
            assert!(!said.to_string().contains(&format!("{name}:")), "{said}");
        }
    }
}

#[tokio::test]
async fn clients_send_configured_context_values() {
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(librarian);
    let mut config = graph_with(Some(json!({"databaseContext": {
        "conversationId": "${principal.user}/${client.topic}",
        "accessToken": "${client.access_token}",
    }})));
    config["log_file"] = json!("log.txt");
    config["audit"] = json!("audit.jsonl");
    let place = place(&fake, &config).with_variable("SWITCHBOARD_LOG", "debug");
    let server = Serving::start(&place, &["--record", "recording.jsonl"]).await;
    let about = |topic: &str, message: &str| json!({"message": message, "context": {"topic": topic, "access_token": SECRET}});
    let mut sessions = Vec::new();
    for (token, topic, message, expected) in [
        (ANN, "one", "add x:1", vec!["x:1"]),
        (ANN, "two", "add x:2", vec!["x:2"]),
        // The next two rows are another session of the same user with the same topic, and a session
        // of another user with the same topic.
        (ANN, "one", "add x:3", vec!["x:1", "x:3"]),
        (BOB, "one", "show", vec![]),
    ] {
        let answered = chat(&server, token, &about(topic, message)).await;
        assert_eq!(nodes(&answered.expect(200)), expected, "{topic} {message}");
        sessions.push((
            token,
            answered.header("x-switchboard-session-id").to_owned(),
        ));
    }
    // Without the required value, the call is not sent.
    let unsaid = chat(&server, ANN, &json!({"message": "show"}))
        .await
        .expect(200);
    let call = &unsaid["tool_calls"][0];
    assert_eq!(call["failure"], "unavailable", "{unsaid}");
    let why = call["result"].to_string();
    assert!(why.contains("did not send `topic`"), "{why}");
    // The values of the client appear nowhere.
    let mut shown = String::new();
    for (token, session) in &sessions {
        let request = server.request(reqwest::Method::GET, &format!("/sessions/{session}"));
        let session = read(request.bearer_auth(token).send().await.unwrap()).await;
        shown.push_str(&session.expect(200).to_string());
    }
    server.terminate();
    let (_, stderr) = server.ended().await;
    shown.push_str(&stderr);
    for file in ["log.txt", "audit.jsonl", "recording.jsonl"] {
        let text = std::fs::read_to_string(place.path().join(file)).unwrap();
        assert!(!text.is_empty(), "{file}");
        shown.push_str(&text);
    }
    assert!(
        !shown.contains(SECRET) && !shown.contains("mother%20of"),
        "{shown}"
    );
}

#[tokio::test]
async fn every_route_refuses_unconfigured_context_values() {
    let fake = FakeModel::start().await.unwrap();
    let mut config = no_servers();
    config["context"] =
        json!({"databaseContext": {"conversationId": "${client.topic}"}, "plain": "x"});
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let messages = json!([{"role": "user", "content": "hi"}]);
    let said = json!([{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]);
    for name in ["databaseContext", "plain", "session.id", "other"] {
        let context = json!({name: "mine"});
        for (path, body) in [
            ("/chat", json!({"message": "hi", "context": context})),
            (
                "/api/chat",
                json!({"id": "c", "messages": said, "context": context}),
            ),
            (
                "/ag-ui",
                json!({
                    "threadId": "t", "runId": "r", "tools": [], "context": [], "state": {},
                    "messages": [{"id": "m", "role": "user", "content": "hi"}],
                    "forwardedProps": {"context": context},
                }),
            ),
        ] {
            let refused = server.post(path, &body).await;
            assert_eq!(refused.problem(422), "invalid", "{path} {name}");
            let problem = refused.json();
            assert_eq!(problem["field"], format!("context.{name}"), "{problem}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("clients can send: topic"), "{detail}");
        }
        for (path, body) in [
            (
                "/v1/chat/completions",
                json!({"model": "default", "messages": messages}),
            ),
            (
                "/v1/messages",
                json!({"model": "default", "max_tokens": 9, "messages": messages}),
            ),
        ] {
            let mut body = body;
            body["switchboard"] = json!({"context": context});
            let refused = server.post(path, &body).await;
            assert!((400..500).contains(&refused.status), "{refused:?}");
            assert!(refused.text.contains(name), "{refused:?}");
        }
    }
    let body = json!({"message": "hi", "context": {"topic": ["a"]}});
    let refused = server.post("/chat", &body).await;
    assert_eq!(refused.problem(422), "invalid");
    assert_eq!(refused.json()["field"], "context.topic");
    assert!(fake.requests().is_empty());
}
