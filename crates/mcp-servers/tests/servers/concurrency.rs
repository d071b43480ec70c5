//! Many concurrent calls.

use std::{collections::BTreeSet, sync::Arc};

use rmcp::model::ProtocolVersion;
use serde_json::json;
use switchboard_mcp_servers::ServerOptions;
use tokio::task::JoinSet;

use crate::client::{call, data, over_pipe};

const CALLS: i64 = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_of_a_client_are_independent() {
    let piped = over_pipe(ServerOptions::new(), ProtocolVersion::LATEST).await;
    let client = Arc::new(piped.client);
    let mut calls = JoinSet::new();
    for number in 1..=CALLS {
        let client = Arc::clone(&client);
        calls.spawn(async move {
            // Every second call reads. Its result contains the id of its customer.
            let (tool, arguments) = if number % 2 == 0 {
                let subject = format!("Subject {number}");
                (
                    "create_support_ticket",
                    json!({"customer_id": number, "subject": subject}),
                )
            } else {
                ("calculate_account_value", json!({"customer_id": number}))
            };
            (number, data(call(&client, tool, arguments).await))
        });
    }
    let mut tickets = BTreeSet::new();
    while let Some(ended) = calls.join_next().await {
        let (number, content) = ended.unwrap();
        assert_eq!(content["customer_id"], number);
        if let Some(ticket) = content.get("ticket_id") {
            assert_eq!(content["subject"], format!("Subject {number}"));
            tickets.insert(ticket.as_i64().unwrap());
        }
    }
    assert_eq!(tickets, (1..=CALLS / 2).collect());
    Arc::into_inner(client).unwrap().cancel().await.unwrap();
    piped.server.await.unwrap().unwrap();
}
