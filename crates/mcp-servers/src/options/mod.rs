//! Settings of bundled servers.

mod access_token;
mod bte;
mod workspace;

use std::path::PathBuf;

pub use access_token::{AccessToken, MIN_TOKEN_LENGTH};
pub use bte::BteOptions;
pub use workspace::WorkspaceOptions;

/// The settings of a bundled server. By default, its data is in memory, and over HTTP it accepts
/// only requests whose `Host` header is a loopback name or address, or the address of the server.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    pub(crate) data: Option<PathBuf>,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) token: Option<AccessToken>,
    pub(crate) workspace: Option<WorkspaceOptions>,
    pub(crate) bte: Option<BteOptions>,
}

impl ServerOptions {
    /// Creates the default settings of a bundled server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the data in this SQLite file. Creates a missing file with the initial data. The
    /// server `workspace` has no data and does not start with this option.
    #[must_use]
    pub fn with_data_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.data = Some(file.into());
        self
    }

    /// Accepts HTTP requests whose `Host` header contains this host name or address
    /// (`tools.example.com`, or `tools.example.com:8443` for one port). Also accepts requests from
    /// web pages of this host. If `host` has no port, the URL of the page must have the port of
    /// this server or the default port of its scheme.
    ///
    /// The server always accepts `localhost`, `127.0.0.1`, `::1` and its own address. It refuses
    /// other hosts, because a web page could point its own host name at this machine (DNS
    /// rebinding). May be called several times.
    #[must_use]
    pub fn with_allowed_host(mut self, host: impl Into<String>) -> Self {
        self.allowed_hosts.push(host.into());
        self
    }

    /// Accepts only HTTP requests with this access token. An address that other machines can reach
    /// requires a token.
    #[must_use]
    pub fn with_token(mut self, token: AccessToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets the options of the server `workspace`, which requires them.
    #[must_use]
    pub fn with_workspace(mut self, workspace: WorkspaceOptions) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Sets the options of the server `bte`, which requires them. If
    /// [`with_data_file`](Self::with_data_file) names a data file of the server `graph`, the tools
    /// of `bte` can add results to the graphs in this file.
    #[must_use]
    pub fn with_bte(mut self, bte: BteOptions) -> Self {
        self.bte = Some(bte);
        self
    }
}
