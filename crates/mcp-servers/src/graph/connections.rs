//! The tool `find_connections`, which finds paths and neighbours.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    database_context::{DatabaseContext, conversation_id},
    knowledge_graph::{KnowledgeGraph, NodeRef},
    model::{Edge, Node, strip_biolink},
    paths::AdjacencyIndex,
    store::GraphStore,
};
use crate::{
    text::format_quantity,
    tool::{BundledTool, ToolError, ToolOutput, ToolResult, default_number},
};

/// Maximum number of edges that are listed for one pair of adjacent nodes. A pair may have hundreds
/// of edges.
const MAX_EDGES_PER_STEP: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The id of the start node.
    #[schemars(length(min = 1, max = 500))]
    from: String,
    /// The id of the end node. Without it, the neighbours of `from` are listed.
    #[schemars(length(min = 1, max = 500))]
    to: Option<String>,
    /// Maximum number of edges of a path or to a neighbour. The default is 3 for paths and 1 for
    /// neighbours.
    #[schemars(range(min = 1, max = 6))]
    max_length: Option<usize>,
    /// Maximum number of paths or neighbours to list.
    #[serde(default = "default_number::<10>")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Follows edges only from their source to their target.
    #[serde(default)]
    directed: bool,
    /// Follows only edges with one of these labels, such as `affects`.
    #[schemars(length(min = 1, max = 50))]
    labels: Option<Vec<String>>,
    /// Added by the host, not by the model: the conversation to which this call belongs.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The start node of the paths, or the node whose neighbours are listed.
    from: NodeRef,
    /// The end node of the paths. Missing if neighbours are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<NodeRef>,
    /// The paths between both nodes, the shortest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<Path>>,
    /// The neighbours of the start node, the nearest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbours: Option<Vec<Neighbour>>,
    /// Whether all paths or neighbours within the maximum length are listed.
    complete: bool,
}

#[derive(Serialize, JsonSchema)]
struct Path {
    /// Number of edges of the path.
    length: usize,
    /// The nodes of the path, from the start to the end.
    nodes: Vec<NodeRef>,
    /// For each step of the path, the edges between its two nodes.
    steps: Vec<Vec<Relation>>,
}

#[derive(Serialize, JsonSchema)]
struct Relation {
    /// The id of the edge.
    id: String,
    /// The id of the node at which the edge starts.
    source: String,
    /// The id of the node at which the edge ends.
    target: String,
    /// The label of the edge.
    label: String,
}

#[derive(Serialize, JsonSchema)]
struct Neighbour {
    #[serde(flatten)]
    node: NodeRef,
    /// Distance from the start node in edges.
    distance: usize,
    /// The edges between the start node and this node, if the distance is one edge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edges: Vec<Relation>,
}

pub(super) fn find_connections_tool(store: GraphStore) -> BundledTool {
    BundledTool::new(
        "find_connections",
        "Find connections",
        "Finds the paths between two nodes of the knowledge graph of this conversation, the \
         shortest first. Without `to`, it lists the neighbours of the node `from`.",
        store,
        run_tool,
    )
}

async fn run_tool(store: GraphStore, input: Input) -> ToolResult<Output> {
    let conversation = conversation_id(input.database_context.as_ref());
    let graph = store.load_graph(conversation).await?;
    let labels: Option<Vec<&str>> = input
        .labels
        .as_ref()
        .map(|labels| labels.iter().map(|it| strip_biolink(it)).collect());
    let network = AdjacencyIndex::new(&graph, |edge| {
        let labels = labels.as_ref();
        labels.is_none_or(|it| it.iter().any(|it| it.eq_ignore_ascii_case(&edge.label)))
    });
    let search = ConnectionSearch {
        graph: &graph,
        network,
        input: &input,
    };
    let from = graph.find_node(&input.from)?;
    match &input.to {
        None => Ok(search.list_neighbours(from)),
        Some(to) => {
            let to = graph.find_node(to)?;
            if to.id == from.id {
                let text = "from and to are the same node.".to_owned();
                return Err(ToolError::Refused(text));
            }
            Ok(search.find_paths(from, to))
        }
    }
}

struct ConnectionSearch<'a> {
    graph: &'a KnowledgeGraph,
    network: AdjacencyIndex<'a>,
    input: &'a Input,
}

impl ConnectionSearch<'_> {
    fn find_paths(&self, from: &Node, to: &Node) -> ToolOutput<Output> {
        let input = self.input;
        let max_length = input.max_length.unwrap_or(3);
        let (start, end) = (self.node_index(from), self.node_index(to));
        let found = self
            .network
            .find_paths(start, end, max_length, input.directed, input.limit);
        let (from, to) = (NodeRef::from(from), NodeRef::from(to));
        let ends = format!("{} and {}", from.name_and_id(), to.name_and_id());
        let mut text = match (found.paths.len(), found.complete) {
            (0, true) => {
                let length = format_quantity(max_length, "edge");
                let direction = if input.directed {
                    " in this direction"
                } else {
                    ""
                };
                format!("No path of at most {length} connects {ends}{direction}.")
            }
            (count, true) => format!("{} between {ends}:", format_quantity(count, "path")),
            (count, false) => {
                let paths = format_quantity(count, "path");
                format!("{paths} between {ends}, and there are more:")
            }
        };
        let paths: Vec<Path> = found
            .paths
            .iter()
            .map(|path| {
                let nodes: Vec<NodeRef> = path.iter().map(|node| self.node_ref(*node)).collect();
                let steps: Vec<Vec<Relation>> = path
                    .windows(2)
                    .map(|step| {
                        to_relations(self.network.edges_between(step[0], step[1], input.directed))
                    })
                    .collect();
                text.push_str("\n- ");
                text.push_str(&nodes[0].name_and_id());
                for (node, step) in nodes.iter().skip(1).zip(&steps) {
                    let _ = write!(text, " {} {}", format_arrow(step, node), node.name_and_id());
                }
                Path {
                    length: steps.len(),
                    nodes,
                    steps,
                }
            })
            .collect();
        let data = Output {
            from,
            to: Some(to),
            paths: Some(paths),
            neighbours: None,
            complete: found.complete,
        };
        ToolOutput { text, data }
    }

    fn list_neighbours(&self, from: &Node) -> ToolOutput<Output> {
        let (start, input) = (self.node_index(from), self.input);
        let max_distance = input.max_length.unwrap_or(1);
        let near = self
            .network
            .find_neighbours(start, max_distance, input.directed);
        let from = NodeRef::from(from);
        let name = from.name_and_id();
        let mut text = match near.len() {
            0 => format!("{name} has no neighbours."),
            count if count > input.limit => {
                format!("{} of {count} neighbours of {name}:", input.limit)
            }
            count => format!("{} of {name}:", format_quantity(count, "neighbour")),
        };
        let listed: Vec<Neighbour> = near
            .iter()
            .take(input.limit)
            .map(|(index, distance)| {
                let node = self.node_ref(*index);
                let edges = to_relations(self.network.edges_between(start, *index, input.directed));
                let name = node.name_id_and_type();
                let _ = if edges.is_empty() {
                    write!(text, "\n- {name}, {distance} edges away")
                } else {
                    write!(text, "\n- {} {name}", format_arrow(&edges, &node))
                };
                Neighbour {
                    node,
                    distance: *distance,
                    edges,
                }
            })
            .collect();
        let data = Output {
            from,
            to: None,
            paths: None,
            complete: listed.len() == near.len(),
            neighbours: Some(listed),
        };
        ToolOutput { text, data }
    }

    fn node_index(&self, node: &Node) -> usize {
        self.graph.nodes.get_index_of(&node.id).unwrap_or_default()
    }

    fn node_ref(&self, index: usize) -> NodeRef {
        NodeRef::from(&self.graph.nodes[index])
    }
}

fn to_relations(edges: Vec<&Edge>) -> Vec<Relation> {
    let edges = edges.into_iter().take(MAX_EDGES_PER_STEP);
    edges
        .map(|edge| Relation {
            id: edge.id.clone().unwrap_or_default(),
            source: edge.source.clone(),
            target: edge.target.clone(),
            label: edge.label.clone(),
        })
        .collect()
}

/// Formats the edges between a node and the node `to`: `–affects→` for edges to `to`, `←affects–`
/// for edges from `to`, or both. Contains each label once for each direction.
fn format_arrow(edges: &[Relation], to: &NodeRef) -> String {
    let labels = |forward: bool| {
        let mut labels: Vec<&str> = Vec::new();
        for edge in edges
            .iter()
            .filter(|edge| (edge.target == to.id) == forward)
        {
            if !labels.contains(&edge.label.as_str()) {
                labels.push(&edge.label);
            }
        }
        labels.join(", ")
    };
    match (labels(true).as_str(), labels(false).as_str()) {
        (forward, "") => format!("–{forward}→"),
        ("", backward) => format!("←{backward}–"),
        (forward, backward) => format!("–{forward}→ and ←{backward}–"),
    }
}
