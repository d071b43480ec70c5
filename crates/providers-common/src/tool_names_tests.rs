use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{Message, Role, ToolDefinition, ToolInput, ToolResult, ToolUse};

use super::*;

const RULES: [NameRule; 3] = [NameRule::ANTHROPIC, NameRule::OPENAI, NameRule::GEMINI];

fn request(names: &[&str]) -> ChatRequest {
    let tool = |name: &&str| ToolDefinition::new(*name, "", json!({"type": "object"}));
    ChatRequest::new([Message::user("x")]).with_tools(names.iter().map(tool))
}

#[test]
fn legal_names_are_unchanged() {
    let all = ["find", "crm__find-one", "A1", "_", "a_b_c14cddc0"];
    let names = ToolNames::from_request(&request(&all), NameRule::OPENAI);
    assert!(!names.has_aliases());
    for name in all {
        assert_eq!(names.wire_name(name), name);
        assert_eq!(names.declared_name(name), name);
    }
}

#[test]
fn a_name_is_the_same_in_every_run_and_among_any_tools() {
    // Saved conversations and prompt caches contain these names, so they must never change.
    let cases = [
        (NameRule::OPENAI, "crm/find.one", "crm_find_one_f4e28eb9"),
        (NameRule::OPENAI, "日本", "tool_cf2abf0c"),
        (NameRule::GEMINI, "9lives", "_9lives_bc867356"),
    ];
    for (rule, name, expected) in cases {
        let single = ToolNames::from_request(&request(&[name]), rule);
        let among = ToolNames::from_request(&request(&["z", name, "crm.find/one", "a b"]), rule);
        assert_eq!(single.wire_name(name), expected);
        assert_eq!(among.wire_name(name), expected);
        // The name is the same if the request does not declare the tool.
        assert_eq!(
            ToolNames::from_request(&request(&[]), rule).wire_name(name),
            expected
        );
    }
}

#[test]
fn an_alias_never_equals_the_name_of_another_tool() {
    let victim = ToolNames::from_request(&request(&["a/b"]), NameRule::OPENAI)
        .wire_name("a/b")
        .into_owned();
    let names = ToolNames::from_request(&request(&["a/b", &victim]), NameRule::OPENAI);
    assert_eq!(
        names.declared_name(&victim),
        victim,
        "the attacker keeps its own name"
    );
    let moved = names.wire_name("a/b").into_owned();
    assert_ne!(moved, victim);
    assert_eq!(names.declared_name(&moved), "a/b");
    assert!(NameRule::OPENAI.allows_name(&moved));
}

#[test]
fn the_history_and_the_choice_use_the_same_names() {
    let mut request = request(&["a/b"]);
    request.tool_choice = ToolChoice::Only(vec!["a/b".into(), "c/d".into()]);
    let tool_use = ToolUse::new("1", "gone/tool", ToolInput::parse_input("{}"));
    request
        .messages
        .push(Message::new(Role::Assistant, [Part::ToolUse(tool_use)]).into());
    let result = ToolResult::text("1", "other/gone", "x");
    request
        .messages
        .push(Message::from_tool_results([result]).into());
    let names = ToolNames::from_request(&request, NameRule::ANTHROPIC);
    for name in ["a/b", "c/d", "gone/tool", "other/gone"] {
        let wire = names.wire_name(name).into_owned();
        assert!(NameRule::ANTHROPIC.allows_name(&wire), "{wire}");
        assert_eq!(names.declared_name(&wire), name);
    }
}

proptest! {
    #[test]
    fn any_names_are_valid_distinct_and_reversible(
        all in prop::collection::hash_set(prop_oneof![".{0,12}", "[a/_.]{0,4}", "[a-z_]{60,140}"], 0..12),
    ) {
        let list: Vec<&str> = all.iter().map(String::as_str).collect();
        for rule in RULES {
            let names = ToolNames::from_request(&request(&list), rule);
            let mut seen = HashSet::new();
            for name in &list {
                let wire = names.wire_name(name).into_owned();
                prop_assert!(rule.allows_name(&wire), "{wire:?}");
                prop_assert_eq!(names.declared_name(&wire), *name);
                prop_assert!(seen.insert(wire));
            }
        }
    }
}
