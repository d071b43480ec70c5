use serde_json::{Value, json};

use super::*;

fn check(graph: Value) -> Result<Value, String> {
    let mut graph: QueryGraph = serde_json::from_value(graph).unwrap();
    let problems = validate_query_graph(&mut graph);
    if problems.is_empty() {
        return Ok(serde_json::to_value(graph).unwrap());
    }
    Err(problems.join("\n"))
}

#[test]
fn query_graphs_have_the_form_of_trapi() {
    let graph = check(json!({
        "nodes": {
            "n0": {"ids": ["NCBIGene:4353"], "categories": []},
            "n1": {"categories": ["SmallMolecule", "biolink:Drug"]},
        },
        "edges": {"e0": {"subject": "n1", "object": "n0", "predicates": ["affects"]}},
    }));
    assert_eq!(
        graph.unwrap(),
        json!({
            "nodes": {
                "n0": {"ids": ["NCBIGene:4353"]},
                "n1": {"categories": ["biolink:SmallMolecule", "biolink:Drug"]},
            },
            "edges": {"e0": {"subject": "n1", "object": "n0", "predicates": ["biolink:affects"]}},
        })
    );
}

#[test]
fn every_problem_is_reported() {
    let problems = check(json!({
        "nodes": {
            "n0": {"ids": ["MPO"]},
            "n1": {},
            "n2": {"categories": ["small molecule"]},
        },
        "edges": {
            "e0": {"subject": "n0", "object": "n9", "predicates": ["Affects!"]},
            "e1": {"subject": "n1", "object": "n1"},
        },
    }));
    insta::assert_snapshot!(problems.unwrap_err(), @r#"
    The node n0 has the id "MPO", which is not a CURIE such as NCBIGene:4353.
    The node n1 has neither ids nor categories.
    The node n2 has the category "small molecule", which does not have the form biolink:Gene.
    The object of the edge e0 is "n9", which is an unknown node.
    The edge e0 has the predicate "Affects!", which does not have the form biolink:affects.
    The edge e1 goes from a node to itself.
    No edge uses the node n2.
    "#);
    let problems = check(json!({
        "nodes": {"n0": {"categories": ["biolink:Gene"]}, "n1": {"categories": ["biolink:Gene"]}},
        "edges": {},
    }));
    insta::assert_snapshot!(problems.unwrap_err(), @r"
    It has 0 edges; it must have 1 to 4.
    No node has ids, so the query would have no limit.
    ");
    let many: serde_json::Map<String, Value> = (0..6)
        .map(|index| (format!("n{index}"), json!({"ids": ["a:1"]})))
        .collect();
    let edges: serde_json::Map<String, Value> = (0..5)
        .map(|index| {
            let edge = json!({"subject": format!("n{index}"), "object": format!("n{}", index + 1)});
            (format!("e{index}"), edge)
        })
        .collect();
    let problems = check(json!({"nodes": many, "edges": edges}));
    insta::assert_snapshot!(problems.unwrap_err(), @r"
    It has 6 nodes; it must have 2 to 5.
    It has 5 edges; it must have 1 to 4.
    ");
}
