//! Conversations with calls, results and answers.

use futures_util::future::join_all;
use serde_json::{Value, json};
use switchboard_domain::{Part, WarningKind};

use super::{Fixtures, aimock, statuses, tell};
use crate::{
    conversation::{BEFORE, Conversation, TEXT, cities, converse},
    entry::Entry,
    wires::{WIRES, Wire},
};

const REASONING: &str = "Zwei Städte, also zwei Fragen.";

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_calls_tools_and_answers_with_their_results() {
    let peer = aimock().await;
    let entries = Entry::each(&peer, &WIRES);
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        let [kiel, luebeck] = cities();
        let first = json!({
            "content": BEFORE,
            "reasoning": REASONING,
            "reasoningSignature": "c2lnbmF0dXJl",
            "toolCalls": [
                {"id": "call_kiel", "name": "get_weather", "arguments": kiel},
                {"id": "call_luebeck", "name": "get_weather", "arguments": luebeck},
            ],
        });
        let question = weather(entry);
        let before = json!({"userMessage": question, "hasToolResult": false});
        let after = json!({
            "userMessage": question,
            "hasToolResult": true,
            "toolResultContains": "Lübeck: 7 °C, grüner Regen",
        });
        fixtures.add_if(&before, &first, &json!({})).add_if(
            &after,
            &json!({"content": TEXT}),
            &json!({}),
        );
    }
    tell(&peer, fixtures).await;

    join_all(entries.iter().map(async |entry| {
        let talk = converse(entry, &weather(entry)).await;
        talk.check(entry);
        // Ollama's calls have no ids, and Gemini's may have none. The adapters then create ids.
        if !matches!(entry.wire, Wire::Ollama | Wire::Gemini) {
            assert_eq!(talk.calls[0].id, "call_kiel", "{entry}");
        }
        check_reasoning(entry, &talk);
        assert_eq!(statuses(&peer, &weather(entry)).await, [200, 200]);
    }))
    .await;
}

fn weather(entry: &Entry) -> String {
    format!("the weather, asked by {entry}")
}

fn check_reasoning(entry: &Entry, talk: &Conversation) {
    let reasoning = talk.messages[1].parts.iter().find_map(|part| match part {
        Part::Reasoning(reasoning) => Some(reasoning),
        _ => None,
    });
    match reasoning {
        // The server sends reasoning to Ollama clients in another field than Ollama's `thinking`,
        // so it is not read.
        None => assert_eq!(entry.wire, Wire::Ollama, "{entry}: no reasoning"),
        Some(reasoning) => {
            assert_eq!(reasoning.text, REASONING, "{entry}");
            let is_signed = reasoning.provider_state.is_some();
            assert!(
                is_signed || entry.wire != Wire::Anthropic,
                "no signature: {entry}"
            );
        }
    }
    for warning in &talk.answer.warnings {
        // On Chat Completions, reasoning is not sent back to an unknown server.
        let is_known = entry.wire == Wire::Chat && warning.kind == WarningKind::PartDropped;
        assert!(is_known, "{entry}: {warning:?}");
    }
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_speaks_after_its_calls_and_in_between() {
    let peer = aimock().await;
    let entries = Entry::each(&peer, &WIRES);
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        let call = |city: &str| {
            let arguments = json!({"city": city}).to_string();
            json!({"type": "toolCall", "name": "get_weather", "arguments": arguments})
        };
        let blocks = json!({"blocks": [
            call("Kiel"),
            {"type": "text", "text": "Kiel läuft. "},
            call("Lübeck"),
            {"type": "text", "text": "Lübeck auch."},
        ]});
        let question = format!("in between, asked by {entry}");
        let before = json!({"userMessage": question, "hasToolResult": false});
        fixtures.add_if(&before, &blocks, &json!({})).add(
            &question,
            &json!({"content": TEXT}),
            &json!({}),
        );
    }
    tell(&peer, fixtures).await;

    join_all(entries.iter().map(async |entry| {
        let talk = converse(entry, &format!("in between, asked by {entry}")).await;
        assert_eq!(talk.texts, ["Kiel läuft. Lübeck auch.", TEXT], "{entry}");
        let cities: Vec<&Value> = talk.ran.iter().map(|input| &input["city"]).collect();
        assert_eq!(cities, ["Kiel", "Lübeck"], "{entry}");
        // If the wire keeps the order of an answer's parts, the message has this order.
        if !matches!(entry.wire, Wire::Chat | Wire::Ollama) {
            let parts: Vec<&str> = talk.messages[1]
                .parts
                .iter()
                .map(Part::describe_kind)
                .collect();
            assert_eq!(
                parts,
                ["a tool use", "text", "a tool use", "text"],
                "{entry}"
            );
        }
    }))
    .await;
}
