use super::*;

fn details(pieces: &Value) -> Value {
    let mut details = ReasoningBlocks::default();
    for piece in pieces.as_array().unwrap() {
        details.push_piece(piece.as_object().unwrap().clone());
    }
    json!(details.0)
}

#[test]
fn pieces_of_one_text_are_joined_until_its_signature() {
    let text = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0, "format": "anthropic-claude-v1"});
    let signature = json!({"type": "reasoning.text", "text": null, "signature": "sig", "index": 0});
    assert_eq!(
        details(&json!([
            text("I "),
            text("think."),
            signature,
            text("And ")
        ])),
        json!([
            {"type": "reasoning.text", "text": "I think.", "index": 0,
             "format": "anthropic-claude-v1", "signature": "sig"},
            text("And "),
        ])
    );
}

#[test]
fn anthropic_blocks_are_joined_from_the_pieces_of_litellm() {
    let piece = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let redacted = json!({"type": "redacted_thinking", "data": "x"});
    let pieces = json!([
        piece("I ", ""),
        piece("think.", ""),
        piece("", "sig"),
        redacted,
        redacted
    ]);
    let expected = json!([piece("I think.", "sig"), redacted, redacted]);
    assert_eq!(details(&pieces), expected);
}

#[test]
fn encrypted_and_differently_numbered_pieces_are_not_joined() {
    let encrypted = |data: &str| json!({"type": "reasoning.encrypted", "data": data, "index": 0});
    let summary = |index: u32, text: &str| json!({"type": "reasoning.summary", "summary": text, "index": index});
    let apart = json!([
        summary(0, "a"),
        summary(1, "b"),
        encrypted("x"),
        encrypted("y")
    ]);
    assert_eq!(details(&apart), apart);
    assert_eq!(
        details(&json!([summary(0, "a"), summary(0, "b")])),
        json!([summary(0, "ab")])
    );
}

#[test]
fn only_reasoning_of_the_same_model_is_sent_back() {
    let model = ModelId::new("deepseek", "deepseek-v4-pro");
    let reasoning = |creator: &ModelId, data: Value| Reasoning {
        text: "hm".into(),
        provider_state: Some(ProviderState::new_for_model(creator, data)),
    };
    let replayed = |reasoning: &Reasoning| {
        let mut fields = ReasoningFields::default();
        let done = replay_reasoning(reasoning, &model, &mut fields);
        (done, serde_json::to_value(&fields).unwrap())
    };
    let details = json!([{"type": "reasoning.encrypted", "data": "x"}]);
    let cases = [
        (
            json!({"field": "reasoning_content"}),
            json!({"reasoning_content": "hm"}),
        ),
        (json!({"field": "reasoning"}), json!({"reasoning": "hm"})),
        (
            json!({"field": "reasoning", "details": details}),
            json!({"reasoning_details": details}),
        ),
        (
            json!({"field": "reasoning_content", "blocks": details}),
            json!({"thinking_blocks": details}),
        ),
        (
            json!({"details": details}),
            json!({"reasoning_details": details}),
        ),
    ];
    for (data, expected) in cases {
        assert_eq!(replayed(&reasoning(&model, data)), (true, expected));
    }
    // Provider states of other adapters and of other models are not sent.
    for data in [json!("sig"), json!({"field": "content"}), json!({})] {
        assert_eq!(replayed(&reasoning(&model, data)), (false, json!({})));
    }
    let other = ModelId::new("deepseek", "deepseek-v4-flash");
    let foreign = reasoning(&other, json!({"field": "reasoning"}));
    assert_eq!(replayed(&foreign), (false, json!({})));
    let stateless = Reasoning {
        provider_state: None,
        ..foreign
    };
    assert_eq!(replayed(&stateless), (false, json!({})));
}
