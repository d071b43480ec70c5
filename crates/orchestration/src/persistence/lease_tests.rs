use std::sync::Mutex;

use futures_util::FutureExt as _;
use switchboard_domain::MockRunStore;

use super::*;

/// Returns a store that records each release: run, state and number of session messages.
fn store(releases: &Arc<Mutex<Vec<String>>>) -> Arc<dyn RunStore> {
    let mut runs = MockRunStore::new();
    let releases = Arc::clone(releases);
    runs.expect_release_run()
        .returning(move |run, state, _, after, _| {
            let release = format!("{run} {state:?} after {after}");
            releases.lock().unwrap().push(release);
            Ok(())
        });
    Arc::new(runs)
}

fn lease(runs: &Arc<dyn RunStore>, local_runs: &LocalRunLocks, session_messages: u64) -> RunLease {
    RunLease::new(Arc::clone(runs), local_runs, "r".into(), session_messages)
}

#[tokio::test]
async fn an_outdated_lease_does_not_release_the_run() {
    let releases = Arc::default();
    let runs = store(&releases);
    let (local_runs, of_another_store) = (LocalRunLocks::default(), LocalRunLocks::default());
    let outdated = lease(&runs, &local_runs, 1);
    let other_run = lease(&runs, &of_another_store, 7);
    let valid = lease(&runs, &local_runs, 1);
    outdated.release_run().await;
    assert!(releases.lock().unwrap().is_empty());
    assert!(local_runs.find_or_add_run("r").is_leased());
    other_run.release_run().await;
    valid.release_run().await;
    assert!(!local_runs.find_or_add_run("r").is_leased());
    let expected = ["r Interrupted after 7", "r Interrupted after 1"];
    assert_eq!(*releases.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_release_waits_while_another_task_acquires_the_run() {
    let releases = Arc::default();
    let runs = store(&releases);
    let local_runs = LocalRunLocks::default();
    let first = lease(&runs, &local_runs, 1);
    let local = local_runs.find_or_add_run("r");
    let transition = local.lock_lease_changes().await;
    let mut release = Box::pin(first.release_run());
    assert!(release.as_mut().now_or_never().is_none());
    let second = lease(&runs, &local_runs, 1);
    drop(transition);
    release.await;
    assert!(releases.lock().unwrap().is_empty());
    second.drop_without_release();
}
