//! Hosts in separate programs, and the processes that remain after their end.

#![cfg(unix)]

use std::{
    collections::HashMap,
    future::pending,
    io::Write,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{
    host::SERVER,
    host::endings::{gone, stubborn},
    host::stage::*,
};

/// Prefix of the host's output lines. Other lines come from the test runner.
const SAYS: &str = "host says ";

/// Runs this program as a host that a test starts.
pub(crate) fn be(which: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(few(which));
}

fn say(value: &Value) {
    let mut out = std::io::stdout();
    writeln!(out, "\n{SAYS}{value}").unwrap();
    out.flush().unwrap();
}

/// Starts servers that ignore all signals, and ends the host in the given way.
async fn few(how: &str) {
    let mut options = options();
    options.grace.after_stdin = Duration::from_millis(300);
    let servers = vec![stubborn("a"), stubborn("b"), program("good", BOTH_ERAS)];
    let host = host_with(servers, options).await;
    assert_eq!(text(&host, "a__work").await, "did \"work\"");
    say(&json!(tree(std::process::id())));
    match how {
        "that is killed" => pending().await,
        "that exits" => std::process::exit(0),
        "that is closed" => host.close().await,
        other => panic!("no host is {other}"),
    }
    say(&json!(tree(std::process::id())));
}

/// Returns all descendants of a process.
fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // The state and the parent id follow the process name, which is in parentheses and may
        // contain any character.
        let mut fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        if let (Some(state), Some(Ok(parent))) = (fields.next(), fields.next().map(str::parse))
            && state != "Z"
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next) {
        found.extend(children.remove(process).unwrap_or_default());
        next += 1;
    }
    found.split_off(1)
}

/// Starts this program as a host. Returns the lines of its output.
fn start(which: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "server", "--ignored", "--nocapture"])
        .env(SERVER, format!("host {which}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

async fn said(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    soon(async {
        loop {
            let line = lines
                .next_line()
                .await
                .unwrap()
                .expect("it ended without a word");
            if let Some(said) = line.strip_prefix(SAYS) {
                return serde_json::from_str(said).unwrap();
            }
        }
    })
    .await
}

async fn pids(lines: &mut Lines<BufReader<ChildStdout>>) -> Vec<u32> {
    serde_json::from_value(said(lines).await).unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_of_a_host_that_was_killed() {
    let (mut host, mut lines) = start("that is killed");
    let all = pids(&mut lines).await;
    // Two stubborn servers with a child each, one correct server, and the watchdog.
    assert_eq!(all.len(), 6, "{all:?}");
    let pid = i32::try_from(host.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    soon(host.wait()).await.unwrap();
    let begun = Instant::now();
    for pid in all {
        gone(pid).await;
    }
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_of_a_host_that_exits_without_a_word() {
    let (mut host, mut lines) = start("that exits");
    let all = pids(&mut lines).await;
    assert_eq!(all.len(), 6, "{all:?}");
    soon(host.wait()).await.unwrap();
    for pid in all {
        gone(pid).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_host_that_was_closed_has_no_watchdog_any_more() {
    let (mut host, mut lines) = start("that is closed");
    assert_eq!(pids(&mut lines).await.len(), 6);
    // No server and no watchdog is left, although the host program still runs.
    assert_eq!(pids(&mut lines).await, [0; 0]);
    soon(host.wait()).await.unwrap();
}
