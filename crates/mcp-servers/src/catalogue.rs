//! The list of MCP servers that this crate contains.

use crate::{
    bte, customer_service,
    error::ServerError,
    graph,
    options::ServerOptions,
    tool::{BundledServer, server::ToolServer},
    workspace,
};
use switchboard_domain::similar_names::find_nearest;

const CATALOGUE: &[BundledServer] = &[
    customer_service::IDENTITY,
    graph::IDENTITY,
    bte::IDENTITY,
    workspace::IDENTITY,
];

/// Returns all bundled servers, in a fixed order. Error messages list the names in this order.
pub fn catalogue() -> &'static [BundledServer] {
    CATALOGUE
}

/// Creates the bundled server `name` and opens the data file that `options` names, if any. Returns
/// [`ServerError::UnknownServer`] if no bundled server has this name.
pub(crate) async fn open_server(
    name: &str,
    options: &ServerOptions,
) -> Result<ToolServer, ServerError> {
    let known = || CATALOGUE.iter().map(|server| server.name);
    match name {
        _ if name == customer_service::IDENTITY.name => {
            customer_service::open_server(options).await
        }
        _ if name == graph::IDENTITY.name => graph::open_server(options).await,
        _ if name == bte::IDENTITY.name => bte::open_server(options).await,
        _ if name == workspace::IDENTITY.name => workspace::open_server(options).await,
        _ => Err(ServerError::UnknownServer {
            name: name.to_owned(),
            nearest: find_nearest(name, known()),
            known: known().collect(),
        }),
    }
}
