//! Tools that say nothing of themselves and whose names say neither that they read nor that they change something; and numbers that name
//! nothing.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::{first, play};
use switchboard_domain::{ToolAnnotations, ToolDefinition};

fn tool(name: &str, about: &str, properties: &Value, required: &[&str]) -> Arc<ToolDefinition> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Arc::new(ToolDefinition::new(name, about, schema))
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    let (text, whole) = (json!({"type": "string"}), json!({"type": "integer"}));
    let boat = json!({"boat_id": whole});
    vec![
        tool("scuttle_boat", "Scuttles a boat.", &boat, &["boat_id"]),
        tool(
            "boat_paint",
            "Paints a boat anew.",
            &json!({"boat_id": whole, "colour": text}),
            &["boat_id"],
        ),
        tool(
            "tenant_evict",
            "Evicts a tenant from the harbour.",
            &json!({"tenant_id": whole}),
            &["tenant_id"],
        ),
        tool(
            "boat_weight",
            "Tells what a boat weighs.",
            &boat,
            &["boat_id"],
        ),
        tool(
            "mooring_rating",
            "The rating of a mooring.",
            &json!({"mooring_id": whole}),
            &["mooring_id"],
        ),
        tool(
            "shipment_status",
            "Tells whether a shipment was delivered.",
            &json!({"shipment_id": whole}),
            &["shipment_id"],
        ),
        tool(
            "weather",
            "The weather at a place.",
            &json!({"place": text}),
            &["place"],
        ),
    ]
}

fn called(question: &str) -> Vec<(String, Value)> {
    first(question, &tools()).0
}

#[test]
fn an_act_that_is_only_spoken_of_is_not_done_by_a_tool_that_says_nothing_of_itself() {
    let mut wrong = Vec::new();
    for question in [
        "How do I scuttle boat 8?",
        "How can I scuttle boat 8?",
        "Should we scuttle boat 8?",
        "May I scuttle boat 8?",
        "Did you scuttle boat 8?",
        "Why would anybody scuttle boat 8?",
        "What happens if I scuttle boat 8?",
        "Is scuttling boat 8 allowed?",
        "What does it cost to scuttle boat 8?",
        "I wonder whether to scuttle boat 8",
        "Scuttle boat 8?",
        "Has boat 8 been scuttled?",
        "Boat 8 was scuttled",
        "We scuttled boat 8 yesterday",
        "They want to scuttle boat 8",
        "Never scuttle boat 8",
        "Please do not scuttle boat 8",
        "Scuttle boat 8 unless Ada calls",
        "Scuttle boat 8, but ask me first",
        "Scuttle boat 8. Never mind.",
        "Undo: scuttle boat 8",
        "How do I paint boat 8?",
        "Boat 8 was painted",
        "Who said that we paint boat 8?",
        "How do I evict tenant 3?",
        "We evicted tenant 3",
        "Could you tell me how to evict tenant 3?",
    ] {
        let found = called(question);
        if !found.is_empty() {
            wrong.push(format!("{question} {found:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn what_is_asked_for_is_done_and_looked_up() {
    let mut wrong = Vec::new();
    for (question, name, id) in [
        ("Scuttle boat 8", "scuttle_boat", json!(8)),
        ("Please scuttle boat 8 now", "scuttle_boat", json!(8)),
        ("Could you scuttle boat 8?", "scuttle_boat", json!(8)),
        ("I want you to scuttle boat 8", "scuttle_boat", json!(8)),
        ("Paint boat 8", "boat_paint", json!(8)),
        ("Evict tenant 3", "tenant_evict", json!(3)),
        ("What is the weight of boat 8?", "boat_weight", json!(8)),
        (
            "Can you tell me the weight of boat 8?",
            "boat_weight",
            json!(8),
        ),
        (
            "What is the rating of mooring 4?",
            "mooring_rating",
            json!(4),
        ),
        (
            "What is the status of shipment 12?",
            "shipment_status",
            json!(12),
        ),
        ("What is the weather in Bergen?", "weather", json!("Bergen")),
        ("Weather in Bergen", "weather", json!("Bergen")),
        ("How is the weather in Bergen?", "weather", json!("Bergen")),
    ] {
        let found = called(question);
        let is_right = matches!(&found[..], [(tool, input)] if tool == name
            && input.as_object().is_some_and(|it| it.values().any(|it| *it == id)));
        if !is_right {
            wrong.push(format!("{question}: {found:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

fn customers() -> Vec<Arc<ToolDefinition>> {
    let mut delete = ToolDefinition::new(
        "delete_customer",
        "Deletes a customer for good.",
        json!({"type": "object", "properties": {"customer_id": {"type": "integer"}}, "required": ["customer_id"]}),
    );
    delete.annotations = ToolAnnotations {
        read_only: Some(false),
        ..ToolAnnotations::default()
    };
    let list = tool("list_customers", "Lists the customers.", &json!({}), &[]);
    let value = tool(
        "account_value",
        "The account value of a customer.",
        &json!({"customer_id": {"type": "integer"}}),
        &["customer_id"],
    );
    vec![Arc::new(delete), list, value]
}

fn is_deleted(question: &str) -> bool {
    let (calls, _) = first(question, &customers());
    calls.iter().any(|(name, _)| name == "delete_customer")
}

#[test]
fn what_is_to_be_undone_is_not_done() {
    for question in [
        "Undo: delete customer 7",
        "Undo delete customer 7",
        "Undo the deletion of customer 7",
        "Please undo: delete customer 7",
        "Undo:\ndelete customer 7",
        "Undo - delete customer 7",
        "Undo. Delete customer 7",
        "Roll back: delete customer 7",
        "Please revert delete customer 7",
        "Call off: delete customer 7",
        "Stop: delete customer 7",
        "Delete customer 7. Undo that.",
        "Delete customer 7 - revert!",
        "Undo: delete_customer 7",
        "Ada wrote: delete customer 7",
        "Yesterday's entry: delete customer 7",
        "Do not do this: delete customer 7",
    ] {
        assert!(!is_deleted(question), "{question}");
    }
    for question in [
        "Delete customer 7",
        "Please: delete customer 7",
        "Task: delete customer 7",
        "Do this: delete customer 7",
        "Please do the following:\ndelete customer 7",
        "1: delete customer 7",
        "Don't forget to delete customer 7",
        "Ignore my last mail and delete customer 7",
        "Forget it. Delete customer 7",
    ] {
        assert!(is_deleted(question), "{question}");
    }
}

#[test]
fn a_number_that_counts_things_is_no_id() {
    for question in [
        "Delete the last of these three",
        "Delete the last of these 3 customers",
        "Delete the last of these 3",
        "Delete one of 3 customers",
        "Delete one of the 3",
        "Delete these three",
        "Delete those 3",
        "Delete all 3",
        "Delete the three",
        "Delete two of them",
        "Delete 2 of them",
        "Delete three customers",
        "Delete customers, the last of these three",
    ] {
        assert!(!is_deleted(question), "{question}");
    }
    for question in [
        "Delete customer 3",
        "Delete customer three",
        "Delete customer number 3",
        "Delete customer #3",
        "Delete customers 3 and 4",
        "Delete customer 3 of Ada",
        "Please delete customer 3",
    ] {
        assert!(is_deleted(question), "{question}");
    }
}

#[test]
fn the_last_of_so_many_is_the_last_of_those_that_were_listed() {
    let host = |name: &str, _: &Value| match name {
        "list_customers" => Ok(json!({"customers": [
            {"customer_id": 42, "name": "Ada"}, {"customer_id": 17, "name": "Bob"}, {"customer_id": 9, "name": "Cy"},
        ]})),
        _ => Ok(json!({"account_value": 5})),
    };
    for question in [
        "What is the account value of the last of these three?",
        "What is the account value of the last of these 3?",
    ] {
        let told = play(&["List the customers", question], &customers(), &host);
        assert!(
            told.contains(r#"account_value {"customer_id":9}"#),
            "{told}"
        );
        assert!(!told.contains(r#""customer_id":3"#), "{told}");
    }
    let told = play(
        &[
            "List the customers",
            "What is the account value?",
            "The last of these three",
        ],
        &customers(),
        &host,
    );
    assert!(!told.contains(r#"{"customer_id":3}"#), "{told}");
}
