//! Starts of servers, and the reasons of failed starts.

use std::time::Duration;

use switchboard_domain::ToolHost;
use switchboard_mcp_client::{
    HostError, McpHost, ServerConfig, ServerState, ServerTransport, parse_config_document,
};

use crate::host::stage::*;

#[tokio::test]
async fn servers_of_either_era_are_ready_with_their_newest_version() {
    for (kind, configured, spoken) in [
        (BOTH_ERAS, None, "2026-07-28"),
        (NEWER_ERA, None, "2026-07-28"),
        (OLDER_ERA, None, "2025-11-25"),
        (BOTH_ERAS, Some("2025-11-25"), "2025-11-25"),
        (OLDER_ERA, Some("2025-06-18"), "2025-06-18"),
        (NEWER_ERA, Some("2026-07-28"), "2026-07-28"),
    ] {
        let mut config = program("s", kind);
        config.protocol_version = configured.map(str::to_owned);
        let host = host([config]).await;
        let status = status(&host, "s");
        let expected = ServerState::Ready;
        assert_eq!(status.state, expected, "{kind} {configured:?} {status:#?}");
        assert_eq!(status.protocol_version.as_deref(), Some(spoken), "{kind}");
        let info = status.server_info.unwrap();
        let expected = ("good", "1.2.3");
        assert_eq!((info.name.as_str(), info.version.as_str()), expected);
        assert_eq!(status.instructions.as_deref(), Some("Be good."));
        assert_eq!(status.tools, tool_names(&host).await.len());
        assert!(status.tools > 5);
        assert_eq!(text(&host, "s__echo").await, "{}");
        host.close().await;
        let expected = ServerState::Stopped;
        assert_eq!(crate::host::stage::status(&host, "s").state, expected);
    }
}

#[tokio::test]
async fn a_version_that_the_server_does_not_speak_is_said() {
    let mut config = program("s", OLDER_ERA);
    config.protocol_version = Some("2026-07-28".to_owned());
    let host = host([config]).await;
    let status = status(&host, "s");
    assert_eq!(status.state, ServerState::Failed);
    let reason = status.reason.unwrap();
    assert!(reason.contains("2025-11-25"), "{reason}");
}

#[tokio::test]
async fn servers_that_are_surprised_by_discovery_are_ready_all_the_same() {
    for kind in [
        "leaves at discover",
        "mute at discover",
        "odd at discover",
        "noisy",
    ] {
        let mut config = program("s", kind);
        // The SDK waits ten seconds for the response to `server/discover`.
        config.connect_timeout = Duration::from_secs(20);
        let host = host([config]).await;
        let status = status(&host, "s");
        assert_eq!(status.state, ServerState::Ready, "{kind}: {status:#?}");
        let expected = Some("2025-11-25");
        assert_eq!(status.protocol_version.as_deref(), expected, "{kind}");
        assert_eq!(text(&host, "s__work").await, "did \"work\"", "{kind}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_fails_in_time_and_holds_nobody_up() {
    let mut mute = program("mute", "mute");
    mute.connect_timeout = Duration::from_millis(600);
    mute.required = true;
    let mut never_lists = program("never_lists", "never lists");
    never_lists.connect_timeout = Duration::from_secs(2);
    let servers = vec![mute, never_lists, program("good", BOTH_ERAS)];
    let host = McpHost::start(servers, options()).unwrap();

    status_when(&host, "good", |status| status.state == ServerState::Ready).await;
    assert_eq!(text(&host, "good__echo").await, "{}");
    let error = soon(host.wait_until_ready()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "required server `mute` is not available: not ready within 600ms: still waiting for the answer to the handshake"
    );
    soon(host.wait_for_startup()).await;
    assert_eq!(
        problems(&host).await,
        [
            "mute: not ready within 600ms: still waiting for the answer to the handshake",
            "never_lists: not ready within 2s: still waiting for the tool list",
        ]
    );
    assert_eq!(status(&host, "mute").pid, None);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_an_error_that_names_server_and_program() {
    let mut absent = ServerConfig::stdio("crm", "switchboard-no-such-program", ["--stdio"]);
    absent.required = true;
    let servers = vec![program("good", BOTH_ERAS), absent];
    let host = McpHost::start(servers, options()).unwrap();
    let error = soon(host.wait_until_ready()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "required server `crm` is not available: `switchboard-no-such-program` was not found on PATH: install it, or set \
         its full path"
    );
    // The other server is ready.
    assert_eq!(text(&host, "good__echo").await, "{}");

    let other = program("dead", "dead");
    let host = McpHost::start(vec![program("good", BOTH_ERAS), other], options()).unwrap();
    soon(host.wait_until_ready()).await.unwrap();
    assert_eq!(status(&host, "dead").state, ServerState::Failed);
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let dead = program("dead", "dead");
    let unknown = ServerConfig::stdio("unknown", "no-such-program-anywhere", [""; 0]);
    let with_arguments = ServerConfig::stdio("with_arguments", "sh -c true", [""; 0]);
    let mut nowhere = program("nowhere", BOTH_ERAS);
    if let ServerTransport::Stdio { cwd, .. } = &mut nowhere.transport {
        *cwd = Some("no/such/directory".into());
    }
    let host = host([dead, unknown, with_arguments, nowhere]).await;
    assert_eq!(
        problems(&host).await,
        [
            "dead: process exited with code 3; last lines of stderr: cannot open the database | \
             bye",
            "unknown: `no-such-program-anywhere` was not found on PATH: install it, or set its \
             full path",
            "with_arguments: `sh -c true` was not found; the command seems to contain arguments, \
             which belong in `args`",
            "nowhere: the working directory `no/such/directory` does not exist",
        ]
    );
    let status = status(&host, "dead");
    assert_eq!(status.state, ServerState::Failed);
    // The reason does not repeat the stderr lines, which are in `stderr_tail`.
    assert_eq!(status.reason.as_deref(), Some("process exited with code 3"));
    assert_eq!(status.stderr_tail, ["cannot open the database", "bye"]);
    let error = call(&host, "dead__work", serde_json::json!({}))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `dead` is not available: process exited with code 3; last lines of stderr: cannot \
         open the database | bye"
    );
    assert!(host.list_tools().await.tools.is_empty());
    // No server is required.
    host.wait_until_ready().await.unwrap();
}

#[tokio::test]
async fn a_required_server_that_failed_is_said_before_the_others_are_there() {
    let mut mute = program("mute", "mute");
    mute.connect_timeout = Duration::from_mins(10);
    let mut mute_too = mute.clone();
    mute_too.name = "mute_too".to_owned();
    mute_too.required = true;
    let mut dead = program("dead", "dead");
    dead.required = true;
    let host = McpHost::start(vec![mute, mute_too, dead], options()).unwrap();
    let error = soon(host.wait_until_ready()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "required server `dead` is not available: process exited with code 3; last lines of \
         stderr: cannot open the database | bye"
    );
    let HostError::RequiredServer {
        reason,
        stderr_tail,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(reason, "process exited with code 3");
    assert_eq!(stderr_tail, ["cannot open the database", "bye"]);
    assert_eq!(status(&host, "mute").state, ServerState::Starting);
}

#[tokio::test]
async fn an_unusable_server_of_another_hosts_file_is_a_failed_one() {
    let document = serde_json::json!({"mcpServers": {
        "old": {"type": "sse", "url": "http://127.0.0.1:1/sse", "required": true},
    }});
    let mut servers = parse_config_document(&document).unwrap();
    servers.push(program("good", BOTH_ERAS));
    let host = host(servers).await;
    assert_ready(&host, "good");
    let status = status(&host, "old");
    assert_eq!(status.state, ServerState::Failed);
    let reason = status.reason.unwrap();
    assert!(
        reason.starts_with("invalid configuration: `mcpServers.old.type` is `sse`"),
        "{reason}"
    );
    assert_eq!(status.transport, "unusable");
    let error = host.wait_until_ready().await.unwrap_err().to_string();
    assert!(error.contains("required server `old`"), "{error}");
}

#[tokio::test]
async fn two_servers_of_one_name_are_an_error() {
    let servers = vec![program("twin", BOTH_ERAS), program("twin", BOTH_ERAS)];
    let error = McpHost::start(servers, options()).unwrap_err();
    assert!(matches!(error, HostError::DuplicateName { name } if name == "twin"));
}

#[test]
fn a_host_needs_a_runtime() {
    let error = McpHost::start(Vec::new(), options()).unwrap_err();
    assert!(matches!(error, HostError::NoRuntime));
}

#[tokio::test]
async fn a_failed_server_can_be_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = program("s", BOTH_ERAS);
    let late = folder.path().join("late");
    if let ServerTransport::Stdio { cwd, .. } = &mut config.transport {
        *cwd = Some(late.clone());
    }
    let host = host([config]).await;
    assert_eq!(status(&host, "s").state, ServerState::Failed);

    std::fs::create_dir(late).unwrap();
    assert!(!host.restart_server("nobody"));
    assert!(host.restart_server("s"));
    status_when(&host, "s", |status| status.state == ServerState::Ready).await;

    let first = status(&host, "s").pid.unwrap();
    assert!(host.restart_server("s"));
    let again = status_when(&host, "s", |status| {
        status.state == ServerState::Ready && status.pid != Some(first)
    });
    assert!(again.await.pid.is_some());
    assert_eq!(text(&host, "s__echo").await, "{}");
}
