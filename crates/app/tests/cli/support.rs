//! Starts the program isolated from the configuration of this machine.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use serde_json::{Value, json};
use switchboard_testkit::fake::FakeModel;
use tokio::process::{Child, Command};

/// A temporary working directory and the environment of the program.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// The exit code and output of a finished program.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A secret with the form of a key.
pub(crate) const KEY: &str = "sk-proj-0123456789abcdefghij";
/// A secret without a typical form. It is a secret because it expands a variable.
pub(crate) const WORDS: &str = "correct horse battery staple";

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        }
    }

    /// Returns a working folder with the key and the address of a fake OpenAI.
    pub(crate) fn openai(fake: &FakeModel) -> Self {
        Self::new()
            .with_variable("OPENAI_API_KEY", "sk-secret")
            .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
    }

    /// Returns a working folder with the secrets [`KEY`] and [`WORDS`] and a fake OpenAI.
    pub(crate) fn with_secrets(fake: &FakeModel) -> Self {
        Self::openai(fake)
            .with_variable("OPENAI_API_KEY", KEY)
            .with_variable("PHRASE", WORDS)
    }

    /// Returns how often the server of [`counted_server`] was started here.
    pub(crate) fn server_starts(&self) -> usize {
        let text = std::fs::read_to_string(self.path().join("started")).unwrap_or_default();
        text.lines().count()
    }

    pub(crate) fn read_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub(crate) fn with_file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(program());
        command
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("APPDATA", self.folder.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // `npx` and `node` for peers; system libraries on Windows.
        for name in ["PATH", "SystemRoot"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// Starts the program in the background.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Runs the program to its end. Returns each write to standard error separately.
    #[cfg(unix)]
    pub(crate) async fn writes_to_stderr<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Vec<String> {
        use std::os::{fd::OwnedFd, unix::net::UnixDatagram};

        // Reads from such a socket return one write each.
        let (read, write) = UnixDatagram::pair().unwrap();
        read.set_nonblocking(true).unwrap();
        let read = tokio::net::UnixDatagram::from_std(read).unwrap();
        let mut command = self.command(args);
        let mut child = command.stderr(OwnedFd::from(write)).spawn().unwrap();
        drop(command);
        let (mut writes, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
        let mut take = |bytes: &[u8]| writes.push(String::from_utf8_lossy(bytes).into_owned());
        loop {
            tokio::select! {
                biased;
                count = read.recv(&mut piece) => take(&piece[..count.unwrap()]),
                status = child.wait() => {
                    assert!(status.unwrap().success());
                    break;
                }
            }
        }
        while let Ok(count) = read.try_recv(&mut piece) {
            take(&piece[..count]);
        }
        writes
    }

    /// Runs the program to its end with this standard input.
    pub(crate) async fn run_with_stdin<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        stdin: impl Into<Stdio>,
    ) -> Done {
        Done::from(self.command(args).stdin(stdin).output().await.unwrap())
    }

    /// Runs a script to its end. `$0` is the program.
    #[cfg(unix)]
    pub(crate) async fn run_in_shell(&self, script: &str, stdin: impl Into<Stdio>) -> Done {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .arg(program())
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .kill_on_drop(true);
        Done::from(command.output().await.unwrap())
    }

    /// Runs the program to its end.
    pub(crate) async fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Done {
        Done::from(self.command(args).output().await.unwrap())
    }

    /// Runs the program with text on its standard input.
    pub(crate) async fn run_with_input<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: &str,
    ) -> Done {
        use tokio::io::AsyncWriteExt as _;
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        Done::from(child.wait_with_output().await.unwrap())
    }

    /// Asks a question and returns the object of `--output json`.
    pub(crate) async fn ask(&self, question: &str) -> Value {
        let done = self.run(["ask", "--output", "json", question]).await;
        done.json()
    }
}

impl Done {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn stdout_contains(&self, text: &str) {
        assert!(self.stdout.contains(text), "{text:?}: {self}");
    }

    #[track_caller]
    pub(crate) fn stderr_contains(&self, text: &str) {
        assert!(self.stderr.contains(text), "{text:?}: {self}");
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.code, self.stdout, self.stderr
        )
    }
}

/// Returns the string at this JSON pointer of each element of a list.
pub(crate) fn texts<'v>(list: &'v Value, pointer: &str) -> Vec<&'v str> {
    let items = list.as_array().unwrap().iter();
    let texts = items.map(|item| item.pointer(pointer).unwrap().as_str());
    texts.map(Option::unwrap).collect()
}

/// Returns the bundled server with a secret variable. It adds a line to a file when it starts.
pub(crate) fn counted_server() -> Value {
    let script = "echo started >> started; exec \"$0\" mcp-server customer-service";
    json!({"command": "sh", "args": ["-c", script, program()], "env": {"PASSPHRASE": "${PHRASE}"}})
}

/// The program under test.
pub(crate) fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_switchboard").into()
}

/// The tool calls of a report as `(server, tool, input, is_error)`.
pub(crate) fn calls(report: &Value) -> Vec<(String, String, Value, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    report["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            (
                text(&call["server"]),
                text(&call["tool"]),
                call["input"].clone(),
                call["is_error"].as_bool().unwrap(),
            )
        })
        .collect()
}
