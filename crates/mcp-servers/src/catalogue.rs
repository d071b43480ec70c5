//! Which servers there are, and how one is opened by its name.

use crate::{
    ServerError, ServerOptions, bte, customer_service, graph, tool_server::ToolServer, workspace,
};
use switchboard_domain::nearest::nearest;

/// A server of this crate, for lists and help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundledServer {
    /// The name it is started by, which it also gives to its clients.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it is for, in one line without a full stop.
    pub description: &'static str,
}

const CATALOGUE: &[BundledServer] = &[
    customer_service::IDENTITY,
    graph::IDENTITY,
    bte::IDENTITY,
    workspace::IDENTITY,
];

/// The bundled servers, in the order in which to show them.
pub fn catalogue() -> &'static [BundledServer] {
    CATALOGUE
}

/// Opens the data of a server and makes it ready to serve.
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
