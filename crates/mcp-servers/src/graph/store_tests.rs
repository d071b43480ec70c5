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

fn edge(source: &str, target: &str) -> Edge {
    Edge {
        id: None,
        source: source.to_owned(),
        target: target.to_owned(),
        label: "affects".to_owned(),
        data: EdgeData::default(),
    }
    .check()
    .unwrap()
}

async fn execute(store: &GraphStore, sql: String) {
    let write = store
        .database
        .write(move |transaction| Ok(transaction.execute_batch(&sql)?));
    write.await.unwrap();
}

fn refusal(result: Result<impl Sized, ToolError>) -> String {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_full_graph_accepts_existing_nodes_and_no_new_ones() {
    let store = GraphStore::open(None).await.unwrap();
    store
        .upsert("full", vec![node("first"), node("second")], vec![])
        .await
        .unwrap();
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
         INSERT INTO nodes (conversation, id, data) SELECT 1, 'n' || i, '{{}}' FROM n",
        MAX_NODES - 2
    );
    execute(&store, sql).await;
    let (done, _, totals) = store
        .upsert("full", vec![node("n7")], vec![])
        .await
        .unwrap();
    assert_eq!((done.unchanged, totals.node_count), (1, MAX_NODES));
    let text = refusal(store.upsert("full", vec![node("one more")], vec![]).await);
    assert!(text.contains("20001 nodes"), "{text}");
    // The node was not added, and other conversations have their own limit.
    assert!(store.named("full", "one more").await.unwrap().is_empty());
    store
        .upsert("other", vec![node("one more")], vec![])
        .await
        .unwrap();
    let edges = (0..2000).map(|index| {
        let mut edge = edge("first", "second");
        edge.id = Some(format!("e{index}"));
        edge
    });
    let (_, done, _) = store.upsert("full", vec![], edges.collect()).await.unwrap();
    assert_eq!(done.added, 2000);
}

#[tokio::test]
async fn an_edge_with_unknown_nodes_prevents_the_whole_call() {
    let store = GraphStore::open(None).await.unwrap();
    let nodes = vec![node("a"), node("b")];
    let edges = vec![edge("a", "b"), edge("a", "c"), edge("d", "c")];
    let text = refusal(store.upsert("default", nodes, edges).await);
    assert!(text.contains("unknown nodes: c, d."), "{text}");
    assert!(store.node_ids("default").await.unwrap().is_empty());
}

#[tokio::test]
async fn an_edge_with_a_known_id_moves_to_other_nodes() {
    let store = GraphStore::open(None).await.unwrap();
    let mut first = edge("a", "b");
    first.id = Some("e".to_owned());
    let mut second = edge("b", "c");
    second.id = Some("e".to_owned());
    let nodes = vec![node("a"), node("b"), node("c")];
    store.upsert("default", nodes, vec![first]).await.unwrap();
    let (_, done, totals) = store.upsert("default", vec![], vec![second]).await.unwrap();
    assert_eq!((done.updated, totals.edge_count), (1, 1));
    assert_eq!(store.edges_at("default", "c").await.unwrap().len(), 1);
    assert_eq!(store.edges_at("default", "a").await.unwrap().len(), 0);
}

#[tokio::test]
async fn invalid_data_in_the_file_is_ignored() {
    let store = GraphStore::open(None).await.unwrap();
    store
        .upsert("default", vec![node("a")], vec![])
        .await
        .unwrap();
    execute(&store, "UPDATE nodes SET data = 'no JSON'".to_owned()).await;
    let filter = Filter {
        limit: 10,
        ..Filter::default()
    };
    let page = store.page("default", &filter).await.unwrap();
    assert_eq!(page.nodes, [node("a")]);
}
