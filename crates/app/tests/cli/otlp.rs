//! Spans of a run at an OpenTelemetry collector. Needs the feature `otlp`.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, http::HeaderMap, routing::post};
use serde_json::{Value, json};

use crate::support::Place;

const QUESTION: &str = "What is the account value of customer 42?";
const KEY: &str = "key-of-the-collector-123";

/// An OTLP/HTTP collector on loopback.
struct Collector {
    address: String,
    got: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

impl Collector {
    async fn start() -> Self {
        let got: Arc<Mutex<Vec<(HeaderMap, Value)>>> = Arc::default();
        let keep = Arc::clone(&got);
        let take = move |headers: HeaderMap, Json(body): Json<Value>| {
            keep.lock().unwrap().push((headers, body));
            async { Json(json!({"partialSuccess": {}})) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, got }
    }

    fn requests(&self) -> Vec<(HeaderMap, Value)> {
        self.got.lock().unwrap().clone()
    }

    /// Returns all spans by start time.
    fn spans(&self) -> Vec<Value> {
        let mut spans: Vec<Value> = Vec::new();
        for (_, request) in self.requests() {
            let batch = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.extend(batch.as_array().unwrap().iter().cloned());
        }
        let began = |span: &Value| span["startTimeUnixNano"].as_str().unwrap().to_owned();
        spans.sort_by_key(began);
        spans
    }
}

/// Returns the value of an attribute of any type.
fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    let Some(attribute) = found else {
        return Value::Null;
    };
    let (_, value) = attribute["value"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    value.clone()
}

#[tokio::test]
async fn a_collector_receives_spans_without_content() {
    let collector = Collector::start().await;
    let place = Place::new()
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address)
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", &format!("x-api-key={KEY}"))
        .with_variable("OTEL_SERVICE_NAME", "help-desk");
    let done = place.run(["ask", QUESTION]).await.exits(0);
    assert!(!done.stderr.contains("exported"), "{done}");

    let requests = collector.requests();
    assert!(
        requests
            .iter()
            .all(|(headers, _)| headers["x-api-key"] == KEY)
    );
    let resource = &requests[0].1["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), "help-desk");

    let spans = collector.spans();
    let names: Vec<&str> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names[..2],
        ["invoke_agent switchboard", "chat planner"],
        "{names:?}"
    );
    assert!(names[2].starts_with("execute_tool "), "{names:?}");
    assert!(names[2].ends_with("calculate_account_value"), "{names:?}");
    assert_eq!(names[3..], ["chat planner"], "{names:?}");

    let run = &spans[0];
    // Protobuf's JSON form may print a missing value as the default of its type.
    assert_eq!(run["parentSpanId"].as_str().unwrap_or_default(), "");
    assert_eq!(run["traceId"].as_str().unwrap().len(), 32);
    assert_eq!(run["kind"], 1);
    assert_eq!(attribute(run, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(run, "gen_ai.provider.name"), "offline");
    assert_eq!(attribute(run, "gen_ai.request.model"), "planner");
    assert_eq!(attribute(run, "switchboard.run.outcome"), "completed");
    assert_eq!(attribute(run, "switchboard.run.tool_calls"), "1");
    for child in &spans[1..] {
        assert_eq!(child["traceId"], run["traceId"]);
        assert_eq!(child["parentSpanId"], run["spanId"]);
        assert_eq!(child["status"]["code"].as_u64().unwrap_or_default(), 0);
    }
    let chat = &spans[1];
    assert_eq!(chat["kind"], 3);
    assert_eq!(attribute(chat, "gen_ai.operation.name"), "chat");
    assert_eq!(attribute(chat, "switchboard.tool_choice.asked"), "auto");
    let reasons = attribute(chat, "gen_ai.response.finish_reasons");
    assert_eq!(reasons, json!({"values": [{"stringValue": "tool_use"}]}));
    let tool = &spans[2];
    assert_eq!(attribute(tool, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(attribute(tool, "switchboard.server"), "customer-service");
    assert_eq!(attribute(tool, "gen_ai.tool.type"), "function");

    // No question, answer, tool input or key.
    let all = json!(spans).to_string();
    for said in [
        QUESTION,
        "account value of",
        "customer_id",
        "gen_ai.input",
        KEY,
    ] {
        assert!(!all.contains(said), "{said} in {all}");
    }
}

#[tokio::test]
async fn spans_contain_content_if_configured() {
    let collector = Collector::start().await;
    let config = format!(
        "otlp_endpoint: {}\notlp_headers:\n  authorization: Bearer ${{COLLECTOR}}\notlp_content: \
         true\n",
        collector.address
    );
    let place = Place::new()
        .with_file("switchboard.yaml", &config)
        .with_variable("COLLECTOR", KEY)
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", "x-other=for-another-address");
    let done = place
        .run(["ask", &format!("{QUESTION} My password={KEY}")])
        .await;
    assert_eq!(done.code, 0, "{done}");
    for (headers, _) in collector.requests() {
        assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
        assert!(!headers.contains_key("x-other"));
    }
    let spans = collector.spans();
    let asked = attribute(&spans[1], "gen_ai.input.messages");
    assert!(asked.as_str().unwrap().contains(QUESTION), "{asked}");
    let given = attribute(&spans[2], "gen_ai.tool.call.arguments");
    assert!(given.as_str().unwrap().contains("customer_id"), "{given}");
    assert!(!json!(spans).to_string().contains(KEY));
}

#[tokio::test]
async fn a_missing_collector_causes_only_a_warning() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let place = Place::new().with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
    let done = place.run(["ask", QUESTION]).await.exits(0);
    assert!(done.stdout.contains("530.19"), "{done}");
    assert!(done.stderr.contains("spans were not exported"), "{done}");
}
