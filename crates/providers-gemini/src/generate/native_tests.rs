use serde_json::json;

use super::*;

fn shown(name: &str, data: &Value) -> Option<String> {
    readable(name, Some(data))
}

fn said(name: &str, data: &Value) -> String {
    shown(name, data).expect("it says something")
}

#[test]
fn code_is_shown_with_what_it_gave() {
    let code = json!({"language": "PYTHON", "code": "print(6*7)", "id": "c1"});
    assert_eq!(said("executableCode", &code), "print(6*7)");
    let ran = |result: Value| shown("codeExecutionResult", &result);
    for (result, expected) in [
        (
            json!({"outcome": "OUTCOME_OK", "output": "42\n"}),
            Some("42\n"),
        ),
        (json!({"output": "42\n"}), Some("42\n")),
        (
            json!({"outcome": "OUTCOME_OK", "output": ""}),
            Some("[OUTCOME_OK]"),
        ),
        (
            json!({"outcome": "OUTCOME_FAILED", "output": "NameError: x\n"}),
            Some("NameError: x\n[OUTCOME_FAILED]"),
        ),
        (
            json!({"outcome": "OUTCOME_DEADLINE_EXCEEDED"}),
            Some("[OUTCOME_DEADLINE_EXCEEDED]"),
        ),
        (json!({"id": "c1"}), None),
    ] {
        assert_eq!(ran(result.clone()).as_deref(), expected, "{result}");
    }
}

#[test]
fn calls_of_the_providers_tools_say_what_is_asked() {
    for (call, expected) in [
        (
            json!({"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "args": {"queries": ["a b", "c"]}}),
            "[GOOGLE_SEARCH_WEB: a b; c]",
        ),
        (
            json!({"toolType": "URL_CONTEXT", "args": {"url": "https://a.example"}}),
            "[URL_CONTEXT: https://a.example]",
        ),
        (
            json!({"toolType": "GOOGLE_MAPS", "args": {"near": {"lat": 1}, "query": "x"}}),
            r#"[GOOGLE_MAPS: {"lat":1}; x]"#,
        ),
        (
            json!({"toolType": "FILE_SEARCH", "args": {}}),
            "[FILE_SEARCH]",
        ),
        (json!({}), "[tool]"),
    ] {
        assert_eq!(said("toolCall", &call), expected);
    }
}

#[test]
fn responses_of_the_providers_tools_say_what_was_found() {
    let found = |response: Value| {
        shown(
            "toolResponse",
            &json!({"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "response": response}),
        )
    };
    let results = json!({
        "searchSuggestions": "<style>.x{}</style><div>a</div>",
        "results": [
            {"title": "A", "url": "https://a.example", "snippet": "Rain.", "imageBytes": "iVBORw0KGgo="},
            {"uri": "https://b.example"},
        ],
    });
    let expected = "A: https://a.example\nRain.\nhttps://b.example";
    assert_eq!(found(results).as_deref(), Some(expected));
    assert_eq!(
        found(json!({"error": "no such page"})).as_deref(),
        Some("no such page")
    );
    for silent in [
        json!({"searchSuggestions": "<div>"}),
        json!({}),
        json!(null),
        json!("x"),
    ] {
        assert_eq!(found(silent.clone()), None, "{silent}");
    }
}

#[test]
fn grounding_names_queries_and_every_kind_of_source() {
    let grounding = json!({
        "webSearchQueries": ["weather hamburg"], "imageSearchQueries": ["harbour"],
        "retrievalQueries": ["q"],
        "searchEntryPoint": {"renderedContent": "<style>", "sdkBlob": "iVBORw0KGgo="},
        "groundingChunks": [
            {"web": {"uri": "https://a.example", "title": "A"}},
            {"web": {"uri": "https://b.example"}},
            {"maps": {"placeId": "p", "uri": "https://maps.example", "title": "Harbour", "text": "…"}},
            {"retrievedContext": {"title": "report.pdf", "text": "long"}},
            {"image": {"sourceUri": "https://c.example", "imageUri": "https://c.example/i.png",
                       "title": "C"}},
            {"web": {}}, 3,
        ],
        "groundingSupports": [{"segment": {"text": "It rains."}}],
    });
    let expected = "[search: weather hamburg]\n[search: harbour]\n[search: q]\n\
                    A: https://a.example\nhttps://b.example\nHarbour: https://maps.example\n\
                    report.pdf\nC: https://c.example";
    assert_eq!(said(GROUNDING, &grounding), expected);
    assert_eq!(shown(GROUNDING, &json!({"searchEntryPoint": {}})), None);
}

#[test]
fn pages_are_named_and_what_could_not_be_read() {
    let page = |address: &str, status: &str| json!({"retrievedUrl": address, "urlRetrievalStatus": format!("URL_RETRIEVAL_STATUS_{status}")});
    let pages = json!({"urlMetadata": [
        page("https://a.example", "SUCCESS"), page("https://b.example", "PAYWALL"),
        {"retrievedUrl": "https://c.example"}, {},
    ]});
    let expected = "https://a.example\nhttps://b.example [URL_RETRIEVAL_STATUS_PAYWALL]\n\
                    https://c.example";
    assert_eq!(said(PAGES, &pages), expected);
    assert_eq!(shown(PAGES, &json!({"urlMetadata": []})), None);
}

#[test]
fn bytes_are_named_by_their_type_and_what_is_new_says_nothing() {
    let blob = json!({"mimeType": "image/png", "data": "iVBORw0KGgo="});
    assert_eq!(said("inlineData", &blob), "[image/png]");
    let file = json!({"mimeType": "video/mp4", "fileUri": "https://a.example/v"});
    assert_eq!(said("fileData", &file), "https://a.example/v");
    assert_eq!(shown("inlineData", &json!({"data": "iVBORw0KGgo="})), None);
    assert_eq!(shown("hologram", &json!({"text": "iVBORw0KGgo="})), None);
    assert_eq!(readable("executableCode", None), None);
    assert_eq!(shown("executableCode", &json!("x")), None);
}

#[test]
fn what_is_long_is_cut_between_letters_and_says_so() {
    let code = |length: usize| said("executableCode", &json!({"code": "ä".repeat(length)}));
    assert_eq!(code(MAX_WORDS), "ä".repeat(MAX_WORDS));
    let cut = code(MAX_WORDS + 1);
    assert_eq!(cut.chars().count(), MAX_WORDS);
    assert!(cut.ends_with("ä…"));
    let chunks = (0..300).map(|at| json!({"web": {"uri": format!("https://{at}.example")}}));
    let many = json!({"groundingChunks": chunks.collect::<Value>()});
    assert_eq!(said(GROUNDING, &many).chars().count(), MAX_WORDS);
}
