//! `graph`: a stored knowledge graph for each conversation.

mod add;
mod analyze;
mod connections;
pub(crate) mod context;
pub(crate) mod knowledge_graph;
pub(crate) mod model;
mod paths;
mod remove;
mod state;
pub(crate) mod store;

use crate::{
    error::ServerError,
    options::ServerOptions,
    tool::{BundledServer, ServedTool, server::ToolServer},
};
use add::{AddEdges, AddNodes};
use analyze::AnalyzeNodeRelationships;
use connections::FindConnections;
use remove::RemoveFromGraph;
use state::GetGraphState;
use store::GraphStore;

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "graph",
    title: "Knowledge graph",
    description: "The knowledge graph of a conversation: nodes, edges, connections",
};

pub(crate) async fn open(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    let store = GraphStore::open(options.data.as_deref()).await?;
    let storage = if options.data.is_some() {
        "The graph is stored."
    } else {
        "The graph is lost when the server ends."
    };
    let instructions = format!(
        "A knowledge graph for each conversation. Node ids should be CURIEs such as NCBIGene:4353. \
         An edge is a relation from its source to its target, with its provenance. Adding can be \
         repeated: new data is merged with existing data. The nodes and edges in results of the \
         bundled bte server are valid arguments of add_nodes and add_edges. {storage}"
    );
    let tools = vec![
        ServedTool::new(GetGraphState(store.clone())),
        ServedTool::new(AddNodes(store.clone())),
        ServedTool::new(AddEdges(store.clone())),
        ServedTool::new(RemoveFromGraph(store.clone())),
        ServedTool::new(FindConnections(store.clone())),
        ServedTool::new(AnalyzeNodeRelationships(store)),
    ];
    Ok(ToolServer::new(IDENTITY, instructions, tools))
}
