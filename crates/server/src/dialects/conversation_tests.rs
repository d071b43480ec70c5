use switchboard_domain::MediaSource;

use super::*;

fn tool_call(id: &str, name: &str, input: &str) -> Part {
    Part::ToolUse(ToolUse::new(id, name, ToolInput::parse_input(input)))
}

fn uses(ids: &[&str]) -> Vec<Part> {
    ids.iter().map(|id| tool_call(id, "look", "{}")).collect()
}

#[test]
fn results_stand_together_behind_their_calls_in_call_order() {
    let mut conversation = Conversation::default();
    conversation
        .push(Role::User, vec![Part::text("?")])
        .unwrap();
    conversation
        .push(Role::Assistant, uses(&["a", "b"]))
        .unwrap();
    conversation
        .push_tool_result(ToolResult::text("b", "", "2"))
        .unwrap();
    conversation
        .push_tool_result(ToolResult::text("a", "", "1"))
        .unwrap();
    let messages = conversation.into_messages().unwrap();
    let results: Vec<_> = messages[2].tool_results().collect();
    assert_eq!(results[0].tool_use_id, "a");
    assert_eq!(results[1].tool_use_id, "b");
    assert_eq!(results[1].name, "look");
}

#[test]
fn a_call_without_a_result_and_a_result_without_a_call_are_refused_by_name() {
    let mut conversation = Conversation::default();
    conversation
        .push(Role::User, vec![Part::text("?")])
        .unwrap();
    conversation.push(Role::Assistant, uses(&["a"])).unwrap();
    let error = conversation
        .push_tool_result(ToolResult::text("z", "", ""))
        .unwrap_err();
    assert!(error.contains("`z`"), "{error}");
    let error = conversation
        .push(Role::User, vec![Part::text("and?")])
        .unwrap_err();
    assert!(error.contains("`a`"), "{error}");

    let mut conversation = Conversation::default();
    conversation.push(Role::Assistant, uses(&["a"])).unwrap();
    conversation
        .push_tool_result(ToolResult::text("a", "", "1"))
        .unwrap();
    assert!(
        conversation
            .push_tool_result(ToolResult::text("a", "", "2"))
            .is_err()
    );
}

#[test]
fn only_what_somebody_said_can_be_answered() {
    assert!(Conversation::default().into_messages().is_err());
    let mut conversation = Conversation::default();
    conversation
        .push(Role::User, vec![Part::text("?")])
        .unwrap();
    conversation
        .push(Role::Assistant, vec![Part::text("!")])
        .unwrap();
    assert!(conversation.into_messages().is_err());
}

#[test]
fn files_come_in_their_address_or_stay_where_they_are() {
    let Part::Image(image) = file_part("data:image/png;base64,AA==", None, None).unwrap() else {
        panic!("an image");
    };
    assert_eq!(image, Media::from_base64("image/png", "AA=="));
    let Part::Document(document) =
        file_part("https://a/b.pdf", Some("application/pdf"), Some("b")).unwrap()
    else {
        panic!("a document");
    };
    assert_eq!(
        document.media.source,
        MediaSource::Url("https://a/b.pdf".into())
    );
    assert_eq!(document.title.as_deref(), Some("b"));
    for refused in [
        "file:///etc/passwd",
        "data:image/png,AA",
        "data:;base64,AA==",
        "data:",
        "x",
    ] {
        assert!(file_part(refused, None, None).is_err(), "{refused}");
    }
}

#[test]
fn a_session_is_named_by_what_stands_in_an_address_unchanged() {
    for fit in ["a", "V4kZ-x_1.2:3", &"x".repeat(128)] {
        assert!(parse_session_id(fit, "id").is_ok(), "{fit}");
    }
    for unfit in ["", ".", "..", "a/b", "ä", "a b", &"x".repeat(129)] {
        let problem = parse_session_id(unfit, "threadId").unwrap_err();
        assert!(problem.detail.contains("threadId"));
    }
}

#[test]
fn a_conversation_holds_nothing_that_no_store_takes() {
    let refused = |part: Part| {
        let said = Conversation::default().push(Role::User, vec![part]);
        said.is_err_and(|why| why.contains("U+0000"))
    };
    assert!(refused(Part::text("a\0")));
    assert!(refused(tool_call("a", "look\0", "{}")));
    assert!(refused(tool_call("a", "look", r#"{"n": "\u0000"}"#)));
    assert!(refused(
        file_part("https://a/b", Some("text/plain"), Some("b\0")).unwrap()
    ));
    // The escape sequence of NUL as six ordinary characters is allowed.
    assert!(!refused(Part::text(r"a\u0000")));
    let mut conversation = Conversation::default();
    conversation.push(Role::Assistant, uses(&["a"])).unwrap();
    let result = ToolResult::text("a", "", "\0");
    assert!(conversation.push_tool_result(result).is_err());
}
