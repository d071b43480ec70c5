//! Properties of every input.

use proptest::prelude::*;
use switchboard_domain::{ResponseAccumulator, ToolDefinition};
use switchboard_providers_common::text_tool_calls::{
    CallRecoverySettings, TextCallConverter, TextCallFormat, TextCallFormats,
};

use super::*;

/// Generates lines, which may be in any order.
fn any_line() -> impl Strategy<Value = Value> {
    let pieces = [
        "",
        "a",
        "{",
        "}",
        "\"name\"",
        ":",
        "\"get_weather\"",
        "{\"name\": \"list_cities\", ",
        "\"parameters\": {\"x\"",
        "\"response\": [1",
        "]",
        ",",
    ];
    let text = prop::sample::select(pieces.to_vec());
    let id = prop::sample::select(vec![json!(null), json!(""), json!("a"), json!("b")]);
    let name = prop::sample::select(vec![json!(null), json!(""), json!("f"), json!("g")]);
    let arguments = prop::sample::select(vec![
        json!({}),
        json!({"x": 1}),
        json!("{\"x\":"),
        json!(null),
        json!([1]),
    ]);
    let call = (id, name, arguments).prop_map(|(id, name, arguments)| {
        json!({"id": id, "function": {"name": name, "arguments": arguments}})
    });
    let reason = prop::sample::select(vec![json!(null), json!("stop"), json!("length"), json!(3)]);
    (
        text.clone(),
        prop_oneof![2 => Just(json!(null)), 1 => Just(json!("hm"))],
        prop::collection::vec(call, 0..3),
        prop_oneof![6 => Just(false), 1 => Just(true)],
        reason,
    )
        .prop_map(|(content, thinking, tool_calls, done, done_reason)| {
            json!({
                "message": {"content": content, "thinking": thinking, "tool_calls": tool_calls},
                "done": done,
                "done_reason": done_reason,
            })
        })
}

/// Returns the events with tool calls in the text converted to tool uses, as the model does.
fn recovered(events: Vec<ModelEvent>, forms: TextCallFormats) -> Vec<ModelEvent> {
    let object = || json!({"type": "object"});
    let tools = ["get_weather", "list_cities"].map(|it| ToolDefinition::new(it, "", object()));
    let request = ChatRequest::new([Message::user("?")]).with_tools(tools);
    let mut recovery = TextCallConverter::new(CallRecoverySettings::for_request(&request, forms));
    let mut out = Vec::new();
    for event in events {
        recovery.push(event, &mut out);
    }
    recovery.end_answer(&mut out);
    out
}

proptest! {
    #[test]
    fn any_order_of_lines_gives_a_valid_event_sequence(
        lines in prop::collection::vec(any_line(), 0..14),
        form in prop::option::of(any::<bool>()),
        forms in prop::option::of(prop::sample::select(TextCallFormat::ALL.to_vec())),
    ) {
        let decoder = form.map_or_else(decoder, held);
        let (mut events, end) = run(decoder, &lines);
        if let Some(form) = forms {
            events = recovered(events, TextCallFormats::LOCAL_SERVERS.with_form(form));
        }
        let mut answer = ResponseAccumulator::default();
        for event in &events {
            answer.push(event).unwrap();
        }
        prop_assert_eq!(end.is_ok(), answer.is_finished());
        let response = answer.into_interrupted_response();
        let mut ids: Vec<_> = response.message.tool_uses().map(|it| it.id.clone()).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), count, "ids are unique");
        if form.is_none() && forms.is_none() {
            // The answer contains the texts of all lines up to the last one, in order.
            let last = lines.iter().position(|line| line["done"] == true).unwrap_or(lines.len());
            let said = lines.iter().take(last.saturating_add(1));
            let said: String = said.filter_map(|line| line["message"]["content"].as_str()).collect();
            prop_assert_eq!(response.message.text(), said);
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(lines in prop::collection::vec(".{0,40}", 0..4)) {
        let (mut decoder, mut events) = (held(true), Vec::new());
        for line in lines {
            let _ = decoder.decode_frame("", &line, &mut events);
        }
        let _ = decoder.finish_decoding(&mut events);
    }

    #[test]
    fn any_json_is_read_without_a_panic(
        field in prop::sample::select(vec!["message", "done", "done_reason", "eval_count", "error", "model"]),
        value in prop::sample::select(vec![json!(null), json!(-1), json!("x"), json!([{}]), json!({"a": []}), json!(1.5)]),
    ) {
        let (mut decoder, mut events) = (decoder(), Vec::new());
        let _ = decoder.decode_frame("", &json!({field: value}).to_string(), &mut events);
        let _ = decoder.finish_decoding(&mut events);
    }
}
