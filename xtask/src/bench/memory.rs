//! What `switchboard serve` keeps in memory while nobody asks it anything.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::ask::alone;
use crate::process;

/// Megabytes that the server may have in memory after its start, its children not counted.
const MOST_MB: f64 = 40.0;
/// How long it may take to listen, to answer, or to come to rest.
const PATIENCE: Duration = Duration::from_secs(30);

/// The servers that come with the program and need no service on the web.
const BUNDLED: [&str; 3] = ["customer-service", "graph", "workspace"];

pub(super) fn memory(_runs: u32) -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!(
            "What a process has in memory is read from /proc, on Linux only: nothing was measured."
        );
        return Ok(());
    }
    process::run(&mut process::cargo([
        "build",
        "--release",
        "--package",
        "switchboard-app",
    ]))?;
    let switchboard = process::target_dir().join("release/switchboard");
    let mut report =
        "| `serve` | resident | of that its own | share | children | their share |\n|---|---:|---:|---:|---:|---:|\n"
            .to_owned();
    let mut most: f64 = 0.0;
    for (name, servers) in [
        ("as it comes", None),
        ("with three bundled servers", Some(BUNDLED)),
    ] {
        let home = home(name, servers.as_ref().map(<[_; 3]>::as_slice), &switchboard)?;
        let mut server = Server::start(&switchboard, &home)?;
        for (when, asked) in [("after its start", false), ("after one question", true)] {
            if asked {
                server.ask()?;
            }
            let memory = server.memory()?;
            report.push_str(&memory.row(&format!("{name}, {when}")));
            // What it keeps after a question are mostly pages of the program's file, which the system takes back when it
            // needs them: that is told, and at rest it has a limit.
            if !asked {
                most = most.max(memory.server);
            }
        }
        server.stop()?;
    }
    print!("{report}");
    println!(
        "\nResident is VmRSS. Its own is what is in no file (RssAnon); the rest are pages of the program that were used. A \
         share (Pss) counts a page that several processes have by parts."
    );
    if most > MOST_MB {
        bail!("at rest the server has {most:.1} MB in memory, and {MOST_MB} are allowed");
    }
    Ok(())
}

/// A home of its own, with these servers configured.
fn home(name: &str, servers: Option<&[&str]>, program: &Path) -> Result<PathBuf> {
    let home = process::target_dir()
        .join("bench/serve")
        .join(name.replace(' ', "-"));
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    if let Some(servers) = servers {
        let entry = |name: &&str| {
            let mut args = vec!["mcp-server", name];
            if *name == "workspace" {
                // It starts in its home.
                args.extend(["--root", "."]);
            }
            let server = serde_json::json!({"command": program, "args": args});
            ((*name).to_owned(), server)
        };
        let servers: serde_json::Map<_, _> = servers.iter().map(entry).collect();
        let config = serde_json::json!({"mcp_servers": servers});
        fs::write(home.join("switchboard.json"), config.to_string())?;
    }
    Ok(home)
}

/// Megabytes.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Memory {
    server: f64,
    server_own: f64,
    server_share: f64,
    children: f64,
    children_share: f64,
    count: usize,
}

impl Memory {
    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {:.1} MB | {:.1} MB | {:.1} MB | {}: {:.1} MB | {:.1} MB |\n",
            self.server,
            self.server_own,
            self.server_share,
            self.count,
            self.children,
            self.children_share,
        )
    }
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(program: &Path, home: &Path) -> Result<Self> {
        let mut command: Command = alone(program, home);
        command.args([
            "serve",
            "--bind",
            "127.0.0.1:0",
            "--model",
            "offline/planner",
        ]);
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child
            .stderr
            .take()
            .context("its standard error is missing")?;
        let mut lines = BufReader::new(stderr).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.ok()?;
            Some(line.split_once("listening on http://")?.1.trim().to_owned())
        });
        // Whatever else it says is read, or it would wait for somebody to do so.
        std::thread::spawn(move || lines.for_each(drop));
        let Some(address) = address else {
            let _ = child.kill();
            bail!("`switchboard serve` does not say where it listens");
        };
        let server = Self { child, address };
        server.send("GET", "/healthz", "")?;
        Ok(server)
    }

    /// One question, to its end.
    fn ask(&mut self) -> Result<()> {
        let body = r#"{"model":"default","messages":[{"role":"user","content":"What is the account value of customer 42?"}]}"#;
        let answer = self.send("POST", "/v1/chat/completions", body)?;
        if !answer.contains("530.19") {
            bail!("the server answered {answer}");
        }
        Ok(())
    }

    /// Sends a request and reads the whole of its answer.
    fn send(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if !answer.starts_with("HTTP/1.1 200") {
            bail!("{method} {path}: {answer}");
        }
        Ok(answer)
    }

    /// What it has in memory, as soon as that is the same for a while: servers start in the background.
    #[allow(
        clippy::disallowed_methods,
        reason = "nothing tells when a process is at rest: it is looked at now and then"
    )]
    fn memory(&self) -> Result<Memory> {
        let begin = Instant::now();
        let (mut before, mut since) = (Memory::default(), Instant::now());
        loop {
            let now = memory_of(self.child.id())?;
            if (now.server - before.server).abs() > 0.2 || now.count != before.count {
                (before, since) = (now, Instant::now());
            }
            if since.elapsed() > Duration::from_secs(2) || begin.elapsed() > PATIENCE {
                return Ok(now);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn stop(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        process::run(process::command("kill").args(["-INT", &pid]))?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` it is gone, and this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory_of(server: u32) -> Result<Memory> {
    let Process {
        resident,
        own,
        share,
    } = of_process(server).context("the server is gone")?;
    let mut memory = Memory {
        server: resident,
        server_own: own,
        server_share: share,
        ..Memory::default()
    };
    for child in children(server) {
        if let Some(child) = of_process(child) {
            memory.children += child.resident;
            memory.children_share += child.share;
            memory.count += 1;
        }
    }
    Ok(memory)
}

/// Megabytes of one process.
struct Process {
    resident: f64,
    own: f64,
    share: f64,
}

fn of_process(pid: u32) -> Option<Process> {
    let read = |file: &str, field: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        megabytes(&text, field)
    };
    Some(Process {
        resident: read("status", "VmRSS:")?,
        own: read("status", "RssAnon:")?,
        share: read("smaps_rollup", "Pss:")?,
    })
}

fn megabytes(text: &str, field: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // The system's kilobytes have 1,024 bytes.
    Some(kilobytes * 1024.0 / 1e6)
}

/// The processes that it started, and those that these started.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let lists = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let own: Vec<u32> = lists
        .flat_map(|list| {
            let ids = list.split_whitespace().filter_map(|id| id.parse().ok());
            ids.collect::<Vec<_>>()
        })
        .collect();
    own.iter()
        .flat_map(|&child| [vec![child], children(child)].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_megabytes() {
        let status = "Name:\tswitchboard\nVmRSS:\t   31250 kB\nRssAnon:\t 1 kB\n";
        assert_eq!(megabytes(status, "VmRSS:"), Some(32.0));
        assert_eq!(megabytes(status, "Pss:"), None);
    }

    #[test]
    fn a_row_tells_the_server_from_its_children() {
        let memory = Memory {
            server: 20.0,
            server_own: 5.5,
            server_share: 10.5,
            children: 45.0,
            children_share: 15.25,
            count: 3,
        };
        assert_eq!(
            memory.row("x"),
            "| x | 20.0 MB | 5.5 MB | 10.5 MB | 3: 45.0 MB | 15.2 MB |\n"
        );
    }
}
