//! A real `switchboard serve` for third-party tests.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::test;
use crate::process;

/// The variable with the path of another program to test, such as a release build.
pub(crate) const PROGRAM: &str = "SWITCHBOARD_PROGRAM";

/// Maximum time until a server listens.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Prefix of the server's log line that contains its address.
const LISTENS: &str = "listening on ";

/// Not a secret: only the tests use these servers.
pub(crate) const TOKEN: &str = "the-token-of-the-client-tests";

/// A server process, which is killed on drop.
pub(crate) struct Server {
    child: Child,
    /// The base URL.
    pub(crate) address: String,
}

impl Server {
    /// Returns the path of the program: freshly built, or from the environment variable.
    pub(crate) fn program() -> Result<PathBuf> {
        if let Some(named) = env::var_os(PROGRAM) {
            return fs::canonicalize(&named)
                .with_context(|| format!("{PROGRAM} is set to {}", Path::new(&named).display()));
        }
        test::build()?;
        let name = format!("switchboard{}", env::consts::EXE_SUFFIX);
        Ok(process::target_dir().join("debug").join(name))
    }

    /// Starts a server with its own configuration and store, as on a machine without any setup.
    /// With `scripted_port`, the default model is an OpenAI-compatible server on that port of this
    /// machine instead of the demo model.
    pub(crate) fn start(
        program: &Path,
        folder: &Path,
        approve: &str,
        scripted_port: Option<u16>,
    ) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let config = folder.join("switchboard.yaml");
        let model = match scripted_port {
            None => "model: offline/planner".to_owned(),
            Some(port) => format!(
                "model: scripted/scripted\nproviders:\n  scripted:\n    \
                 base_url: http://127.0.0.1:{port}/v1"
            ),
        };
        let serve = format!("serve:\n  tokens: [\"{TOKEN}\"]");
        fs::write(&config, format!("{model}\n{serve}\n"))?;
        let mut command = process::command(program);
        for (name, _) in env::vars_os() {
            let text = name.to_str();
            if text.is_some_and(|name| name.starts_with("SWITCHBOARD_")) {
                command.env_remove(name);
            }
        }
        for home in [
            "HOME",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "APPDATA",
            "LOCALAPPDATA",
        ] {
            command.env(home, folder);
        }
        command.args(["serve", "--bind", "127.0.0.1:0", "--approve", approve]);
        command.arg("--config").arg(&config).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.context("failed to start the server")?;
        let stderr = child.stderr.take();
        let stderr = stderr.context("the server has no standard error")?;
        let (sender, receiver) = mpsc::channel();
        let kind = approve.to_owned();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                match line.strip_prefix(LISTENS) {
                    Some(address) => drop(sender.send(address.trim().to_owned())),
                    None => eprintln!("[serve --approve {kind}] {line}"),
                }
            }
        });
        let mut server = Self {
            child,
            address: String::new(),
        };
        server.address = receiver
            .recv_timeout(START_TIMEOUT)
            .context("the server did not print its address")?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The watchdogs of its MCP servers end them.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
