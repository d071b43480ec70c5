//! The server `graph`, as a client sees it.

use rmcp::model::{ProtocolVersion, ReadResourceRequestParams};
use serde_json::{Value, json};
use switchboard_mcp_servers::{ServerOptions, serve_stream};

use crate::client::{Client, call, calls, connect, contents, data, texts};

/// Connects a client to a server in this process.
pub(crate) async fn client_of(name: &'static str, options: ServerOptions) -> Client {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(async move {
        serve_stream(name, options, reader, writer, std::future::pending()).await
    });
    connect(tokio::io::split(near), ProtocolVersion::LATEST).await
}

async fn fresh() -> Client {
    client_of("graph", ServerOptions::new()).await
}

fn nodes() -> Value {
    json!([
        {"id": "NCBIGene:4353", "label": "MPO", "type": "biolink:Gene",
         "data": {"synonyms": ["myeloperoxidase"], "source": "bte"}},
        {"id": "NCBIGene:847", "label": "CAT", "type": "Gene"},
        {"id": "NCBIGene:6648", "label": "SOD2", "type": "Gene"},
        {"id": "MONDO:0009640", "label": "myeloperoxidase deficiency", "type": "Disease"},
        {"id": "CHEBI:16240", "label": "hydrogen peroxide"},
        {"id": "alone"},
    ])
}

fn edges() -> Value {
    let stated = |source: &str, publications: Value| {
        json!({
            "primary_source": source, "publications": publications,
            "provenance": [{"resource_id": source, "resource_role": "primary_knowledge_source"}],
        })
    };
    json!([
        {"source": "NCBIGene:4353", "target": "NCBIGene:847", "label": "biolink:interacts_with",
         "data": stated("infores:biogrid", json!(["PMID:1", "PMID:2"]))},
        {"source": "NCBIGene:847", "target": "NCBIGene:4353", "label": "affects",
         "data": stated("infores:ctd", json!(["PMID:2", "PMID:3"]))},
        {"source": "CHEBI:16240", "target": "NCBIGene:847", "label": "affects"},
        {"source": "CHEBI:16240", "target": "NCBIGene:6648", "label": "affected_by"},
        {"source": "NCBIGene:4353", "target": "MONDO:0009640", "label": "causes"},
    ])
}

/// Calls that are executed in this order on one server.
const SESSION: &str = r#"
get_graph_state {}
add_nodes {"nodes": NODES}
add_nodes {"nodes": NODES}
add_edges {"edges": EDGES}
add_edges {"edges": [{"source": "NCBIGene:4353", "target": "NCBIGene:847",
    "label": "interacts_with", "data": {"primary_source": "infores:biogrid",
    "publications": ["PMID:4"]}}, {"id": "mine", "source": "alone", "target": "alone",
    "label": "is"}]}
get_graph_state {}
get_graph_state {"limit": 2, "offset": 2, "details": true}
get_graph_state {"filter": {"nodeType": "gene", "edgeType": "biolink:affects"}}
get_graph_state {"filter": {"nodeIds": ["NCBIGene:4353", "NCBIGene:847", "unknown"]}}
get_graph_state {"offset": 1000}
find_connections {"from": "MPO", "to": "NCBIGene:6648"}
find_connections {"from": "NCBIGene:4353", "to": "SOD2", "directed": true}
find_connections {"from": "NCBIGene:4353", "to": "SOD2", "maxLength": 2}
find_connections {"from": "alone", "to": "SOD2", "maxLength": 6}
find_connections {"from": "NCBIGene:4353"}
find_connections {"from": "NCBIGene:4353", "maxLength": 3, "limit": 3}
find_connections {"from": "NCBIGene:4353", "labels": ["biolink:causes"]}
find_connections {"from": "alone"}
analyze_node_relationships {"nodeId": "NCBIGene:4353"}
analyze_node_relationships {"nodeId": "CAT", "limit": 1}
analyze_node_relationships {"nodeId": "alone"}
remove_from_graph {"edgeIds": ["mine", "gone"]}
remove_from_graph {"nodeIds": ["NCBIGene:847"]}
get_graph_state {}
"#;

/// Calls that fail.
const BAD_CALLS: &str = r#"
add_nodes {}
add_nodes {"nodes": []}
add_nodes {"nodes": [{"label": "MPO"}]}
add_nodes {"nodes": [{"id": "a"}, {"id": "b b"}, {"id": ""}]}
add_nodes {"nodes": [{"id": "fine"}, {"id": "b b"}, {"id": "c\tc"}]}
add_nodes {"nodes": [{"id": "a", "name": "MPO"}]}
add_nodes {"nodes": [{"id": "a", "data": {"synonyms": "one"}}]}
add_nodes {"nodes": [{"id": "a", "data": {"note": "LONG"}}]}
add_nodes {"nodes": MANY}
add_edges {"edges": [{"source": "NCBIGene:4353", "target": "NCBIGene:847", "label": "affects"},
    {"source": "NCBIGene:4353", "target": "NCBIGene:1", "label": "affects"},
    {"source": "NCBIGene:4353", "target": "x", "label": "affects"}]}
add_edges {"edges": [{"source": "alone", "label": "is"}]}
add_edges {"edges": [{"source": "alone", "target": "alone", "label": " "}]}
remove_from_graph {}
remove_from_graph {"nodeIds": ["NCBIGene:848"]}
remove_from_graph {"edgeIds": ["gone"]}
find_connections {"from": "NCBIGene:4354", "to": "alone"}
find_connections {"from": "alone", "to": "alone"}
find_connections {"from": "twin"}
find_connections {"from": "alone", "maxLength": 7}
analyze_node_relationships {"nodeId": "nothing like it"}
analyze_node_relationships {"nodeId": "x", "databaseContext": {"conversationId": "new"}}
get_graph_state {"filter": {"nodetype": "Gene"}}
get_graph_state {"databaseContext": {"accessToken": "hunter2"}}
get_graph_state {"databaseContext": "hunter2"}
get_graph_state {"databaseContext": {"conversationId": "", "accessToken": ["hunter2"]}}
"#;

#[tokio::test]
async fn the_list_of_tools() {
    let tools = fresh().await.list_all_tools().await.unwrap();
    insta::assert_json_snapshot!(tools);
}

#[tokio::test]
async fn the_page_of_get_graph_state_is_a_complete_document() {
    let client = fresh().await;
    let [resource] = client
        .list_all_resources()
        .await
        .unwrap()
        .try_into()
        .unwrap();
    let tools = client.list_all_tools().await.unwrap();
    let pages: Vec<_> = tools.iter().filter_map(|it| it.meta.as_ref()).collect();
    let ui = json!({"ui": {"resourceUri": resource.uri}});
    assert_eq!(json!(pages), json!([ui]));
    let read = |uri: &str| client.read_resource(ReadResourceRequestParams::new(uri));
    let page = json!(read(&resource.uri).await.unwrap().contents[0]);
    let media_type = "text/html;profile=mcp-app";
    assert_eq!(
        (&page["uri"], &page["mimeType"], &resource.mime_type),
        (
            &json!("ui://graph/view"),
            &json!(media_type),
            &Some(media_type.to_owned())
        )
    );
    // The included files do not end the script early, and nothing is loaded.
    let html = page["text"].as_str().unwrap();
    assert_eq!(html.matches("</script").count(), 1);
    assert!(html.contains("default-src 'none'") && !html.contains("import "));
    read("ui://graph/other").await.unwrap_err();
}

#[tokio::test]
async fn the_texts_of_a_session_and_its_structured_content() {
    let session = SESSION.replace("NODES", &nodes().to_string());
    let session = calls(&session.replace("EDGES", &edges().to_string()));
    let texts = texts(&fresh().await, session.clone(), false).await;
    insta::assert_snapshot!(texts);
    let mut contents = contents(&fresh().await, session).await;
    for call in &mut contents {
        call.as_object_mut().unwrap().remove("arguments");
        if let Some(updated) = call.pointer_mut("/content/metadata/lastUpdated") {
            let time = updated.as_str().unwrap();
            assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
            *updated = json!("[a time]");
        }
    }
    insta::assert_json_snapshot!(contents);
}

#[tokio::test]
async fn the_texts_of_errors() {
    let client = fresh().await;
    data(call(&client, "add_nodes", json!({"nodes": nodes()})).await);
    let twins = json!([{"id": "t:1", "label": "Twin"}, {"id": "t:2", "label": "twin"}]);
    let before = data(call(&client, "add_nodes", json!({"nodes": twins})).await);
    let many = json!(vec![json!({"id": "a"}); 1001]).to_string();
    let bad_calls = BAD_CALLS.replace("LONG", &"x".repeat(40_000));
    let texts = texts(&client, calls(&bad_calls.replace("MANY", &many)), true).await;
    // The failed calls changed nothing.
    let after = data(call(&client, "get_graph_state", json!({})).await);
    assert_eq!(after["metadata"], before["metadata"]);
    insta::assert_snapshot!(texts);
}

#[tokio::test]
async fn each_conversation_has_a_separate_graph() {
    let client = fresh().await;
    let context = |id: &str| {
        json!({
            "conversationId": id, "artifactId": null, "apiBaseUrl": "http://127.0.0.1:1",
            "accessToken": "hunter2", "later": true,
        })
    };
    let one = json!({"nodes": [{"id": "a"}], "databaseContext": context("one")});
    let added = call(&client, "add_nodes", one).await;
    let shown = serde_json::to_string(&added).unwrap();
    assert!(
        !shown.contains("hunter2") && !shown.contains("127.0.0.1"),
        "{shown}"
    );
    data(
        call(
            &client,
            "add_nodes",
            json!({"nodes": [{"id": "b"}, {"id": "c"}]}),
        )
        .await,
    );
    for (arguments, expected) in [
        (json!({"databaseContext": context("one")}), json!(["a"])),
        (json!({"databaseContext": context("two")}), json!([])),
        (
            json!({"databaseContext": context("default")}),
            json!(["b", "c"]),
        ),
        (json!({"databaseContext": null}), json!(["b", "c"])),
        (json!({}), json!(["b", "c"])),
    ] {
        let state = data(call(&client, "get_graph_state", arguments.clone()).await);
        let ids: Vec<&Value> = state["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["id"])
            .collect();
        assert_eq!(json!(ids), expected, "{arguments}");
    }
    let remove = json!({"nodeIds": ["b"], "databaseContext": context("one")});
    assert_eq!(
        call(&client, "remove_from_graph", remove).await.is_error,
        Some(true)
    );
}

#[tokio::test]
async fn pages_contain_each_entry_once() {
    let client = fresh().await;
    let nodes: Vec<Value> = (0..25)
        .map(|index| json!({"id": format!("n{index}")}))
        .collect();
    let edges: Vec<Value> = (0..40)
        .map(|index| {
            let (source, target) = (format!("n{}", index % 25), format!("n{}", (index * 7 + 1) % 25));
            json!({"id": format!("e{index}"), "source": source, "target": target, "label": "affects"})
        })
        .collect();
    data(call(&client, "add_nodes", json!({"nodes": nodes})).await);
    data(call(&client, "add_edges", json!({"edges": edges})).await);
    let mut seen = (Vec::new(), Vec::new());
    let mut offset = json!(0);
    let mut pages = 0;
    while !offset.is_null() {
        let page = json!({"limit": 11, "offset": offset, "details": true});
        let page = data(call(&client, "get_graph_state", page).await);
        assert_eq!(
            (&page["matchingNodes"], &page["matchingEdges"]),
            (&json!(25), &json!(40))
        );
        seen.0.extend(page["nodes"].as_array().unwrap().clone());
        seen.1.extend(page["edges"].as_array().unwrap().clone());
        offset = page["nextOffset"].clone();
        pages += 1;
    }
    assert_eq!(pages, 4);
    assert_eq!(seen, (nodes, edges));
}

#[tokio::test]
async fn a_stored_graph_is_kept_and_shared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.db");
    let options = || ServerOptions::new().with_data_file(&file);
    let first = client_of("graph", options()).await;
    data(call(&first, "add_nodes", json!({"nodes": nodes()})).await);
    let second = client_of("graph", options()).await;
    data(call(&second, "add_edges", json!({"edges": edges()})).await);
    first.cancel().await.unwrap();
    second.cancel().await.unwrap();
    let third = client_of("graph", options()).await;
    let state = data(call(&third, "get_graph_state", json!({"details": true})).await);
    assert_eq!(state["metadata"]["nodeCount"], 6);
    assert_eq!(state["metadata"]["edgeCount"], 5);
    assert_eq!(
        state["edges"][0]["data"]["provenance"][0]["resource_id"],
        "infores:biogrid"
    );
}

#[tokio::test]
async fn concurrent_additions_are_all_stored() {
    let client = fresh().await;
    let add = |caller: usize| {
        let client = &client;
        async move {
            for step in 0..10 {
                let node =
                    json!({"id": "shared", "data": {"xrefs": [format!("x:{caller}-{step}")]}});
                data(call(client, "add_nodes", json!({"nodes": [node]})).await);
            }
        }
    };
    tokio::join!(add(0), add(1), add(2), add(3));
    let state = data(call(&client, "get_graph_state", json!({"details": true})).await);
    assert_eq!(
        state["nodes"][0]["data"]["xrefs"].as_array().unwrap().len(),
        40
    );
}
