//! Starts `switchboard serve` for tests with third-party software.

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

/// Environment variable with the path of another program to test, such as a release build.
pub(crate) const PROGRAM: &str = "SWITCHBOARD_PROGRAM";

/// Maximum time until a started server listens.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Start of the line on standard error with which a server prints its address.
const LISTENS: &str = "listening on ";

/// Access token of the tested servers. It is not a secret, because only the tests use these
/// servers.
pub(crate) const TOKEN: &str = "the-token-of-the-client-tests";

/// A server process, which is killed on drop.
pub(crate) struct Server {
    child: Child,
    /// Base URL of the server.
    pub(crate) address: String,
}

impl Server {
    /// Returns the path of the program: the value of the variable [`PROGRAM`], or a new debug
    /// build.
    pub(crate) fn program() -> Result<PathBuf> {
        if let Some(named) = env::var_os(PROGRAM) {
            return fs::canonicalize(&named)
                .with_context(|| format!("{PROGRAM} is set to {}", Path::new(&named).display()));
        }
        test::build_programs()?;
        let name = format!("switchboard{}", env::consts::EXE_SUFFIX);
        Ok(process::target_dir().join("debug").join(name))
    }

    /// Starts a server in an empty folder. Settings and environment variables of the user do not
    /// affect it. The model is the demo model. With `scripted_port`, the model is provided by an
    /// OpenAI-compatible server at this local port.
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
        // The MCP servers of the killed process are ended by their watchdogs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
