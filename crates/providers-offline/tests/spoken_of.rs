//! What is only spoken of is not done: forbidden, reported, asked about, tied to a condition or taken back.

#![allow(
    clippy::indexing_slicing,
    reason = "an input without its path is a failed test"
)]

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::first;
use switchboard_domain::{ToolAnnotations, ToolDefinition};

fn tool(name: &str, about: &str, properties: &Value, required: &[&str]) -> Arc<ToolDefinition> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let mut tool = ToolDefinition::new(name, about, schema);
    tool.annotations = ToolAnnotations {
        read_only: Some(name.starts_with("read") || name.starts_with("list")),
        ..ToolAnnotations::default()
    };
    Arc::new(tool)
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    let (text, whole) = (json!({"type": "string"}), json!({"type": "integer"}));
    vec![
        tool(
            "create_support_ticket",
            "Opens a support ticket for a customer.",
            &json!({"customer_id": whole, "subject": text}),
            &["customer_id", "subject"],
        ),
        tool(
            "delete_customer",
            "Deletes a customer for good.",
            &json!({"customer_id": whole}),
            &["customer_id"],
        ),
        tool(
            "send_message",
            "Sends a message to a colleague.",
            &json!({"recipient": text, "body": text}),
            &["recipient", "body"],
        ),
        tool(
            "cancel_order",
            "Cancels an order.",
            &json!({"order_id": whole}),
            &["order_id"],
        ),
        tool(
            "write_file",
            "Writes a file.",
            &json!({"path": text, "content": text}),
            &["path", "content"],
        ),
        tool(
            "file_save",
            "Saves text as a file.",
            &json!({"path": text, "content": text}),
            &["path"],
        ),
        tool(
            "read_file",
            "Reads the text of a file.",
            &json!({"path": text, "tail": whole}),
            &["path"],
        ),
        tool("list_orders", "Lists the orders.", &json!({}), &[]),
    ]
}

fn called(question: &str) -> Vec<(String, Value)> {
    first(question, &tools()).0
}

fn text_of(question: &str) -> String {
    first(question, &tools()).1
}

#[test]
fn a_change_that_is_only_spoken_of_is_not_made() {
    let mut wrong = Vec::new();
    for question in [
        // Forbidden.
        "Never delete customer 12",
        "Please do not ever delete customer 12.",
        "You must not delete customer 12",
        "I don't want customer 12 deleted",
        "There is no need to cancel order 4",
        "Delete no customer 12",
        "Order 4 shall not be cancelled, please",
        "Don't create a support ticket for customer 5, his lamp broke.",
        // Told.
        "We deleted customer 12",
        "They want to delete customer 12",
        "My colleague cancels order 4",
        "Ada wrote that she deleted customer 12 yesterday",
        "They created a support ticket for customer 5, his lamp broke.",
        "Order 4 was cancelled",
        "I am deleting customer 12",
        // Asked about.
        "How can I delete customer 12?",
        "May I cancel order 4?",
        "Did you delete customer 12?",
        "Has order 4 been cancelled?",
        "Why would anybody delete customer 12?",
        "What does it cost to cancel order 4?",
        "Could you tell me whether deleting customer 12 is wise?",
        "Describe what happens when you delete customer 12",
        "I wonder how to cancel order 4",
        "Is deleting customer 12 allowed?",
        "Did somebody create a support ticket for customer 5, his lamp broke?",
        "Do you want to cancel order 4?",
        "Would you like to delete customer 12?",
        // Tied to a condition.
        "Delete customer 12 unless she has paid",
        "If order 4 is late, cancel order 4",
        "Cancel order 4, but ask me first",
        "Cancel order 4 once I have told you so, not before",
        "Cancel order 4, but not yet",
        "Cancel order 4 only after she agreed",
        "Cancel order 4 when they call",
        "Before you cancel order 4, wait for Ada",
        // Taken back.
        "Cancel order 4. Oh wait, no.",
        "Delete customer 12, forget it",
        "Delete customer 12! I was kidding.",
        "Delete customer 12. On second thought, leave her there.",
        "Create a support ticket for customer 5, his lamp broke. Nevermind.",
        // But for some.
        "Cancel all orders but 4",
        "Cancel every order except order 4",
    ] {
        let reads = |(name, _): &(String, Value)| name.starts_with("list");
        if !called(question).iter().all(reads) {
            wrong.push(question);
        }
    }
    assert_eq!(wrong, [""; 0]);
    let text = text_of("How do I delete customer 12?");
    assert!(text.contains("I have not used Delete customer"), "{text}");
}

#[test]
fn what_is_asked_for_is_done_however_kindly() {
    for (question, name, id) in [
        ("Delete customer 12", "delete_customer", 12),
        ("Please delete customer 12 now.", "delete_customer", 12),
        ("Could you please cancel order 4?", "cancel_order", 4),
        ("Would you cancel order 4 for me?", "cancel_order", 4),
        ("I would like you to cancel order 4", "cancel_order", 4),
        ("I need order 4 cancelled", "cancel_order", 4),
        ("Don't forget to cancel order 4", "cancel_order", 4),
        (
            "I do not need it any more, please cancel order 4",
            "cancel_order",
            4,
        ),
        ("Cancel order 4 if possible", "cancel_order", 4),
        ("My mixer never came. Cancel order 4", "cancel_order", 4),
    ] {
        let found = called(question);
        assert!(
            matches!(&found[..], [(tool, input)] if tool == name && input.to_string().contains(&id.to_string())),
            "{question}: {found:?}"
        );
    }
}

#[test]
fn only_a_story_is_the_text_of_a_request() {
    for (question, subject) in [
        (
            "Create a support ticket for customer 5, his lamp broke twice.",
            "his lamp broke twice",
        ),
        (
            "Open a support ticket for customer 5. The kettle leaked at once",
            "The kettle leaked at once",
        ),
        (
            "I need a ticket for customer 5 because he cannot cancel his order",
            "he cannot cancel his order",
        ),
        (
            "Create a support ticket for customer 5: do not call before ten",
            "do not call before ten",
        ),
    ] {
        let wanted = json!({"customer_id": 5, "subject": subject});
        assert_eq!(
            called(question),
            [("create_support_ticket".to_owned(), wanted)],
            "{question}"
        );
    }
    for question in [
        "Create a support ticket for customer 5, our oldest friend there",
        "Create a support ticket for customer 5, my trusted neighbour Bob",
        "Create a support ticket for customer 5, you remember the details",
        "Create a support ticket for customer 5, this one with care",
        "Create a support ticket for customer 5, the neighbour was told already",
        "Create a support ticket for customer 5. Is that hard to do?",
        "Create a support ticket for customer 5. When will that be done?",
        "Create a support ticket for customer 5, what a mess again",
    ] {
        assert_eq!(called(question), [], "{question}");
        assert!(
            text_of(question).contains("subject"),
            "{question}: {}",
            text_of(question)
        );
    }
}

#[test]
fn a_file_is_read_only_where_its_contents_are_asked_for() {
    for question in [
        "Print plan.md",
        "Could you summarise plan.md for me?",
        "Give me the first 5 lines of plan.md",
        "What does plan.md say about tea?",
        "Where in plan.md is tea mentioned?",
        "According to the file plan.md, who makes tea?",
        "Tell me what is in plan.md",
    ] {
        let found = called(question);
        assert!(
            matches!(&found[..], [(name, input)] if name == "read_file" && input["path"] == "plan.md"),
            "{question}: {found:?}"
        );
    }
    for question in [
        "How many people live in Rome? Leave plan.md alone, do not read it.",
        "Don't show me plan.md",
        "Never read plan.md",
        "Show me everything but plan.md",
        "Read all files besides plan.md",
        "Ada sent me plan.md, is she nice?",
        "Is a mail with the attachment bill.pdf a trick?",
        "Why do people put robots.txt on their pages?",
        "What is the meaning of package.json in a project?",
        "Show me the size of plan.md",
        "Who changed plan.md?",
        "Run setup.py",
        "Review the last 2 releases of plan.md",
        "Could you make a new file plan.md?",
        "Save plan.md",
    ] {
        assert_eq!(called(question), [], "{question}");
    }
}

#[test]
fn which_is_the_last_is_asked_before_it_is_changed() {
    assert_eq!(called("Cancel the last order"), []);
    assert!(text_of("Cancel the last order").contains("order id"));
}
