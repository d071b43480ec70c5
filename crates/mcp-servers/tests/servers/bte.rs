//! The server `bte`, as a client sees it, with a fake service.

use std::{fmt::Write as _, path::Path, sync::Arc, time::Duration};

use axum::body::Body;
use futures_util::stream;
use rmcp::model::{CallToolResult, Tool};
use serde_json::{Value, json};
use switchboard_mcp_servers::{BteOptions, ServerOptions, serve_stream};
use switchboard_testkit::trapi::{Reply, Seen, Service};
use tokio::time::timeout;

use crate::{
    client::{Client, call, calls, contents, data, text, texts},
    graph::client_of,
};

const MPO: &str = "NCBIGene:4353";

fn options(service: &Service) -> ServerOptions {
    ServerOptions::new().with_bte(BteOptions::new(&service.url))
}

async fn client(service: &Service) -> Client {
    client_of("bte", options(service)).await
}

async fn client_with_graph(service: &Service, file: &Path) -> Client {
    client_of("bte", options(service).with_data_file(file)).await
}

async fn getall(client: &Client) -> CallToolResult {
    call(client, "query_bte_getall", json!({"entityId": MPO})).await
}

fn refusal(result: &CallToolResult) -> &str {
    assert_eq!(result.is_error, Some(true), "{}", text(result));
    assert_eq!(result.structured_content, None);
    text(result)
}

const GOOD_CALLS: &str = r#"
query_bte_getall {"entityId": "NCBIGene:4353"}
query_bte_getall {"entityId": "NCBIGene:4353", "limit": 1}
query_bte_getall {"entityId": "NCBIGene:404"}
query_bte_by_categories {"entityId": "NCBIGene:4353", "categories": ["biolink:Gene",
    "biolink:Gene"]}
query_bte {"query_graph": {"nodes": {"n0": {"ids": ["NCBIGene:4353"]},
    "n1": {"categories": ["Gene"]}}, "edges": {"e0": {"subject": "n0", "object": "n1"}}}}
query_bte {"query_graph": {"nodes": {"gene": {"ids": ["NCBIGene:4353"]},
    "between": {"categories": ["biolink:Gene"]},
    "drug": {"categories": ["biolink:SmallMolecule"]}}, "edges": {"first": {"subject": "gene",
    "object": "between", "predicates": ["interacts_with", "affects"]},
    "second": {"subject": "between", "object": "drug"}}}}
get_meta_knowledge_graph {}
get_meta_knowledge_graph {"objectCategory": "gene", "limit": 1}
get_meta_knowledge_graph {"predicate": "biolink:cures"}
"#;

#[tokio::test]
async fn the_lists_of_tools() {
    let service = Service::good().await;
    let folder = tempfile::tempdir().unwrap();
    let reading = client(&service).await.list_all_tools().await.unwrap();
    insta::assert_json_snapshot!(reading);
    let adding = client_with_graph(&service, &folder.path().join("graph.db")).await;
    let adding = adding.list_all_tools().await.unwrap();
    // With a graph, the tools differ only in the argument `addToGraph` and in their annotations.
    for (reads, adds) in reading.iter().zip(&adding) {
        assert_eq!(
            (&reads.name, &reads.description),
            (&adds.name, &adds.description)
        );
        let arguments = |tool: &Tool| -> Vec<String> {
            let properties = tool.input_schema["properties"].as_object().unwrap();
            properties.keys().cloned().collect()
        };
        let read_only = |tool: &Tool| tool.annotations.as_ref().unwrap().read_only_hint;
        let mut expected = arguments(reads);
        assert_eq!(read_only(reads), Some(true));
        if reads.name == "get_meta_knowledge_graph" {
            assert_eq!(read_only(adds), Some(true));
        } else {
            assert_eq!(read_only(adds), Some(false));
            let place = expected.iter().position(|it| it == "limit").unwrap();
            expected.insert(place + 1, "addToGraph".to_owned());
        }
        assert_eq!(arguments(adds), expected);
    }
}

#[tokio::test]
async fn the_texts_of_results_and_their_structured_content() {
    let service = Service::good().await;
    let client = client(&service).await;
    insta::assert_snapshot!(texts(&client, calls(GOOD_CALLS), false).await);
    let contents = contents(&client, calls(GOOD_CALLS)).await;
    insta::assert_json_snapshot!(contents[0]["content"]);
    assert_eq!(service.metas(), 1, "the meta knowledge graph is cached");
}

#[tokio::test]
async fn a_query_for_everything_is_sent_in_parts() {
    let service = Service::good().await;
    data(getall(&client(&service).await).await);
    let queries = service.queries();
    assert_eq!(queries.len(), 3);
    let mut categories = Vec::new();
    for query in &queries {
        assert_eq!(query["nodes"]["n0"], json!({"ids": [MPO]}));
        let edge = &query["edges"]["e0"];
        assert_eq!(
            (&edge["subject"], &edge["object"]),
            (&json!("n0"), &json!("n1"))
        );
        assert_eq!(edge["predicates"].as_array().unwrap().len(), 6);
        let of_query = query["nodes"]["n1"]["categories"].as_array().unwrap();
        assert!(of_query.len() <= 4);
        categories.extend(of_query.iter().map(|it| it.as_str().unwrap().to_owned()));
    }
    categories.sort();
    categories.dedup();
    assert_eq!(categories.len(), 11);
}

#[tokio::test]
async fn a_failed_part_is_a_warning_with_the_results_of_the_others() {
    let service = Service::scripted(|_, query| {
        let categories = query["nodes"]["n1"]["categories"].to_string();
        if categories.contains("biolink:Gene\"") {
            Reply::json(400, &json!("this part is not known"))
        } else {
            Reply::Knowledge
        }
    })
    .await;
    let result = getall(&client(&service).await).await;
    let shown = text(&result).to_owned();
    assert!(
        shown.contains("Note: 1 of 3 parts of the query failed. The service refused the query (400): this part is not known"),
        "{shown}"
    );
    let content = data(result);
    assert_eq!(content["resultCount"], 2);
    assert_eq!(content["warnings"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn results_can_be_added_to_the_graph_unchanged() {
    let service = Service::good().await;
    let bte = client(&service).await;
    let graph = client_of("graph", ServerOptions::new()).await;
    let found = data(getall(&bte).await);
    assert_eq!(found["complete"], true);
    for (expected, rest) in [
        ("added", ["updated", "unchanged"]),
        ("unchanged", ["added", "updated"]),
    ] {
        for (tool, list) in [("add_nodes", "nodes"), ("add_edges", "edges")] {
            let done = data(call(&graph, tool, json!({list: found[list]})).await);
            assert_eq!(done[expected], found[list].as_array().unwrap().len());
            assert!(rest.iter().all(|it| done[*it] == 0), "{done}");
        }
    }
    let state = data(call(&graph, "get_graph_state", json!({"details": true})).await);
    assert_eq!(state["nodes"], found["nodes"]);
    assert_eq!(state["edges"], found["edges"]);
    let analysis = json!({"nodeId": "MPO"});
    let analysis = data(call(&graph, "analyze_node_relationships", analysis).await);
    assert_eq!(analysis["strongest"][0]["id"], "NCBIGene:847");
    assert_eq!(analysis["strongest"][0]["publications"], 4);
}

#[tokio::test]
async fn results_are_added_to_the_graph_of_the_conversation() {
    let service = Service::good().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.db");
    let bte = client_with_graph(&service, &file).await;
    let graph = client_of("graph", ServerOptions::new().with_data_file(&file)).await;
    let context =
        json!({"conversationId": "c1", "apiBaseUrl": "http://x", "accessToken": "hunter2"});
    let ask = json!({"entityId": MPO, "addToGraph": true, "databaseContext": context});
    let first = call(&bte, "query_bte_getall", ask.clone()).await;
    let last = text(&first).lines().last().unwrap();
    assert_eq!(
        last,
        "Added to the graph of this conversation: 6 nodes and 6 edges. Existing: 0 nodes and 0 edges."
    );
    let first = data(first);
    let again = data(call(&bte, "query_bte_getall", ask).await);
    let expected = json!({"added": 0, "updated": 0, "unchanged": 6});
    assert_eq!(again["added"]["edges"], expected);
    let state = json!({"details": true, "databaseContext": context});
    let state = data(call(&graph, "get_graph_state", state).await);
    assert_eq!(state["edges"], first["edges"]);
    let other = data(call(&graph, "get_graph_state", json!({})).await);
    assert_eq!(other["metadata"]["nodeCount"], 0);
    // Without `addToGraph`, nothing is added.
    let without = data(call(&bte, "query_bte_getall", json!({"entityId": MPO})).await);
    assert_eq!(without.get("added"), None);
    let other = data(call(&graph, "get_graph_state", json!({})).await);
    assert_eq!(other["metadata"]["nodeCount"], 0);
}

const WRONG_ARGUMENTS: &str = r#"
query_bte_getall {}
query_bte_getall {"entityId": "MPO"}
query_bte_getall {"entityId": "NCBIGene:4353", "addToGraph": true}
query_bte_by_categories {"entityId": "NCBIGene:4353", "categories": []}
query_bte_by_categories {"entityId": "NCBIGene:4353", "categories": ["Genes"]}
query_bte {"query_graph": {"nodes": {}, "edges": {}}}
query_bte {"query_graph": {"nodes": {"n0": {"id": "NCBIGene:4353"}}, "edges": {}}}
query_bte {"query_graph": {"nodes": {"n0": {"ids": ["NCBIGene:4353"]},
    "n1": {"categories": ["biolink:Gene"]}}, "edges": {"e0": {"subject": "n0", "object": "n2",
    "predicates": ["Interacts"]}}}}
get_meta_knowledge_graph {"category": "biolink:Gene"}
"#;

#[tokio::test]
async fn the_texts_of_wrong_arguments() {
    let service = Service::good().await;
    let texts = texts(&client(&service).await, calls(WRONG_ARGUMENTS), true).await;
    assert_eq!(service.queries(), Vec::<Value>::new());
    insta::assert_snapshot!(texts);
}

const FOUND_NAMES: &str = r#"
lookup_name {"name": "mpo", "category": "biolink:Gene", "taxon": "NCBITaxon:9606"}
lookup_name {"name": "M"}
lookup_name {"name": "M", "limit": 1}
"#;

const WRONG_NAMES: &str = r#"
lookup_name {"name": ""}
lookup_name {"name": "a & b = c / ß # ?"}
lookup_name {"name": "MPO", "category": "genes"}
lookup_name {"name": "MPO", "taxon": "human"}
"#;

#[tokio::test]
async fn names_are_looked_up_with_a_resolver() {
    let service = Service::good().await;
    let without = client(&service).await.list_all_tools().await.unwrap();
    assert!(without.iter().all(|tool| tool.name != "lookup_name"));
    let bte = BteOptions {
        name_resolver: Some(service.names.clone()),
        ..BteOptions::new(&service.url)
    };
    let client = client_of("bte", ServerOptions::new().with_bte(bte)).await;
    let tools = client.list_all_tools().await.unwrap();
    let tool = tools
        .iter()
        .find(|tool| tool.name == "lookup_name")
        .unwrap();
    insta::assert_json_snapshot!(tool);
    let found = calls(FOUND_NAMES);
    let mut seen = texts(&client, found.clone(), false).await;
    seen += &texts(&client, calls(WRONG_NAMES), true).await;
    contents(&client, found).await;
    insta::assert_snapshot!(seen);
}

/// Returns the text that the model gets if the service returns this reply, and the number of
/// requests.
async fn failing(reply: impl Fn() -> Reply + Send + Sync + 'static) -> String {
    let service = Service::scripted(move |_, _| reply()).await;
    let client = client(&service).await;
    let ask = json!({"entityId": MPO, "categories": ["biolink:Gene"]});
    let result = call(&client, "query_bte_by_categories", ask).await;
    let text = refusal(&result).to_owned();
    format!("{text} [asked {} times]", service.queries().len())
}

#[tokio::test]
async fn the_texts_of_failures() {
    let mut seen = String::new();
    let mut show = |what: &str, text: String| {
        assert!(!text.contains("127.0.0.1"), "{text}");
        write!(seen, "{what}\n{text}\n\n").unwrap();
    };
    let now = |status| move || Reply::text(status, "").with("retry-after", "0");
    show(
        "400 with a string",
        failing(|| Reply::json(400, &json!("an id is invalid"))).await,
    );
    let detail =
        json!({"status": "QueryNotTraversable", "description": "too\nmany \u{1b}[31mhops"});
    show(
        "422 with a description",
        failing(move || Reply::json(422, &detail)).await,
    );
    show("413", failing(|| Reply::text(413, "")).await);
    show(
        "500 with a page",
        failing(|| Reply::text(500, "<html>Oops</html>")).await,
    );
    show("429 and come back now", failing(now(429)).await);
    show("503 and come back now", failing(now(503)).await);
    show("502 and come back now", failing(now(502)).await);
    show(
        "429 and come back in an hour",
        failing(|| Reply::text(429, "").with("retry-after", "3600")).await,
    );
    show(
        "503 and come back at the end of time",
        failing(|| Reply::text(503, "").with("retry-after", "18446744073709551615")).await,
    );
    show(
        "302",
        failing(|| Reply::text(302, "").with("location", "http://example.com/query")).await,
    );
    show(
        "200 with a page",
        failing(|| Reply::text(200, "<html></html>")).await,
    );
    show("200 with nothing", failing(|| Reply::text(200, "")).await);
    show(
        "200 without a message",
        failing(|| Reply::json(200, &json!({"results": []}))).await,
    );
    show(
        "200 with another message",
        failing(|| Reply::json(200, &json!({"message": "hello"}))).await,
    );
    show(
        "200 with a list",
        failing(|| Reply::json(200, &json!([1, 2]))).await,
    );
    show(
        "200 with nodes that are a list",
        failing(|| {
            Reply::json(
                200,
                &json!({"message": {"knowledge_graph": {"nodes": [], "edges": {}}}}),
            )
        })
        .await,
    );
    insta::assert_snapshot!(seen);
}

#[tokio::test]
async fn an_empty_response_is_not_an_error() {
    for message in [
        json!({}),
        json!({"knowledge_graph": null, "results": null}),
        json!({"knowledge_graph": {"nodes": {}, "edges": {}}, "results": []}),
    ] {
        let answer = json!({"message": message, "status": "NoResults", "description": "None of 30 APIs knew it."});
        let service = Service::scripted(move |_, _| Reply::json(200, &answer)).await;
        let result = getall(&client(&service).await).await;
        let shown = text(&result).to_owned();
        assert!(
            shown.starts_with("No results: things of all kinds related to NCBIGene:4353."),
            "{shown}"
        );
        assert!(
            shown.contains("Note: NoResults: None of 30 APIs knew it."),
            "{shown}"
        );
        let content = data(result);
        assert_eq!(
            (&content["resultCount"], &content["nodes"]),
            (&json!(0), &json!([]))
        );
    }
}

#[tokio::test]
async fn requests_to_a_busy_service_are_repeated() {
    let service = Service::scripted(|number, _| match number {
        0 => Reply::text(503, "").with("retry-after", "0"),
        1 => Reply::text(429, "").with("retry-after", "Sat, 21 Nov 2020 12:00:00 GMT"),
        _ => Reply::Knowledge,
    })
    .await;
    let client = client(&service).await;
    let ask = json!({"entityId": MPO, "categories": ["biolink:Gene"]});
    let found = data(call(&client, "query_bte_by_categories", ask).await);
    assert_eq!(found["resultCount"], 2);
    let queries = service.queries();
    assert_eq!(queries.len(), 3);
    assert!(queries.iter().all(|query| *query == queries[0]));
}

#[tokio::test]
async fn requests_to_a_silent_service_time_out() {
    let mut service = Service::scripted(|_, _| Reply::Silence).await;
    let bte = BteOptions {
        timeout: Duration::from_millis(250),
        ..BteOptions::new(&service.url)
    };
    let client = client_of("bte", ServerOptions::new().with_bte(bte)).await;
    let result = getall(&client).await;
    let shown = refusal(&result);
    assert!(
        shown.starts_with("The service did not send a complete response within 0.25 seconds."),
        "{shown}"
    );
    // Each request is cancelled when the tool call times out.
    let mut seen = Vec::new();
    for _ in 0..6 {
        let next = timeout(Duration::from_secs(30), service.seen.recv());
        seen.push(next.await.unwrap().unwrap());
    }
    assert_eq!(seen.iter().filter(|it| **it == Seen::GivenUp).count(), 3);
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_requests() {
    let mut service = Service::scripted(|_, _| Reply::Silence).await;
    let client = Arc::new(client(&service).await);
    let ask = json!({"entityId": MPO, "categories": ["biolink:Gene"]});
    let asking = tokio::spawn({
        let client = Arc::clone(&client);
        async move { call(&client, "query_bte_by_categories", ask).await }
    });
    let patience = Duration::from_secs(30);
    let seen = timeout(patience, service.seen.recv()).await.unwrap();
    assert_eq!(seen, Some(Seen::Query));
    // The call is cancelled, but the client stays connected, so the server gets a cancellation.
    asking.abort();
    let seen = timeout(patience, service.seen.recv()).await.unwrap();
    assert_eq!(seen, Some(Seen::GivenUp));
    data(call(&client, "get_meta_knowledge_graph", json!({})).await);
}

#[tokio::test]
async fn a_too_large_response_is_an_error() {
    let announced = Service::scripted(|_, _| Reply::text(200, LARGE)).await;
    let unannounced = Service::scripted(|_, _| {
        let chunks = (0..64).map(|_| Ok::<_, std::io::Error>(LARGE));
        Reply::Body(200, Vec::new(), Body::from_stream(stream::iter(chunks)))
    })
    .await;
    for service in [announced, unannounced] {
        let bte = BteOptions {
            max_answer_bytes: 1000,
            ..BteOptions::new(&service.url)
        };
        let client = client_of("bte", ServerOptions::new().with_bte(bte)).await;
        let ask = json!({"entityId": MPO, "categories": ["biolink:Gene"]});
        let result = call(&client, "query_bte_by_categories", ask).await;
        let shown = refusal(&result);
        assert!(
            shown.starts_with("The response of the service is larger than 1000 bytes"),
            "{shown}"
        );
        assert_eq!(service.queries().len(), 1, "it would be as large again");
    }
}

/// A valid JSON text with more than a thousand spaces.
const LARGE: &str = {
    const BLANKS: [u8; 1024] = [b' '; 1024];
    match std::str::from_utf8(&BLANKS) {
        Ok(text) => text,
        Err(_) => panic!("blanks are text"),
    }
};

#[tokio::test]
async fn an_incomplete_response_is_an_error() {
    let service = Service::scripted(|_, _| {
        let chunks = [Ok("{\"message\": {"), Err(std::io::Error::other("gone"))];
        Reply::Body(200, Vec::new(), Body::from_stream(stream::iter(chunks)))
    })
    .await;
    // The time-out is shorter than the delays between the attempts.
    let bte = BteOptions {
        timeout: Duration::from_millis(900),
        ..BteOptions::new(&service.url)
    };
    let client = client_of("bte", ServerOptions::new().with_bte(bte)).await;
    let result = getall(&client).await;
    let shown = refusal(&result).to_owned();
    let start = format!("The service at {} cannot be reached: ", service.url);
    assert!(shown.starts_with(&start), "{shown}");
}

#[tokio::test]
async fn long_results_are_shortened_but_added_completely() {
    let node = |index: usize| {
        let node = json!({"name": format!("gene {index}"), "categories": ["biolink:Gene"], "attributes": []});
        (format!("NCBIGene:{index}"), node)
    };
    let edge = |index: usize| {
        let source =
            json!({"resource_id": "infores:x", "resource_role": "primary_knowledge_source"});
        let edge = json!({
            "subject": "NCBIGene:0", "predicate": "biolink:affects",
            "object": format!("NCBIGene:{index}"), "sources": [source],
        });
        (format!("k{index}"), edge)
    };
    let nodes: serde_json::Map<String, Value> = (0..1200).map(node).collect();
    let edges: serde_json::Map<String, Value> = (1..1200).map(edge).collect();
    let result = |index: usize| {
        json!({
            "node_bindings": {
                "n0": [{"id": "NCBIGene:0", "attributes": []}],
                "n1": [{"id": format!("NCBIGene:{index}"), "attributes": []}],
            },
            "analyses": [{
                "resource_id": "infores:x", "score": index,
                "edge_bindings": {"e0": [{"id": format!("k{index}"), "attributes": []}]},
            }],
        })
    };
    let results: Vec<Value> = (1..1200).map(result).collect();
    let answer = json!({"message": {
        "knowledge_graph": {"nodes": nodes, "edges": edges}, "results": results,
    }});
    let service = Service::scripted(move |_, _| Reply::json(200, &answer)).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.db");
    let client = client_with_graph(&service, &file).await;
    let ask = json!({"entityId": "NCBIGene:0", "categories": ["biolink:Gene"], "addToGraph": true});
    let result = call(&client, "query_bte_by_categories", ask).await;
    assert!(text(&result).len() < 4000, "{}", text(&result).len());
    let content = data(result);
    assert_eq!(content["resultCount"], 1199);
    assert_eq!(content["results"].as_array().unwrap().len(), 25);
    assert_eq!(content["results"][0]["nodes"][1]["id"], "NCBIGene:1199");
    assert_eq!(content["nodes"].as_array().unwrap().len(), 1000);
    assert_eq!(content["edges"].as_array().unwrap().len(), 999);
    assert_eq!(content["complete"], false);
    // The graph gets all nodes and edges, although the result contains only some of them.
    assert_eq!(content["added"]["nodes"]["added"], 1200);
    assert_eq!(content["added"]["edges"]["added"], 1199);
}

/// A loopback address on which nothing listens.
const UNREACHABLE: &str = "http://127.0.0.1:1";

fn offline_options() -> BteOptions {
    BteOptions {
        name_resolver: Some(UNREACHABLE.to_owned()),
        sample_if_offline: true,
        ..BteOptions::new(UNREACHABLE)
    }
}

const SAMPLE_CALLS: &str = r#"
lookup_name {"name": "MPO"}
query_bte_getall {"entityId": "NCBIGene:4353", "limit": 2}
query_bte_by_categories {"entityId": "NCBIGene:4353", "categories": ["biolink:Gene"]}
query_bte {"query_graph": {"nodes": {"n0": {"ids": ["MONDO:0012105"]},
    "n1": {"categories": ["Gene"]}}, "edges": {"e0": {"subject": "n1", "object": "n0"}}}}
get_meta_knowledge_graph {"predicate": "affects"}
"#;

const WRONG_SAMPLE_CALLS: &str = r#"
lookup_name {"name": "Qwertz"}
lookup_name {"name": "MPO", "category": "Toy"}
query_bte_getall {"entityId": "NCBIGene:1"}
query_bte {"query_graph": {"nodes": {"n0": {"ids": ["NCBIGene:4353"]},
    "n1": {"categories": ["Gene"]}}, "edges": {"e0": {"subject": "n0", "object": "n1",
    "predicates": ["likes"]}}}}
"#;

#[tokio::test]
async fn the_texts_of_the_sample() {
    let client = client_of("bte", ServerOptions::new().with_bte(offline_options())).await;
    let mut seen = texts(&client, calls(SAMPLE_CALLS), false).await;
    seen += &texts(&client, calls(WRONG_SAMPLE_CALLS), true).await;
    // The notice ends with an error of the operating system, which differs between systems.
    let notice = format!(
        "These are bundled sample data, not results of the service. The service at {UNREACHABLE} \
         cannot be reached: "
    );
    let lines = seen.lines().map(|line| match line.strip_prefix(&notice) {
        Some(_) => "NOTICE",
        None => line,
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    for (tool, arguments) in calls(SAMPLE_CALLS) {
        let result = call(&client, &tool, arguments).await;
        let first = text(&result).lines().next().unwrap().to_owned();
        assert!(
            first.starts_with("These are bundled sample data"),
            "{first}"
        );
        assert!(first.contains("cannot be reached"), "{first}");
        assert_eq!(data(result)["notice"], first);
    }
}

#[tokio::test]
async fn the_sample_does_not_hide_errors() {
    // Without the option, the sample is not used.
    let bte = BteOptions {
        sample_if_offline: false,
        ..offline_options()
    };
    let bte = ServerOptions::new().with_bte(bte);
    let result = getall(&client_of("bte", bte).await).await;
    assert!(refusal(&result).contains("cannot be reached"));
    // A service that can be reached but fails is not replaced by the sample, not even in part.
    let service = Service::scripted(|_, _| Reply::text(500, "")).await;
    let bte = BteOptions {
        sample_if_offline: true,
        ..BteOptions::new(&service.url)
    };
    let result = getall(&client_of("bte", ServerOptions::new().with_bte(bte)).await).await;
    assert!(refusal(&result).contains("failed (500)"));
}

#[tokio::test]
async fn results_are_added_by_default_if_configured() {
    let folder = tempfile::tempdir().unwrap();
    let bte = BteOptions {
        add_to_graph: true,
        ..offline_options()
    };
    let options = ServerOptions::new().with_data_file(folder.path().join("graph.db"));
    let client = client_of("bte", options.with_bte(bte)).await;
    let tools = client.list_all_tools().await.unwrap();
    let tool = tools.iter().find(|it| it.name == "query_bte").unwrap();
    let argument = &tool.input_schema["properties"]["addToGraph"];
    assert_eq!(
        (&argument["type"], &argument["default"]),
        (&json!("boolean"), &json!(true))
    );
    let ask = json!({"entityId": MPO, "addToGraph": false});
    let without = data(call(&client, "query_bte_getall", ask).await);
    assert_eq!(without.get("added"), None);
    let with = data(getall(&client).await);
    assert_eq!(with["added"]["nodes"]["added"], with["nodeCount"]);
}

#[tokio::test]
async fn the_server_does_not_start_without_a_valid_service() {
    for (options, expected) in [
        (
            ServerOptions::new(),
            "the address of a TRAPI service is required",
        ),
        (
            ServerOptions::new().with_bte(BteOptions {
                add_to_graph: true,
                ..BteOptions::new(BteOptions::PUBLIC_SERVICE)
            }),
            "`--add-to-graph` requires the file of the graph",
        ),
        (
            ServerOptions::new().with_bte(BteOptions::new("bte.transltr.io")),
            "the address of the service is invalid",
        ),
        (
            ServerOptions::new().with_bte(BteOptions::new("https://me:hunter2@bte.transltr.io/v1")),
            "it must not contain a user name or a password",
        ),
        (
            ServerOptions::new().with_bte(BteOptions {
                name_resolver: Some("names".to_owned()),
                ..BteOptions::new("https://bte.transltr.io/v1")
            }),
            "the address of the name resolver is invalid",
        ),
    ] {
        let (_near, far) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(far);
        let error = serve_stream("bte", options, reader, writer, std::future::pending())
            .await
            .unwrap_err();
        assert!(error.is_usage_error());
        let error = error.to_string();
        assert!(
            error.contains(expected) && !error.contains("hunter2"),
            "{error}"
        );
    }
}
