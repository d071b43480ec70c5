use super::*;
use crate::bte::trapi::QueryEdge;

const MPO: &str = "NCBIGene:4353";

fn sample() -> Sample {
    Sample::load().unwrap()
}

fn node(ids: &[&str], categories: &[&str]) -> QueryNode {
    let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect();
    QueryNode {
        ids: texts(ids),
        categories: texts(categories),
    }
}

fn one_hop(subject: QueryNode, predicates: &[&str], object: QueryNode) -> QueryGraph {
    let edge = QueryEdge {
        subject: "a".to_owned(),
        object: "b".to_owned(),
        predicates: predicates.iter().map(|it| (*it).to_owned()).collect(),
    };
    QueryGraph {
        nodes: [("a".to_owned(), subject), ("b".to_owned(), object)].into(),
        edges: [("e".to_owned(), edge)].into(),
    }
}

/// Returns the ids that the sample binds to the object of the query.
fn found(query: &QueryGraph) -> Vec<String> {
    let results = sample().query(query).unwrap().message.results.unwrap();
    let ids = results.iter();
    ids.map(|it| {
        it["node_bindings"]["b"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    })
    .collect()
}

#[test]
fn the_sample_is_consistent() {
    let sample = sample();
    assert!((15..=25).contains(&sample.nodes.len()));
    for SampleEdge(from, predicate, to, source) in &sample.edges {
        assert!(
            sample.nodes.contains_key(from) && sample.nodes.contains_key(to),
            "{from} {to}"
        );
        assert!(sample.inverses.contains_key(predicate), "{predicate}");
        assert!(source.starts_with("infores:"), "{source}");
    }
    for (id, node) in &sample.nodes {
        assert!(sample.kinds.contains_key(&node.kind), "{id}");
        assert!(
            sample
                .edges
                .iter()
                .any(|edge| edge.0 == *id || edge.2 == *id),
            "{id}"
        );
    }
}

#[test]
fn edges_are_found_in_both_directions() {
    let genes = || node(&[], &["biolink:Gene"]);
    let affected = found(&one_hop(node(&[MPO], &[]), &["biolink:affects"], genes()));
    assert_eq!(affected, ["NCBIGene:335"]);
    let affecting = found(&one_hop(
        node(&[MPO], &[]),
        &["biolink:affected_by"],
        genes(),
    ));
    assert_eq!(affecting, ["NCBIGene:7124", "NCBIGene:1356"]);
    let symmetric = ["biolink:interacts_with"];
    let back = found(&one_hop(node(&["NCBIGene:213"], &[]), &symmetric, genes()));
    assert_eq!(back, [MPO]);
    let drugs = one_hop(
        node(&[MPO], &[]),
        &[],
        node(&[], &["biolink:SmallMolecule"]),
    );
    assert_eq!(found(&drugs).len(), 4);
    let nothing = node(&[], &["biolink:RNAProduct"]);
    assert!(found(&one_hop(node(&[MPO], &[]), &[], nothing)).is_empty());
}

#[test]
fn edges_name_their_source_and_the_sample() {
    let query = one_hop(node(&[MPO], &[]), &[], node(&["NCBIGene:213"], &[]));
    let graph = sample().query(&query).unwrap().message.knowledge_graph;
    let edge = graph.unwrap().edges.into_iter().next().unwrap().1;
    assert_eq!(edge["sources"][0]["resource_id"], "infores:biogrid");
    assert_eq!(edge["sources"][1]["resource_id"], SOURCE);
}

#[test]
fn names_outside_of_the_sample_are_errors() {
    let gene = || node(&[], &["biolink:Gene"]);
    let two_hops = {
        let mut query = one_hop(node(&[MPO], &[]), &[], gene());
        let edge = QueryEdge {
            subject: "b".to_owned(),
            object: "a".to_owned(),
            predicates: Vec::new(),
        };
        query.edges.insert("f".to_owned(), edge);
        query
    };
    for (query, expected) in [
        (
            one_hop(node(&["NCBIGene:1"], &[]), &[], gene()),
            "do not contain NCBIGene:1.",
        ),
        (
            one_hop(node(&[MPO], &[]), &["biolink:likes"], gene()),
            "The predicate \"biolink:likes\" is unknown. Known in the sample data: biolink:",
        ),
        (
            one_hop(node(&[MPO], &[]), &[], node(&[], &["biolink:Toy"])),
            "The category \"biolink:Toy\" is unknown.",
        ),
        (two_hops, "only queries with two nodes and one edge"),
    ] {
        let error = sample().query(&query).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn names_are_found_by_category_and_organism() {
    let curies = |name: &str, category: Option<&str>, taxon: Option<&str>| -> Vec<String> {
        let found = sample().find_names(name, category, taxon).unwrap();
        found.into_iter().map(|it| it.curie).collect()
    };
    // A match of the whole name comes before a match of a part.
    assert_eq!(curies("mpo", None, None), [MPO, "MONDO:0009694"]);
    let expected = ["MONDO:0009694"];
    assert_eq!(curies("MPO", Some("biolink:Disease"), None), expected);
    let expected = ["MONDO:0009694"];
    assert_eq!(curies("MPO", None, Some("NCBITaxon:10090")), expected);
    assert!(curies("nothing of this name", None, None).is_empty());
    assert!(sample().find_names("MPO", Some("Toy"), None).is_err());
}

#[test]
fn the_meta_knowledge_graph_lists_each_relation_once() {
    let meta = sample().meta_knowledge_graph();
    assert_eq!(meta.nodes["biolink:Gene"].id_prefixes, ["NCBIGene"]);
    let interactions = meta.edges.iter();
    let interactions = interactions.filter(|it| it.predicate == "biolink:interacts_with");
    assert_eq!(interactions.count(), 1);
}
