//! Features of the client that the configuration allows a server to use: roots and sampling.

#![allow(deprecated, reason = "servers of 2025-11-25 and older use roots")]

use std::path::Path;

use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Folder that a server should work in. A root only informs the server: it does not restrict the
/// access of the server process to the file system.
pub type Root = rmcp::model::Root;

/// Returns a root for an absolute path, named after its last component. Returns `None` for a
/// relative path.
pub fn root_from_path(path: &Path) -> Option<Root> {
    let root = Root::new(Url::from_file_path(path).ok()?);
    Some(match path.file_name() {
        Some(name) => root.with_name(name.to_string_lossy()),
        None => root,
    })
}

/// Limits of the model calls that one server may request, because the operator pays for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingLimits {
    /// Maximum number of model answers until the host is closed. Further requests are rejected.
    pub calls: u32,
    /// Maximum number of output tokens of one model answer. A request for more tokens gets this
    /// maximum instead.
    pub max_tokens: u32,
}

impl Default for SamplingLimits {
    /// Returns the default limits: 20 model answers with at most 2,048 tokens each.
    fn default() -> Self {
        Self {
            calls: 20,
            max_tokens: 2048,
        }
    }
}
