//! What the tools ask the database.

use std::{collections::HashMap, path::Path};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool, Transaction};

use super::model::{Edge, EdgeData, Node, NodeData};
use crate::{
    ServerError,
    sqlite::{self, Layout},
    tool::ToolError,
};

pub(super) const LAYOUT: Layout = Layout {
    // "sbkg" in ASCII.
    application_id: 0x7362_6b67,
    version: 1,
    schema: include_str!("schema.sql"),
    seed: "",
};

/// The most nodes that the graph of a conversation may have.
pub(crate) const MAX_NODES: i64 = 20_000;
/// The most edges that the graph of a conversation may have.
pub(crate) const MAX_EDGES: i64 = 100_000;

/// Parameters: the conversation, a type or null, ids as a JSON list or null.
const MATCHING_NODES: &str = "FROM nodes n JOIN conversations c ON c.number = n.conversation \
    WHERE c.conversation_id = $1 AND ($2 IS NULL OR lower(n.type) = lower($2)) \
    AND ($3 IS NULL OR n.id IN (SELECT value FROM json_each($3)))";

/// Parameters: the conversation, a label or null, the ids of nodes as a JSON list or null.
const MATCHING_EDGES: &str = "FROM edges e JOIN conversations c ON c.number = e.conversation \
    JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
    WHERE c.conversation_id = $1 AND ($2 IS NULL OR lower(e.label) = lower($2)) \
    AND ($3 IS NULL OR (s.id IN (SELECT value FROM json_each($3)) \
                    AND t.id IN (SELECT value FROM json_each($3))))";

const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";

/// The graphs of all conversations. Clones share one connection.
#[derive(Clone)]
pub(crate) struct GraphStore {
    pool: SqlitePool,
}

/// What became of the nodes or edges that were to be added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Upserted {
    /// How many were not there before.
    pub(crate) added: usize,
    /// How many were there and got something new.
    pub(crate) updated: usize,
    /// How many were there like this already.
    pub(crate) unchanged: usize,
}

/// What there is in the graph of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Totals {
    /// How many nodes there are.
    pub(crate) node_count: i64,
    /// How many edges there are.
    pub(crate) edge_count: i64,
    /// When something was last added, changed or removed (RFC 3339); missing if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_updated: Option<String>,
}

/// Which nodes and edges are asked for. All conditions must hold.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) node_type: Option<String>,
    pub(super) edge_label: Option<String>,
    /// These nodes, and the edges between them.
    pub(super) node_ids: Option<Vec<String>>,
    pub(super) limit: i64,
    pub(super) offset: i64,
}

/// A part of a graph.
pub(super) struct Page {
    pub(super) totals: Totals,
    pub(super) matching_nodes: i64,
    pub(super) matching_edges: i64,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// The nodes at the ends of these edges, on this page or not, by their ids.
    pub(super) ends: HashMap<String, Option<String>>,
    /// Types of all nodes, the most frequent first.
    pub(super) node_types: Vec<(String, i64)>,
    /// Labels of all edges, the most frequent first.
    pub(super) edge_types: Vec<(String, i64)>,
}

/// Id, source and its label, target and its label, label, data.
type EdgeRow = (
    String,
    String,
    Option<String>,
    String,
    Option<String>,
    String,
    String,
);

/// What was removed.
pub(super) struct Removed {
    pub(super) nodes: Vec<String>,
    /// Those that were named, and those that were at a removed node.
    pub(super) edges: i64,
    /// Ids of nodes and edges that are not there.
    pub(super) missing: Vec<String>,
    pub(super) totals: Totals,
}

impl GraphStore {
    /// In memory, or in a file.
    pub(crate) async fn open(file: Option<&Path>) -> Result<Self, ServerError> {
        let pool = sqlite::open(&LAYOUT, file).await?;
        Ok(Self { pool })
    }

    /// Adds nodes and edges or joins them with what is there: all of them or, when one cannot be
    /// added, none. They have been checked.
    pub(crate) async fn upsert(
        &self,
        conversation: &str,
        nodes: Vec<Node>,
        edges: Vec<Edge>,
    ) -> Result<(Upserted, Upserted, Totals), ToolError> {
        // Takes the write lock before reading what is to be joined.
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let number = conversation_number(&mut transaction, conversation).await?;
        let mut for_nodes = Upserted::default();
        for node in nodes {
            upsert_node(&mut transaction, number, node, &mut for_nodes).await?;
        }
        let mut for_edges = Upserted::default();
        let mut missing: Vec<String> = Vec::new();
        for edge in edges {
            upsert_edge(&mut transaction, number, edge, &mut for_edges, &mut missing).await?;
        }
        if !missing.is_empty() {
            return Err(unknown_ends(missing));
        }
        if for_nodes.changes() + for_edges.changes() > 0 {
            touch(&mut transaction, number).await?;
        }
        let totals = totals(&mut transaction, conversation).await?;
        if totals.node_count > MAX_NODES || totals.edge_count > MAX_EDGES {
            return Err(ToolError::Refused(format!(
                "The graph would have {} nodes and {} edges; at most {MAX_NODES} nodes and \
                 {MAX_EDGES} edges are possible. Nothing was added.",
                totals.node_count, totals.edge_count
            )));
        }
        transaction.commit().await?;
        Ok((for_nodes, for_edges, totals))
    }

    /// A part of the graph, in the order in which things were added.
    pub(super) async fn page(
        &self,
        conversation: &str,
        filter: &Filter,
    ) -> Result<Page, ToolError> {
        let mut transaction = self.pool.begin().await?;
        let totals = totals(&mut transaction, conversation).await?;
        let ids = filter.node_ids.as_ref().map(|ids| list(ids)).transpose()?;
        let matching_nodes =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT COUNT(*) {MATCHING_NODES}")))
                .bind(conversation)
                .bind(&filter.node_type)
                .bind(&ids)
                .fetch_one(&mut *transaction)
                .await?;
        let nodes: Vec<(String, Option<String>, Option<String>, String)> =
            sqlx::query_as(AssertSqlSafe(format!(
                "SELECT n.id, n.label, n.type, n.data {MATCHING_NODES} \
                 ORDER BY n.number LIMIT $4 OFFSET $5"
            )))
            .bind(conversation)
            .bind(&filter.node_type)
            .bind(&ids)
            .bind(filter.limit)
            .bind(filter.offset)
            .fetch_all(&mut *transaction)
            .await?;
        let matching_edges =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT COUNT(*) {MATCHING_EDGES}")))
                .bind(conversation)
                .bind(&filter.edge_label)
                .bind(&ids)
                .fetch_one(&mut *transaction)
                .await?;
        let edges: Vec<EdgeRow> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT e.id, s.id, s.label, t.id, t.label, e.label, e.data {MATCHING_EDGES} \
                 ORDER BY e.number LIMIT $4 OFFSET $5"
        )))
        .bind(conversation)
        .bind(&filter.edge_label)
        .bind(&ids)
        .bind(filter.limit)
        .bind(filter.offset)
        .fetch_all(&mut *transaction)
        .await?;
        let node_types = sqlx::query_as(
            "SELECT COALESCE(n.type, 'other'), COUNT(*) FROM nodes n \
             JOIN conversations c ON c.number = n.conversation WHERE c.conversation_id = $1 \
             GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 50",
        )
        .bind(conversation)
        .fetch_all(&mut *transaction)
        .await?;
        let edge_types = sqlx::query_as(
            "SELECT e.label, COUNT(*) FROM edges e \
             JOIN conversations c ON c.number = e.conversation WHERE c.conversation_id = $1 \
             GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 50",
        )
        .bind(conversation)
        .fetch_all(&mut *transaction)
        .await?;
        let nodes = nodes.into_iter().map(|(id, label, kind, data)| Node {
            id,
            label,
            kind,
            data: read(&data),
        });
        let mut ends = HashMap::new();
        let edges = edges.into_iter().map(
            |(id, source, source_label, target, target_label, label, data)| {
                ends.insert(source.clone(), source_label);
                ends.insert(target.clone(), target_label);
                Edge {
                    id: Some(id),
                    source,
                    target,
                    label,
                    data: read(&data),
                }
            },
        );
        let edges = edges.collect();
        Ok(Page {
            totals,
            matching_nodes,
            matching_edges,
            nodes: nodes.collect(),
            edges,
            ends,
            node_types,
            edge_types,
        })
    }

    /// The whole graph without what its nodes and edges have in `data`.
    pub(super) async fn outline(
        &self,
        conversation: &str,
    ) -> Result<(Vec<Node>, Vec<Edge>), ToolError> {
        let mut transaction = self.pool.begin().await?;
        let nodes: Vec<(String, Option<String>, Option<String>)> = sqlx::query_as(
            "SELECT n.id, n.label, n.type FROM nodes n \
             JOIN conversations c ON c.number = n.conversation WHERE c.conversation_id = $1 \
             ORDER BY n.number",
        )
        .bind(conversation)
        .fetch_all(&mut *transaction)
        .await?;
        let edges: Vec<(String, String, String, String)> = sqlx::query_as(
            "SELECT e.id, s.id, t.id, e.label FROM edges e \
             JOIN conversations c ON c.number = e.conversation \
             JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
             WHERE c.conversation_id = $1 ORDER BY e.number",
        )
        .bind(conversation)
        .fetch_all(&mut *transaction)
        .await?;
        let nodes = nodes.into_iter().map(|(id, label, kind)| Node {
            id,
            label,
            kind,
            data: NodeData::default(),
        });
        let edges = edges.into_iter().map(|(id, source, target, label)| Edge {
            id: Some(id),
            source,
            target,
            label,
            data: EdgeData::default(),
        });
        Ok((nodes.collect(), edges.collect()))
    }

    /// The edges at a node, with the node at the other end of each.
    pub(super) async fn edges_at(
        &self,
        conversation: &str,
        node_id: &str,
    ) -> Result<Vec<(Edge, Node)>, ToolError> {
        type Row = (
            String,
            String,
            String,
            String,
            String,
            String,
            Option<String>,
            Option<String>,
        );
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT e.id, s.id, t.id, e.label, e.data, o.id, o.label, o.type FROM edges e \
             JOIN conversations c ON c.number = e.conversation \
             JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
             JOIN nodes o ON o.number = CASE WHEN s.id = $2 THEN e.target ELSE e.source END \
             WHERE c.conversation_id = $1 AND (s.id = $2 OR t.id = $2) ORDER BY e.number",
        )
        .bind(conversation)
        .bind(node_id)
        .fetch_all(&self.pool)
        .await?;
        let pairs = rows
            .into_iter()
            .map(|(id, source, target, label, data, other, name, kind)| {
                let edge = Edge {
                    id: Some(id),
                    source,
                    target,
                    label,
                    data: read(&data),
                };
                let node = Node {
                    id: other,
                    label: name,
                    kind,
                    data: NodeData::default(),
                };
                (edge, node)
            });
        Ok(pairs.collect())
    }

    /// Nodes by their ids or labels, whatever their case, without `data`; the id as given first.
    pub(super) async fn named(
        &self,
        conversation: &str,
        name: &str,
    ) -> Result<Vec<Node>, ToolError> {
        let rows: Vec<(String, Option<String>, Option<String>)> = sqlx::query_as(
            "SELECT n.id, n.label, n.type FROM nodes n \
             JOIN conversations c ON c.number = n.conversation WHERE c.conversation_id = $1 \
             AND (lower(n.id) = lower($2) OR lower(n.label) = lower($2)) \
             ORDER BY n.id <> $2, lower(n.id) <> lower($2), n.number LIMIT 6",
        )
        .bind(conversation)
        .bind(name)
        .fetch_all(&self.pool)
        .await?;
        let nodes = rows.into_iter().map(|(id, label, kind)| Node {
            id,
            label,
            kind,
            data: NodeData::default(),
        });
        Ok(nodes.collect())
    }

    /// The ids of the nodes, the latest first, to suggest one.
    pub(super) async fn node_ids(&self, conversation: &str) -> Result<Vec<String>, ToolError> {
        let ids = sqlx::query_scalar(
            "SELECT n.id FROM nodes n JOIN conversations c ON c.number = n.conversation \
             WHERE c.conversation_id = $1 ORDER BY n.number DESC LIMIT 2000",
        )
        .bind(conversation)
        .fetch_all(&self.pool)
        .await?;
        Ok(ids)
    }

    /// Removes nodes with their edges, and edges. Ids that are not there are told of.
    pub(super) async fn remove(
        &self,
        conversation: &str,
        node_ids: &[String],
        edge_ids: &[String],
    ) -> Result<Removed, ToolError> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let number: Option<i64> =
            sqlx::query_scalar("SELECT number FROM conversations WHERE conversation_id = $1")
                .bind(conversation)
                .fetch_optional(&mut *transaction)
                .await?;
        let before = totals(&mut transaction, conversation).await?;
        let mut missing = Vec::new();
        let mut nodes = Vec::new();
        for id in edge_ids {
            let done = sqlx::query("DELETE FROM edges WHERE conversation = $1 AND id = $2")
                .bind(number)
                .bind(id)
                .execute(&mut *transaction)
                .await?;
            if done.rows_affected() == 0 {
                missing.push(id.clone());
            }
        }
        for id in node_ids {
            let done = sqlx::query("DELETE FROM nodes WHERE conversation = $1 AND id = $2")
                .bind(number)
                .bind(id)
                .execute(&mut *transaction)
                .await?;
            if done.rows_affected() == 0 {
                missing.push(id.clone());
            } else {
                nodes.push(id.clone());
            }
        }
        let mut after = totals(&mut transaction, conversation).await?;
        let edges = before.edge_count - after.edge_count;
        if let Some(number) = number
            && (edges > 0 || !nodes.is_empty())
        {
            touch(&mut transaction, number).await?;
            after = totals(&mut transaction, conversation).await?;
        }
        transaction.commit().await?;
        Ok(Removed {
            nodes,
            edges,
            missing,
            totals: after,
        })
    }
}

impl Totals {
    /// `2 nodes and 1 edge`.
    pub(super) fn told(&self) -> String {
        let many = |count, one| super::many(usize::try_from(count).unwrap_or_default(), one);
        format!(
            "{} and {}",
            many(self.node_count, "node"),
            many(self.edge_count, "edge")
        )
    }
}

impl Upserted {
    fn changes(self) -> usize {
        self.added + self.updated
    }
}

async fn conversation_number(
    transaction: &mut Transaction<'_, Sqlite>,
    conversation: &str,
) -> Result<i64, ToolError> {
    sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO conversations (conversation_id, updated_at) VALUES ($1, {NOW}) \
         ON CONFLICT DO NOTHING"
    )))
    .bind(conversation)
    .execute(&mut **transaction)
    .await?;
    let number = sqlx::query_scalar("SELECT number FROM conversations WHERE conversation_id = $1")
        .bind(conversation)
        .fetch_one(&mut **transaction)
        .await?;
    Ok(number)
}

async fn touch(transaction: &mut Transaction<'_, Sqlite>, number: i64) -> Result<(), ToolError> {
    sqlx::query(AssertSqlSafe(format!(
        "UPDATE conversations SET updated_at = {NOW} WHERE number = $1"
    )))
    .bind(number)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

async fn totals(
    transaction: &mut Transaction<'_, Sqlite>,
    conversation: &str,
) -> Result<Totals, ToolError> {
    let row: Option<(i64, i64, String)> = sqlx::query_as(
        "SELECT (SELECT COUNT(*) FROM nodes WHERE conversation = c.number), \
         (SELECT COUNT(*) FROM edges WHERE conversation = c.number), updated_at \
         FROM conversations c WHERE conversation_id = $1",
    )
    .bind(conversation)
    .fetch_optional(&mut **transaction)
    .await?;
    Ok(row.map_or(
        Totals {
            node_count: 0,
            edge_count: 0,
            last_updated: None,
        },
        |(node_count, edge_count, updated)| Totals {
            node_count,
            edge_count,
            last_updated: Some(updated),
        },
    ))
}

async fn upsert_node(
    transaction: &mut Transaction<'_, Sqlite>,
    conversation: i64,
    node: Node,
    counts: &mut Upserted,
) -> Result<(), ToolError> {
    let old: Option<(i64, Option<String>, Option<String>, String)> = sqlx::query_as(
        "SELECT number, label, type, data FROM nodes WHERE conversation = $1 AND id = $2",
    )
    .bind(conversation)
    .bind(&node.id)
    .fetch_optional(&mut **transaction)
    .await?;
    let Some((number, label, kind, data)) = old else {
        counts.added += 1;
        sqlx::query(
            "INSERT INTO nodes (conversation, id, label, type, data) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(conversation)
        .bind(&node.id)
        .bind(&node.label)
        .bind(&node.kind)
        .bind(written(&node.data)?)
        .execute(&mut **transaction)
        .await?;
        return Ok(());
    };
    let old = Node {
        id: node.id.clone(),
        label,
        kind,
        data: read(&data),
    };
    let new = old.clone().join(node);
    if new == old {
        counts.unchanged += 1;
        return Ok(());
    }
    counts.updated += 1;
    sqlx::query("UPDATE nodes SET label = $2, type = $3, data = $4 WHERE number = $1")
        .bind(number)
        .bind(&new.label)
        .bind(&new.kind)
        .bind(written(&new.data)?)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

async fn upsert_edge(
    transaction: &mut Transaction<'_, Sqlite>,
    conversation: i64,
    edge: Edge,
    counts: &mut Upserted,
    missing: &mut Vec<String>,
) -> Result<(), ToolError> {
    let mut ends = [None, None];
    for (end, id) in ends.iter_mut().zip([&edge.source, &edge.target]) {
        *end = sqlx::query_scalar::<_, i64>(
            "SELECT number FROM nodes WHERE conversation = $1 AND id = $2",
        )
        .bind(conversation)
        .bind(id)
        .fetch_optional(&mut **transaction)
        .await?;
        if end.is_none() && !missing.contains(id) {
            missing.push(id.clone());
        }
    }
    let [Some(source), Some(target)] = ends else {
        return Ok(());
    };
    let id = edge.id.clone().unwrap_or_else(|| edge.made_id());
    let old: Option<(i64, String, String, String, String)> = sqlx::query_as(
        "SELECT e.number, s.id, t.id, e.label, e.data FROM edges e \
         JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
         WHERE e.conversation = $1 AND e.id = $2",
    )
    .bind(conversation)
    .bind(&id)
    .fetch_optional(&mut **transaction)
    .await?;
    let Some((number, old_source, old_target, label, data)) = old else {
        counts.added += 1;
        sqlx::query(
            "INSERT INTO edges (conversation, id, source, target, label, data) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(conversation)
        .bind(&id)
        .bind(source)
        .bind(target)
        .bind(&edge.label)
        .bind(written(&edge.data)?)
        .execute(&mut **transaction)
        .await?;
        return Ok(());
    };
    let old = Edge {
        id: edge.id.clone(),
        source: old_source,
        target: old_target,
        label,
        data: read(&data),
    };
    let new = old.clone().join(edge);
    if new == old {
        counts.unchanged += 1;
        return Ok(());
    }
    counts.updated += 1;
    sqlx::query(
        "UPDATE edges SET source = $2, target = $3, label = $4, data = $5 WHERE number = $1",
    )
    .bind(number)
    .bind(source)
    .bind(target)
    .bind(&new.label)
    .bind(written(&new.data)?)
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

fn unknown_ends(mut missing: Vec<String>) -> ToolError {
    let more = match missing.len().saturating_sub(10) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    missing.truncate(10);
    ToolError::Refused(format!(
        "Edges name nodes that are not in the graph: {}{more}. Nothing was added. Add these nodes \
         first, with add_nodes.",
        missing.join(", ")
    ))
}

/// As JSON, for the column `data`. Only a map with keys that are no strings could fail.
fn written(data: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(data).map_err(|error| ToolError::Refused(error.to_string()))
}

/// A list of ids as one parameter of a statement.
fn list(ids: &[String]) -> Result<String, ToolError> {
    written(&ids)
}

/// What another program wrote into the column is taken for nothing.
fn read<T: DeserializeOwned + Default>(data: &str) -> T {
    serde_json::from_str(data).unwrap_or_else(|error| {
        tracing::warn!(%error, "data of a node or edge cannot be read");
        T::default()
    })
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
