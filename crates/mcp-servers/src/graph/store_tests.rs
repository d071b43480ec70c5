use super::super::model::{EdgeData, NodeData};
use super::*;

fn node(id: &str) -> Node {
    Node {
        id: id.to_owned(),
        label: None,
        kind: None,
        data: NodeData::default(),
    }
}

fn edge(id: &str, source: &str, target: &str) -> Edge {
    Edge {
        id: Some(id.to_owned()),
        source: source.to_owned(),
        target: target.to_owned(),
        label: "affects".to_owned(),
        data: EdgeData::default(),
    }
}

async fn upsert(
    store: &GraphStore,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
) -> Result<(UpsertCounts, UpsertCounts, GraphSize), String> {
    let done = store.upsert_nodes_and_edges("default", nodes, edges).await;
    done.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_full_graph_accepts_existing_nodes_and_no_new_ones() {
    let store = GraphStore::open(None).await.unwrap();
    upsert(&store, vec![node("first")], vec![]).await.unwrap();
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
         INSERT INTO nodes (conversation, id, data) SELECT 1, 'n' || i, '{{}}' FROM n",
        MAX_NODES - 1
    );
    let fill = move |transaction: &Transaction<'_>| Ok(transaction.execute_batch(&sql)?);
    store.database.write_in_transaction(fill).await.unwrap();
    let (done, _, totals) = upsert(&store, vec![node("n7")], vec![]).await.unwrap();
    assert_eq!((done.unchanged, totals.node_count), (1, MAX_NODES));
    let text = upsert(&store, vec![node("one more")], vec![])
        .await
        .unwrap_err();
    assert!(text.contains("20001 nodes"), "{text}");
    // The node was not added, and other conversations have their own limit.
    let graph = store.load_graph("default").await.unwrap();
    assert!(!graph.nodes.contains_key("one more"));
    store
        .upsert_nodes_and_edges("other", vec![node("one more")], vec![])
        .await
        .unwrap();
}

#[tokio::test]
async fn merged_data_has_the_limit_of_new_data() {
    let store = GraphStore::open(None).await.unwrap();
    let with = |key: &str| {
        let mut node = node("a");
        let text = "x".repeat(MAX_DATA / 2);
        node.data.other.insert(key.to_owned(), text.into());
        vec![node]
    };
    upsert(&store, with("old"), vec![]).await.unwrap();
    let text = upsert(&store, with("new"), vec![]).await.unwrap_err();
    assert!(text.contains("The data of a would have 32"), "{text}");
    let graph = store.load_graph("default").await.unwrap();
    assert!(!graph.nodes["a"].data.other.contains_key("new"));
}

#[tokio::test]
async fn an_edge_with_unknown_nodes_prevents_the_whole_call() {
    let store = GraphStore::open(None).await.unwrap();
    let nodes = vec![node("a"), node("b")];
    let edges = vec![
        edge("1", "a", "b"),
        edge("2", "a", "c"),
        edge("3", "d", "c"),
    ];
    let text = upsert(&store, nodes, edges).await.unwrap_err();
    assert!(text.contains("unknown nodes: c, d."), "{text}");
    assert!(store.load_graph("default").await.unwrap().nodes.is_empty());
}

#[tokio::test]
async fn an_edge_with_a_known_id_moves_to_other_nodes() {
    let store = GraphStore::open(None).await.unwrap();
    let nodes = vec![node("a"), node("b"), node("c")];
    upsert(&store, nodes, vec![edge("e", "a", "b")])
        .await
        .unwrap();
    let moved = upsert(&store, vec![], vec![edge("e", "b", "c")]).await;
    assert_eq!(moved.unwrap().1.updated, 1);
    let graph = store.load_graph("default").await.unwrap();
    assert_eq!(graph.edges.len(), 1);
    assert_eq!(graph.edges["e"], edge("e", "b", "c"));
}
