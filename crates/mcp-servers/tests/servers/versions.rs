//! Checks that all protocol versions and transports give the same results.

use std::fmt::Write as _;

use rmcp::model::ProtocolVersion;
use serde_json::json;
use switchboard_mcp_servers::ServerOptions;

use crate::client::{Client, call, data, over_http, over_pipe, text};

/// Returns the texts that a client gets: instructions, tools, a result, an error and a ticket.
async fn conversation(client: &Client, version: &ProtocolVersion) -> String {
    let info = client.peer_info().unwrap();
    assert_eq!(&info.protocol_version, version);
    let mut seen = info.instructions.clone().unwrap();
    for tool in client.list_all_tools().await.unwrap() {
        write!(seen, "\n{}", serde_json::to_string(&tool).unwrap()).unwrap();
    }
    let value = json!({"customer_id": 42});
    let value = data(call(client, "calculate_account_value", value).await);
    write!(seen, "\n{value}").unwrap();
    let unknown = json!({"customer_id": 999});
    let unknown = call(client, "calculate_account_value", unknown).await;
    assert_eq!(unknown.is_error, Some(true));
    write!(seen, "\n{}", text(&unknown)).unwrap();
    let ticket = json!({"customer_id": 42, "subject": "Broken"});
    let ticket = data(call(client, "create_support_ticket", ticket).await);
    write!(seen, "\n{ticket}").unwrap();
    seen
}

#[tokio::test]
async fn all_versions_and_transports_give_equal_results() {
    assert_eq!(ProtocolVersion::KNOWN_VERSIONS.len(), 5);
    let mut seen = Vec::new();
    for version in ProtocolVersion::KNOWN_VERSIONS {
        let piped = over_pipe(ServerOptions::new(), version.clone()).await;
        seen.push(conversation(&piped.client, version).await);
        piped.end().await;

        let listening = over_http(ServerOptions::new()).await;
        let client = listening.client(version.clone()).await;
        seen.push(conversation(&client, version).await);
        client.cancel().await.unwrap();
        listening.end().await;
    }
    assert!(seen[0].contains("530.19"), "{}", seen[0]);
    for other in &seen[1..] {
        assert_eq!(other, &seen[0]);
    }
}

#[tokio::test]
async fn a_client_of_an_earlier_version_survives_a_restart() {
    let listening = over_http(ServerOptions::new()).await;
    let client = listening.client(ProtocolVersion::V_2025_06_18).await;
    let address = listening.url.clone();
    listening.end().await;

    let address = address
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let again = switchboard_mcp_servers::bind_http(
        crate::client::NAME,
        address.parse().unwrap(),
        ServerOptions::new(),
    )
    .await
    .unwrap();
    let again = tokio::spawn(again.serve(std::future::pending()));
    let value = json!({"customer_id": 42});
    let value = data(call(&client, "calculate_account_value", value).await);
    assert_eq!(value["account_value"], "530.19");
    again.abort();
}
