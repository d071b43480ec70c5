//! Closing the terminal ends the program and its MCP servers.

use std::{
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

use pty_process::blocking::{self, Pty, open};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::{io::AsyncReadExt as _, net::unix::pipe, time::timeout};

use crate::support::{Place, program};

/// Time limit that only prevents a test from hanging. The program ends much faster.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a working folder whose only server keeps the pipe `alive` open while it runs.
fn place() -> (Place, pipe::Receiver) {
    let place = Place::new();
    let alive = place.path().join("alive");
    let made = Command::new("mkfifo").arg(&alive).status().unwrap();
    assert!(made.success());
    let script = format!(
        "exec 9>{}; exec {} mcp-server customer-service",
        alive.display(),
        program().display()
    );
    let config = json!({"mcp_servers": {"crm": {"command": "sh", "args": ["-c", script]}}});
    let reader = pipe::OpenOptions::new().open_receiver(&alive).unwrap();
    let place = place.with_file("switchboard.json", &config.to_string());
    (place, reader)
}

/// Reads what the program writes, up to its prompt.
fn wait_for_prompt(mut pty: &Pty) {
    const CURSOR_QUERY: &[u8] = b"\x1b[6n";
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&seen).contains('❯') {
        assert_eq!(pty.read(&mut byte).unwrap(), 1);
        seen.push(byte[0]);
        if seen.ends_with(CURSOR_QUERY) {
            pty.write_all(b"\x1b[1;1R").unwrap();
        }
    }
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("from 1 server"), "{seen}");
}

/// Closes the terminal and waits for the end of the program and of its server.
async fn hang_up(mut child: Child, pty: Pty, mut alive: pipe::Receiver) {
    wait_for_prompt(&pty);
    drop(pty);
    let pid = Pid::from_child(&child);
    let mut waiting = tokio::task::spawn_blocking(move || child.wait());
    if timeout(TIMEOUT, &mut waiting).await.is_err() {
        kill_process(pid, Signal::KILL).unwrap();
        panic!("it does not end");
    }
    let mut rest = Vec::new();
    let ended = timeout(TIMEOUT, alive.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "its server does not end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_terminal_ends_the_program_and_its_servers() {
    let (place, alive) = place();
    let (pty, pts) = open().unwrap();
    let child = blocking::Command::new(program())
        .arg("chat")
        .current_dir(place.path())
        .env_clear()
        .env("HOME", place.path())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("TERM", "vt100")
        .spawn(pts)
        .unwrap();
    hang_up(child, pty, alive).await;
}

/// The terminal is not the controlling terminal of the program, so the program gets no signal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_terminal_ends_the_program_and_its_servers() {
    use std::os::fd::AsFd as _;
    let (place, alive) = place();
    let (pty, pts) = open().unwrap();
    let stream = || Stdio::from(pts.as_fd().try_clone_to_owned().unwrap());
    let child = Command::new(program())
        .arg("chat")
        .current_dir(place.path())
        .env_clear()
        .env("HOME", place.path())
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("TERM", "vt100")
        .stdin(stream())
        .stdout(stream())
        .stderr(stream())
        .spawn()
        .unwrap();
    drop(pts);
    hang_up(child, pty, alive).await;
}
