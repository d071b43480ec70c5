//! Shared parts of the tests: servers, hosts, and calls.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use switchboard_domain::{
    Elicitation, ElicitationAnswer, Elicitor, ProgressSink, ToolCall, ToolContent, ToolHost,
    ToolOutput,
};
use switchboard_mcp_client::{ClientHandlers, HostOptions, McpHost, ServerConfig, ServerState};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::watch,
    time::timeout,
};

pub(crate) use crate::shared::object;

/// Maximum start time of a Node or Python server on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) const OLDER: &str = "2025-11-25";
pub(crate) const NEWER: &str = "2026-07-28";

/// A server of another author, and the expected values.
pub(crate) struct Peer {
    pub(crate) config: ServerConfig,
    /// The negotiated protocol version.
    pub(crate) version: &'static str,
    /// Some names of its tools.
    pub(crate) tools: &'static [&'static str],
    /// The folder that a server with file tools works on.
    pub(crate) folder: Option<TempDir>,
    /// The process of an HTTP server. It ends when this value is dropped.
    pub(crate) process: Option<Child>,
}

impl Peer {
    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.as_ref().unwrap().path()
    }
}

fn installed(path: &str) -> String {
    let folder = env::var_os("SWITCHBOARD_PEERS").expect("run `cargo xtask test --peers`");
    let path = PathBuf::from(folder).join(path);
    assert!(path.is_file(), "{} is not installed", path.display());
    path.into_os_string().into_string().unwrap()
}

/// Returns the path of the script of an npm package.
pub(crate) fn script(package: &str) -> String {
    installed(&format!(
        "node_modules/@modelcontextprotocol/{package}/dist/index.js"
    ))
}

/// Returns the path of a program in a virtual environment.
pub(crate) fn program(environment: &str, name: &str) -> String {
    if cfg!(windows) {
        installed(&format!("{environment}/Scripts/{name}.exe"))
    } else {
        installed(&format!("{environment}/bin/{name}"))
    }
}

pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("it hangs")
}

/// Starts an HTTP server and waits until `ready` finds a value in a line of its output. Returns the
/// process and the value.
pub(crate) async fn serve<T>(
    command: &mut Command,
    on_stderr: bool,
    ready: impl Fn(&str) -> Option<T>,
) -> (Child, T) {
    let (stdout, stderr) = if on_stderr {
        (Stdio::null(), Stdio::piped())
    } else {
        (Stdio::piped(), Stdio::null())
    };
    let command = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let output: Box<dyn AsyncRead + Send + Unpin> = if on_stderr {
        Box::new(child.stderr.take().unwrap())
    } else {
        Box::new(child.stdout.take().unwrap())
    };
    let mut lines = BufReader::new(output).lines();
    let found = soon(async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(found) = ready(&line) {
                return found;
            }
        }
        panic!("the peer ended");
    });
    let found = found.await;
    // Reads the remaining output, so that a full pipe does not block the server.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, found)
}

/// A person who answers `green`.
struct Person;

#[async_trait]
impl Elicitor for Person {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        assert_eq!(elicitation.message, "Which colour?");
        ElicitationAnswer::Accept {
            content: object(json!({"colour": "green"})),
        }
    }
}

/// Starts a host. Asserts that the server is ready and has the expected tools.
pub(crate) async fn host(peer: &Peer) -> McpHost {
    let mut config = peer.config.clone();
    config.connect_timeout = PATIENCE;
    let options = HostOptions {
        restart_delay: Duration::from_millis(10),
        client_handlers: ClientHandlers {
            elicitor: Some(Arc::new(Person)),
            ..ClientHandlers::default()
        },
        ..HostOptions::default()
    };
    let host = McpHost::start(vec![config], options).unwrap();
    soon(host.wait_for_startup()).await;
    let catalog = host.list_tools().await;
    assert!(catalog.problems.is_empty(), "{:?}", catalog.problems);
    let status = host.server_statuses().remove(0);
    assert_eq!(status.state, ServerState::Ready, "{status:#?}");
    assert_eq!(status.protocol_version.as_deref(), Some(peer.version));
    assert!(status.server_info.is_some(), "{status:#?}");
    assert_eq!(status.pid.is_none(), peer.process.is_some(), "{status:#?}");
    let prefix = format!("{}__", peer.name());
    let names = catalog.tools.iter().map(|tool| tool.name.as_str());
    let names: Vec<&str> = names.filter_map(|n| n.strip_prefix(&prefix)).collect();
    for tool in peer.tools {
        assert!(names.contains(tool), "{tool}: {names:?}");
    }
    host
}

/// Starts a host for one server, runs `exercise`, and closes the host.
pub(crate) async fn alone(peer: Peer, exercise: impl AsyncFnOnce(&McpHost, &Peer)) {
    let host = host(&peer).await;
    exercise(&host, &peer).await;
    close(&host).await;
}

/// Closes the host. Asserts that no process of its servers is left.
pub(crate) async fn close(host: &McpHost) {
    let pids: Vec<u32> = host
        .server_statuses()
        .iter()
        .filter_map(|s| s.pid)
        .collect();
    soon(host.close()).await;
    for status in host.server_statuses() {
        assert_eq!(status.state, ServerState::Stopped, "{status:#?}");
        assert_eq!(status.pid, None);
    }
    #[cfg(unix)]
    for pid in pids {
        let group = process_id(pid);
        let left = rustix::process::test_kill_process_group(group);
        assert_eq!(left, Err(rustix::io::Errno::SRCH), "group {pid} is there");
    }
    #[cfg(not(unix))]
    drop(pids);
}

#[cfg(unix)]
pub(crate) fn process_id(pid: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap()
}

pub(crate) fn text_of(output: &ToolOutput) -> String {
    let pieces: Vec<String> = output.content.iter().map(ToolContent::as_text).collect();
    pieces.join("\n")
}

/// Returns the result of a tool, also an error result.
pub(crate) async fn outcome(host: &McpHost, peer: &Peer, tool: &str, input: Value) -> ToolOutput {
    let answer = soon(host.call_server_tool(peer.name(), tool, object(input))).await;
    answer.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

/// Returns the result of a tool. Panics on an error result.
pub(crate) async fn call(host: &McpHost, peer: &Peer, tool: &str, input: Value) -> ToolOutput {
    let output = outcome(host, peer, tool, input).await;
    assert!(!output.is_error, "{tool}: {output:?}");
    output
}

pub(crate) async fn text(host: &McpHost, peer: &Peer, tool: &str, input: Value) -> String {
    text_of(&call(host, peer, tool, input).await)
}

/// Returns the text of an error result.
pub(crate) async fn failure(host: &McpHost, peer: &Peer, tool: &str, input: Value) -> String {
    let output = outcome(host, peer, tool, input).await;
    assert!(output.is_error, "{tool}: {output:?}");
    text_of(&output)
}

/// Sends an input that does not match the tool's schema. The server may return an error result or a
/// protocol error.
pub(crate) async fn misuse(host: &McpHost, peer: &Peer, tool: &str, input: Value) {
    match soon(host.call_server_tool(peer.name(), tool, object(input))).await {
        Ok(output) => assert!(output.is_error, "{output:?}"),
        Err(error) => assert!(error.did_not_run(), "{error}"),
    }
}

/// Calls a tool. Returns the reported progress.
pub(crate) async fn progress(host: &McpHost, peer: &Peer, tool: &str, input: Value) -> Vec<f64> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    let call = ToolCall {
        name: format!("{}__{tool}", peer.name()),
        input: object(input).into(),
        progress: ProgressSink::new(move |now| listener.lock().unwrap().push(now.progress)),
        ..ToolCall::default()
    };
    soon(host.call_tool(call)).await.unwrap();
    told.lock().unwrap().clone()
}

/// Returns a call, and a channel that becomes true at the first progress of the call.
pub(crate) fn running(peer: &Peer, tool: &str) -> (ToolCall, watch::Receiver<bool>) {
    let (tell, runs) = watch::channel(false);
    let call = ToolCall {
        name: format!("{}__{tool}", peer.name()),
        progress: ProgressSink::new(move |_| {
            tell.send_replace(true);
        }),
        ..ToolCall::default()
    };
    (call, runs)
}
