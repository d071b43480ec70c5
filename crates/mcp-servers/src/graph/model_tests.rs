use serde_json::json;

use super::*;

fn node(value: Value) -> Node {
    serde_json::from_value(value).unwrap()
}

fn edge(value: Value) -> Edge {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_biolink_prefix_makes_no_difference() {
    let gene = node(json!({"id": "NCBIGene:4353", "type": "biolink:Gene", "label": " MPO\n"}));
    let gene = gene.validate_node().unwrap();
    assert_eq!(gene.kind.as_deref(), Some("Gene"));
    assert_eq!(gene.label.as_deref(), Some("MPO"));
    let affects = edge(json!({"source": "a", "target": "b", "label": "biolink:affects"}));
    let affects = affects.validate_edge().unwrap();
    assert_eq!(affects.label, "affects");
    assert_eq!(affects.id.as_deref(), Some("|a|affects|b"));
}

#[test]
fn ids_without_spaces_are_taken_and_others_are_not() {
    for id in ["NCBIGene:4353", "UMLS:C0027061", "CHEBI:15377", "a|b", "é"] {
        assert!(node(json!({"id": id})).validate_node().is_ok(), "{id}");
    }
    for id in [
        "",
        " ",
        "a b",
        "a\tb",
        "a\u{0}b",
        "a\u{2028}b",
        &"x".repeat(201),
    ] {
        assert!(node(json!({"id": id})).validate_node().is_err(), "{id}");
        let edge = edge(json!({"source": "a", "target": id, "label": "affects"}));
        assert!(edge.validate_edge().unwrap_err().contains("target"), "{id}");
    }
    let blank = edge(json!({"source": "a", "target": "b", "label": "biolink: "}));
    assert_eq!(blank.validate_edge().unwrap_err(), "its label is blank");
}

#[test]
fn different_statements_never_get_the_same_id() {
    let id = |value| edge(value).default_edge_id();
    assert_ne!(
        id(json!({"source": "a|b", "target": "c", "label": "affects"})),
        id(json!({"source": "a", "target": "c", "label": "b|affects"})),
    );
    let increased = json!({
        "source": "a", "target": "b", "label": "affects",
        "data": {
            "primary_source": "infores:ctd",
            "qualifiers": {"object_direction_qualifier": "increased"},
        },
    });
    let expected = "infores:ctd|a|affects|b|object_direction_qualifier=increased";
    assert_eq!(id(increased), expected);
}

#[test]
fn descriptions_are_joined_and_nothing_is_forgotten() {
    let old = edge(json!({
        "id": "e", "source": "a", "target": "b", "label": "affects",
        "data": {
            "primary_source": "infores:ctd", "publications": ["PMID:1", "PMID:2"],
            "provenance": [{"resource_id": "infores:ctd", "resource_role": "primary_knowledge_source"}],
            "note": "kept", "weight": 1,
        },
    }));
    let newer = edge(json!({
        "id": "e", "source": "a", "target": "b", "label": "affects",
        "data": {"publications": ["PMID:2", "PMID:3"], "agent_type": "manual_agent", "weight": 2},
    }));
    let joined = old.clone().merge_edge(newer.clone());
    assert_eq!(
        serde_json::to_value(&joined.data).unwrap(),
        json!({
            "primary_source": "infores:ctd", "publications": ["PMID:1", "PMID:2", "PMID:3"],
            "agent_type": "manual_agent",
            "provenance": [{"resource_id": "infores:ctd", "resource_role": "primary_knowledge_source"}],
            "note": "kept", "weight": 2,
        })
    );
    // Merging the same version again changes nothing.
    assert_eq!(joined.clone().merge_edge(newer), joined);

    let old = node(json!({"id": "a", "label": "A", "data": {"xrefs": ["x:1"]}}));
    let newer = node(json!({"id": "a", "type": "Gene", "data": {"xrefs": ["x:2"]}}));
    assert_eq!(
        serde_json::to_value(old.merge_node(newer)).unwrap(),
        json!({"id": "a", "label": "A", "type": "Gene", "data": {"xrefs": ["x:1", "x:2"]}})
    );
}

#[test]
fn joined_lists_stop_growing() {
    let with = |range: std::ops::Range<usize>| {
        let xrefs: Vec<String> = range.map(|index| format!("x:{index}")).collect();
        node(json!({"id": "a", "data": {"xrefs": xrefs}}))
    };
    let joined = with(0..150).merge_node(with(100..400));
    assert_eq!(joined.data.xrefs.len(), MAX_LIST);
    assert_eq!(joined.data.xrefs[199], "x:199");
}

#[test]
fn data_has_a_limit() {
    let large = node(json!({"id": "a", "data": {"text": "x".repeat(MAX_DATA)}}));
    assert!(
        large
            .validate_node()
            .unwrap_err()
            .starts_with("its data has 32")
    );
}

#[test]
fn names_have_no_control_characters() {
    assert_eq!(normalize_name(" \u{7}\n "), None);
    assert_eq!(normalize_name("a\u{1b}[31mb").as_deref(), Some("a [31mb"));
}
