//! Features of the client that a server may use: roots and sampling.

#![allow(deprecated, reason = "servers of 2025-11-25 and older use roots")]

use std::path::Path;

use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Folder that servers may use. Roots inform a server but restrict nothing: a server process has
/// its own access to the file system.
pub type Root = rmcp::model::Root;

/// Creates the root of an absolute path, named after its last component. Returns `None` for a
/// relative path.
pub fn root_from_path(path: &Path) -> Option<Root> {
    let root = Root::new(Url::from_file_path(path).ok()?);
    Some(match path.file_name() {
        Some(name) => root.with_name(name.to_string_lossy()),
        None => root,
    })
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
