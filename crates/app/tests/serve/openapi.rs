//! The OpenAPI document, and real responses that are checked against it.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    serving::{Answered, Serving, place, read, says, with_server},
    slow_server::SlowServer,
    support::Place,
};

/// Checks a response against the document: route, method, status and body.
fn check_response(document: &Value, route: &str, method: &str, answered: &Answered) {
    let status = answered.status.to_string();
    let operation = &document["paths"][route][method];
    let response = &operation["responses"][&status];
    assert!(
        response.is_object(),
        "{method} {route} says nothing of {status}: {answered:?}"
    );
    if answered.text.is_empty() {
        assert!(
            response["content"].is_null(),
            "{method} {route} {status} has a body"
        );
        return;
    }
    let kind = answered
        .header("content-type")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let schema = &response["content"][&kind]["schema"];
    assert!(
        schema.is_object(),
        "{method} {route} {status} has no {kind}: {response}"
    );
    check_schema(
        document,
        schema,
        &answered.json(),
        &format!("{method} {route} {status}"),
    );
}

fn check_schema(document: &Value, schema: &Value, value: &Value, what: &str) {
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "components": document["components"],
        "allOf": [schema],
    });
    let validator = jsonschema::validator_for(&whole).unwrap();
    let wrong: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{what}: {wrong:#?} in {value:#}");
}

#[tokio::test]
async fn every_response_matches_the_openapi_document() {
    let slow = SlowServer::start().await;
    slow.answer(4);
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([
        Say::call("a", "slow__left", json!({"far": 1})),
        Say::call("b", "slow__right", json!({"far": "x"})),
    ]));
    fake.otherwise(|_, _| says("Done."));
    let mut config = with_server(&slow);
    config["approve"] = json!("ask");
    let server = Serving::start_owned(place(&fake, &config), &[]).await;
    let document = server.get("/openapi.json").await.expect(200);
    let get = async |route: &str, path: &str| {
        let answered = server.get(path).await;
        check_response(&document, route, "get", &answered);
    };
    let post = async |route: &str, path: &str, body: Value| {
        let answered = server.post(path, &body).await;
        check_response(&document, route, "post", &answered);
        answered
    };
    let chat = async |body: Value| post("/chat", "/chat", body).await;

    let accepted = chat(json!({"message": "Look."})).await.expect(202);
    let run = format!("/runs/{}", accepted["run_id"].as_str().unwrap());
    let session = &accepted["session_id"];
    let session_path = format!("/sessions/{}", session.as_str().unwrap());
    get("/runs/{id}", &run).await;
    chat(json!({"message": "Hi", "session_id": session})).await;
    let decide = async || {
        let route = "/runs/{id}/approvals/{call_id}";
        post(
            route,
            &format!("{run}/approvals/a"),
            json!({"decision": "allow"}),
        )
        .await
    };
    decide().await;
    let events = server.follow(&format!("{run}/events")).await.rest().await;
    let schema = &document["paths"]["/runs/{id}/events"]["get"]["responses"]["200"]["content"]["text/event-stream"]
        ["schema"];
    for event in &events {
        check_schema(&document, schema, &event.data, &event.kind);
    }
    decide().await;
    get("/runs/{id}", &run).await;
    get("/runs/{id}/events", &format!("{run}/events?after=999")).await;
    let declined = json!({"action": "decline"});
    let question = format!("{run}/questions/q");
    post("/runs/{id}/questions/{question_id}", &question, declined).await;
    for action in ["cancel", "continue"] {
        let route = format!("/runs/{{id}}/{action}");
        post(&route, &format!("{run}/{action}"), json!({})).await;
    }
    chat(json!({"message": "Hi", "session_id": session})).await;
    chat(json!({"message": 7})).await;
    get("/sessions", "/sessions").await;
    get("/sessions", "/sessions?limit=0").await;
    get("/audit", "/audit?limit=2").await;
    get("/audit", "/audit?limit=x").await;
    post("/sessions", "/sessions", json!({})).await;
    post("/sessions", "/sessions", json!({"title": 1})).await;
    get("/sessions/{id}", &session_path).await;
    get("/sessions/{id}", "/sessions/none").await;
    get("/sessions/{id}/events", "/sessions/none/events").await;
    let deleted = server.delete(&session_path).await;
    check_response(&document, "/sessions/{id}", "delete", &deleted);
    let renaming = server
        .request(Method::PATCH, "/sessions/none")
        .header("content-type", "application/json");
    let renamed = read(renaming.body("{\"title\": \"x\"}").send().await.unwrap()).await;
    check_response(&document, "/sessions/{id}", "patch", &renamed);
    for route in [
        "/mcp/tools",
        "/mcp/servers",
        "/models",
        "/recipes",
        "/healthz",
        "/readyz",
    ] {
        get(route, route).await;
    }
}

/// Checks that every schema that the document names is in the document, and that every route
/// documents its authentication and its errors.
#[tokio::test]
async fn the_openapi_document_is_complete() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    let document = server.get("/openapi.json").await.expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(
            document.pointer(pointer).is_some(),
            "{reference} is not there"
        );
    }
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let what = format!("{method} {path}");
            let name = operation["operationId"]
                .as_str()
                .unwrap_or_else(|| panic!("{what}"));
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            assert!(operation["summary"].is_string(), "{what} has no summary");
            assert!(operation["tags"].is_array(), "{what}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses.contains_key("403") && responses.contains_key("503"),
                "{what}"
            );
            let is_open = operation["security"] == json!([{}]);
            assert_eq!(responses.contains_key("401"), !is_open, "{what}");
        }
    }
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(reference) if name == "$ref" => {
                        references.insert(reference.clone());
                    }
                    value => collect(value, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
