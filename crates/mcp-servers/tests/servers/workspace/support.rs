//! A workspace in a temporary folder, with secret files next to it.

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

/// Content of the files outside of the root folder. It must not occur in any result.
pub(crate) const SECRET: &str = "outside-of-the-root-7d1f";

pub(crate) struct Workspace {
    /// The temporary folder, which contains `root` and the files outside of it.
    parent: TempDir,
    pub(crate) client: Client,
    pub(crate) server: JoinHandle<Result<(), ServerError>>,
}

/// Creates the temporary folder with `root` and secret files outside of it.
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

    /// Executes a call that succeeds, and returns its structured content.
    pub(crate) async fn data(&self, tool: &str, arguments: Value) -> Value {
        data(self.call(tool, arguments).await)
    }

    /// Executes a call that is refused, and returns its text.
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
