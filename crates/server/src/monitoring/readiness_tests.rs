use std::{
    future::pending,
    sync::atomic::{AtomicU32, Ordering},
};

use futures_util::future::join_all;
use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn many_probes_cause_one_write_a_second() {
    let (check, pings) = (StoreCheck::default(), AtomicU32::new(0));
    let ping = || async {
        pings.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Ok(())
    };
    let passed = join_all((0..50).map(|_| check.is_store_ready(ping()))).await;
    assert!(passed.into_iter().all(|passed| passed));
    assert_eq!(pings.load(Ordering::Relaxed), 1);
    advance(MAX_AGE).await;
    assert!(check.is_store_ready(ping()).await);
    assert_eq!(pings.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_is_repeated_like_a_successful_one() {
    let check = StoreCheck::default();
    let fails = async {
        Err(SessionStoreError::Unavailable {
            operation: "write",
            source: "locked".into(),
        })
    };
    assert!(!check.is_store_ready(fails).await);
    assert!(
        !check.is_store_ready(async { Ok(()) }).await,
        "the result is reused"
    );
    advance(MAX_AGE).await;
    assert!(check.is_store_ready(async { Ok(()) }).await);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_respond_fails_the_check_at_the_time_limit() {
    let check = StoreCheck::default();
    let start = Instant::now();
    assert!(!check.is_store_ready(pending()).await);
    assert_eq!(start.elapsed(), LIMIT);
    assert!(
        check.is_store_ready(async { Ok(()) }).await,
        "a timed-out check has no result"
    );
}
