//! Tests with `llm-mock-api`, an independent implementation of three wires, with reasoning.

use serde_json::json;
use switchboard_domain::Part;

use crate::{
    conversation::{BEFORE, TEXT, cities, converse},
    entry::{Entry, Form},
    peer::{Peer, python_program},
    wires::Wire,
};

const REASONING: &str = "Zwei Städte, also zwei Fragen.";

/// The wires with the names that this server uses.
const WIRES: [(Wire, &str); 3] = [
    (Wire::Anthropic, "anthropic"),
    (Wire::Chat, "openai"),
    (Wire::Responses, "responses"),
];

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llm_mock_api_calls_tools_and_answers_with_their_results() {
    let [kiel, luebeck] = cities();
    let first = json!({"text": BEFORE, "reasoning": REASONING, "tools": [
        {"name": "get_weather", "args": kiel},
        {"name": "get_weather", "args": luebeck},
    ]});
    // The server answers the requests of each wire in this order. Each form needs two answers.
    let replies = json!([first, TEXT, first, TEXT]);
    let rules = WIRES.map(|(_, name)| json!({"when": {"format": name}, "replies": replies}));
    let mut command = python_program("llm-mock-api");
    command.args(["start", "--port", "0", "--rules", "rules.json"]);
    command.args(["--latency", "2", "--chunk-size", "5", "--log-level", "info"]);
    let files = [("rules.json", &json!({"rules": rules}))];
    let peer = Peer::start(command, "Listening on ", &files).await;

    for (wire, _) in WIRES {
        for form in Form::BOTH {
            let entry = Entry::new(&peer, wire, form);
            let talk = converse(&entry, "What is the weather?").await;
            talk.check(&entry);
            let reasoning = talk.messages[1].parts.iter().find_map(|part| match part {
                Part::Reasoning(reasoning) => Some(reasoning.text.as_str()),
                _ => None,
            });
            // OpenAI's Chat Completions have no reasoning.
            let expected = (wire != Wire::Chat).then_some(REASONING);
            assert_eq!(reasoning, expected, "{entry}");
        }
    }
}
