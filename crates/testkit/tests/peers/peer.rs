//! A third-party server as a process that ends with the test.

use std::{
    collections::VecDeque,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use futures_util::TryStreamExt as _;
use serde_json::Value;
use switchboard_providers_common::{
    HttpAnswer, HttpRequest, HttpTransport, StatusClassifier, TransportConfig,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};

use crate::gateway;

/// Maximum time for the start of a server. Interpreters start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(100);

/// Number of lines of a server's output that a failed start shows.
const LAST_WORDS: usize = 40;

/// A server process that is killed when this value is dropped, also after a panic.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    /// Base URL, `http://127.0.0.1:…`.
    url: String,
    /// Base URL of the gateway that requests whole answers from the server.
    whole_url: String,
    control: HttpTransport,
    /// Folder with the files of the server.
    _folder: TempDir,
}

/// Returns the path of a file that `cargo xtask test --peers` installed.
pub(crate) fn installed(path: &str) -> PathBuf {
    let folder = env::var_os("SWITCHBOARD_PEERS").expect("run `cargo xtask test --peers`");
    let path = Path::new(&folder).join(path);
    assert!(path.is_file(), "{} is not installed", path.display());
    path
}

/// Returns the command for a program of the Python environment.
pub(crate) fn python_program(name: &str) -> Command {
    let path = if cfg!(windows) {
        format!("python/Scripts/{name}.exe")
    } else {
        format!("python/bin/{name}")
    };
    let mut command = Command::new(installed(&path));
    command.env("PYTHONUNBUFFERED", "1");
    command
}

impl Peer {
    /// Starts a server that selects a free port and prints its address after `announcement`, such
    /// as `listening on `. `files` are written to its working folder first.
    pub(crate) async fn start(
        mut command: Command,
        announcement: &str,
        files: &[(&str, &Value)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content.to_string()).unwrap();
        }
        command
            .current_dir(folder.path())
            .env("NO_PROXY", "127.0.0.1,localhost")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().unwrap();
        let (sender, mut lines) = mpsc::unbounded_channel();
        forward(child.stdout.take().unwrap(), sender.clone());
        forward(child.stderr.take().unwrap(), sender);
        let control = TransportConfig {
            system_proxy: false,
            ..TransportConfig::default()
        };
        // From here on, a panic drops the peer and so kills the server.
        let mut peer = Self {
            child,
            url: String::new(),
            whole_url: String::new(),
            control: HttpTransport::new("control", &control).unwrap(),
            _folder: folder,
        };
        let mut last = VecDeque::new();
        let listening = async {
            while let Some(line) = lines.recv().await {
                if let Some(url) = address(&line, announcement) {
                    return Some(url);
                }
                last.push_back(line);
                if last.len() > LAST_WORDS {
                    last.pop_front();
                }
            }
            None
        };
        let url = timeout(PATIENCE, listening).await;
        let Ok(Some(url)) = url else {
            panic!("the peer did not start ({url:?}); its last words: {last:#?}");
        };
        let server = url.trim_start_matches("http://").to_owned();
        peer.whole_url = gateway::open(server).await.unwrap();
        peer.url = url;
        peer
    }

    /// Returns the URL of a path on the server.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Returns the URL of a path on the gateway that requests whole answers.
    pub(crate) fn whole_at(&self, path: &str) -> String {
        format!("{}{path}", self.whole_url)
    }

    /// Reads from the server's control interface.
    pub(crate) async fn told(&self, path: &str) -> Value {
        let request = HttpRequest::new(self.at(path));
        read(self.control.get(&request, &StatusClassifier).await.unwrap()).await
    }

    /// Posts to the server's control interface.
    pub(crate) async fn tell(&self, path: &str, body: &Value) -> Value {
        let request = HttpRequest::new(self.at(path)).with_json(body.to_string());
        let answer = self.control.post(&request, &StatusClassifier).await;
        read(answer.unwrap()).await
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A process that has already ended has no id, and these servers leave no child processes.
        #[cfg(unix)]
        if let Some(id) = self.child.id()
            && let Ok(id) = i32::try_from(id)
            && let Some(group) = rustix::process::Pid::from_raw(id)
        {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        self.child.start_kill().ok();
    }
}

/// Reads the output of the server to its end, also if no test reads the lines any more. A full or
/// closed pipe would stop the server.
fn forward(pipe: impl AsyncRead + Send + Unpin + 'static, lines: mpsc::UnboundedSender<String>) {
    tokio::spawn(async move {
        let mut from = BufReader::new(pipe).split(b'\n');
        while let Ok(Some(line)) = from.next_segment().await {
            lines.send(String::from_utf8_lossy(&line).into_owned()).ok();
        }
    });
}

/// Returns the address after the announcement.
fn address(line: &str, announcement: &str) -> Option<String> {
    let (_, rest) = line.split_once(announcement)?;
    let (host, port) = rest.strip_prefix("http://")?.split_once(':')?;
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    Some(format!("http://{host}:{port}"))
}

async fn read(answer: HttpAnswer) -> Value {
    let body: Vec<bytes::Bytes> = answer.body.try_collect().await.unwrap();
    serde_json::from_slice(&body.concat()).unwrap()
}
