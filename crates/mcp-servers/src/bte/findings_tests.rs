use proptest::prelude::*;
use serde_json::json;

use super::*;

fn response(value: Value) -> Response {
    serde_json::from_value(value).unwrap()
}

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

fn found(responses: Vec<Value>) -> Findings {
    let mut findings = Findings::default();
    for value in responses {
        findings.add(response(value), &["n0", "n1"]);
    }
    findings.rank();
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
    let nodes: Vec<&str> = findings
        .results
        .iter()
        .map(|it| it.nodes[1].as_str())
        .collect();
    assert_eq!(nodes, ["NCBIGene:847", "NCBIGene:6648"]);
    assert_eq!(
        findings.publications(&findings.results[0]),
        ["PMID:1", "PMID:2"]
    );
    assert_eq!((findings.co_occurrence, findings.unreadable), (1, 0));
    let related: Vec<&str> = findings
        .related_nodes()
        .iter()
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(related, ["NCBIGene:4353", "NCBIGene:847", "NCBIGene:6648"]);
    insta::assert_json_snapshot!(findings.edges[1]);
}

#[test]
fn the_same_twice_is_the_same_once() {
    let (once, twice) = (found(vec![good()]), found(vec![good(), good()]));
    assert_eq!(once.nodes, twice.nodes);
    assert_eq!(once.edges, twice.edges);
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
    assert_eq!(findings.edges.len(), 2);
    let qualifiers: Vec<&str> = findings
        .edges
        .iter()
        .map(|edge| edge.data.qualifiers["object_direction_qualifier"].as_str())
        .collect();
    assert_eq!(qualifiers, ["increased", "decreased"]);
}

#[test]
fn knowledge_without_results_is_worth_something() {
    let mut value = good();
    value["message"]["results"] = Value::Null;
    let findings = found(vec![value]);
    assert_eq!(findings.results.len(), 2);
    assert_eq!(findings.results[0].nodes, ["NCBIGene:4353", "NCBIGene:847"]);
    assert_eq!(findings.results[0].edges.len(), 2);
}

#[test]
fn one_bad_part_spoils_no_other() {
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
    let unnamed = findings.node("UMLS:1").unwrap();
    assert_eq!((&unnamed.label, &unnamed.kind), (&None, &None));
}

#[test]
fn a_selection_has_both_ends_of_its_edges_and_the_best_first() {
    let findings = found(vec![good()]);
    let (nodes, edges) = findings.select(2, 10);
    assert_eq!(nodes.len(), 2);
    assert_eq!(edges.len(), 2);
    assert!(edges.iter().all(|edge| edge.target == "NCBIGene:847"));
    let (nodes, edges) = findings.select(10, 1);
    assert_eq!((nodes.len(), edges.len()), (2, 1));
    let (nodes, edges) = findings.select(10, 10);
    assert_eq!((nodes.len(), edges.len()), (3, 3));
    assert_eq!(findings.select(1, 10), (Vec::new(), Vec::new()));
}

fn json_value() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "message",
        "knowledge_graph",
        "nodes",
        "edges",
        "results",
        "node_bindings",
        "analyses",
        "edge_bindings",
        "id",
        "subject",
        "object",
        "predicate",
        "attributes",
        "score",
        "logs",
        "n0",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["n0", "NCBIGene:4353", "biolink:affects", "", "\u{0}"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

proptest! {
    /// Whatever a service sends in place of a part: no panic, and what is kept belongs together.
    #[test]
    fn any_answer_is_survived(part in json_value(), at in 0..6_usize) {
        let mut value = good();
        let place = [
            "/message", "/message/knowledge_graph", "/message/knowledge_graph/nodes/NCBIGene:847",
            "/message/knowledge_graph/edges/k0", "/message/results", "/message/results/0",
        ][at];
        *value.pointer_mut(place).unwrap() = part;
        let Ok(response) = serde_json::from_value::<Response>(value) else {
            return Ok(());
        };
        let mut findings = Findings::default();
        findings.add(response, &["n0", "n1"]);
        findings.rank();
        let (nodes, edges) = findings.select(1000, 1000);
        for edge in &edges {
            for end in [&edge.source, &edge.target] {
                prop_assert!(nodes.iter().any(|node| node.id == *end));
            }
        }
        for result in &findings.results {
            prop_assert!(!result.edges.is_empty());
            prop_assert!(result.edges.iter().all(|place| *place < findings.edges.len()));
        }
    }
}
