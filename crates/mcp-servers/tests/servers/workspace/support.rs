//! A workspace in a folder of its own, with things next to it that nobody may reach.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rmcp::model::{CallToolResult, ProtocolVersion};
use serde_json::Value;
use switchboard_mcp_servers::{ServerError, ServerOptions, WorkspaceOptions, serve_stream};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::client::{Client, call, connect, data, text};

/// What is in the files outside of the root, and must not be seen.
pub(crate) const SECRET: &str = "outside-of-the-root-7d1f";

pub(crate) struct Workspace {
    /// Holds `root` and what is outside of it.
    parent: TempDir,
    pub(crate) client: Client,
    pub(crate) server: JoinHandle<Result<(), ServerError>>,
}

/// A folder for a workspace, and secrets next to it.
pub(crate) fn folder() -> TempDir {
    let parent = tempfile::tempdir().unwrap();
    fs::create_dir_all(parent.path().join("root")).unwrap();
    fs::create_dir_all(parent.path().join("outside")).unwrap();
    for file in ["outside.txt", "outside/secret.txt", "outside/secret.csv"] {
        fs::write(parent.path().join(file), format!("{SECRET}\n1\n")).unwrap();
    }
    parent
}

pub(crate) fn write(root: &Path, file: &str, contents: impl AsRef<[u8]>) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

impl Workspace {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(set: impl FnOnce(&mut WorkspaceOptions)) -> Self {
        Self::of(folder(), set).await
    }

    pub(crate) async fn of(parent: TempDir, set: impl FnOnce(&mut WorkspaceOptions)) -> Self {
        let mut options = WorkspaceOptions::new(parent.path().join("root"));
        set(&mut options);
        let (client, server) = serve(options).await;
        Self {
            parent,
            client,
            server,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.parent.path().join("root")
    }

    pub(crate) fn parent(&self) -> &Path {
        self.parent.path()
    }

    pub(crate) fn write(&self, file: &str, contents: impl AsRef<[u8]>) {
        write(&self.root(), file, contents);
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.root().join(file)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        call(&self.client, tool, arguments).await
    }

    /// The structured content of a call that succeeds.
    pub(crate) async fn data(&self, tool: &str, arguments: Value) -> Value {
        data(self.call(tool, arguments).await)
    }

    /// The text of a call that is refused.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> String {
        let shown = format!("{tool} {arguments}");
        let result = self.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{shown}: {}", text(&result));
        assert_eq!(result.structured_content, None);
        text(&result).to_owned()
    }
}

pub(crate) async fn serve(
    options: WorkspaceOptions,
) -> (Client, JoinHandle<Result<(), ServerError>>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let options = ServerOptions::new().with_workspace(options);
    let server = tokio::spawn(async move {
        serve_stream("workspace", options, reader, writer, std::future::pending()).await
    });
    let client = connect(tokio::io::split(near), ProtocolVersion::LATEST).await;
    (client, server)
}
