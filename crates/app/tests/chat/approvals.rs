//! Approval requests at the terminal.

use serde_json::json;

use crate::{
    conversation::{chat_with, sessions},
    support::Place,
    terminal::{Terminal, is_ready},
};

const TICKET: &str = "Create a low priority ticket for customer 7 with subject \"test\"";

/// Starts a chat with these approvals and asks it for a ticket.
fn chat_about_ticket(place: &Place, approve: &str, rows: u16) -> Terminal {
    let chat = chat_with(place, &["--approve", approve], [], (rows, 100));
    chat.wait_for_prompt();
    chat.line(TICKET);
    chat
}

async fn tool_uses(place: &Place) -> Vec<serde_json::Value> {
    let id = sessions(place).await[0]["id"].as_str().unwrap().to_owned();
    let shown = place.run(["sessions", "show", &id, "-o", "json"]).await;
    let shown = shown.json();
    let messages = shown["messages"].as_array().unwrap().clone();
    messages
        .into_iter()
        .flat_map(|message| message["parts"].as_array().unwrap().clone())
        .filter(|part| part["type"] == "tool_use" || part["type"] == "tool_result")
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_input_is_checked_and_run() {
    let place = Place::new();
    let mut chat = chat_about_ticket(&place, "ask", 45);
    let screen = chat.asks("Run it? [y]es");
    let asked = "? customer-service · create_support_ticket";
    assert!(screen.contains(asked), "{screen}");
    chat.keys("e\r");
    chat.shows("Enter: accept");
    chat.shows("\"subject\": \"test\"");
    // The user replaces the whole input by an input that violates the schema.
    chat.keys("\u{15}\u{15}\u{1b}[200~{\"customer_id\": \"seven\"}\u{1b}[201~");
    chat.shows("\"seven\"");
    chat.keys("\r");
    chat.shows("does not match the schema");
    let input = json!({"customer_id": 8, "priority": "high", "subject": "edited"}).to_string();
    chat.keys(&format!("\u{15}\u{1b}[200~{input}\u{1b}[201~"));
    chat.shows("\"edited\"");
    chat.keys("\r");
    chat.answers("✔ customer-service · create_support_ticket");
    chat.quit();
    let parts = tool_uses(&place).await;
    let text = serde_json::to_string(&parts).unwrap();
    assert!(text.contains("edited"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_has_a_reason_and_an_approval_holds_for_the_session() {
    let place = Place::new();
    let mut chat = chat_about_ticket(&place, "ask", 50);
    chat.asks("Run it?");
    chat.keys("no: the wrong customer\r");
    chat.answers("⊘ customer-service · create_support_ticket");
    let said = serde_json::to_string(&tool_uses(&place).await).unwrap();
    assert!(said.contains("the wrong customer"), "{said}");

    let asked = |screen: &str| screen.matches("Run it?").count();
    chat.line(TICKET);
    chat.wait_for("second question", |screen| {
        asked(screen) == 2 && screen.ends_with('›')
    });
    chat.keys("s\r");
    chat.answers("✔ customer-service · create_support_ticket");
    chat.line(TICKET);
    let screen = chat.wait_for("second ticket", |screen| {
        screen.matches("✔ customer-service").count() == 2 && is_ready(screen)
    });
    assert_eq!(asked(&screen), 2, "{screen}");
    chat.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_at_an_approval_stops_only_the_run() {
    let place = Place::new();
    let mut chat = chat_about_ticket(&place, "ask", 40);
    chat.asks("Run it?");
    chat.keys("\u{3}");
    let screen = chat.answers("note: interrupted");
    assert!(!screen.contains("no terminal"), "{screen}");
    chat.line("/approve all");
    chat.shows("takes effect with the next question");
    chat.line(TICKET);
    chat.answers("✔ customer-service · create_support_ticket");
    chat.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deferred_approval_is_asked_when_the_run_resumes() {
    let place = Place::new();
    let mut chat = chat_about_ticket(&place, "later", 40);
    chat.answers("the run waits for your approval of");
    // Until the decision, the session accepts no other question.
    chat.line("Something else");
    chat.asks("What now?");
    chat.keys("l\r");
    chat.wait_for_prompt();
    chat.line("/continue");
    chat.asks("Run it?");
    chat.keys("y\r");
    chat.answers("✔ customer-service · create_support_ticket");
    chat.line("/continue");
    chat.shows("this session has no pending run");
    chat.quit();
}
