//! Snapshots of whole conversations.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::{host, play, tools};
use switchboard_domain::{ToolAnnotations, ToolDefinition};

const ALL: &str = "customer_service everything filesystem git memory time";

/// Returns the transcript of each conversation, played with all tools.
fn conversations(conversations: &[&[&str]]) -> String {
    let tools = tools(ALL);
    let played: Vec<String> = conversations
        .iter()
        .map(|questions| play(questions, &tools, &host))
        .collect();
    played.join("\n")
}

#[test]
fn demonstrations() {
    insta::assert_snapshot!(conversations(&[
        &["What is the account value of customer 42?"],
        &["Who are the 5 most recent customers?"],
        &["Create a high priority support ticket for customer 7 about a late delivery"],
        &["Create a low priority ticket for customer 7 with subject \"test\""],
        &["echo hello world"],
        &["What is the sum of 19 and 23?"],
    ]));
}

#[test]
fn several_ids_make_several_calls_and_a_missing_id_one_lookup() {
    insta::assert_snapshot!(conversations(&[
        &["What are the account values of customers 42 and 7?"],
        &["What is the account value of the most recent customer?"],
    ]));
}

#[test]
fn missing_values_are_requested() {
    insta::assert_snapshot!(conversations(&[
        &["What is the account value?", "customer 42"],
        &[
            "What is the account value of customer 42?",
            "And of customer 7?"
        ],
        &["Show the 500 most recent customers"],
    ]));
}

#[test]
fn failed_calls_are_reported_and_not_repeated() {
    insta::assert_snapshot!(conversations(&[
        &["What is the account value of customer 99?"],
        &["What are the account values of customers 42 and 99?"],
    ]));
}

#[test]
fn questions_without_a_matching_tool_are_declined() {
    insta::assert_snapshot!(conversations(&[
        &["What is the capital of France?"],
        &["Hello!"],
    ]));
    insta::assert_snapshot!(
        "no_tools",
        play(&["What is the account value of customer 42?"], &[], &host)
    );
}

#[test]
fn the_id_of_a_name_is_looked_up_and_list_values_are_recognized() {
    let tool = |name: &str, description: &str, schema: Value| {
        let mut tool = ToolDefinition::new(name, description, schema);
        tool.annotations = ToolAnnotations {
            read_only: Some(true),
            ..ToolAnnotations::default()
        };
        Arc::new(tool)
    };
    let text = json!({"type": "string"});
    let lookup = json!({"type": "object", "properties": {"name": text}, "required": ["name"]});
    let kinds = json!({"type": "array", "items": {"enum": ["x:River", "x:LakeOrPond"]}});
    let query = json!({
        "type": "object", "properties": {"placeId": text, "kinds": kinds}, "required": ["placeId"],
    });
    let tools = [
        tool("resolve", "Finds the codes of a name.", lookup),
        tool(
            "places_near",
            "Finds rivers, lakes and ponds near a place.",
            query,
        ),
    ];
    let host = |name: &str, input: &Value| match name {
        "resolve" if input["name"] == "Bern" => Ok(json!({"matches": [{"code": "P:7"}]})),
        "resolve" => Err("No match.".to_owned()),
        _ => Ok(json!({"places": [{"label": "Aare"}]})),
    };
    let questions = [
        &["Find rivers near Bern"][..],
        &["Find lakes near Bern"],
        &["Find lakes near P:7"],
        &["Find rivers near Atlantis"],
    ];
    let played = questions.map(|questions| play(questions, &tools, &host));
    insta::assert_snapshot!(played.join("\n"));
}

#[test]
fn arguments_of_unknown_servers_follow_their_schemas() {
    let tool = |name: &str, description: &str, properties: Value, required: Value| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let mut tool = ToolDefinition::new(name, description, schema);
        tool.annotations = ToolAnnotations {
            read_only: Some(true),
            ..ToolAnnotations::default()
        };
        Arc::new(tool)
    };
    let tools = [
        tool(
            "list-orders",
            "Lists the orders of a day.",
            json!({"day": {"type": "string", "format": "date"}}),
            json!(["day"]),
        ),
        tool(
            "stock-level",
            "Returns the number of pieces of a product in stock.",
            json!({"sku": {"type": "string", "description": "The product's SKU"}}),
            json!(["sku"]),
        ),
        tool(
            "get_weather",
            "Returns the weather of a city.",
            json!({"city": {"type": "string"}}),
            json!(["city"]),
        ),
    ];
    let host = |name: &str, input: &Value| {
        Ok(match name {
            "stock-level" => json!({"sku": input["sku"], "pieces": 12500, "unit": "pieces"}),
            "list-orders" => json!([{"order": 1, "total": "12.50"}, {"order": 2, "total": "8"}]),
            _ => json!("Sunny."),
        })
    };
    let conversations: [&[&str]; 4] = [
        &["List the orders of yesterday"],
        &["What is the stock level of AB-1234?"],
        &["What are the stock levels of AB-1234 and AB-99?"],
        &["What is the weather in New York?"],
    ];
    let played = conversations.map(|questions| play(questions, &tools, &host));
    insta::assert_snapshot!(played.join("\n"));
}

#[test]
fn more_than_forty_tools_can_be_ranked() {
    let mut all = tools(ALL);
    assert!(all.len() > 40, "{}", all.len());
    all.reverse();
    let (calls, _) = support::first("What is the account value of customer 42?", &all);
    assert_eq!(
        calls,
        [(
            "calculate_account_value".to_owned(),
            json!({"customer_id": 42})
        )]
    );
}

#[test]
fn a_json_object_in_the_question_is_the_input() {
    let question = r#"Create entities {"entities": [{"name": "Ada", "entityType": "person", "observations": []}]}"#;
    let (calls, text) = support::first(question, &tools(ALL));
    assert_eq!(calls.len(), 1, "{text}");
    assert_eq!(calls[0].0, "create_entities");
    assert_eq!(calls[0].1["entities"][0]["name"], "Ada");
}

#[test]
fn questions_that_are_too_long_are_declined() {
    let question = "customer 42 ".repeat(6_000);
    let (calls, text) = support::first(&question, &tools("customer_service"));
    assert!(calls.is_empty());
    assert!(text.contains("more than 65536 bytes"), "{text}");
}
