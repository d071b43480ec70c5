//! A bundled server as a child process on standard input and output, as clients start it.

use std::{process::Stdio, time::Duration};

use switchboard_mcp_servers::{ServerOptions, serve_stdio};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    client::NAME,
    streams::{messages, session},
};

/// Not a test: this function is the server process that the test below starts.
#[test]
#[ignore = "serves standard input: the test below starts it as a child process"]
fn serves_its_standard_input() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let served = serve_stdio(NAME, ServerOptions::new(), std::future::pending());
    runtime.block_on(served).unwrap();
}

#[tokio::test]
async fn a_child_process_answers_and_exits_when_its_input_is_closed() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::serves_its_standard_input"])
        .args(["--ignored", "--nocapture", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(session().as_bytes()).await.unwrap();
    drop(input);
    // Time limit that only prevents the test from hanging. The server ends much faster.
    let output = tokio::time::timeout(Duration::from_secs(30), child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let written = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{written}");
    // Standard output also contains lines of the test runner.
    let lines: Vec<&str> = written.lines().collect();
    let protocol: Vec<&str> = lines
        .iter()
        .filter(|line| line.starts_with('{'))
        .copied()
        .collect();
    let messages = messages(&protocol.join("\n"));
    assert_eq!(messages.len(), 2, "{written}");
    let content = &messages[1]["result"]["structuredContent"];
    assert_eq!(content["account_value"], "530.19");
    let frame = lines.len() - protocol.len();
    assert!(frame <= 6, "something else was written: {written}");
}
