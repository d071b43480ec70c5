use serde_json::json;

use super::*;

fn sources(primary: &str) -> Value {
    json!([
        {"resource_id": primary, "resource_role": "primary_knowledge_source"},
        {"resource_id": "infores:biothings-explorer", "resource_role": "aggregator_knowledge_source",
         "upstream_resource_ids": [primary]},
    ])
}

fn edge_to(object: &str, predicate: &str, publications: &[&str]) -> Value {
    json!({
        "subject": "NCBIGene:4353", "object": object, "predicate": predicate,
        "sources": sources("infores:biogrid"),
        "attributes": [
            {"attribute_type_id": "biolink:publications", "value": publications},
            {"attribute_type_id": "biolink:knowledge_level", "value": "knowledge_assertion"},
            {"attribute_type_id": "biolink:other", "value": {"deep": [1, 2]}},
        ],
    })
}

fn result(object: &str, edges: &[&str], score: Option<f64>) -> Value {
    let bindings: Vec<Value> = edges
        .iter()
        .map(|id| json!({"id": id, "attributes": []}))
        .collect();
    json!({
        "node_bindings": {
            "n0": [{"id": "NCBIGene:4353", "attributes": []}],
            "n1": [{"id": object, "attributes": []}],
        },
        "analyses": [{
            "resource_id": "infores:biothings-explorer", "score": score,
            "edge_bindings": {"e0": bindings},
        }],
    })
}

fn gene(name: &str) -> Value {
    json!({"name": name, "categories": ["biolink:Gene"], "attributes": []})
}

fn found(responses: Vec<Value>) -> QueryFindings {
    let mut findings = QueryFindings::default();
    for value in responses {
        findings.add_response(serde_json::from_value(value).unwrap(), "n0");
    }
    findings.rank_results();
    findings
}

fn good() -> Value {
    json!({"message": {
        "query_graph": {"nodes": {}, "edges": {}},
        "knowledge_graph": {
            "nodes": {
                "NCBIGene:4353": gene("MPO"), "NCBIGene:847": gene("CAT"),
                "NCBIGene:6648": gene("SOD2"), "NCBIGene:1": gene("A1BG"),
            },
            "edges": {
                "k0": edge_to("NCBIGene:847", "biolink:interacts_with", &["PMID:1"]),
                "k1": edge_to("NCBIGene:847", "biolink:affects", &["PMID:1", "PMID:2"]),
                "k2": edge_to("NCBIGene:6648", "biolink:affects", &[]),
                "k3": edge_to("NCBIGene:1", "biolink:occurs_together_in_literature_with", &[]),
            },
        },
        "results": [
            result("NCBIGene:6648", &["k2"], Some(0.4)),
            result("NCBIGene:1", &["k3"], Some(0.99)),
            result("NCBIGene:847", &["k0", "k1"], Some(0.9)),
        ],
    }})
}

#[test]
fn results_are_ranked_and_co_occurrence_is_left_out() {
    let findings = found(vec![good()]);
    let results: Vec<&QueryResult> = findings.results.values().collect();
    let nodes: Vec<&str> = results.iter().map(|it| it.nodes[1].as_str()).collect();
    assert_eq!(nodes, ["NCBIGene:847", "NCBIGene:6648"]);
    let publications: Vec<&str> = findings
        .result_publications(results[0])
        .into_iter()
        .collect();
    assert_eq!(publications, ["PMID:1", "PMID:2"]);
    assert_eq!((findings.co_occurrence, findings.unreadable), (1, 0));
    let related = findings.related_nodes();
    let related: Vec<&str> = related.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(related, ["NCBIGene:4353", "NCBIGene:847", "NCBIGene:6648"]);
    insta::assert_json_snapshot!(findings.graph.edges[1]);
}

#[test]
fn a_repeated_response_changes_nothing() {
    let (once, twice) = (found(vec![good()]), found(vec![good(), good()]));
    assert_eq!(once.graph.nodes, twice.graph.nodes);
    assert_eq!(once.graph.edges, twice.graph.edges);
    assert_eq!(once.results, twice.results);
}

#[test]
fn statements_that_differ_in_a_qualifier_stay_apart() {
    let qualified = |direction: &str| {
        let mut edge = edge_to("NCBIGene:847", "biolink:affects", &[]);
        edge["qualifiers"] = json!([{
            "qualifier_type_id": "biolink:object_direction_qualifier",
            "qualifier_value": direction,
        }]);
        edge
    };
    let findings = found(vec![json!({"message": {"knowledge_graph": {
        "nodes": {"NCBIGene:4353": gene("MPO"), "NCBIGene:847": gene("CAT")},
        "edges": {"k0": qualified("increased"), "k1": qualified("decreased")},
    }}})]);
    let edges = findings.graph.edges.values();
    let qualifiers: Vec<&str> = edges
        .map(|edge| edge.data.qualifiers["object_direction_qualifier"].as_str())
        .collect();
    assert_eq!(qualifiers, ["increased", "decreased"]);
}

#[test]
fn edges_without_results_are_results() {
    let mut value = good();
    value["message"]["results"] = Value::Null;
    let findings = found(vec![value]);
    assert_eq!(findings.results.len(), 2);
    let (_, best) = findings.results.get_index(0).unwrap();
    assert_eq!(best.nodes, ["NCBIGene:4353", "NCBIGene:847"]);
    assert_eq!(best.edges.len(), 2);
}

#[test]
fn invalid_parts_are_counted_and_skipped() {
    let mut value = good();
    let graph = &mut value["message"]["knowledge_graph"];
    graph["nodes"]["bad"] = json!(7);
    graph["nodes"]["no id"] = gene("blank in its id");
    graph["nodes"]["UMLS:1"] = json!({"name": null, "categories": null});
    graph["edges"]["no-ends"] = edge_to("NCBIGene:404", "biolink:affects", &[]);
    graph["edges"]["no-subject"] =
        json!({"object": "NCBIGene:847", "predicate": "biolink:affects"});
    graph["edges"]["null"] = Value::Null;
    let results = value["message"]["results"].as_array_mut().unwrap();
    results.push(json!("?"));
    results.push(result("NCBIGene:847", &["unknown"], None));
    results.push(result("NCBIGene:404", &["k0"], None));
    value["message"]["results"][0]["analyses"]
        .as_array_mut()
        .unwrap()
        .push(json!({"score": "high"}));
    value["logs"] = json!([
        {"level": "ERROR", "message": "An API\nfailed"}, {"level": "INFO", "message": "fine"},
        {"level": "WARNING", "message": "An API\nfailed"}, 4,
    ]);
    let findings = found(vec![value]);
    assert_eq!(findings.results, found(vec![good()]).results);
    assert_eq!(findings.unreadable, 8);
    assert_eq!(findings.warnings, ["An API failed"]);
    assert_eq!(findings.graph.nodes["UMLS:1"].label, None);
}

#[test]
fn a_selection_has_the_best_edges_with_both_ends() {
    let findings = found(vec![good()]);
    let (nodes, edges) = findings.best_nodes_and_edges(2, 10);
    assert_eq!(nodes.len(), 2);
    assert_eq!(edges.len(), 2);
    assert!(edges.iter().all(|edge| edge.target == "NCBIGene:847"));
    let (nodes, edges) = findings.best_nodes_and_edges(10, 1);
    assert_eq!((nodes.len(), edges.len()), (2, 1));
    let (nodes, edges) = findings.best_nodes_and_edges(10, 10);
    assert_eq!((nodes.len(), edges.len()), (3, 3));
    let expected = (Vec::new(), Vec::new());
    assert_eq!(findings.best_nodes_and_edges(1, 10), expected);
}
