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
    tool::{BundledServer, server::ToolServer},
};
use add::{add_edges, add_nodes};
use analyze::analyze_node_relationships;
use connections::find_connections;
use remove::remove_from_graph;
use state::get_graph_state;
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
        get_graph_state(store.clone()),
        add_nodes(store.clone()),
        add_edges(store.clone()),
        remove_from_graph(store.clone()),
        find_connections(store.clone()),
        analyze_node_relationships(store),
    ];
    Ok(ToolServer::new(IDENTITY, instructions, tools))
}
