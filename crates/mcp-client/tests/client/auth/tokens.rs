//! Expired, rejected and renewed tokens. Concurrent calls share one renewal.

use std::sync::Arc;

use futures_util::future::join_all;
use switchboard_mcp_client::{
    McpHost, ServerState,
    auth::{AuthOptions, FileStore},
};
use tokio::sync::Notify;

use crate::{auth::stage::*, auth::world::World};

const CALLS: usize = 20;

async fn many_calls(hosts: &[&McpHost]) {
    let calls = (0..CALLS).map(|at| call(hosts[at % hosts.len()], "some"));
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap(), "some");
    }
}

#[tokio::test]
async fn a_token_that_is_about_to_end_is_renewed_once() {
    let world = World::new().await;
    // 20 seconds are less than the 30 seconds that a token must still be valid for.
    world.manners().lifetimes = vec![20, 3600];
    let host = logged_in_host(&world).await;
    many_calls(&[&host]).await;
    assert_eq!(world.forms_of("refresh_token").len(), 1);
    let form = world.forms_of("refresh_token").remove(0);
    assert_eq!(form["resource"], world.url());
    assert!(!form.contains_key("scope"));
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once() {
    let world = World::new().await;
    let host = logged_in_host(&world).await;
    for round in 1..=3 {
        world.end_access_tokens();
        many_calls(&[&host]).await;
        // The server accepts each refresh token only once.
        assert_eq!(world.forms_of("refresh_token").len(), round);
    }
    assert_eq!(world.count("GET /authorize"), 1);
}

#[tokio::test]
async fn processes_that_share_a_folder_renew_once() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    // Like two processes, the two stores share nothing but the folder.
    let options = || AuthOptions::with_store(Arc::new(FileStore::new(folder.path())));
    let (one, other) = (options(), options());
    let config = server(&world);
    login(&config, &one).await.unwrap();
    let hosts = [
        ready_host(&config, &one).await,
        ready_host(&config, &other).await,
    ];
    for round in 1..=3 {
        world.end_access_tokens();
        many_calls(&[&hosts[0], &hosts[1]]).await;
        assert_eq!(world.forms_of("refresh_token").len(), round);
    }
}

#[tokio::test]
async fn a_renewal_outlives_the_call_that_began_it() {
    let world = World::new().await;
    let host = logged_in_host(&world).await;
    let [begun, go_on] = [(); 2].map(|()| Arc::new(Notify::new()));
    world.manners().slow_renewal = Some([begun.clone(), go_on.clone()]);
    world.end_access_tokens();
    tokio::select! {
        answer = call(&host, "some") => panic!("{answer:?}"),
        () = soon(begun.notified()) => {}
    }
    world.manners().slow_renewal = None;
    go_on.notify_one();
    // The first renewal has used the old refresh token. Its successor was stored although the call
    // that renewed was dropped.
    call_works(&host, "some").await;
    assert_eq!(world.forms_of("refresh_token").len(), 1);
    assert_eq!(world.count("GET /authorize"), 1);
}

#[tokio::test]
async fn while_nothing_can_be_renewed_a_token_is_used_to_its_end() {
    let world = World::new().await;
    // The first token expires soon, and the second one has expired.
    world.manners().lifetimes = vec![20, 0, 3600];
    let (config, options) = logged_in(&world).await;
    world.manners().is_down = true;
    let host = ready_host(&config, &options).await;
    call_works(&host, "some").await;
    world.manners().is_down = false;
    world.end_access_tokens();
    let ended = call_fails(&host, "some").await;
    assert!(ended.contains("login required"), "{ended}");
    world.manners().is_down = true;
    let reason = call_fails(&host, "some").await;
    assert!(reason.contains("503"), "{reason}");

    // The failed renewal did not discard the refresh token.
    world.manners().is_down = false;
    call_works(&host, "some").await;
    assert_eq!(world.count("GET /authorize"), 1);
}

#[tokio::test]
async fn a_refresh_token_that_is_not_replaced_is_kept() {
    let world = World::new().await;
    let (config, options) = logged_in(&world).await;
    world.manners().gives_refresh_tokens = false;
    let host = ready_host(&config, &options).await;
    world.end_access_tokens();
    call_works(&host, "some").await;
    let stored = options
        .store
        .find_grants(&world.url(), "default")
        .await
        .unwrap();
    assert!(stored[0].1.tokens.as_ref().unwrap().refresh.is_some());
}

#[tokio::test]
async fn when_nothing_can_be_renewed_a_person_is_needed() {
    let world = World::new().await;
    let (config, options) = logged_in(&world).await;
    let host = ready_host(&config, &options).await;
    world.end_access_tokens();
    world.end_refresh_tokens();
    let reason = call_fails(&host, "some").await;
    assert!(
        reason.contains("run `switchboard servers login s`"),
        "{reason}"
    );
    // A rejected refresh token is not sent again. Concurrent calls share one discovery.
    let asked = world.well_known().len();
    let calls = join_all((0..CALLS).map(|_| call(&host, "some"))).await;
    assert!(calls.iter().all(Result::is_err));
    assert_eq!(world.forms_of("refresh_token").len(), 1);
    let asked = world.well_known().len() - asked;
    assert!(asked < CALLS, "{asked}");

    // The login uses the registered client and its redirect URI again.
    login(&config, &options).await.unwrap();
    assert_eq!(world.count("POST /register"), 1);
    call_works(&host, "some").await;
}

#[tokio::test]
async fn a_client_that_was_forgotten_is_registered_again() {
    let world = World::new().await;
    let (config, options) = logged_in(&world).await;
    let host = ready_host(&config, &options).await;
    world.end_access_tokens();
    world.forget_clients();
    let reason = call_fails(&host, "some").await;
    assert!(reason.contains("login required"), "{reason}");
    login(&config, &options).await.unwrap();
    assert_eq!(world.count("POST /register"), 2);
    call_works(&host, "some").await;
}

#[tokio::test]
async fn an_ended_token_without_a_successor_is_said_to_be() {
    let world = World::new().await;
    world.manners().lifetimes = vec![0];
    world.manners().gives_refresh_tokens = false;
    let (config, options) = logged_in(&world).await;
    let host = host(&config, &options).await;
    assert!(reason(&host).contains("login required"));
}

#[tokio::test]
async fn a_server_that_takes_no_token_is_not_given_one_after_the_other() {
    let world = World::new().await;
    let (config, (options, _)) = (server(&world), attended());
    world.manners().takes_nothing = true;
    let host = host(&config, &options).await;
    assert_eq!(status(&host).state, ServerState::Failed);
    let reason = reason(&host);
    assert!(reason.contains("rejected the new token"), "{reason}");
    assert_eq!(world.count("GET /authorize"), 1);
    assert_eq!(world.count("POST /token"), 1);

    // The server begins to reject tokens after the login. Five calls cause one renewal.
    let world = World::new().await;
    let host = logged_in_host(&world).await;
    world.manners().takes_nothing = true;
    for _ in 0..5 {
        call_fails(&host, "some").await;
    }
    assert_eq!(world.forms_of("refresh_token").len(), 1);
}
