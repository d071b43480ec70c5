//! `find_connections`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    NodeRef,
    context::{DatabaseContext, conversation},
    find_node,
    model::{Edge, without_prefix},
    paths::Network,
    quantity,
    store::GraphStore,
};
use crate::tool::{BundledTool, ToolError, ToolOutput};

/// Maximum number of listed edges between two neighbours. There may be hundreds.
const MAX_EDGES_PER_STEP: usize = 10;

pub(super) struct FindConnections {
    pub(super) store: GraphStore,
}

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
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Follows edges only from their source to their target.
    #[serde(default)]
    directed: bool,
    /// Follows only edges with one of these labels, such as `affects`.
    #[schemars(length(min = 1, max = 50))]
    labels: Option<Vec<String>>,
    /// Added by the host: the conversation of this call.
    #[schemars(extend("writeOnly" = true))]
    database_context: Option<DatabaseContext>,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The start node.
    from: NodeRef,
    /// The end node.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<NodeRef>,
    /// The paths, the shortest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<Path>>,
    /// The neighbours, the nearest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbours: Option<Vec<Neighbour>>,
    /// Whether these are all paths or neighbours within the maximum length.
    complete: bool,
}

#[derive(Serialize, JsonSchema)]
struct Path {
    /// Number of edges.
    length: usize,
    /// The nodes, from one end to the other.
    nodes: Vec<NodeRef>,
    /// For each step, the edges between its two nodes.
    steps: Vec<Vec<Relation>>,
}

#[derive(Serialize, JsonSchema)]
struct Relation {
    /// The id of the edge.
    id: String,
    /// The id of its source.
    source: String,
    /// The id of its target.
    target: String,
    /// The label of the edge.
    label: String,
}

#[derive(Serialize, JsonSchema)]
struct Neighbour {
    #[serde(flatten)]
    node: NodeRef,
    /// Distance in edges.
    distance: usize,
    /// The edges to the node, for a distance of one edge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edges: Vec<Relation>,
}

impl BundledTool for FindConnections {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "find_connections";
    const TITLE: &'static str = "Find connections";
    const DESCRIPTION: &'static str = "Finds the paths between two nodes of the knowledge graph of this \
        conversation, the shortest first. Without `to`, it lists the neighbours of the node \
        `from`.";

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let conversation = conversation(input.database_context.as_ref());
        let from = find_node(&self.store, conversation, &input.from).await?;
        let to = match &input.to {
            Some(to) => Some(find_node(&self.store, conversation, to).await?),
            None => None,
        };
        let (nodes, mut edges) = self.store.outline(conversation).await?;
        if let Some(labels) = &input.labels {
            let labels: Vec<String> = labels
                .iter()
                .map(|it| without_prefix(it).to_lowercase())
                .collect();
            edges.retain(|edge| labels.contains(&edge.label.to_lowercase()));
        }
        let network = Network::new(nodes, edges);
        let removed = || ToolError::Refused("Another call removed the node. Try again.".to_owned());
        let start = network.index(&from.id).ok_or_else(removed)?;
        match to {
            Some(to) if to.id == from.id => Err(ToolError::Refused(
                "from and to are the same node.".to_owned(),
            )),
            Some(to) => {
                let end = network.index(&to.id).ok_or_else(removed)?;
                Ok(paths(&network, start, end, &input))
            }
            None => Ok(neighbours(&network, start, &input)),
        }
    }
}

fn paths(network: &Network, start: usize, end: usize, input: &Input) -> ToolOutput<Output> {
    let max_length = input.max_length.unwrap_or(3);
    let found = network.paths(start, end, max_length, input.directed, input.limit);
    let (from, to) = (node_ref(network, start), node_ref(network, end));
    let mut text = match found.paths.len() {
        0 if found.complete => format!(
            "No path of at most {} connects {} and {}{}.",
            quantity(max_length, "edge"),
            from.named(),
            to.named(),
            if input.directed {
                " in this direction"
            } else {
                ""
            }
        ),
        count => format!(
            "{} between {} and {}{}:",
            quantity(count, "path"),
            from.named(),
            to.named(),
            if found.complete {
                ""
            } else {
                ", and there are more"
            }
        ),
    };
    let paths: Vec<Path> = found
        .paths
        .iter()
        .map(|path| {
            let nodes: Vec<NodeRef> = path.iter().map(|node| node_ref(network, *node)).collect();
            let steps: Vec<Vec<Relation>> = path
                .windows(2)
                .map(|step| relations(network.between(step[0], step[1], input.directed)))
                .collect();
            text.push_str("\n- ");
            text.push_str(&nodes[0].named());
            for (node, step) in nodes.iter().skip(1).zip(&steps) {
                // Writing to a string cannot fail.
                let _ = write!(text, " {} {}", arrow(step, node), node.named());
            }
            Path {
                length: steps.len(),
                nodes,
                steps,
            }
        })
        .collect();
    ToolOutput {
        text,
        data: Output {
            from,
            to: Some(to),
            paths: Some(paths),
            neighbours: None,
            complete: found.complete,
        },
    }
}

fn neighbours(network: &Network, start: usize, input: &Input) -> ToolOutput<Output> {
    let max_distance = input.max_length.unwrap_or(1);
    let near = network.neighbours(start, max_distance, input.directed);
    let from = node_ref(network, start);
    let mut text = match near.len() {
        0 => format!("{} has no neighbours.", from.named()),
        count if count > input.limit => {
            format!("{} of {count} neighbours of {}:", input.limit, from.named())
        }
        count => format!("{} of {}:", quantity(count, "neighbour"), from.named()),
    };
    let listed: Vec<Neighbour> = near
        .iter()
        .take(input.limit)
        .map(|(index, distance)| {
            let node = node_ref(network, *index);
            let edges = relations(network.between(start, *index, input.directed));
            let _ = if edges.is_empty() {
                write!(
                    text,
                    "\n- {}, {distance} edges away",
                    node.named_with_type()
                )
            } else {
                write!(
                    text,
                    "\n- {} {}",
                    arrow(&edges, &node),
                    node.named_with_type()
                )
            };
            Neighbour {
                node,
                distance: *distance,
                edges,
            }
        })
        .collect();
    ToolOutput {
        text,
        data: Output {
            from,
            to: None,
            paths: None,
            complete: listed.len() == near.len(),
            neighbours: Some(listed),
        },
    }
}

fn node_ref(network: &Network, node: usize) -> NodeRef {
    NodeRef::from(&network.nodes[node])
}

fn relations(edges: Vec<&Edge>) -> Vec<Relation> {
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

/// Returns `–affects→`, `←affects–` or both, with each label once.
fn arrow(edges: &[Relation], to: &NodeRef) -> String {
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
