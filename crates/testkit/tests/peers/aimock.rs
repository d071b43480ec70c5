//! Tests with `@copilotkit/aimock`, a server whose answers and faults come from fixtures, on all
//! five wires.

mod faults;
mod round_trips;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    conversation::TEXT,
    peer::{Peer, installed},
    wires::Wire,
};

/// Number of characters in each piece of a streamed answer.
const CHUNK: usize = 4;

/// The answers of the server and their conditions, in the server's file format.
#[derive(Debug, Default)]
pub(crate) struct Fixtures(Vec<Value>);

impl Fixtures {
    /// Adds the answer to a question. `how` contains further options of the answer.
    pub(crate) fn add(&mut self, question: &str, response: &Value, how: &Value) -> &mut Self {
        self.add_if(&json!({"userMessage": question}), response, how)
    }

    /// Adds an answer for the `time`th request with this question.
    pub(crate) fn add_at(&mut self, question: &str, time: usize, response: &Value) -> &mut Self {
        let condition = json!({"userMessage": question, "sequenceIndex": time});
        self.add_if(&condition, response, &json!({}))
    }

    pub(crate) fn add_if(&mut self, condition: &Value, response: &Value, how: &Value) -> &mut Self {
        let mut fixture = json!({"match": condition, "response": response});
        let further = how.as_object().unwrap().clone();
        fixture.as_object_mut().unwrap().extend(further);
        self.0.push(fixture);
        self
    }
}

/// Starts the server with one unused fixture. Tests add their fixtures later, because fixtures
/// contain the address of the server.
pub(crate) async fn aimock() -> Peer {
    // The server does not start without a fixture.
    start(json!({}), "nobody asks this").await
}

async fn start(settings: Value, question: &str) -> Peer {
    let mut command = Command::new("node");
    let script = "node_modules/@copilotkit/aimock/dist/aimock-cli.js";
    command.arg(installed(script));
    command.args(["--config", "aimock.json", "--port", "0"]);
    let mut config = json!({"llm": {"fixtures": "fixtures.json", "chunkSize": CHUNK}});
    let settings = settings.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(settings);
    let fixture = json!({"match": {"userMessage": question}, "response": {"content": TEXT}});
    let fixtures = json!({"fixtures": [fixture]});
    let files = [("aimock.json", &config), ("fixtures.json", &fixtures)];
    Peer::start(command, "listening on ", &files).await
}

pub(crate) async fn tell(peer: &Peer, fixtures: Fixtures) {
    let count = fixtures.0.len();
    let body = json!({"fixtures": fixtures.0});
    let told = peer.tell("/__aimock/fixtures", &body).await;
    assert_eq!(told["added"], count, "{told}");
}

/// Returns the status of every request with this question.
async fn statuses(peer: &Peer, question: &str) -> Vec<u64> {
    let journal = peer.told("/__aimock/journal").await;
    let of_question = |entry: &&Value| {
        let asked = &entry["response"]["fixture"]["match"]["userMessage"];
        asked.as_str() == Some(question)
    };
    let requests = journal.as_array().unwrap().iter().filter(of_question);
    let statuses = requests.map(|one| one["response"]["status"].as_u64().unwrap());
    statuses.collect()
}

/// Returns an error in the format of the wire's vendor.
pub(crate) fn failure(wire: Wire, status: u16, further: &Value) -> Value {
    let (class, code) = match wire {
        Wire::Anthropic => match status {
            400 => ("invalid_request_error", None),
            401 => ("authentication_error", None),
            403 => ("permission_error", None),
            404 => ("not_found_error", None),
            429 => ("rate_limit_error", None),
            529 => ("overloaded_error", None),
            _ => ("api_error", None),
        },
        Wire::Chat | Wire::Responses => match status {
            401 => ("invalid_request_error", Some("invalid_api_key")),
            404 => ("invalid_request_error", Some("model_not_found")),
            429 => ("requests", Some("rate_limit_exceeded")),
            400..=499 => ("invalid_request_error", None),
            _ => ("server_error", None),
        },
        Wire::Gemini => match status {
            400 => ("INVALID_ARGUMENT", None),
            401 => ("UNAUTHENTICATED", None),
            403 => ("PERMISSION_DENIED", None),
            404 => ("NOT_FOUND", None),
            429 => ("RESOURCE_EXHAUSTED", None),
            500 => ("INTERNAL", None),
            _ => ("UNAVAILABLE", None),
        },
        // Ollama's error has only a text. This server returns it in OpenAI's format.
        Wire::Ollama => ("error", None),
    };
    let mut failure = json!({
        "error": {"message": "as the test wants", "type": class, "code": code},
        "status": status,
    });
    for (name, value) in further.as_object().unwrap() {
        match name.as_str() {
            "retryAfter" => failure[name] = value.clone(),
            _ => failure["error"][name] = value.clone(),
        }
    }
    failure
}
