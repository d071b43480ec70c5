//! Requested scopes, and later requests for further scopes.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::{
    auth::stage::*,
    auth::world::{MORE, World},
};

/// Returns the `scope` parameter of each authorization request.
fn asked_for(world: &World) -> Vec<Option<String>> {
    let pages = world.pages();
    pages
        .iter()
        .map(|page| page.get("scope").cloned())
        .collect()
}

#[tokio::test]
async fn the_challenge_counts_then_the_metadata_then_nothing() {
    for (challenge, supported, expected) in [
        (", scope=\"a b\"", json!(["c"]), Some("a b")),
        ("", json!(["c", "d"]), Some("c d")),
        ("", json!(null), None),
    ] {
        let world = World::new().await;
        world.manners().challenge = challenge.to_owned();
        world.set_resource("scopes_supported", supported);
        login(&server(&world), &unattended()).await.unwrap();
        assert_eq!(asked_for(&world), [expected.map(str::to_owned)]);
    }
}

#[tokio::test]
async fn offline_access_is_asked_for_where_it_exists() {
    let world = World::new().await;
    world.set_metadata(json!({"scopes_supported": ["a", "offline_access"]}));
    world.set_resource("scopes_supported", json!(["a"]));
    login(&server(&world), &unattended()).await.unwrap();
    assert_eq!(asked_for(&world), [Some("a offline_access".to_owned())]);
    assert_eq!(world.pages()[0]["prompt"], "consent");
}

#[tokio::test]
async fn configured_scopes_win_and_what_a_call_needs_is_added() {
    let world = World::new().await;
    world.set_resource("scopes_supported", json!(["everything"]));
    let mut config = server(&world);
    config.authorization.scopes = Some(vec!["a".to_owned(), "b".to_owned()]);
    let (options, _) = attended();
    let host = ready_host(&config, &options).await;
    call_works(&host, "more").await;
    let more = format!("a b {MORE}");
    assert_eq!(asked_for(&world), [Some("a b".to_owned()), Some(more)]);
}

#[tokio::test]
async fn a_call_that_needs_more_gets_it_where_somebody_is_there() {
    let world = World::new().await;
    world.manners().challenge = ", scope=\"files:read\"".to_owned();
    let (options, opened) = attended();
    let host = ready_host(&server(&world), &options).await;
    call_works(&host, "more").await;
    // The second request contains the scopes that were granted before.
    let both = format!("files:read {MORE}");
    assert_eq!(
        asked_for(&world),
        [Some("files:read".to_owned()), Some(both)]
    );
    call_works(&host, "more").await;
    call_works(&host, "some").await;
    assert_eq!(opened.load(Ordering::SeqCst), 2);
    assert_eq!(world.count("POST /register"), 1);
}

#[tokio::test]
async fn without_anybody_the_next_login_asks_for_it() {
    let world = World::new().await;
    world.manners().challenge = ", scope=\"files:read\"".to_owned();
    let (config, options) = logged_in(&world).await;
    let host = ready_host(&config, &options).await;
    let reason = call_fails(&host, "more").await;
    let advice = format!("run `switchboard servers login s` (scopes: `{MORE}`)");
    assert!(reason.contains(&advice), "{reason}");
    // The old token still works for calls that need no further scope.
    call_works(&host, "some").await;

    login(&config, &options).await.unwrap();
    let both = format!("files:read {MORE}");
    assert_eq!(asked_for(&world)[1], Some(both));
    // The running host uses the new token without a restart.
    call_works(&host, "more").await;
}

#[tokio::test]
async fn a_server_for_which_nothing_is_enough_is_asked_once() {
    let world = World::new().await;
    let (options, opened) = attended();
    let host = ready_host(&server(&world), &options).await;
    world.manners().never_enough = true;
    for _ in 0..3 {
        let reason = call_fails(&host, "some").await;
        assert!(reason.contains("although they were requested"), "{reason}");
    }
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}
