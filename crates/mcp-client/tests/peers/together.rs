//! Many of them in one host: both eras, both transports.

#![cfg(unix)]

use std::collections::HashSet;

use futures_util::{StreamExt, future::join_all};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use switchboard_domain::{ToolCallError, ToolHost, ToolHostChange, ToolHostChanges};

use crate::{everything, node, notes, python, stage::*};

/// The first is the one to be killed, the second is in the middle of a call meanwhile.
async fn many() -> Vec<Peer> {
    let (newer_http, everything_http) =
        tokio::join!(notes::newer_over_http(), everything::over_http());
    vec![
        notes::newer(),
        newer_http,
        everything_http,
        node::files(),
        node::memory(),
        node::thinking(),
        node::app(),
        python::git(),
        python::time(),
        python::sqlite(),
    ]
}

/// Waits until the server is there again. Nothing happens to any other.
async fn back(server_killed: &str, mut changes: ToolHostChanges) {
    while let Some(change) = changes.next().await {
        if let ToolHostChange::ServerState { server, state, .. } = change {
            assert_eq!(server, server_killed, "{state}");
            if state == "ready" {
                return;
            }
        }
    }
    panic!("the host ended");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_killed_among_nine_others_comes_back_and_they_do_not_notice() {
    let peers = many().await;
    let host = host(&peers).await;
    let catalog = host.tools().await;
    let names: HashSet<&str> = catalog
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names.len(), catalog.tools.len());
    let before = host.servers();
    let pid = process_id(before[0].pid.unwrap());
    let input = json!({"name": "old", "text": "known"});
    call(&host, &peers[0], "put", input).await;

    let changes = host.changes();
    let (broken, mut runs) = running(&peers[0], "wait");
    let (untouched, mut runs_too) = running(&peers[1], "wait");
    let (broken, untouched) = (host.call(broken), host.call(untouched));
    tokio::pin!(untouched);
    let kill = async {
        runs.wait_for(|runs| *runs).await.unwrap();
        runs_too.wait_for(|runs| *runs).await.unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    };
    let killed = async { tokio::join!(soon(broken), soon(kill)).0 };
    let error = tokio::select! {
        answer = killed => answer.unwrap_err(),
        answer = &mut untouched => panic!("{answer:?}"),
    };
    assert!(matches!(error, ToolCallError::Broken { .. }), "{error}");

    // The second has its turn below: its call is not at its end here.
    let others = peers[2..].iter().map(|peer| (peer.exercise)(&host, peer));
    let others = join_all(others);
    tokio::select! {
        ((), _) = async { tokio::join!(soon(back(peers[0].name(), changes)), others) } => {}
        answer = &mut untouched => panic!("{answer:?}"),
    }
    for (before, now) in before.iter().zip(host.servers()) {
        assert_eq!(before.pid != now.pid, before.name == "newer", "{now:#?}");
    }
    let both = peers[..2].iter().map(|peer| (peer.exercise)(&host, peer));
    let both = join_all(both);
    tokio::select! {
        _ = both => {}
        answer = &mut untouched => panic!("{answer:?}"),
    }
    // It is another process, which knows nothing of what the killed one knew.
    let forgotten = failure(&host, &peers[0], "get", json!({"name": "old"})).await;
    assert!(forgotten.contains("there is no note old"), "{forgotten}");
    close(&host).await;
}
