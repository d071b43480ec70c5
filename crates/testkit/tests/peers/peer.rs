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

/// Interpreters need a while to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(100);

/// Lines of a server's output that are shown when it does not start.
const LAST_WORDS: usize = 40;

/// A server that runs until this is dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    /// `http://127.0.0.1:…`
    url: String,
    /// The same through a gateway that does not stream.
    whole_url: String,
    control: HttpTransport,
    /// Where its files are.
    _folder: TempDir,
}

/// What `cargo xtask test --peers` installed at this place.
pub(crate) fn installed(path: &str) -> PathBuf {
    let folder = env::var_os("SWITCHBOARD_PEERS").expect("run `cargo xtask test --peers`");
    let path = Path::new(&folder).join(path);
    assert!(path.is_file(), "{} is not installed", path.display());
    path
}

/// A program of the Python environment.
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
    /// Starts a server that picks its own free port and tells its address after `announcement`, such
    /// as `listening on `. `files` are written before, in the folder where it runs.
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
        // From here on a panic ends it.
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

    /// An address under the server's own.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The same through a gateway that asks it for whole answers.
    pub(crate) fn whole_at(&self, path: &str) -> String {
        format!("{}{path}", self.whole_url)
    }

    /// What its interface for tests says.
    pub(crate) async fn told(&self, path: &str) -> Value {
        let request = HttpRequest::new(self.at(path));
        read(self.control.get(&request, &StatusClassifier).await.unwrap()).await
    }

    /// Tells its interface for tests something.
    pub(crate) async fn tell(&self, path: &str, body: &Value) -> Value {
        let request = HttpRequest::new(self.at(path)).with_json(body.to_string());
        let answer = self.control.post(&request, &StatusClassifier).await;
        read(answer.unwrap()).await
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A process that has ended already has no id; its group may have survived it only if it
        // left children behind, which these do not.
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

/// The server goes on writing, and must not be stopped by a full or closed pipe: lines are read to
/// the end, also when nobody listens any more.
fn forward(pipe: impl AsyncRead + Send + Unpin + 'static, lines: mpsc::UnboundedSender<String>) {
    tokio::spawn(async move {
        let mut from = BufReader::new(pipe).split(b'\n');
        while let Ok(Some(line)) = from.next_segment().await {
            lines.send(String::from_utf8_lossy(&line).into_owned()).ok();
        }
    });
}

/// The address that stands behind the announcement.
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
