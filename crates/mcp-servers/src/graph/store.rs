//! The graphs of all conversations in a database.

use std::path::Path;

use rusqlite::{OptionalExtension as _, Transaction, params};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    knowledge_graph::{GraphSize, KnowledgeGraph, UpsertOutcome},
    model::{Edge, MAX_DATA, Node},
};
use crate::{
    error::ServerError,
    sqlite::{Database, Layout},
    text::join_first_items,
    tool::ToolError,
};

static LAYOUT: Layout = Layout {
    // The id identifies database files with graphs. It spells "sbkg" in ASCII.
    application_id: 0x7362_6b67,
    version: 1,
    schema: include_str!("schema.sql"),
    seed: "",
};

/// Maximum number of nodes in the graph of a conversation. Additions beyond it are refused.
pub(crate) const MAX_NODES: usize = 20_000;
/// Maximum number of edges in the graph of a conversation. Additions beyond it are refused.
pub(crate) const MAX_EDGES: usize = 100_000;

/// A store of the knowledge graphs of all conversations. Clones share one connection.
#[derive(Clone)]
pub(crate) struct GraphStore {
    database: Database,
}

/// The result of adding nodes or edges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct UpsertCounts {
    /// Number of new nodes or edges.
    pub(crate) added: usize,
    /// Number of existing nodes or edges that got new data.
    pub(crate) updated: usize,
    /// Number of existing nodes or edges that got no new data.
    pub(crate) unchanged: usize,
}

/// The result of removing nodes and edges from a graph.
pub(super) struct RemovalResult {
    pub(super) nodes: Vec<String>,
    /// Number of removed edges, including the edges of removed nodes.
    pub(super) edges: usize,
    /// Ids that are neither a node nor an edge of the graph.
    pub(super) missing: Vec<String>,
    /// The graph after the removal.
    pub(super) graph: KnowledgeGraph,
}

impl GraphStore {
    /// Opens the store in the SQLite file `file`, or in memory without a file.
    pub(crate) async fn open(file: Option<&Path>) -> Result<Self, ServerError> {
        let database = Database::open(&LAYOUT, file).await?;
        Ok(Self { database })
    }

    /// Returns the graph of a conversation. A new conversation has an empty graph.
    pub(crate) async fn load_graph(&self, conversation: &str) -> Result<KnowledgeGraph, ToolError> {
        let conversation = conversation.to_owned();
        let read = move |it: &Transaction<'_>| load_in_transaction(it, &conversation);
        self.database.read_in_transaction(read).await
    }

    /// Adds validated nodes and edges, or merges them with existing ones. Returns three values: the
    /// counts of new, updated and unchanged nodes, these counts for edges, and the size of the
    /// graph. Returns an error and changes nothing if an end of an edge is not in the graph or the
    /// graph would become too large.
    pub(crate) async fn upsert_nodes_and_edges(
        &self,
        conversation: &str,
        nodes: Vec<Node>,
        edges: Vec<Edge>,
    ) -> Result<(UpsertCounts, UpsertCounts, GraphSize), ToolError> {
        let conversation = conversation.to_owned();
        let write = move |transaction: &Transaction<'_>| {
            upsert_in_transaction(transaction, &conversation, nodes, edges)
        };
        self.database.write_in_transaction(write).await
    }

    /// Removes edges, and nodes with all their edges, from the graph of a conversation. Unknown ids
    /// are not an error. The result contains them in `missing`.
    pub(super) async fn remove_nodes_and_edges(
        &self,
        conversation: &str,
        node_ids: Vec<String>,
        edge_ids: Vec<String>,
    ) -> Result<RemovalResult, ToolError> {
        let conversation = conversation.to_owned();
        let write = move |transaction: &Transaction<'_>| {
            remove_in_transaction(transaction, &conversation, node_ids, edge_ids)
        };
        self.database.write_in_transaction(write).await
    }
}

fn load_in_transaction(
    transaction: &Transaction<'_>,
    conversation: &str,
) -> Result<KnowledgeGraph, ToolError> {
    let sql = "SELECT number, updated_at FROM conversations WHERE conversation_id = ?1";
    let found = transaction.query_row(sql, [conversation], |row| Ok((row.get(0)?, row.get(1)?)));
    let mut graph = KnowledgeGraph::default();
    let Some((number, updated_at)) = found.optional()? else {
        return Ok(graph);
    };
    let number: i64 = number;
    graph.updated_at = updated_at;
    let mut nodes = transaction.prepare(
        "SELECT id, label, type, data FROM nodes WHERE conversation = ?1 ORDER BY number",
    )?;
    let nodes = nodes.query_map([number], |row| {
        Ok(Node {
            id: row.get(0)?,
            label: row.get(1)?,
            kind: row.get(2)?,
            data: parse_json_or_default(row.get_ref(3)?.as_str()?),
        })
    })?;
    for node in nodes {
        graph.add_node(node?);
    }
    let mut edges = transaction.prepare(
        "SELECT e.id, s.id, t.id, e.label, e.data FROM edges e \
         JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
         WHERE e.conversation = ?1 ORDER BY e.number",
    )?;
    let edges = edges.query_map([number], |row| {
        Ok(Edge {
            id: row.get(0)?,
            source: row.get(1)?,
            target: row.get(2)?,
            label: row.get(3)?,
            data: parse_json_or_default(row.get_ref(4)?.as_str()?),
        })
    })?;
    for edge in edges {
        graph.add_edge(edge?);
    }
    Ok(graph)
}

fn upsert_in_transaction(
    transaction: &Transaction<'_>,
    conversation: &str,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
) -> Result<(UpsertCounts, UpsertCounts, GraphSize), ToolError> {
    let mut graph = load_in_transaction(transaction, conversation)?;
    let (mut for_nodes, mut changed_nodes) = (UpsertCounts::default(), Vec::new());
    for node in nodes {
        let id = node.id.clone();
        if for_nodes.count_upsert(graph.add_node(node)) {
            changed_nodes.push(id);
        }
    }
    let ends = edges.iter().flat_map(|edge| [&edge.source, &edge.target]);
    let mut missing: Vec<&String> = Vec::new();
    for end in ends {
        if !graph.nodes.contains_key(end) && !missing.contains(&end) {
            missing.push(end);
        }
    }
    if !missing.is_empty() {
        return Err(format!(
            "Edges have unknown nodes: {}. Nothing was added. Add these nodes first with \
             add_nodes.",
            join_first_items(&missing, 10)
        )
        .into());
    }
    let (mut for_edges, mut changed_edges) = (UpsertCounts::default(), Vec::new());
    for edge in edges {
        let id = edge.id.clone().unwrap_or_default();
        if for_edges.count_upsert(graph.add_edge(edge)) {
            changed_edges.push(id);
        }
    }
    let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
    if nodes > MAX_NODES || edges > MAX_EDGES {
        return Err(format!(
            "The graph would have {nodes} nodes and {edges} edges; at most {MAX_NODES} nodes and \
             {MAX_EDGES} edges are allowed. Nothing was added."
        )
        .into());
    }
    if !changed_nodes.is_empty() || !changed_edges.is_empty() {
        let number = upsert_conversation(transaction, conversation, &mut graph)?;
        for node in changed_nodes.iter().filter_map(|id| graph.nodes.get(id)) {
            save_node(transaction, number, node)?;
        }
        for edge in changed_edges.iter().filter_map(|id| graph.edges.get(id)) {
            save_edge(transaction, number, edge)?;
        }
    }
    Ok((for_nodes, for_edges, graph.count_totals()))
}

/// Sets the time of the last change of a conversation to the current time. Creates the conversation
/// if it is new. Returns the row number of the conversation in the table `conversations`.
fn upsert_conversation(
    transaction: &Transaction<'_>,
    conversation: &str,
    graph: &mut KnowledgeGraph,
) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO conversations (conversation_id, updated_at) \
         VALUES (?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')) \
         ON CONFLICT (conversation_id) DO UPDATE SET updated_at = excluded.updated_at \
         RETURNING number, updated_at";
    let (number, time) =
        transaction.query_row(sql, [conversation], |row| Ok((row.get(0)?, row.get(1)?)))?;
    graph.updated_at = time;
    Ok(number)
}

fn save_node(transaction: &Transaction<'_>, number: i64, node: &Node) -> Result<(), ToolError> {
    let mut save = transaction.prepare_cached(
        "INSERT INTO nodes (conversation, id, label, type, data) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (conversation, id) DO UPDATE \
         SET label = excluded.label, type = excluded.type, data = excluded.data",
    )?;
    let data = serialize_data(&node.id, &node.data)?;
    save.execute(params![number, node.id, node.label, node.kind, data])?;
    Ok(())
}

fn save_edge(transaction: &Transaction<'_>, number: i64, edge: &Edge) -> Result<(), ToolError> {
    let mut save = transaction.prepare_cached(
        "INSERT INTO edges (conversation, id, source, target, label, data) VALUES (?1, ?2, \
         (SELECT number FROM nodes WHERE conversation = ?1 AND id = ?3), \
         (SELECT number FROM nodes WHERE conversation = ?1 AND id = ?4), ?5, ?6) \
         ON CONFLICT (conversation, id) DO UPDATE SET source = excluded.source, \
         target = excluded.target, label = excluded.label, data = excluded.data",
    )?;
    let data = serialize_data(edge.id.as_deref().unwrap_or_default(), &edge.data)?;
    save.execute(params![
        number,
        edge.id,
        edge.source,
        edge.target,
        edge.label,
        data
    ])?;
    Ok(())
}

fn remove_in_transaction(
    transaction: &Transaction<'_>,
    conversation: &str,
    node_ids: Vec<String>,
    edge_ids: Vec<String>,
) -> Result<RemovalResult, ToolError> {
    let delete = |table: &str, id: &str| {
        let sql = format!(
            "DELETE FROM {table} WHERE id = ?2 AND conversation = \
             (SELECT number FROM conversations WHERE conversation_id = ?1)"
        );
        transaction.execute(&sql, [conversation, id])
    };
    let edges_before = load_in_transaction(transaction, conversation)?.edges.len();
    let (mut nodes, mut missing) = (Vec::new(), Vec::new());
    for id in edge_ids {
        if delete("edges", &id)? == 0 {
            missing.push(id);
        }
    }
    for id in node_ids {
        // The database deletes the edges of the node too (`ON DELETE CASCADE`).
        if delete("nodes", &id)? == 0 {
            missing.push(id);
        } else {
            nodes.push(id);
        }
    }
    let mut graph = load_in_transaction(transaction, conversation)?;
    let edges = edges_before - graph.edges.len();
    if edges > 0 || !nodes.is_empty() {
        upsert_conversation(transaction, conversation, &mut graph)?;
    }
    Ok(RemovalResult {
        nodes,
        edges,
        missing,
        graph,
    })
}

impl UpsertCounts {
    /// Counts the outcome of adding or merging one node or edge. Returns whether the node or edge
    /// is new or changed and must be saved.
    fn count_upsert(&mut self, change: UpsertOutcome) -> bool {
        match change {
            UpsertOutcome::Added => self.added += 1,
            UpsertOutcome::Updated => self.updated += 1,
            UpsertOutcome::Unchanged => self.unchanged += 1,
        }
        change != UpsertOutcome::Unchanged
    }
}

/// Serializes the data of a node or edge. Returns an error if merging made it too large.
fn serialize_data(id: &str, data: &impl Serialize) -> Result<String, ToolError> {
    let json =
        serde_json::to_string(data).map_err(|error| ToolError::Refused(error.to_string()))?;
    if json.len() > MAX_DATA {
        return Err(format!(
            "Nothing was added. The data of {id} would have {} bytes as JSON together with its old \
             data; at most {MAX_DATA} are allowed.",
            json.len()
        )
        .into());
    }
    Ok(json)
}

/// Parses the database column `data`. Returns an empty value for invalid text, which another
/// program may have written.
fn parse_json_or_default<T: DeserializeOwned + Default>(data: &str) -> T {
    serde_json::from_str(data).unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to parse the data of a node or edge");
        T::default()
    })
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
