//! The folders a server may work in.

#![allow(
    deprecated,
    reason = "servers of the older era still want to know roots"
)]

use std::path::Path;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, timeout};

use crate::server::state::Server;

/// How long telling a server may take.
const TO_TELL: Duration = Duration::from_secs(1);

/// A folder that servers may work in, as MCP has it. It is told, not enforced: a server is a program
/// with its own access to the file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Its address, `file://…`.
    pub uri: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// The root of an absolute path, named after its last part; `None` for a relative one.
    pub fn folder(path: &Path) -> Option<Self> {
        let uri = Url::from_file_path(path).ok()?;
        let name = path.file_name();
        Some(Self {
            uri: uri.into(),
            name: name.map(|name| name.to_string_lossy().into_owned()),
        })
    }

    pub(super) fn to_mcp(&self) -> rmcp::model::Root {
        let root = rmcp::model::Root::new(self.uri.clone());
        match &self.name {
            Some(name) => root.with_name(name.clone()),
            None => root,
        }
    }
}

/// Gives a server the host's roots, and tells it if it wants to hear of that. (Since 2026-07-28 servers
/// are not told; they ask in every call anew.)
pub(crate) async fn replace_roots(server: &Server, roots: &[Root]) {
    if !server.asks.set_roots(roots) {
        return;
    }
    let Some(link) = server.now().link else {
        return;
    };
    let older_era = link
        .peer
        .peer_info()
        .is_some_and(|about| about.protocol_version.has_initialize());
    if older_era {
        let told = timeout(TO_TELL, link.peer.notify_roots_list_changed()).await;
        tracing::debug!(server = server.config.name, ?told, "roots changed");
    }
}
