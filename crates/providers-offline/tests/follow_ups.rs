//! Files that questions name, things that were listed before, and what a result tells already. With tools that no other test
//! has, under names that no rule can know.

#![allow(
    clippy::expect_used,
    reason = "a conversation that cannot be played is a failed test"
)]

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::{first, play};
use switchboard_domain::{ToolAnnotations, ToolDefinition};

fn tool(name: &str, about: &str, properties: &Value, required: &[&str]) -> Arc<ToolDefinition> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let mut tool = ToolDefinition::new(name, about, schema);
    tool.annotations = ToolAnnotations {
        read_only: Some(!name.starts_with("report")),
        ..ToolAnnotations::default()
    };
    Arc::new(tool)
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    let (text, whole) = (json!({"type": "string"}), json!({"type": "integer"}));
    let path = json!({"path": text});
    vec![
        tool(
            "doc-fetch",
            "Returns the contents of a text document.",
            &json!({"path": text, "from_line": whole}),
            &["path"],
        ),
        tool(
            "tableViewer",
            "Shows the rows of a CSV or TSV file.",
            &json!({"file": text, "rows": whole}),
            &["file"],
        ),
        tool(
            "dir_contents",
            "Lists the files of a folder.",
            &path,
            &["path"],
        ),
        tool("file_stat", "Size and age of a file.", &path, &["path"]),
        tool(
            "list_boats",
            "Lists the boats of the harbour, the newest first.",
            &json!({"limit": whole}),
            &[],
        ),
        tool(
            "boat_weight",
            "Weighs one boat.",
            &json!({"boat_id": whole}),
            &["boat_id"],
        ),
        tool(
            "berth_fee",
            "The fee of a boat for a year.",
            &json!({"boat_id": whole}),
            &["boat_id"],
        ),
        tool(
            "report_damage",
            "Reports a damage of a boat to the harbour master.",
            &json!({
                "boat_id": whole,
                "title": text,
                "severity": {"type": "string", "enum": ["low", "high"]},
                "body": text,
            }),
            &["boat_id", "title"],
        ),
        tool(
            "boat_range",
            "The range and the deposit of a boat.",
            &json!({"boat_id": whole}),
            &["boat_id"],
        ),
        tool(
            "boat_tide",
            "The tide that a boat waits for.",
            &json!({"boat_id": whole}),
            &["boat_id"],
        ),
        tool("depth", "How deep the harbour is.", &json!({}), &[]),
    ]
}

fn harbour(name: &str, input: &Value) -> Result<Value, String> {
    let id = &input["boat_id"];
    Ok(match name {
        "doc-fetch" => match input["path"].as_str() {
            Some("rules/mooring.md") => json!({
                "path": "rules/mooring.md",
                "content": "# Mooring\n\nBoats above 12 t use two ropes.\n",
                "lines": 3,
            }),
            path => return Err(format!("there is no file {}", path.unwrap_or_default())),
        },
        "list_boats" => json!({"boats": [
            {"boat_id": 31, "name": "Heron"}, {"boat_id": 8, "name": "Otter"}, {"boat_id": 5, "name": "Wren"},
        ]}),
        "boat_weight" => json!({"boat_id": id, "weight": 1250, "weight_unit": "kg", "crew": 4}),
        "berth_fee" => {
            json!({"boat_id": id, "fee": "310.50", "fee_cents": 31050, "currency": "GBP"})
        }
        "boat_range" => {
            json!({"boat_id": id, "range_km": 70, "deposit_pence": 40000, "status": 200})
        }
        "boat_tide" => json!("High water is at 5 metres, minus 1 in spring."),
        "report_damage" => json!({"report_id": 1, "boat_id": id, "title": input["title"]}),
        "depth" => json!("9.5"),
        other => return Err(format!("the harbour has no {other}")),
    })
}

/// What was called, turn by turn, and what was said last in each.
fn played(questions: &[&str]) -> (Vec<Vec<String>>, Vec<String>) {
    let told = play(questions, &tools(), &harbour);
    let (mut calls, mut said) = (Vec::new(), Vec::new());
    for line in told.lines() {
        if line.starts_with("person:") {
            calls.push(Vec::new());
            said.push(String::new());
        } else if let Some(call) = line.strip_prefix("calls:   ") {
            calls.last_mut().expect("a turn").push(call.to_owned());
        } else if let Some(text) = line.strip_prefix("planner: ") {
            text.clone_into(said.last_mut().expect("a turn"));
        } else if let Some(more) = line.strip_prefix("         ") {
            let last = said.last_mut().expect("a turn");
            last.push('\n');
            last.push_str(more);
        }
    }
    (calls, said)
}

fn called(question: &str) -> Vec<(String, Value)> {
    first(question, &tools()).0
}

#[test]
fn a_file_that_a_question_names_is_read_with_the_tool_for_it() {
    for (question, tool, input) in [
        (
            "According to rules/mooring.md, how many ropes does a boat of 15 t need?",
            "doc-fetch",
            json!({"path": "rules/mooring.md"}),
        ),
        (
            "What does `rules/mooring.md` say about guests?",
            "doc-fetch",
            json!({"path": "rules/mooring.md"}),
        ),
        (
            "Explain notes.txt to me",
            "doc-fetch",
            json!({"path": "notes.txt"}),
        ),
        (
            "Who paid the most in 2025/payments.csv?",
            "tableViewer",
            json!({"file": "2025/payments.csv"}),
        ),
        (
            "Who owns the newest boats, as the file crew/boats.md has it?",
            "doc-fetch",
            json!({"path": "crew/boats.md"}),
        ),
    ] {
        assert_eq!(called(question), [(tool.to_owned(), input)], "{question}");
    }
}

#[test]
fn what_only_looks_like_a_file_or_is_to_be_changed_is_not_read() {
    for question in [
        "What is node.js good for?",
        "Is example.com up?",
        "I put it into rules/mooring.md.",
        "Delete rules/mooring.md",
        "Write the answer to rules/mooring.md",
        "What is the difference between TCP/IP and UDP?",
    ] {
        assert_eq!(called(question), [], "{question}");
    }
}

#[test]
fn what_a_file_says_is_quoted_and_no_answer_is_made_up() {
    let (calls, said) = played(&[
        "According to rules/mooring.md, how many ropes does a boat of 15 t need?",
        "And according to rules/guests.md?",
    ]);
    assert_eq!(calls[0], [r#"doc-fetch {"path":"rules/mooring.md"}"#]);
    assert!(said[0].contains("not a language model"), "{said:?}");
    assert!(
        said[0].ends_with("\n# Mooring\n\nBoats above 12 t use two ropes."),
        "{said:?}"
    );
    assert_eq!(calls[1], [r#"doc-fetch {"path":"rules/guests.md"}"#]);
    assert!(
        said[1].ends_with("there is no file rules/guests.md"),
        "{said:?}"
    );
}

#[test]
fn what_was_listed_is_not_listed_again() {
    for (question, ids) in [
        (
            "How heavy is it: what is the weight of the first of them?",
            vec![31],
        ),
        ("And what is the weight of the second of these?", vec![8]),
        ("What is the weight of the last of them?", vec![5]),
        ("What is the weight of the last one?", vec![5]),
        ("What is the weight of each of them?", vec![31, 8, 5]),
        ("And the weight of the first two of those?", vec![31, 8]),
        ("What is the weight of the first of the boats?", vec![31]),
    ] {
        let (calls, _) = played(&["List the boats", question]);
        let weighed: Vec<String> = ids
            .iter()
            .map(|id| format!(r#"boat_weight {{"boat_id":{id}}}"#))
            .collect();
        let again = calls[1]
            .first()
            .is_some_and(|call| call.starts_with("list"));
        if question.contains("of the boats") {
            // Which boats there are may have changed.
            assert!(calls[1].ends_with(&weighed), "{question}: {calls:?}");
        } else {
            assert!(!again, "{question}: {calls:?}");
            assert_eq!(calls[1], weighed, "{question}");
        }
    }
}

#[test]
fn a_comparison_is_answered_from_what_is_known() {
    let fee = "What is the fee of boat 8?";
    let weight = "What is the weight of boat 8?";
    for (before, question, answer) in [
        (
            fee,
            "Is that more than 300 pounds?",
            "Yes: the fee of boat 8 is 310.50 GBP, which is more than 300 pounds.",
        ),
        (
            fee,
            "And is it under £310.50?",
            "No: the fee of boat 8 is 310.50 GBP, which is not under £310.50.",
        ),
        (
            fee,
            "Does the fee exceed 310?",
            "Yes: the fee of boat 8 is 310.50 GBP, which is more than 310.",
        ),
        (
            fee,
            "Is that more than 300 dollars?",
            "The fee of boat 8 is 310.50 GBP. What that is in USD I do not know.",
        ),
        (
            weight,
            "Is it at least 1,250 kg?",
            "Yes: the weight of boat 8 is 1,250 kg, which is at least 1,250 kg.",
        ),
        (
            weight,
            "Is the crew larger than 5?",
            "No: the crew of boat 8 is 4, which is not larger than 5.",
        ),
        (
            "How deep is the harbour?",
            "Is that more than 9?",
            "Yes: Depth gave 9.5, which is more than 9.",
        ),
    ] {
        let (calls, said) = played(&[before, question]);
        assert_eq!(calls[1], [""; 0], "{question}");
        assert_eq!(said[1], answer, "{question}");
    }
    let (calls, said) = played(&[fee, "Is that more than 300?", "And is it less than 400?"]);
    assert!(calls[1].is_empty() && calls[2].is_empty(), "{calls:?}");
    assert!(said[2].starts_with("Yes: "), "{said:?}");
}

#[test]
fn what_is_not_known_is_not_compared() {
    for (before, question) in [
        // Another thing, another value, another time.
        (
            "What is the fee of boat 8?",
            "Is the fee of boat 5 more than 300?",
        ),
        (
            "What is the fee of boat 8?",
            "Is the fee more than 300 now?",
        ),
        (
            "What is the fee of boat 8?",
            "Is the mast taller than 10 m?",
        ),
        ("What is the fee of boat 8?", "Is that more than 2 ropes?"),
        ("What is the fee of boat 77x?", "Is it more than 300?"),
        // Another unit, or none that is known.
        ("What is the fee of boat 8?", "Is that more than 300 kg?"),
        ("What is the fee of boat 8?", "Is it under 20 percent?"),
        (
            "What is the weight of boat 8?",
            "Is it more than 1000 miles?",
        ),
        (
            "What is the weight of boat 8?",
            "Is that more than 1000 pounds?",
        ),
        (
            "What is the weight of boat 8?",
            "Is the crew more than 3 kg?",
        ),
        ("How deep is the harbour?", "Is that more than 9 metres?"),
        (
            "What is the range of boat 8?",
            "Is that more than 30 miles?",
        ),
        (
            "What is the range of boat 8?",
            "Is the deposit more than 300?",
        ),
        (
            "What is the range of boat 8?",
            "Is the deposit more than 300 pounds?",
        ),
        // A number in words, of a person, of an answer's form, of a failure.
        ("What is the tide of boat 8?", "Is that more than 3?"),
        ("What is the fee of boat 8?", "Is she over 18?"),
        ("What is the weight of boat 8?", "Are they more than 3?"),
        (
            "What is the range of boat 8?",
            "Is the status more than 100?",
        ),
        ("What is the fee of boat 8?", "Is that not more than 300?"),
    ] {
        let (_, said) = played(&[before, question]);
        assert!(!said[1].contains("not not"), "{question}: {said:?}");
        let is_verdict = said[1].starts_with("Yes") || said[1].starts_with("No:");
        assert!(!is_verdict, "{question}: {said:?}");
    }
}

#[test]
fn what_was_said_since_is_no_result() {
    let (_, said) = played(&[
        "What is the fee of boat 8?",
        "My mooring costs 200 pounds.",
        "Is that more than 300 pounds?",
    ]);
    assert!(
        !said[2].starts_with("Yes") && !said[2].starts_with("No:"),
        "{said:?}"
    );
}

#[test]
fn what_is_no_more_than_something_is_said_plainly() {
    let (_, said) = played(&[
        "What is the fee of boat 8?",
        "Is that no more than 300 pounds?",
    ]);
    assert_eq!(
        said[1],
        "No: the fee of boat 8 is 310.50 GBP, which is more than 300 pounds."
    );
}

#[test]
fn what_it_is_about_is_taken_from_the_sentence() {
    for (question, title) in [
        (
            "Report a damage of boat 8 with high severity, its rudder came off in the storm.",
            "its rudder came off in the storm",
        ),
        (
            "Please report a high severity damage of boat 8. The rudder came off!",
            "The rudder came off!",
        ),
        (
            "Report a damage of boat 8 with high severity, saying that the rudder came off",
            "the rudder came off",
        ),
        (
            "Report a high severity damage of boat 8 about the lost rudder",
            "the lost rudder",
        ),
        (
            "Report a high severity damage of boat 8 with the title Lost rudder",
            "Lost rudder",
        ),
    ] {
        let wanted = json!({"boat_id": 8, "title": title, "severity": "high"});
        let found = called(question);
        assert_eq!(found, [("report_damage".to_owned(), wanted)], "{question}");
    }
}

#[test]
fn what_says_nothing_of_it_is_asked_for() {
    for question in [
        "Report a damage of boat 8, please",
        "Report a damage of boat 8, thank you very much indeed!",
        "Report a damage of boat 8, as soon as you possibly can.",
        "Report a damage of boat 8, it is of high severity",
        "Report a damage of boat 8. Can you tell me the depth too?",
        "Good morning, this is Ada. Report a damage of boat 8.",
    ] {
        let reports = |(name, _): &(String, Value)| name == "report_damage";
        assert!(!called(question).iter().any(reports), "{question}");
    }
}

#[test]
fn thanks_are_those_of_the_person() {
    let answer = |question| first(question, &tools()).1;
    assert!(answer("Thanks a lot!").starts_with("You are welcome."));
    for question in [
        "What is \"thanks\" in Latin?",
        "How do I thank a harbour pilot?",
        "Translate 'thank you' for me",
    ] {
        let answer = answer(question);
        assert!(!answer.contains("welcome"), "{question}: {answer}");
        assert!(
            answer.contains("None of the connected tools fits this."),
            "{question}: {answer}"
        );
    }
}
