//! The output items of a model are sent back to it unchanged (mapping case 22).

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, Message, ModelId, ToolChoiceOutcome, ToolResult};
use switchboard_providers_common::assemble_response;
use switchboard_providers_common::schema::ToolSchemas;

use super::{ResponsesDecoder, ResponsesOptions, ToolUseIds, events_from_body, to_wire_request};
use crate::{Profile, capabilities};

/// Generates an output item.
fn any_item() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["12 °C.", "\"quoted\"\n", "a"]);
    let status = prop::sample::select(vec!["completed", "incomplete"]);
    let phase = prop::sample::select(vec![
        Value::Null,
        json!("commentary"),
        json!("final_answer"),
    ]);
    let cited = prop::sample::select(vec![
        json!([]),
        json!([{"type": "file_path", "file_id": "f", "index": 0}]),
    ]);
    let piece = prop_oneof![
        3 => (text.clone(), cited).prop_map(|(text, annotations)| {
            json!({"type": "output_text", "text": text, "annotations": annotations})
        }),
        1 => text.clone().prop_map(|text| json!({"type": "refusal", "refusal": text})),
    ];
    let pieces = prop::collection::vec(piece, 1..4);
    let message = (pieces, status, phase).prop_map(|(content, status, phase)| {
        let mut item =
            json!({"type": "message", "role": "assistant", "status": status, "content": content});
        if !phase.is_null() {
            item["phase"] = phase;
        }
        item
    });
    let summaries = prop::collection::vec(text, 0..3);
    let reasoning = summaries.prop_map(|summaries| {
        let summary = |text| json!({"type": "summary_text", "text": text});
        let summary: Vec<_> = summaries.into_iter().map(summary).collect();
        json!({"type": "reasoning", "summary": summary, "encrypted_content": "gAAA"})
    });
    let arguments = prop::sample::select(vec!["{}", r#"{"b":1,"a":[null,"ü"]}"#]);
    let call = (arguments, any::<bool>()).prop_map(|(arguments, by_program)| {
        let mut item = json!({"type": "function_call", "name": "f", "arguments": arguments,
                              "status": "completed"});
        if by_program {
            item["caller"] = json!({"type": "program", "caller_id": "p"});
        }
        item
    });
    let opaque = prop::sample::select(vec![
        json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}),
        json!({"type": "code_interpreter_call", "status": "completed", "code": "1", "container_id": "c",
               "outputs": null}),
        json!({"type": "compaction", "encrypted_content": "gAAA"}),
    ]);
    prop_oneof![3 => message, 3 => reasoning, 3 => call, 1 => opaque]
}

proptest! {
    #[test]
    fn an_answer_is_sent_back_unchanged(items in prop::collection::vec(any_item(), 0..8)) {
        let mut items: Vec<Value> = items;
        // The API refuses reasoning without a following item.
        while items.last().is_some_and(|item| item["type"] == "reasoning") {
            items.pop();
        }
        for (at, item) in items.iter_mut().enumerate() {
            item["id"] = json!(format!("item_{at}"));
            if item["type"] == "function_call" {
                item["call_id"] = json!(format!("call_{at}"));
            }
        }
        let model = ModelId::new("openai", "gpt-6-luna");
        let ids = ToolUseIds::default();
        let decoder = ResponsesDecoder::new(model.clone(), ToolChoiceOutcome::Native, vec![], ids);
        let body = json!({"id": "r", "status": "completed", "output": items});
        let answer = events_from_body(decoder, &body.to_string())
.and_then(|events| assemble_response("openai", &events)).unwrap();

        let calls: Vec<_> = answer.message.tool_uses().cloned().collect();
        let results = calls.iter().map(|call| ToolResult::text(&call.id, &call.name, "12"));
        let results = Message::from_tool_results(results);
        let request = ChatRequest::new([Message::user("hi"), answer.message, results]);
        // The conversation is stored and loaded, as in a session.
        let stored = serde_json::to_string(&request).unwrap();
        let request: ChatRequest = serde_json::from_str(&stored).unwrap();
        let profile = Profile::openai();
        let capabilities = capabilities(&model.name, &profile);
        let options = ResponsesOptions::default();
        let wire = to_wire_request(&request, &model, &capabilities, &profile, &options, &ToolSchemas::default()).unwrap();
        prop_assert_eq!(&wire.warnings, &[]);
        let sent = serde_json::to_value(&wire.body).unwrap();
        let sent = sent["input"].as_array().unwrap();
        prop_assert_eq!(&sent[1..=items.len()], &items[..]);
        let answered: Vec<_> = sent[1 + items.len()..].iter().map(|it| &it["call_id"]).collect();
        let asked: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
        prop_assert_eq!(answered, asked);
    }
}
