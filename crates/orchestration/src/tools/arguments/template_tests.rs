use serde_json::json;
use switchboard_domain::Principal;

use super::*;

fn scope() -> RunPlaceholderValues {
    RunPlaceholderValues {
        session: "s-1".to_owned(),
        principal: Principal {
            tenant: "acme".to_owned(),
            user: "ann".to_owned(),
        },
    }
}

fn client() -> Map<String, Value> {
    let values = json!({"token": "t-1", "retries": 3, "forged": "${session.id}"});
    values.as_object().cloned().unwrap_or_default()
}

fn filled(value: &Value) -> Option<Value> {
    let template = ContextTemplate::parse(value).unwrap();
    template.fill_placeholders(Some(&scope()), &client())
}

#[test]
fn placeholders_are_filled_once() {
    for (text, expected) in [
        ("${session.id}", json!("s-1")),
        ("${principal.tenant}/${principal.user}", json!("acme/ann")),
        ("Bearer ${client.token}!", json!("Bearer t-1!")),
        ("${client.retries}", json!(3)),
        ("${client.retries} times", json!("3 times")),
        // A placeholder in a client's value is not replaced.
        ("${client.forged}", json!("${session.id}")),
        ("a ${client.forged}", json!("a ${session.id}")),
        ("$${session.id}", json!("${session.id}")),
        ("$ $$ {x} $1", json!("$ $ {x} $1")),
        ("${session.id", json!("${session.id")),
        ("", json!("")),
    ] {
        assert_eq!(filled(&json!(text)), Some(expected), "{text}");
    }
    let nested = json!({"a": [{"b": "${session.id}", "n": 1}], "c": null});
    let expected = json!({"a": [{"b": "s-1", "n": 1}], "c": null});
    assert_eq!(filled(&nested), Some(expected));
}

#[test]
fn a_text_without_its_value_is_omitted() {
    assert_eq!(filled(&json!("${client.absent}")), None);
    assert_eq!(filled(&json!("Bearer ${client.absent}")), None);
    let nested = json!({"token": "${client.absent}", "ids": ["${client.absent}", "x"]});
    assert_eq!(filled(&nested), Some(json!({"ids": ["x"]})));
    // Outside a run, the placeholders of the session have no value.
    let template = ContextTemplate::parse(&json!("${session.id}")).unwrap();
    assert_eq!(template.fill_placeholders(None, &client()), None);
}

#[test]
fn other_placeholders_are_refused() {
    for name in [
        "session.name",
        "principal",
        "client.",
        "client.a-b",
        "client.a.b",
        "SESSION_ID",
        "",
    ] {
        let error = ContextTemplate::parse(&json!({"a": [format!("${{{name}}}")]})).unwrap_err();
        assert_eq!(error, UnknownPlaceholder(name.to_owned()));
        assert!(!ContextTemplate::is_placeholder(name), "{name}");
    }
    assert!(ContextTemplate::is_placeholder("client.access_token"));
    let long = format!("client.{}", "x".repeat(65));
    assert!(!ContextTemplate::is_placeholder(&long));
}

#[test]
fn names_and_literals_are_listed() {
    let template =
        json!({"a": "${client.b} and ${client.a}", "c": ["${client.b}", "plain"], "n": 1});
    let template = ContextTemplate::parse(&template).unwrap();
    let names: Vec<_> = template.client_value_names().into_iter().collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(template.literal_texts(), [" and ", "plain"]);
    assert_eq!(format!("{template:?}"), "[hidden]");
}
