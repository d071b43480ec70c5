//! The list of bundled servers.

use crate::{
    ServerError, ServerOptions, bte, customer_service, graph, tool_server::ToolServer, workspace,
};
use switchboard_domain::nearest::nearest;

/// Name and description of a bundled server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundledServer {
    /// The name on the command line and in the protocol.
    pub name: &'static str,
    /// The display name.
    pub title: &'static str,
    /// The purpose, in one line without a full stop.
    pub description: &'static str,
}

const CATALOGUE: &[BundledServer] = &[
    customer_service::IDENTITY,
    graph::IDENTITY,
    bte::IDENTITY,
    workspace::IDENTITY,
];

/// Returns the bundled servers in display order.
pub fn catalogue() -> &'static [BundledServer] {
    CATALOGUE
}

/// Opens a server and its data.
pub(crate) async fn open(name: &str, options: &ServerOptions) -> Result<ToolServer, ServerError> {
    if name == customer_service::IDENTITY.name {
        return customer_service::open(options).await;
    }
    if name == graph::IDENTITY.name {
        return graph::open(options).await;
    }
    if name == bte::IDENTITY.name {
        return bte::open(options).await;
    }
    if name == workspace::IDENTITY.name {
        return workspace::open(options).await;
    }
    let known = || CATALOGUE.iter().map(|server| server.name);
    Err(ServerError::UnknownServer {
        name: name.to_owned(),
        nearest: nearest(name, known()),
        known: known().collect(),
    })
}
