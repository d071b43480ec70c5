//! Rows whose cells need more than one request.

use serde_json::json;
use switchboard_domain::{
    ChatRequest, Message, ModelEvent, Part, Role, ToolDefinition, ToolResult, WarningKind,
};
use switchboard_providers_anthropic::{CachePolicy, ServerTool};
use switchboard_testkit::{
    fixtures,
    replay::{Arrival, Cutting, Delivery, Replayed, play},
    transcripts,
};

use crate::{target, wires::Wire};

fn question() -> ChatRequest {
    ChatRequest::new([Message::user("How is the weather in Kiel?")])
        .with_tools([fixtures::weather(), fixtures::list_cities()])
}

/// Reads a stored answer of the wire.
fn stored(wire: Wire, stem: &str) -> Replayed {
    let extension = if wire == Wire::Ollama {
        "ndjson"
    } else {
        "sse"
    };
    let path = format!("{}/{stem}.{extension}", wire.name());
    let delivery = Delivery {
        cutting: Cutting::Bytes,
        arrival: Arrival::AtOnce,
    };
    let bytes = transcripts::read(&path).unwrap().bytes;
    play(&bytes, delivery, |body| wire.decode(&question(), body)).unwrap()
}

/// Returns whether arguments arrive in pieces, or each call arrives as a whole.
pub(crate) fn streamed_calls(wire: Wire) -> String {
    let events = stored(wire, "two-calls").events;
    let pieces = |part: u32| {
        let is_piece = |event: &&ModelEvent| matches!(event, ModelEvent::ToolInputDelta { index, .. } if *index == part);
        events.iter().filter(is_piece).count()
    };
    let parts = events.iter().filter_map(|event| match event {
        ModelEvent::PartStarted { index, .. } => Some(*index),
        _ => None,
    });
    let most = parts.map(pieces).max().unwrap();
    let said = if most > 1 { "native" } else { "call by call" };
    said.to_owned()
}

/// Returns whether the next request contains the reasoning of an answer.
pub(crate) fn reasoning_replay(wire: Wire) -> String {
    let stem = match wire {
        Wire::Anthropic | Wire::Ollama => "thinking-then-call",
        Wire::Chat => "reasoning",
        Wire::Responses => "reasoning-then-calls",
        Wire::Gemini => "thoughts-then-call",
    };
    let answer = stored(wire, stem).response;
    let is_reasoning = |part: &Part| matches!(part, Part::Reasoning(_));
    assert!(answer.message.parts.iter().any(is_reasoning), "{wire:?}");
    let calls = answer.message.tool_uses();
    let results = calls.map(|call| ToolResult::text(&call.id, &call.name, "12 °C"));
    let results = Message::from_tool_results(results);
    let mut request = question();
    request.messages.push(answer.message.clone().into());
    request.messages.push(if results.parts.is_empty() {
        Message::user("And now?").into()
    } else {
        results.into()
    });
    let sent = target(wire).send(&request).unwrap();
    let dropped = sent.warnings.iter();
    let dropped = dropped.filter(|it| it.kind == WarningKind::PartDropped);
    let said = if dropped.count() > 0 {
        "omitted"
    } else {
        "native"
    };
    said.to_owned()
}

/// Returns whether the constraints of a tool's schema are sent. Constraints that the wire does not
/// support are part of a description.
pub(crate) fn schemas(wire: Wire) -> String {
    let rules = json!({
        "type": "object",
        "properties": {
            "place": {"anyOf": [{"type": "string", "pattern": "^[A-Z]"}, {"type": "integer", "minimum": 1}]},
            "days": {"type": "integer", "not": {"const": 13}},
        },
        "additionalProperties": false,
    });
    let keywords = ["anyOf", "pattern", "minimum", "not", "additionalProperties"];
    let tool = ToolDefinition::new("forecast", "", rules);
    let request = ChatRequest::new([Message::user("Rain?")]).with_tools([tool]);
    let sent = target(wire).send(&request).unwrap();
    let there = keywords
        .iter()
        .filter(|keyword| sent.bytes.contains(&format!("\"{keyword}\":")));
    let said = match there.count() {
        0 => "as text",
        all if all == keywords.len() => "native",
        _ => "partly as text",
    };
    said.to_owned()
}

/// Returns how prompt caching works. On some wires, a request marks the positions to cache. On the
/// others, the provider caches automatically, which needs equal beginnings of consecutive requests.
pub(crate) fn caching(wire: Wire) -> String {
    if wire == Wire::Anthropic {
        let mut target = target(wire);
        target.anthropic.cache = CachePolicy::Turns {
            lifetime: switchboard_providers_anthropic::CacheLifetime::default(),
            prefix_lifetime: None,
        };
        let sent = target.send(&question()).unwrap();
        assert!(sent.bytes.contains("cache_control"), "{}", sent.bytes);
        return "native".to_owned();
    }
    let whole = fixtures::read("several_turns").unwrap();
    let mut begun = whole.request.clone();
    begun.messages.truncate(3);
    assert_eq!(begun.messages[2].role, Role::Tool);
    let list = |request: &ChatRequest| {
        let body = target(wire).send(request).unwrap().body;
        let lists = ["messages", "input", "contents"];
        let list = lists.iter().find_map(|name| body[name].as_array());
        list.unwrap().clone()
    };
    assert!(list(&whole.request).starts_with(&list(&begun)), "{wire:?}");
    "automatic".to_owned()
}

/// Returns whether a built-in tool of the provider can be declared.
pub(crate) fn built_in_tools(wire: Wire) -> String {
    let plain = ChatRequest::new([Message::user("How is the weather in Kiel?")]);
    searching(wire, &plain)
}

/// Returns whether a built-in tool can be declared together with the request's tools.
pub(crate) fn built_in_tools_beside(wire: Wire) -> String {
    searching(wire, &question())
}

fn searching(wire: Wire, request: &ChatRequest) -> String {
    let (mut target, mut request) = (target(wire), request.clone());
    let declared = match wire {
        Wire::Anthropic => {
            let search = json!({"type": "web_search"});
            target.anthropic.server_tools =
                vec![serde_json::from_value::<ServerTool>(search).unwrap()];
            "\"web_search_2"
        }
        Wire::Gemini => {
            let search = switchboard_providers_gemini::ServerTool::google_search();
            target.gemini.server_tools = vec![search];
            "\"googleSearch\""
        }
        Wire::Responses => {
            let tools = json!([{"type": "web_search"}]);
            request.extra.insert("tools".to_owned(), tools);
            "\"web_search\""
        }
        // These wires have no built-in tools.
        Wire::Chat | Wire::Ollama => return "none".to_owned(),
    };
    let sent = target.send(&request);
    let Ok(sent) = sent else {
        return "refused with an error".to_owned();
    };
    if sent.bytes.contains(declared) {
        return crate::cell(&sent);
    }
    assert!(!sent.warnings.is_empty(), "{}", sent.bytes);
    "omitted".to_owned()
}
