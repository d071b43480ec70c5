//! Commands: only configured ones run, and each is ended after its time-out.
#![cfg(unix)]

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rmcp::{model::ProtocolVersion, transport::StreamableHttpClientTransport};
use serde_json::{Value, json};
use switchboard_mcp_servers::{
    ServerOptions, WorkspaceOptions, bind_http, serve_stdio, serve_stream,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt},
    process::Command,
    sync::oneshot,
    time::timeout,
};

use super::support::{Workspace, folder, write};
use crate::client::{call, calls, connect, text, texts};

/// Time limit that only prevents tests from hanging. All operations are much faster.
const PATIENCE: Duration = Duration::from_mins(1);

async fn with_script(script: &str) -> Workspace {
    let workspace =
        Workspace::with(|it| it.commands.push("test: sh script.sh {args}".to_owned())).await;
    workspace.write("script.sh", script);
    workspace
}

#[tokio::test]
async fn a_command_runs_in_the_root_and_returns_its_outcome() {
    let workspace = with_script("echo out; echo err >&2; pwd; cat; echo \"$@\"; exit $2").await;
    let failed = json!({"args": ["module::test", "3"]});
    let result = workspace.call("test_run", failed.clone()).await;
    let root = workspace.root().canonicalize().unwrap();
    let told = text(&result).replace(&root.display().to_string(), "ROOT");
    let (first, output) = told.split_once('\n').unwrap();
    assert!(
        first.starts_with("sh script.sh module::test 3 failed with exit code 3 after "),
        "{first}"
    );
    assert_eq!(output, "out\nerr\nROOT\nmodule::test 3");
    let failed = workspace.data("test_run", failed).await;
    assert_eq!(
        (&failed["outcome"], &failed["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!(failed["omitted_bytes"], 0);
    let good = workspace
        .data("test_run", json!({"args": ["a", "0"]}))
        .await;
    assert_eq!(
        (&good["outcome"], &good["exit_code"]),
        (&json!("succeeded"), &json!(0))
    );

    workspace.write("script.sh", "kill -KILL $$");
    let killed = workspace.data("test_run", json!({})).await;
    assert_eq!(
        (&killed["outcome"], &killed["exit_code"]),
        (&json!("signalled"), &Value::Null)
    );
    workspace.write("script.sh", "");
    let silent = workspace.call("test_run", json!({})).await;
    assert!(text(&silent).ends_with(" without output."));
}

const REFUSED: &str = r#"
compile {}
compile {"command": "sh four.sh"}
compile {"command": "sh three.sh"}
compile {"command": "sh one.sh; sh four.sh"}
compile {"command": "sh one.sh", "args": ["x"]}
compile {"command": "sh two.sh", "args": ["-c", "touch ran-four"]}
compile {"command": "sh two.sh", "args": ["$(sh four.sh)"]}
compile {"command": "sh two.sh", "args": ["a;sh four.sh"]}
compile {"command": "sh two.sh", "args": ["../outside"]}
compile {"command": "sh two.sh", "args": ["/etc/passwd"]}
compile {"command": "sh two.sh", "args": ["one.sh", "file:///etc/passwd"]}
compile {"command": "sh two.sh", "args": ["a:.env"]}
compile {"command": "sh two.sh", "args": "x y"}
test_run {"command": "sh one.sh"}
test_run {"args": ["x"]}
"#;

#[tokio::test]
async fn only_listed_commands_run() {
    let workspace = Workspace::with(|options| {
        options.commands.push("compile: sh one.sh".to_owned());
        options
            .commands
            .push("compile: sh two.sh {args}".to_owned());
        options.commands.push("test: sh three.sh".to_owned());
    })
    .await;
    for script in ["one", "two", "three", "four"] {
        workspace.write(
            &format!("{script}.sh"),
            format!("touch ran-{script}; echo \"$#\" \"$@\""),
        );
    }
    let refused = texts(&workspace.client, calls(REFUSED), true).await;
    insta::assert_snapshot!(refused);
    assert!(!workspace.root().read_dir().unwrap().any(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("ran-")
    }));
    let two = json!({"command": "sh two.sh", "args": ["*.sh", "b"]});
    let two = workspace.data("compile", two).await;
    // No shell has expanded the pattern.
    assert_eq!(
        (&two["output"], &two["command"]),
        (&json!("2 *.sh b\n"), &json!("sh two.sh *.sh b"))
    );
    // If there is only one command, its name may be omitted.
    assert_eq!(workspace.data("test_run", json!({})).await["output"], "0\n");
}

#[tokio::test]
async fn commands_get_only_allowed_variables() {
    let workspace = Workspace::with(|options| {
        options.commands.push("test: sh script.sh".to_owned());
        options
            .environment
            .push("SWITCHBOARD_TEST=given".to_owned());
        options.environment.push("CARGO_PKG_NAME".to_owned());
    })
    .await;
    workspace.write("script.sh", "env");
    // The test process has more variables, such as those that cargo sets.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let output = workspace.data("test_run", json!({})).await["output"].clone();
    let names: Vec<&str> = output
        .as_str()
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|it| it.0)
        .collect();
    for expected in [
        "PATH",
        "TERM",
        "NO_COLOR",
        "SWITCHBOARD_TEST",
        "CARGO_PKG_NAME",
    ] {
        assert!(names.contains(&expected), "{expected}: {names:?}");
    }
    assert!(
        !names.iter().any(|name| name.starts_with("CARGO_MANIFEST")),
        "{names:?}"
    );
}

#[tokio::test]
async fn the_end_of_a_long_output_is_kept() {
    let workspace = with_script("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; printf '\\033[31mred\\033[0m 10%%\\r100%%'").await;
    let result = workspace.data("test_run", json!({})).await;
    let output = result["output"].as_str().unwrap();
    assert!(output.len() <= 32 * 1024 && output.len() > 31 * 1024);
    assert!(
        output.ends_with("line 19999\n100%"),
        "{}",
        &output[output.len() - 100..]
    );
    let first = output.lines().next().unwrap();
    assert!(first.starts_with("line "), "{first}");
    let all: usize = (0..20000).map(|it| format!("line {it}\n").len()).sum();
    let kept = output.len() - "100%".len();
    assert_eq!(result["omitted_bytes"], all - kept);
}

/// The reader of a pipe that child processes inherit. It shows how many processes have started, and
/// when all have ended.
struct Alive {
    /// Completes when the expected number of processes has written a line.
    all: oneshot::Receiver<()>,
    /// Completes when the last process with the pipe has ended.
    none: oneshot::Receiver<()>,
}

impl Alive {
    /// Creates the pipe `alive` in a folder. A thread waits for `number` lines.
    fn watch(root: &Path, number: usize) -> Self {
        let pipe: PathBuf = root.join("alive");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let ((seen, all), (gone, none)) = (oneshot::channel(), oneshot::channel());
        std::thread::spawn(move || {
            // Opening blocks until a process opens the other end.
            let mut pipe = BufReader::new(std::fs::File::open(pipe).unwrap());
            for _ in 0..number {
                let mut line = String::new();
                pipe.read_line(&mut line).unwrap();
                assert_eq!(line, "alive\n");
            }
            let _ = seen.send(());
            pipe.read_to_end(&mut Vec::new()).unwrap();
            let _ = gone.send(());
        });
        Self { all, none }
    }
}

/// A script that starts three processes that do not end: one ignores SIGTERM, and one is the child
/// of another. All of them have the pipe open.
const FAMILY: &str = "
    exec 3>alive
    (trap '' TERM; echo alive >&3; : > up-1; while :; do sleep 1000; done) &
    (sh -c 'echo alive >&3; : > up-2; sleep 1000; :') &
    echo started
    echo alive >&3
";

#[tokio::test]
async fn a_time_out_ends_a_command_with_its_child_processes() {
    let workspace = Workspace::with(|options| {
        options.commands.push("test: sh script.sh".to_owned());
        options.command_timeout = Duration::from_secs(500);
    })
    .await;
    workspace.write("script.sh", format!("{FAMILY} wait"));
    let alive = Alive::watch(&workspace.root(), 3);
    let call = workspace.call("test_run", json!({}));
    let passing = async {
        alive.all.await.unwrap();
        // The clock is advanced past the time-out.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(501)).await;
        tokio::time::resume();
    };
    let (result, ()) = tokio::join!(call, passing);
    timeout(PATIENCE, alive.none).await.unwrap().unwrap();
    let (first, output) = text(&result).split_once('\n').unwrap();
    assert_eq!(first, "sh script.sh was stopped after 500 seconds:");
    assert_eq!(output, "started");
    let data = crate::client::data(result);
    assert_eq!(
        (&data["outcome"], &data["exit_code"]),
        (&json!("timed_out"), &Value::Null)
    );
}

#[tokio::test]
async fn background_processes_end_with_their_command() {
    let workspace = with_script(&format!(
        "{FAMILY} until [ -e up-1 ] && [ -e up-2 ]; do :; done"
    ))
    .await;
    let alive = Alive::watch(&workspace.root(), 3);
    let result = workspace.data("test_run", json!({})).await;
    timeout(PATIENCE, alive.none).await.unwrap().unwrap();
    assert_eq!(
        (&result["outcome"], &result["output"]),
        (&json!("succeeded"), &json!("started\n"))
    );
}

#[tokio::test]
async fn a_cancelled_call_ends_its_command() {
    let workspace = with_script(&format!("{FAMILY} wait")).await;
    let alive = Alive::watch(&workspace.root(), 3);
    tokio::select! {
        _ = workspace.call("test_run", json!({})) => panic!("it ended by itself"),
        all = alive.all => all.unwrap(),
    }
    // Dropping the call cancels it at the server.
    timeout(PATIENCE, alive.none).await.unwrap().unwrap();
    // The next command can run.
    workspace.write("script.sh", "echo next");
    let next = timeout(PATIENCE, workspace.data("test_run", json!({})))
        .await
        .unwrap();
    assert_eq!(next["output"], "next\n");
}

#[tokio::test]
async fn a_closed_connection_ends_its_command() {
    let workspace = with_script(&format!("{FAMILY} wait")).await;
    let alive = Alive::watch(&workspace.root(), 3);
    let call = workspace
        .client
        .call_tool(crate::client::request("test_run", json!({})));
    let mut call = Box::pin(call);
    tokio::select! {
        _ = &mut call => panic!("it ended by itself"),
        all = alive.all => all.unwrap(),
    }
    // The call is not cancelled, but its connection is closed.
    std::mem::forget(call);
    workspace.client.cancel().await.unwrap();
    // The server would wait some seconds for pending responses. With a paused clock, this takes no
    // time.
    tokio::time::pause();
    workspace.server.await.unwrap().unwrap();
    tokio::time::resume();
    timeout(PATIENCE, alive.none).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_closed_http_connection_ends_its_command() {
    let parent = folder();
    let root = parent.path().join("root");
    write(&root, "script.sh", format!("{FAMILY} wait"));
    let mut options = WorkspaceOptions::new(&root);
    options.commands.push("test: sh script.sh".to_owned());
    let options = ServerOptions::new().with_workspace(options);
    let server = bind_http("workspace", ([127, 0, 0, 1], 0).into(), options);
    let server = server.await.unwrap();
    let url = server.url();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(server.serve(async move {
        let _ = stopped.await;
    }));
    let alive = Alive::watch(&root, 3);
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = connect(transport, ProtocolVersion::LATEST).await;
    tokio::select! {
        _ = call(&client, "test_run", json!({})) => panic!("it ended by itself"),
        all = alive.all => all.unwrap(),
    }
    client.cancel().await.unwrap();
    timeout(PATIENCE, alive.none).await.unwrap().unwrap();
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn one_command_runs_at_a_time() {
    let workspace = with_script("mkdir busy || exit 9; echo in; rmdir busy").await;
    let run = || workspace.data("test_run", json!({}));
    let results = futures_util::future::join_all((0..8).map(|_| run())).await;
    for result in results {
        assert_eq!(result["outcome"], "succeeded", "{result}");
    }
}

#[tokio::test]
async fn a_long_command_reports_progress() {
    let parent = folder();
    let root = parent.path().join("root");
    write(
        &root,
        "script.sh",
        "exec 3>alive; echo alive >&3; exec sleep 1000",
    );
    let alive = Alive::watch(&root, 1);
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let mut options = WorkspaceOptions::new(&root);
    options.commands.push("test: sh script.sh".to_owned());
    let options = ServerOptions::new().with_workspace(options);
    let server = serve_stream("workspace", options, reader, writer, std::future::pending());
    let server = tokio::spawn(server);
    let (reader, mut writer) = tokio::io::split(near);
    writer.write_all(session(7).as_bytes()).await.unwrap();
    alive.all.await.unwrap();
    // From here on, the paused clock advances whenever all tasks wait.
    tokio::time::pause();
    let mut lines = tokio::io::BufReader::new(reader).lines();
    let mut heard = Vec::new();
    while heard.len() < 2 {
        let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        if line["method"] == "notifications/progress" {
            heard.push(line["params"].clone());
        }
    }
    assert_eq!(
        heard,
        [10, 20].map(|seconds| json!({
            "progressToken": 7, "progress": f64::from(seconds),
            "message": format!("running for {seconds} seconds"),
        }))
    );
    drop((lines, writer));
    server.await.unwrap().unwrap();
    tokio::time::resume();
    timeout(PATIENCE, alive.none).await.unwrap().unwrap();
}

const ROOT: &str = "SWITCHBOARD_TEST_WORKSPACE";

/// Not a test: this function is the server process that the test below starts.
#[test]
#[ignore = "serves standard input: the test below starts it as a child process"]
fn serves_its_standard_input() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut options = WorkspaceOptions::new(std::env::var_os(ROOT).unwrap());
    options.commands.push("test: sh script.sh".to_owned());
    let options = ServerOptions::new().with_workspace(options);
    let served = serve_stdio("workspace", options, std::future::pending());
    runtime.block_on(served).unwrap();
}

#[tokio::test]
async fn a_killed_server_ends_its_command() {
    let parent = folder();
    let root = parent.path().join("root");
    write(&root, "script.sh", format!("{FAMILY} wait"));
    let alive = Alive::watch(&root, 3);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workspace::commands::serves_its_standard_input"])
        .args(["--ignored", "--nocapture", "--quiet"])
        .env(ROOT, &root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(session(1).as_bytes()).await.unwrap();
    timeout(PATIENCE, alive.all).await.unwrap().unwrap();
    child.kill().await.unwrap();
    timeout(PATIENCE, alive.none).await.unwrap().unwrap();
}

/// Returns the messages of a session that calls `test_run`, one per line.
fn session(progress: u32) -> String {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {
            "name": "test_run", "arguments": {}, "_meta": {"progressToken": progress},
        },
    });
    format!("{initialize}\n{initialized}\n{call}\n")
}
