use std::sync::Mutex;

use futures_util::FutureExt as _;
use switchboard_domain::MockRunStore;

use super::*;

/// A store that says which runs were let go of, and in which state.
fn store(said: &Arc<Mutex<Vec<String>>>) -> Arc<dyn RunStore> {
    let mut runs = MockRunStore::new();
    let said = Arc::clone(said);
    runs.expect_release()
        .returning(move |run, state, _, after, _| {
            let what = format!("{run} {state:?} behind {after}");
            said.lock().unwrap().push(what);
            Ok(())
        });
    Arc::new(runs)
}

#[tokio::test]
async fn a_run_that_was_taken_again_is_not_let_go_of_by_who_had_it_before() {
    let said = Arc::default();
    let (runs, other) = (store(&said), store(&said));
    // Its release was done, and nobody heard of that.
    let before = RunLease::new(Arc::clone(&runs), "r".into(), 1);
    let elsewhere = RunLease::new(other, "r".into(), 7);
    let now = RunLease::new(Arc::clone(&runs), "r".into(), 1);
    before.release().await;
    assert!(said.lock().unwrap().is_empty());
    assert!(LocalRun::of(&runs, "r").is_leased());
    elsewhere.release().await;
    now.release().await;
    assert!(!LocalRun::of(&runs, "r").is_leased());
    let released = ["r Interrupted behind 7", "r Interrupted behind 1"];
    assert_eq!(*said.lock().unwrap(), released);
}

#[tokio::test]
async fn one_waits_until_the_other_has_done_what_it_does() {
    let said = Arc::default();
    let runs = store(&said);
    let before = RunLease::new(Arc::clone(&runs), "r".into(), 1);
    let turn = LocalRun::of(&runs, "r");
    let taking = turn.begin_transition().await;
    let mut letting_go = Box::pin(before.release());
    assert!(letting_go.as_mut().now_or_never().is_none());
    let now = RunLease::new(Arc::clone(&runs), "r".into(), 1);
    drop(taking);
    letting_go.await;
    assert!(said.lock().unwrap().is_empty());
    now.forget();
}

#[tokio::test]
async fn a_write_is_repeated_only_while_the_store_is_unavailable() {
    let tries = Mutex::new(0);
    let write = |available_after: u32| {
        *tries.lock().unwrap() = 0;
        let tries = &tries;
        until_available(move || {
            let mut tries = tries.lock().unwrap();
            *tries += 1;
            let is_available = *tries > available_after;
            async move {
                if is_available {
                    return Ok(());
                }
                Err(SessionStoreError::Unavailable {
                    operation: "write",
                    source: "locked".into(),
                })
            }
            .boxed()
        })
    };
    write(MAX_ATTEMPTS - 1).await.unwrap();
    assert_eq!(*tries.lock().unwrap(), MAX_ATTEMPTS);
    let error = write(MAX_ATTEMPTS).await.unwrap_err();
    assert!(matches!(error, SessionStoreError::Unavailable { .. }));
    assert_eq!(*tries.lock().unwrap(), MAX_ATTEMPTS);
    let refused = until_available(|| {
        *tries.lock().unwrap() += 1;
        let run = "r".to_owned();
        async { Err(SessionStoreError::NoSuchRun { run }) }.boxed()
    });
    assert!(refused.await.is_err());
    assert_eq!(*tries.lock().unwrap(), MAX_ATTEMPTS + 1, "it is tried once");
}
