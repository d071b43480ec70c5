use super::*;
use proptest::prelude::*;

fn kept(text: &str) -> FullResults {
    let mut results = FullResults::default();
    results.store_result(FullResult::new("call_1", "list", text.into()), 0);
    results
}

fn read(results: &FullResults, input: Value) -> Result<String, String> {
    let Value::Object(input) = input else {
        panic!("not an object: {input}");
    };
    let output = results.execute_result_read(&input, &ResultLimit::default());
    let text = output.content[0].as_text();
    if output.is_error { Err(text) } else { Ok(text) }
}

#[test]
fn a_result_is_read_page_by_page() {
    let results = kept("äbcdefghij");
    let read = |input| read(&results, input).unwrap();
    let page = read(json!({"result_id": "call_1", "limit": 5}));
    assert_eq!(page, "äbcd\n[bytes 0 to 5 of 11; continue with offset 5]");
    let page = read(json!({"result_id": "call_1", "offset": 5}));
    assert_eq!(page, "efghij\n[bytes 5 to 11 of 11; end of the result]");
    // The offset is inside a character, and the limit is smaller than the character.
    let page = read(json!({"result_id": "call_1", "offset": 1, "limit": 1}));
    assert_eq!(page, "ä\n[bytes 0 to 2 of 11; continue with offset 2]");
}

#[test]
fn a_search_returns_lines_with_offsets() {
    let results = kept("alpha one\nbeta two\nGAMMA One\ndelta");
    let found = |input| read(&results, input).unwrap();
    let expected = "6: alpha one\n25: GAMMA One\n[no more matches; the numbers are offsets]";
    let input = json!({"result_id": "call_1", "search": "ONE"});
    assert_eq!(found(input), expected);
    let expected = "25: GAMMA One\n[no more matches; the numbers are offsets]";
    let input = json!({"result_id": "call_1", "search": "one", "offset": 10});
    assert_eq!(found(input), expected);
    let missing = found(json!({"result_id": "call_1", "search": "zeta"}));
    assert_eq!(missing, "[not found between bytes 0 and 34]");
}

#[test]
fn long_lines_and_many_matches_are_shortened() {
    let results = kept(&"x".repeat(1_000).replace("xxxxxxxxxx", "xxxxxxneed"));
    let found = read(&results, json!({"result_id": "call_1", "search": "need"})).unwrap();
    assert!(found.len() < 2_000, "{found}");
    let results = kept(&"need\n".repeat(100));
    let found = read(&results, json!({"result_id": "call_1", "search": "need"})).unwrap();
    assert_eq!(found.lines().count(), MAX_LINES + 1);
    assert!(
        found.ends_with("[more matches: search again from offset 100]"),
        "{found}"
    );
    let on = read(
        &results,
        json!({"result_id": "call_1", "search": "need", "offset": 100}),
    )
    .unwrap();
    assert!(on.starts_with("100: need\n105: need\n"), "{on}");
}

#[test]
fn an_unknown_id_is_an_error_that_lists_the_results() {
    let results = kept("abc");
    for input in [
        json!({}),
        json!({"result_id": "call_2"}),
        json!({"result_id": 1}),
    ] {
        let why = read(&results, input).unwrap_err();
        assert_eq!(why, "Unknown result id; available: call_1.");
    }
    let why = read(&results, json!({"result_id": "call_1", "offset": 3})).unwrap_err();
    assert_eq!(why, "The result has 3 bytes; offset 3 is beyond its end.");
    let none = read(&FullResults::default(), json!({"result_id": "call_1"})).unwrap_err();
    assert_eq!(none, "Unknown result id; no results are available.");
}

#[test]
fn the_oldest_results_are_removed_first() {
    let mut results = FullResults::default();
    for n in 0..5 {
        let text = "x".repeat(MAX_BYTES / 3);
        results.store_result(FullResult::new(&format!("call_{n}"), "t", text), 0);
    }
    assert!(results.find_result("call_1").is_none() && results.find_result("call_2").is_some());
    results.store_result(FullResult::new("huge", "t", "x".repeat(MAX_BYTES + 1)), 0);
    assert_eq!(results.available_results().count(), 1);
}

#[test]
fn results_are_stored_between_the_messages_of_the_conversation() {
    let conversation: Vec<_> = ["a", "b"].map(|it| Arc::new(Message::user(it))).to_vec();
    let mut results = FullResults::default();
    for (id, position) in [("first", 1), ("second", 1), ("third", 2)] {
        results.store_result(FullResult::new(id, "t", id.to_owned()), position);
    }
    let stored = results.insert_into_messages(&conversation);
    let state = serde_json::to_string(&results).unwrap();
    let mut restored: FullResults = serde_json::from_str(&state).unwrap();
    assert_eq!(
        restored.find_result("first"),
        None,
        "the state has no texts"
    );
    let taken = restored.restore_from_messages(stored.clone());
    assert_eq!(taken, Some(conversation));
    assert_eq!(restored, results);
    assert_eq!(restored.restore_from_messages(stored[..4].to_vec()), None);
}

#[test]
fn the_tool_accepts_the_input_of_the_marker() {
    let tool = result_reading_tool();
    assert!(Arc::ptr_eq(&tool, &result_reading_tool()));
    let validator = jsonschema::validator_for(&tool.input_schema).unwrap();
    assert!(validator.is_valid(&json!({"result_id": "c", "offset": 60})));
    assert!(validator.is_valid(&json!({"result_id": "c", "search": "…"})));
    assert!(!validator.is_valid(&json!({"offset": 60})));
    assert_eq!(tool.annotations.read_only, Some(true));
}

proptest! {
    #[test]
    fn every_read_respects_the_limit(
        text in ".{0,300}",
        offset in any::<Option<u16>>(),
        limit in any::<Option<u64>>(),
        search in prop::option::of(".{0,3}"),
        max_tokens in 0_u64..1_000,
    ) {
        let mut input = JsonObject::new();
        input.insert("result_id".into(), "call_1".into());
        for (name, value) in [
            ("offset", offset.map(|offset| json!(offset % 400))),
            ("limit", limit.map(Value::from)),
            ("search", search.map(Value::from)),
        ] {
            if let Some(value) = value {
                input.insert(name.into(), value);
            }
        }
        let limit = ResultLimit { max_tokens, preview_tokens: 1 };
        let output = kept(&text).execute_result_read(&input, &limit);
        prop_assert!(tokens::estimate_content(&output.content) <= max_tokens.max(RESERVED_TOKENS));
    }
}
