//! Whole conversations, as a person would read them.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::{host, play, tools};
use switchboard_domain::{ToolAnnotations, ToolDefinition};

const ALL: &str = "customer_service everything filesystem git memory time";

fn played(questions: &[&str]) -> String {
    play(questions, &tools(ALL), &host)
}

fn several(dialogues: &[&[&str]]) -> String {
    dialogues
        .iter()
        .map(|questions| played(questions))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_demonstrations() {
    insta::assert_snapshot!(several(&[
        &["What is the account value of customer 42?"],
        &["Who are the 5 most recent customers?"],
        &["List the latest three customers"],
        &["Create a high priority support ticket for customer 7 about a late delivery"],
        &["What is the account value of the most recent customer?"],
        &["echo hello world"],
        &["What is the sum of 19 and 23?"],
    ]));
}

#[test]
fn several_calls_at_once_and_one_after_another() {
    insta::assert_snapshot!(several(&[
        &["What is the account value of customers 42 and 7?"],
        &["What is the account value of each of the 2 latest customers?"],
        &["What is the account value of Grace Hopper?"],
        &["Create a support ticket for our newest customer about a missing invoice"],
        &["What is the sum of 1 and 2, and then echo good night"],
        &["What are the account values of Ada Lovelace and Alan Kay?"],
        &[
            "Show the account value of our newest customer and create a ticket for them about onboarding"
        ],
        &["What is the account value of the second most recent customer?"],
        &["Who is our most recent customer and what is their account value?"],
    ]));
}

#[test]
fn what_is_missing_is_asked_for() {
    insta::assert_snapshot!(several(&[
        &["What is the account value?", "customer 42"],
        &["What is the account value?", "the most recent customer"],
        &[
            "Create a support ticket",
            "customer 7, the invoice is wrong"
        ],
        &["Create a support ticket", "about a broken screen", "7"],
        &[
            "Create a support ticket about a late delivery",
            "I do not know",
            "customer 7"
        ],
        &["How many purchases does customer 42 have?"],
        &["Get structured content", "Chicago, please"],
        &["Show the 500 most recent customers", "2"],
        &["What is the account value of Alan?", "Kay"],
        &["What is the account value of Linus?"],
    ]));
}

#[test]
fn a_question_need_not_be_answered() {
    insta::assert_snapshot!(several(&[
        &["Create a support ticket", "never mind", "echo good bye"],
        &["What is the account value?", "What is the sum of 4 and 5?"],
    ]));
}

#[test]
fn what_was_spoken_of_is_remembered() {
    insta::assert_snapshot!(several(&[
        &[
            "Who are the 3 most recent customers?",
            "What is the account value of the second one?",
            "And customer 42?",
            "Create a ticket for this customer about a late delivery",
            "What is the account value of Ada Lovelace?",
        ],
        &["What's the temperature in Chicago?", "And New York?"],
    ]));
}

#[test]
fn failures_are_told_and_not_tried_again() {
    insta::assert_snapshot!(several(&[
        &["What is the account value of customer 99?"],
        &["What is the account value of customers 42 and 99?"],
        &["Read the file /etc/hosts"],
    ]));
}

#[test]
fn what_it_cannot_do_it_says() {
    insta::assert_snapshot!(several(&[
        &["What is the capital of France?"],
        &["Hello!"],
        &["Thank you!"],
        &[
            "Create entities in the knowledge graph",
            r#"{"entities": [{"name": "Ada", "entityType": "person", "observations": []}]}"#,
        ],
    ]));
}

#[test]
fn without_tools_there_is_nothing_to_do() {
    insta::assert_snapshot!(play(
        &["What is the account value of customer 42?"],
        &[],
        &host
    ));
}

/// A server that nobody has heard of: what it gives is told by its shape.
#[test]
fn results_of_any_shape_become_short_answers() {
    let read = ToolAnnotations {
        read_only: Some(true),
        ..ToolAnnotations::default()
    };
    let tool = |name: &str, about: &str, properties: Value, required: Value| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let mut tool = ToolDefinition::new(name, about, schema);
        tool.annotations = read;
        Arc::new(tool)
    };
    let tools = [
        tool(
            "findFlights",
            "Finds flights between two airports on a day.",
            json!({
                "from": {"type": "string", "description": "Airport code"},
                "to": {"type": "string", "description": "Airport code"},
                "day": {"type": "string", "format": "date"},
            }),
            json!(["from", "to", "day"]),
        ),
        tool(
            "stock-level",
            "How many pieces of a product are in stock.",
            json!({"sku": {"type": "string", "description": "The product's SKU, such as AB-1234"}}),
            json!(["sku"]),
        ),
        tool(
            "parcel_tracking",
            "Where a parcel is.",
            json!({"parcelId": {"type": "string"}}),
            json!(["parcelId"]),
        ),
        tool("plot", "Draws a chart of the sales.", json!({}), json!([])),
    ];
    let host = |name: &str, input: &Value| {
        Ok(match name {
            "findFlights" => json!([
                {"flight": "XY 12", "departs": "08:15", "price": {"amount": "129.90", "currency": "EUR"}},
                {"flight": "XY 34", "departs": "17:40", "price": {"amount": "89", "currency": "EUR"}},
            ]),
            "stock-level" => {
                json!({"sku": input["sku"], "stock": {"pieces": 12500, "warehouses": ["North", "South"]}})
            }
            "parcel_tracking" => {
                json!({"result": {"parcelId": input["parcelId"], "status": "in transit", "delivered": false}})
            }
            _ => json!("A chart was drawn."),
        })
    };
    let dialogues: [&[&str]; 5] = [
        &["Find flights from BER to LIS on 2026-12-01"],
        &["What is the stock level of AB-1234?"],
        &["What is the status of parcel ZX-991?"],
        &["Where is parcel ZX-991?"],
        &["plot the sales"],
    ];
    let told: Vec<String> = dialogues
        .iter()
        .map(|questions| play(questions, &tools, &host))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}
