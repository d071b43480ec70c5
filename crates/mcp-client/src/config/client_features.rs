//! Features of the client that a server may use: roots and sampling.

#![allow(deprecated, reason = "servers of 2025-11-25 and older use roots")]

use std::path::Path;

use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Folder that servers may use (MCP root). Roots inform the server but restrict nothing: a server
/// process has its own access to the file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// URI of the folder, starting with `file://`.
    pub uri: String,
    /// Display name of the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// Creates the root of an absolute path, named after its last component. Returns `None` for a
    /// relative path.
    pub fn folder(path: &Path) -> Option<Self> {
        let uri = Url::from_file_path(path).ok()?;
        let name = path.file_name();
        Some(Self {
            uri: uri.into(),
            name: name.map(|name| name.to_string_lossy().into_owned()),
        })
    }

    pub(crate) fn to_mcp(&self) -> rmcp::model::Root {
        let root = rmcp::model::Root::new(self.uri.clone());
        match &self.name {
            Some(name) => root.with_name(name.clone()),
            None => root,
        }
    }
}

/// Sampling limits of one server, because the operator of the host pays for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingLimits {
    /// Maximum number of model answers until the host is closed.
    pub calls: u32,
    /// Maximum number of tokens of one model answer. Larger requests are reduced to this limit.
    pub max_tokens: u32,
}

impl Default for SamplingLimits {
    /// Returns limits of 20 model answers with 2,048 tokens each.
    fn default() -> Self {
        Self {
            calls: 20,
            max_tokens: 2048,
        }
    }
}
