//! How a bundled server is started.

use std::path::{Path, PathBuf};

use crate::{AccessToken, BteOptions, WorkspaceOptions};

/// What can be set when a bundled server is started. The default keeps its data in memory and
/// answers only requests that are addressed to this machine.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    data: Option<PathBuf>,
    allowed_hosts: Vec<String>,
    token: Option<AccessToken>,
    workspace: Option<WorkspaceOptions>,
    bte: Option<BteOptions>,
}

impl ServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the data in this SQLite file instead of in memory. A file that is not there is created
    /// and filled; what is written to it stays.
    #[must_use]
    pub fn with_data(mut self, file: impl Into<PathBuf>) -> Self {
        self.data = Some(file.into());
        self
    }

    /// Over HTTP, also accepts requests for this host name or address (`tools.example.com`, or
    /// `tools.example.com:8443` for one port only), and browsers whose page comes from there. Without a
    /// port, the page must come from the port that is listened on, or from the default port of its scheme.
    ///
    /// Without it only `localhost`, `127.0.0.1`, `::1` and the address listened on are accepted, so
    /// that a web page cannot reach the server through a name that it points at this machine
    /// (DNS rebinding). May be called more than once.
    #[must_use]
    pub fn with_allowed_host(mut self, host: impl Into<String>) -> Self {
        self.allowed_hosts.push(host.into());
        self
    }

    /// Over HTTP, answers only requests that send this token. An address that other machines can reach
    /// needs one.
    #[must_use]
    pub fn with_token(mut self, token: AccessToken) -> Self {
        self.token = Some(token);
        self
    }

    /// What the server `workspace` may do and where, which it does not start without.
    #[must_use]
    pub fn with_workspace(mut self, workspace: WorkspaceOptions) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Which service the server `bte` asks, which it does not start without. With
    /// [`with_data`](Self::with_data) and the file of the server `graph`, it can add to that graph.
    #[must_use]
    pub fn with_bte(mut self, bte: BteOptions) -> Self {
        self.bte = Some(bte);
        self
    }

    pub(crate) fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    pub(crate) fn allowed_hosts(&self) -> &[String] {
        &self.allowed_hosts
    }

    pub(crate) fn token(&self) -> Option<&AccessToken> {
        self.token.as_ref()
    }

    pub(crate) fn bte(&self) -> Option<&BteOptions> {
        self.bte.as_ref()
    }

    pub(crate) fn workspace(&self) -> Option<&WorkspaceOptions> {
        self.workspace.as_ref()
    }
}
