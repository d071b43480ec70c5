//! `graph`: a stored knowledge graph for each conversation.

mod add;
mod analyze;
mod connections;
pub(crate) mod database_context;
pub(crate) mod knowledge_graph;
pub(crate) mod model;
mod paths;
mod read_graph;
mod remove;
pub(crate) mod store;

use crate::{
    error::ServerError,
    options::ServerOptions,
    tool::{AppPage, BundledServer, server::ToolServer},
};
use add::{add_edges_tool, add_nodes_tool};
use analyze::analyze_node_tool;
use connections::find_connections_tool;
use read_graph::graph_state_tool;
use remove::remove_from_graph_tool;
use store::GraphStore;

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "graph",
    title: "Knowledge graph",
    description: "The knowledge graph of a conversation: nodes, edges, connections",
};

/// The HTML page that displays a graph. It contains the drawing code of the web page in the crate
/// `server`, so that both pages show the same drawing. Its content security policy blocks the
/// network.
static VIEW: AppPage = AppPage {
    uri: "ui://graph/view",
    name: "Graph view",
    html: concat!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">",
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\"><title>Knowledge graph</title>",
        "<style>",
        include_str!("../../web/app.css"),
        include_str!("../../../server/web/graph.css"),
        "</style></head><body><main id=\"graph\"></main><script type=\"module\">",
        include_str!("../../../server/web/js/graph-view.js"),
        include_str!("../../web/app.js"),
        "</script></body></html>",
    ),
};

pub(crate) async fn open_server(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    let store = GraphStore::open(options.data.as_deref()).await?;
    let storage = match options.data {
        Some(_) => "The graph is stored.",
        None => "The graph is lost when the server stops.",
    };
    let instructions = format!(
        "A knowledge graph for each conversation. Node ids should be CURIEs such as NCBIGene:4353. \
         An edge is a relation from its source to its target, with its provenance. Adding can be \
         repeated: new data is merged with existing data. The nodes and edges in results of the \
         bundled bte server are valid arguments of add_nodes and add_edges. {storage}"
    );
    let tools = vec![
        graph_state_tool(store.clone()).with_app(&VIEW),
        add_nodes_tool(store.clone()),
        add_edges_tool(store.clone()),
        remove_from_graph_tool(store.clone()),
        find_connections_tool(store.clone()),
        analyze_node_tool(store),
    ];
    Ok(ToolServer::new(IDENTITY, instructions, tools))
}
