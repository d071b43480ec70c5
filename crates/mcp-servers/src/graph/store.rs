//! Statements of the tools on the database.

use std::{collections::HashMap, path::Path};

use rusqlite::{OptionalExtension as _, Params, Row, Transaction, params};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use super::model::{Edge, Node};
use crate::{
    ServerError,
    sqlite::{Database, Layout},
    tool::ToolError,
};

static LAYOUT: Layout = Layout {
    // "sbkg" in ASCII.
    application_id: 0x7362_6b67,
    version: 1,
    schema: include_str!("schema.sql"),
    seed: "",
};

/// Maximum number of nodes in the graph of a conversation.
pub(crate) const MAX_NODES: i64 = 20_000;
/// Maximum number of edges in the graph of a conversation.
pub(crate) const MAX_EDGES: i64 = 100_000;

/// Parameters: the conversation, a type or null, ids as a JSON list or null.
const MATCHING_NODES: &str = "FROM nodes n JOIN conversations c ON c.number = n.conversation \
    WHERE c.conversation_id = ?1 AND (?2 IS NULL OR lower(n.type) = lower(?2)) \
    AND (?3 IS NULL OR n.id IN (SELECT value FROM json_each(?3)))";

/// Parameters: the conversation, a label or null, the ids of nodes as a JSON list or null.
const MATCHING_EDGES: &str = "FROM edges e JOIN conversations c ON c.number = e.conversation \
    JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
    WHERE c.conversation_id = ?1 AND (?2 IS NULL OR lower(e.label) = lower(?2)) \
    AND (?3 IS NULL OR (s.id IN (SELECT value FROM json_each(?3)) \
                    AND t.id IN (SELECT value FROM json_each(?3))))";

const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";

/// The graphs of all conversations. Clones share one connection.
#[derive(Clone)]
pub(crate) struct GraphStore {
    database: Database,
}

/// The result of adding nodes or edges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Upserted {
    /// Number of new items.
    pub(crate) added: usize,
    /// Number of existing items with new data.
    pub(crate) updated: usize,
    /// Number of existing items without new data.
    pub(crate) unchanged: usize,
}

/// Size of the graph of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Totals {
    /// Number of nodes.
    pub(crate) node_count: i64,
    /// Number of edges.
    pub(crate) edge_count: i64,
    /// Time of the last change (RFC 3339). Missing without a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_updated: Option<String>,
}

/// A filter for nodes and edges. All conditions must hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    pub(super) node_type: Option<String>,
    pub(super) edge_label: Option<String>,
    /// Only these nodes and the edges between them.
    pub(super) node_ids: Option<Vec<String>>,
    pub(super) limit: i64,
    pub(super) offset: i64,
}

/// A page of a graph.
pub(super) struct Page {
    pub(super) totals: Totals,
    pub(super) matching_nodes: i64,
    pub(super) matching_edges: i64,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// Labels of the nodes at the ends of these edges, by node id. The nodes may be on other pages.
    pub(super) ends: HashMap<String, Option<String>>,
    /// Types of all nodes, the most frequent first.
    pub(super) node_types: Vec<(String, i64)>,
    /// Labels of all edges, the most frequent first.
    pub(super) edge_types: Vec<(String, i64)>,
}

/// The result of a removal.
pub(super) struct Removed {
    pub(super) nodes: Vec<String>,
    /// Number of the given edges and of the edges of removed nodes.
    pub(super) edges: i64,
    /// Unknown ids of nodes and edges.
    pub(super) missing: Vec<String>,
    pub(super) totals: Totals,
}

impl GraphStore {
    /// Opens the store in memory or in a file.
    pub(crate) async fn open(file: Option<&Path>) -> Result<Self, ServerError> {
        let database = Database::open(&LAYOUT, file).await?;
        Ok(Self { database })
    }

    /// Adds nodes and edges, or merges them with existing ones. If one cannot be added, none is.
    /// The caller has validated them.
    pub(crate) async fn upsert(
        &self,
        conversation: &str,
        nodes: Vec<Node>,
        edges: Vec<Edge>,
    ) -> Result<(Upserted, Upserted, Totals), ToolError> {
        let conversation = conversation.to_owned();
        let write = self.database.write(move |transaction| {
            let number = conversation_number(transaction, &conversation)?;
            let mut for_nodes = Upserted::default();
            for node in nodes {
                upsert_node(transaction, number, node, &mut for_nodes)?;
            }
            let mut for_edges = Upserted::default();
            let mut missing: Vec<String> = Vec::new();
            for edge in edges {
                upsert_edge(transaction, number, edge, &mut for_edges, &mut missing)?;
            }
            if !missing.is_empty() {
                return Err(unknown_ends(missing));
            }
            if for_nodes.changes() + for_edges.changes() > 0 {
                set_update_time(transaction, number)?;
            }
            let totals = totals(transaction, &conversation)?;
            if totals.node_count > MAX_NODES || totals.edge_count > MAX_EDGES {
                return Err(ToolError::Refused(format!(
                    "The graph would have {} nodes and {} edges; at most {MAX_NODES} nodes and \
                     {MAX_EDGES} edges are possible. Nothing was added.",
                    totals.node_count, totals.edge_count
                )));
            }
            Ok((for_nodes, for_edges, totals))
        });
        write.await
    }

    /// Returns a page of the graph. Nodes and edges have the order in which they were added.
    pub(super) async fn page(
        &self,
        conversation: &str,
        filter: &Filter,
    ) -> Result<Page, ToolError> {
        let (conversation, filter) = (conversation.to_owned(), filter.clone());
        let read = self
            .database
            .read(move |transaction| page(transaction, &conversation, &filter));
        read.await
    }

    /// Returns all nodes and edges without their `data`.
    pub(super) async fn outline(
        &self,
        conversation: &str,
    ) -> Result<(Vec<Node>, Vec<Edge>), ToolError> {
        let conversation = conversation.to_owned();
        let read = self.database.read(move |transaction| {
            let nodes = rows(
                transaction,
                "SELECT n.id, n.label, n.type, '{}' FROM nodes n \
                 JOIN conversations c ON c.number = n.conversation WHERE c.conversation_id = ?1 \
                 ORDER BY n.number",
                [&conversation],
                |row| node_at(row, 0),
            )?;
            let edges = rows(
                transaction,
                "SELECT e.id, s.id, t.id, e.label, '{}' FROM edges e \
                 JOIN conversations c ON c.number = e.conversation \
                 JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
                 WHERE c.conversation_id = ?1 ORDER BY e.number",
                [&conversation],
                edge,
            )?;
            Ok((nodes, edges))
        });
        read.await
    }

    /// Returns the edges of a node, each with the node at its other end.
    pub(super) async fn edges_at(
        &self,
        conversation: &str,
        node_id: &str,
    ) -> Result<Vec<(Edge, Node)>, ToolError> {
        let parameters = [conversation.to_owned(), node_id.to_owned()];
        let read = self.database.read(move |transaction| {
            rows(
                transaction,
                "SELECT e.id, s.id, t.id, e.label, e.data, o.id, o.label, o.type, '{}' \
                 FROM edges e JOIN conversations c ON c.number = e.conversation \
                 JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
                 JOIN nodes o ON o.number = CASE WHEN s.id = ?2 THEN e.target ELSE e.source END \
                 WHERE c.conversation_id = ?1 AND (s.id = ?2 OR t.id = ?2) ORDER BY e.number",
                parameters,
                |row| Ok((edge(row)?, node_at(row, 5)?)),
            )
        });
        read.await
    }

    /// Returns the nodes with this id or label in any case, without `data`. An exact id is first.
    pub(super) async fn named(
        &self,
        conversation: &str,
        name: &str,
    ) -> Result<Vec<Node>, ToolError> {
        let parameters = [conversation.to_owned(), name.to_owned()];
        let read = self.database.read(move |transaction| {
            rows(
                transaction,
                "SELECT n.id, n.label, n.type, '{}' FROM nodes n \
                 JOIN conversations c ON c.number = n.conversation WHERE c.conversation_id = ?1 \
                 AND (lower(n.id) = lower(?2) OR lower(n.label) = lower(?2)) \
                 ORDER BY n.id <> ?2, lower(n.id) <> lower(?2), n.number LIMIT 6",
                parameters,
                |row| node_at(row, 0),
            )
        });
        read.await
    }

    /// Returns the ids of the latest nodes, for suggestions.
    pub(super) async fn node_ids(&self, conversation: &str) -> Result<Vec<String>, ToolError> {
        let conversation = conversation.to_owned();
        let read = self.database.read(move |transaction| {
            rows(
                transaction,
                "SELECT n.id FROM nodes n JOIN conversations c ON c.number = n.conversation \
                 WHERE c.conversation_id = ?1 ORDER BY n.number DESC LIMIT 2000",
                [conversation],
                |row| row.get(0),
            )
        });
        read.await
    }

    /// Removes nodes with their edges, and edges. The result lists unknown ids.
    pub(super) async fn remove(
        &self,
        conversation: &str,
        node_ids: &[String],
        edge_ids: &[String],
    ) -> Result<Removed, ToolError> {
        let conversation = conversation.to_owned();
        let (node_ids, edge_ids) = (node_ids.to_vec(), edge_ids.to_vec());
        let write = self
            .database
            .write(move |transaction| remove(transaction, &conversation, node_ids, edge_ids));
        write.await
    }
}

fn page(
    transaction: &Transaction<'_>,
    conversation: &str,
    filter: &Filter,
) -> Result<Page, ToolError> {
    let ids = filter.node_ids.as_ref().map(to_json).transpose()?;
    let of_nodes = params![conversation, filter.node_type, ids];
    let of_edges = params![conversation, filter.edge_label, ids];
    let matching_nodes = transaction.query_row(
        &format!("SELECT COUNT(*) {MATCHING_NODES}"),
        of_nodes,
        |row| row.get(0),
    )?;
    let matching_edges = transaction.query_row(
        &format!("SELECT COUNT(*) {MATCHING_EDGES}"),
        of_edges,
        |row| row.get(0),
    )?;
    let Filter { limit, offset, .. } = filter;
    let nodes = rows(
        transaction,
        &format!(
            "SELECT n.id, n.label, n.type, n.data {MATCHING_NODES} \
             ORDER BY n.number LIMIT {limit} OFFSET {offset}"
        ),
        of_nodes,
        |row| node_at(row, 0),
    )?;
    let mut ends = HashMap::new();
    let edges = rows(
        transaction,
        &format!(
            "SELECT e.id, s.id, t.id, e.label, e.data, s.label, t.label {MATCHING_EDGES} \
             ORDER BY e.number LIMIT {limit} OFFSET {offset}"
        ),
        of_edges,
        |row| {
            let edge = edge(row)?;
            ends.insert(edge.source.clone(), row.get(5)?);
            ends.insert(edge.target.clone(), row.get(6)?);
            Ok(edge)
        },
    )?;
    let counts = |of| {
        let sql = format!(
            "SELECT {of} JOIN conversations c ON c.number = x.conversation \
             WHERE c.conversation_id = ?1 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 50"
        );
        rows(transaction, &sql, [conversation], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    };
    Ok(Page {
        totals: totals(transaction, conversation)?,
        matching_nodes,
        matching_edges,
        nodes,
        edges,
        ends,
        node_types: counts("COALESCE(x.type, 'other'), COUNT(*) FROM nodes x")?,
        edge_types: counts("x.label, COUNT(*) FROM edges x")?,
    })
}

fn remove(
    transaction: &Transaction<'_>,
    conversation: &str,
    node_ids: Vec<String>,
    edge_ids: Vec<String>,
) -> Result<Removed, ToolError> {
    let number: Option<i64> = transaction
        .query_row(
            "SELECT number FROM conversations WHERE conversation_id = ?1",
            [conversation],
            |row| row.get(0),
        )
        .optional()?;
    let before = totals(transaction, conversation)?;
    let mut delete_edge =
        transaction.prepare("DELETE FROM edges WHERE conversation = ?1 AND id = ?2")?;
    let mut delete_node =
        transaction.prepare("DELETE FROM nodes WHERE conversation = ?1 AND id = ?2")?;
    let (mut nodes, mut missing) = (Vec::new(), Vec::new());
    for id in edge_ids {
        if delete_edge.execute(params![number, id])? == 0 {
            missing.push(id);
        }
    }
    for id in node_ids {
        if delete_node.execute(params![number, id])? == 0 {
            missing.push(id);
        } else {
            nodes.push(id);
        }
    }
    let mut after = totals(transaction, conversation)?;
    let edges = before.edge_count - after.edge_count;
    if let Some(number) = number
        && (edges > 0 || !nodes.is_empty())
    {
        set_update_time(transaction, number)?;
        after = totals(transaction, conversation)?;
    }
    Ok(Removed {
        nodes,
        edges,
        missing,
        totals: after,
    })
}

/// Reads all rows of a statement.
fn rows<T>(
    transaction: &Transaction<'_>,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, ToolError> {
    let mut statement = transaction.prepare(sql)?;
    let rows = statement.query_map(parameters, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads a node from four columns: id, label, type, data.
fn node_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Node> {
    Ok(Node {
        id: row.get(column)?,
        label: row.get(column + 1)?,
        kind: row.get(column + 2)?,
        data: from_json(&row.get::<_, String>(column + 3)?),
    })
}

/// Reads an edge from the first five columns: id, source, target, label, data.
fn edge(row: &Row<'_>) -> rusqlite::Result<Edge> {
    Ok(Edge {
        id: row.get(0)?,
        source: row.get(1)?,
        target: row.get(2)?,
        label: row.get(3)?,
        data: from_json(&row.get::<_, String>(4)?),
    })
}

impl Totals {
    /// Returns a text such as `2 nodes and 1 edge`.
    pub(super) fn describe(&self) -> String {
        let quantity =
            |count, noun| super::quantity(usize::try_from(count).unwrap_or_default(), noun);
        format!(
            "{} and {}",
            quantity(self.node_count, "node"),
            quantity(self.edge_count, "edge")
        )
    }
}

impl Upserted {
    fn changes(self) -> usize {
        self.added + self.updated
    }
}

fn conversation_number(
    transaction: &Transaction<'_>,
    conversation: &str,
) -> Result<i64, ToolError> {
    transaction.execute(
        &format!(
            "INSERT INTO conversations (conversation_id, updated_at) VALUES (?1, {NOW}) \
             ON CONFLICT DO NOTHING"
        ),
        [conversation],
    )?;
    let number = transaction.query_row(
        "SELECT number FROM conversations WHERE conversation_id = ?1",
        [conversation],
        |row| row.get(0),
    )?;
    Ok(number)
}

fn set_update_time(transaction: &Transaction<'_>, number: i64) -> Result<(), ToolError> {
    let sql = format!("UPDATE conversations SET updated_at = {NOW} WHERE number = ?1");
    transaction.execute(&sql, [number])?;
    Ok(())
}

fn totals(transaction: &Transaction<'_>, conversation: &str) -> Result<Totals, ToolError> {
    let totals = transaction.query_row(
        "SELECT (SELECT COUNT(*) FROM nodes WHERE conversation = c.number), \
         (SELECT COUNT(*) FROM edges WHERE conversation = c.number), updated_at \
         FROM conversations c WHERE conversation_id = ?1",
        [conversation],
        |row| {
            Ok(Totals {
                node_count: row.get(0)?,
                edge_count: row.get(1)?,
                last_updated: row.get(2)?,
            })
        },
    );
    Ok(totals.optional()?.unwrap_or_default())
}

fn upsert_node(
    transaction: &Transaction<'_>,
    conversation: i64,
    node: Node,
    counts: &mut Upserted,
) -> Result<(), ToolError> {
    let mut select = transaction.prepare_cached(
        "SELECT id, label, type, data, number FROM nodes WHERE conversation = ?1 AND id = ?2",
    )?;
    let old = select.query_row(params![conversation, node.id], |row| {
        Ok((node_at(row, 0)?, row.get::<_, i64>(4)?))
    });
    let Some((old, number)) = old.optional()? else {
        counts.added += 1;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO nodes (conversation, id, label, type, data) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let data = to_json(&node.data)?;
        insert.execute(params![conversation, node.id, node.label, node.kind, data])?;
        return Ok(());
    };
    let new = old.clone().merge(node);
    if new == old {
        counts.unchanged += 1;
        return Ok(());
    }
    counts.updated += 1;
    let mut update = transaction
        .prepare_cached("UPDATE nodes SET label = ?2, type = ?3, data = ?4 WHERE number = ?1")?;
    update.execute(params![number, new.label, new.kind, to_json(&new.data)?])?;
    Ok(())
}

fn upsert_edge(
    transaction: &Transaction<'_>,
    conversation: i64,
    edge: Edge,
    counts: &mut Upserted,
    missing: &mut Vec<String>,
) -> Result<(), ToolError> {
    let mut find_node = transaction
        .prepare_cached("SELECT number FROM nodes WHERE conversation = ?1 AND id = ?2")?;
    let mut find = |id: &String| -> Result<Option<i64>, ToolError> {
        let found = find_node.query_row(params![conversation, id], |row| row.get(0));
        let number = found.optional()?;
        if number.is_none() && !missing.contains(id) {
            missing.push(id.clone());
        }
        Ok(number)
    };
    let (source, target) = (find(&edge.source)?, find(&edge.target)?);
    let (Some(source), Some(target)) = (source, target) else {
        return Ok(());
    };
    let id = edge.id.clone().unwrap_or_else(|| edge.default_id());
    let mut select = transaction.prepare_cached(
        "SELECT e.id, s.id, t.id, e.label, e.data, e.number FROM edges e \
         JOIN nodes s ON s.number = e.source JOIN nodes t ON t.number = e.target \
         WHERE e.conversation = ?1 AND e.id = ?2",
    )?;
    let old = select.query_row(params![conversation, id], |row| {
        Ok((self::edge(row)?, row.get::<_, i64>(5)?))
    });
    let Some((old, number)) = old.optional()? else {
        counts.added += 1;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO edges (conversation, id, source, target, label, data) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let data = to_json(&edge.data)?;
        insert.execute(params![conversation, id, source, target, edge.label, data])?;
        return Ok(());
    };
    let old = Edge {
        id: edge.id.clone(),
        ..old
    };
    let new = old.clone().merge(edge);
    if new == old {
        counts.unchanged += 1;
        return Ok(());
    }
    counts.updated += 1;
    let mut update = transaction.prepare_cached(
        "UPDATE edges SET source = ?2, target = ?3, label = ?4, data = ?5 WHERE number = ?1",
    )?;
    let data = to_json(&new.data)?;
    update.execute(params![number, source, target, new.label, data])?;
    Ok(())
}

fn unknown_ends(mut missing: Vec<String>) -> ToolError {
    let more = match missing.len().saturating_sub(10) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    missing.truncate(10);
    ToolError::Refused(format!(
        "Edges have unknown nodes: {}{more}. Nothing was added. Add these nodes first with \
         add_nodes.",
        missing.join(", ")
    ))
}

/// Serializes `data`, or a list of ids for one parameter of a statement.
fn to_json(data: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(data).map_err(|error| ToolError::Refused(error.to_string()))
}

/// Parses the column `data`. Returns an empty value for text that another program wrote.
fn from_json<T: DeserializeOwned + Default>(data: &str) -> T {
    serde_json::from_str(data).unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to parse the data of a node or edge");
        T::default()
    })
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
