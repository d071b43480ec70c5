//! Definitions, arguments and results of the tools of `customer-service`.

use rmcp::{model::ErrorCode, service::ServiceError};
use serde_json::{Value, json};

use crate::client::{call, calls, contents, data, fresh, request, texts};

/// Calls that succeed, executed in this order on one server.
const GOOD_CALLS: &str = r#"
get_recent_customers {"limit": 3}
get_recent_customers {"limit": 1, "since": "2026-10-30"}
get_recent_customers {"since": "2026-07-22"}
get_recent_customers {"since": "2027-01-01"}
get_recent_customers {"limit": 2, "status": "inactive"}
get_recent_customers {"since": "2026-10-01", "status": "new"}
calculate_account_value {"customer_id": 42}
calculate_account_value {"customer_id": 12}
create_support_ticket {"customer_id": 42, "subject": "Grinder arrived broken"}
create_support_ticket {"customer_id": 7, "subject": "  Wrong invoice ",
    "description": "The invoice of 3 May names another company.", "priority": "high"}
"#;

/// Calls that fail.
const BAD_CALLS: &str = r#"
get_recent_customers {"limit": 0}
get_recent_customers {"limit": 51}
get_recent_customers {"limit": "ten"}
get_recent_customers {"limit": 2.5}
get_recent_customers {"since": "2026-02-30"}
get_recent_customers {"since": "last week"}
get_recent_customers {"status": "suspended"}
get_recent_customers {"sinse": "2026-01-01"}
get_recent_customers {"limit": 99, "since": 7, "country": "Peru"}
calculate_account_value {}
calculate_account_value {"customer_id": null}
calculate_account_value {"customer_id": "42"}
calculate_account_value {"customer_id": 0}
calculate_account_value {"customer_id": 999}
calculate_account_value {"customer_id": 1e300}
create_support_ticket {"customer_id": 999, "subject": "Where is my parcel?"}
create_support_ticket {"customer_id": 42}
create_support_ticket {"customer_id": 42, "subject": ""}
create_support_ticket {"customer_id": 42, "subject": " \n "}
create_support_ticket {"customer_id": 42, "subject": "LONG"}
create_support_ticket {"customer_id": 42, "subject": "Late", "priority": "urgent"}
create_support_ticket {"customer_id": 42, "subject": ["a very", "long value of the wrong type",
    "that goes on and on"]}
"#;

#[tokio::test]
async fn the_list_of_tools() {
    let client = fresh().await;
    let tools = client.list_all_tools().await.unwrap();
    insta::assert_json_snapshot!(tools);
}

#[tokio::test]
async fn the_server_describes_itself() {
    let client = fresh().await;
    let info = client.peer_info().unwrap();
    let server = info.server_info.as_ref().unwrap();
    assert_eq!(server.version, env!("CARGO_PKG_VERSION"));
    insta::assert_json_snapshot!(json!({
        "name": server.name,
        "title": server.title,
        "description": server.description,
        "instructions": info.instructions,
        "capabilities": info.capabilities,
    }));
}

#[tokio::test]
async fn the_texts_of_results() {
    insta::assert_snapshot!(texts(&fresh().await, calls(GOOD_CALLS), false).await);
}

#[tokio::test]
async fn the_texts_of_errors() {
    let client = fresh().await;
    let bad_calls = calls(&BAD_CALLS.replace("LONG", &"x".repeat(201)));
    let texts = texts(&client, bad_calls, true).await;
    // The failed calls created no ticket.
    let ticket = json!({"customer_id": 1, "subject": "The first one"});
    let ticket = data(call(&client, "create_support_ticket", ticket).await);
    assert_eq!(ticket["ticket_id"], 1);
    insta::assert_snapshot!(texts);
}

#[tokio::test]
async fn structured_content_matches_the_output_schema() {
    let contents = contents(&fresh().await, calls(GOOD_CALLS)).await;
    insta::assert_json_snapshot!(contents);
}

#[tokio::test]
async fn recent_customers_are_sorted_and_filtered_by_date() {
    let client = fresh().await;
    let all = data(call(&client, "get_recent_customers", json!({"limit": 50})).await);
    let all = all["customers"].as_array().unwrap();
    assert_eq!(all.len(), 48);
    let key = |customer: &Value| {
        let joined = customer["joined"].as_str().unwrap().to_owned();
        (joined, customer["customer_id"].as_i64().unwrap())
    };
    let keys: Vec<_> = all.iter().map(key).collect();
    let mut sorted = keys.clone();
    sorted.sort();
    sorted.reverse();
    assert_eq!(keys, sorted);
    // The customers are not sorted by id, so the test detects sorting by the wrong column.
    assert!(!keys.is_sorted_by_key(|(_, id)| std::cmp::Reverse(*id)));

    let ten = data(call(&client, "get_recent_customers", json!({})).await);
    assert_eq!(ten["customers"].as_array().unwrap()[..], all[..10]);
    assert_eq!(ten["matching"], 48);

    // Customers who joined on the day of `since` are included.
    let day = &keys[20].0;
    let since = data(call(&client, "get_recent_customers", json!({"since": day})).await);
    let expected = keys.iter().filter(|(joined, _)| joined >= day).count();
    assert!(expected >= 21);
    assert_eq!(since["matching"], expected);
    assert_eq!(since["customers"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn a_ticket_is_an_activity_of_its_customer() {
    let client = fresh().await;
    let inactive = || {
        call(
            &client,
            "get_recent_customers",
            json!({"status": "inactive"}),
        )
    };
    let last = |result| data(result)["customers"][9]["last_activity"].to_string();
    assert_eq!(last(inactive().await), "\"2024-12-15T00:00:00Z\"");
    let ticket = json!({"customer_id": 3, "subject": "Where is my parcel?"});
    call(&client, "create_support_ticket", ticket).await;
    assert!(last(inactive().await).as_str() > "\"2024-12-15T00:00:00Z\"");
}

#[tokio::test]
async fn null_and_whole_floats_are_accepted() {
    let client = fresh().await;
    // Some strict modes send null for missing arguments, and Python programs send 42.0 for 42.
    let recent = json!({"limit": 2.0, "since": null});
    let recent = data(call(&client, "get_recent_customers", recent).await);
    assert_eq!(recent["customers"].as_array().unwrap().len(), 2);
    let value = json!({"customer_id": 42.0});
    let value = data(call(&client, "calculate_account_value", value).await);
    assert_eq!(value["customer_id"], 42);
    let ticket = json!({"customer_id": 42, "subject": "A", "description": null, "priority": null});
    let ticket = data(call(&client, "create_support_ticket", ticket).await);
    assert_eq!(ticket["priority"], "normal");
    assert_eq!(ticket.get("description"), None);
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let client = fresh().await;
    let request = request("get_recent_customer", json!({}));
    let error = client.call_tool(request).await.unwrap_err();
    let ServiceError::McpError(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    insta::assert_snapshot!(error.message, @"Unknown tool get_recent_customer. Did you mean get_recent_customers? Available tools: get_recent_customers, create_support_ticket, calculate_account_value.");
}
