//! Login, login status and logout by a person.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::json;
use switchboard_domain::{ToolCall, ToolHost};
use switchboard_mcp_client::{
    ServerConfig, ServerState, ServerTransport,
    auth::{self, AuthError, AuthOptions, FileStore},
};

use crate::{auth::stage::*, auth::world::World};

#[tokio::test]
async fn a_login_is_made_used_and_ended() {
    let world = World::new().await;
    let (config, options) = (server(&world), unattended());
    world.set_resource("scopes_supported", json!(["files:read"]));
    let info = login(&config, &options).await.unwrap();
    assert_eq!(info.issuer, world.issuer);
    assert_eq!(info.resource, world.url());
    assert_eq!(info.principal, "default");
    assert_eq!(info.scopes, ["files:read"]);
    assert!(info.renewable);

    // The servers have checked PKCE, redirect and resource. These are the other parameters.
    let page = world.pages().remove(0);
    assert_eq!(page["scope"], "files:read");
    assert_eq!(page["resource"], world.url());
    assert_eq!(page["kept"], "yes");
    assert!(page["state"].len() >= 43 && page["code_challenge"].len() == 43);
    assert!(!page.contains_key("prompt"));
    let registration = world.registrations().remove(0);
    assert_eq!(registration["application_type"], "native");
    assert_eq!(registration["client_name"], "Switchboard");
    assert_eq!(registration["token_endpoint_auth_method"], "none");
    let grants = json!(["authorization_code", "refresh_token"]);
    assert_eq!(registration["grant_types"], grants);

    let host = ready_host(&config, &options).await;
    call_works(&host, "some").await;
    let bearers = world.bearers();
    let first = bearers.iter().position(Option::is_some).unwrap();
    assert!(bearers[first..].iter().all(Option::is_some), "{bearers:?}");

    assert!(soon(auth::logout(&config, &options)).await.unwrap());
    assert_eq!(world.count("POST /revoke"), 1);
    assert_eq!(world.refresh_tokens(), [""; 0]);
    assert!(!soon(auth::logout(&config, &options)).await.unwrap());
}

#[tokio::test]
async fn a_server_that_needs_a_login_says_so_and_works_after_it() {
    let world = World::new().await;
    let (config, options) = (server(&world), unattended());
    let host = host(&config, &options).await;
    assert_eq!(status(&host).state, ServerState::Blocked);
    let expected = "login required: run `switchboard servers login s`";
    assert_eq!(reason(&host), expected);
    assert_eq!(world.count("POST /register"), 0);

    login(&config, &options).await.unwrap();
    start_again(&host).await;
    call_works(&host, "some").await;
}

#[tokio::test]
async fn a_host_logs_in_by_itself_where_somebody_is_there() {
    let world = World::new().await;
    let (options, opened) = attended();
    let mut config = server(&world);
    config.protocol_version = None;
    let host = ready_host(&config, &options).await;
    call_works(&host, "some").await;
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_person_may_take_longer_than_the_call_that_asks() {
    let world = World::new().await;
    let (config, mut options) = logged_in(&world).await;
    let (told, mut pages) = tokio::sync::mpsc::unbounded_channel();
    options.on_url = Some(Arc::new(move |page| told.send(page.to_owned()).unwrap()));
    let host = ready_host(&config, &options).await;
    let page = tokio::select! {
        answer = call(&host, "more") => panic!("{answer:?}"),
        page = soon(pages.recv()) => page.unwrap(),
    };
    // A second call opens no second page.
    let impatient = ToolCall {
        name: "s__more".to_owned(),
        deadline: Some(Duration::from_millis(100)),
        ..ToolCall::default()
    };
    soon(Box::pin(host.call_tool(impatient))).await.unwrap_err();
    browse(&page);
    call_works(&host, "more").await;
    assert!(pages.is_empty());

    // When the host is dropped, its pending login ends.
    world.end_access_tokens();
    world.end_refresh_tokens();
    tokio::select! {
        answer = call(&host, "more") => panic!("{answer:?}"),
        page = soon(pages.recv()) => assert!(page.is_some()),
    }
    drop((host, options));
    assert_eq!(soon(pages.recv()).await, None);
}

#[tokio::test]
async fn a_person_who_declines_is_not_asked_again_for_every_call() {
    let world = World::new().await;
    let (config, (options, opened)) = (server(&world), attended());
    let host = ready_host(&config, &options).await;
    world.manners().denies = Some("access_denied");
    let reason = call_fails(&host, "more").await;
    assert!(reason.contains("access_denied"), "{reason}");
    for _ in 0..3 {
        let reason = call_fails(&host, "more").await;
        assert!(reason.contains("login required"), "{reason}");
    }
    assert_eq!(opened.load(Ordering::SeqCst), 2);
    world.manners().denies = None;
    login(&config, &options).await.unwrap();
    call_works(&host, "more").await;
}

#[tokio::test]
async fn a_configured_header_wins() {
    let world = World::new().await;
    let (options, opened) = attended();
    login(&server(&world), &options).await.unwrap();
    let mut config = server(&world);
    if let ServerTransport::StreamableHttp { headers, .. } = &mut config.transport {
        headers.push(("authorization".to_owned(), "Bearer fixed-token".into()));
    }
    let host = host(&config, &options).await;
    let reason = reason(&host);
    assert!(
        reason.contains("set `authorization` or `headers`"),
        "{reason}"
    );
    let sent = world.bearers().last().unwrap().clone();
    assert_eq!(sent.as_deref(), Some("fixed-token"));
    assert_eq!(opened.load(Ordering::SeqCst), 0);

    let error = login(&config, &options).await.unwrap_err();
    assert!(matches!(error, AuthError::StaticHeader { .. }), "{error}");
    let process = ServerConfig::stdio("p", "program", [""; 0]);
    let error = login(&process, &options).await.unwrap_err();
    assert!(matches!(error, AuthError::NotHttp { .. }), "{error}");
}

#[tokio::test]
async fn accounts_do_not_share_tokens() {
    let world = World::new().await;
    let (mut config, options) = (server(&world), unattended());
    login(&config, &options).await.unwrap();
    config.authorization.account = Some("other".to_owned());
    let host = host(&config, &options).await;
    assert!(reason(&host).contains("login required"));
    let info = login(&config, &options).await.unwrap();
    assert_eq!(info.principal, "other");
}

#[tokio::test]
async fn a_login_that_nobody_makes_ends() {
    let world = World::new().await;
    let mut options = unattended();
    options.login_timeout = Duration::from_millis(50);
    let config = server(&world);
    let login = auth::login(&config, &options, |_| {});
    let error = soon(login).await.unwrap_err();
    assert_eq!(error.to_string(), "the login timed out after 50ms");
    assert_eq!(world.count("POST /token"), 0);
}

#[tokio::test]
async fn a_person_who_declines_is_understood() {
    let world = World::new().await;
    world.manners().denies = Some("access_denied");
    let error = login(&server(&world), &unattended()).await.unwrap_err();
    let expected = "the login request was refused: access_denied";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn strangers_do_not_end_a_login() {
    let world = World::new().await;
    let config = server(&world);
    let options = unattended();
    let login = auth::login(&config, &options, |page| {
        let page = page.to_owned();
        tokio::spawn(async move {
            let url = reqwest::Url::parse(&page).unwrap();
            let (_, redirect) = url
                .query_pairs()
                .find(|(name, _)| name == "redirect_uri")
                .unwrap();
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            for forged in [
                format!("{redirect}?code=forged&state=guessed"),
                format!("{redirect}?error=access_denied"),
                redirect.replace("/callback", "/favicon.ico"),
            ] {
                let answer = client.get(forged).send().await.unwrap();
                assert_eq!(answer.status(), 404);
            }
            let answer = client.get(page).send().await.unwrap();
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.headers()["cache-control"], "no-store");
            assert!(answer.text().await.unwrap().contains("You are logged in"));
        });
    });
    soon(login).await.unwrap();
    assert!(world.forms()[0]["code"].starts_with("code-"));
}

#[tokio::test]
async fn a_broken_store_breaks_only_servers_that_ask_for_tokens() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    let options = AuthOptions::with_store(Arc::new(FileStore::new(&file)));
    world.manners().is_open = true;
    let config = server(&world);
    let host = ready_host(&config, &options).await;
    call_works(&host, "some").await;
    world.manners().is_open = false;
    let reason = call_fails(&host, "some").await;
    assert!(reason.contains(file.to_str().unwrap()), "{reason}");
    let error = login(&config, &options).await.unwrap_err();
    assert!(matches!(error, AuthError::Store(_)), "{error}");
    assert_eq!(world.count("GET /authorize"), 0);
}

#[tokio::test]
async fn nothing_shows_a_token() {
    let world = World::new().await;
    let (mut config, options) = (server(&world), unattended());
    config.authorization.client_id = Some("mine".to_owned());
    config.authorization.client_secret = Some("my-client-secret".into());
    config.authorization.issuer = Some(world.issuer.clone());
    world.add_client("mine", Some("my-client-secret"), "client_secret_basic");
    let info = login(&config, &options).await.unwrap();
    let host = ready_host(&config, &options).await;
    let found = options
        .store
        .find_grants(&world.url(), "default")
        .await
        .unwrap();
    let shown = format!("{config:?} {options:?} {info:?} {host:?} {found:?}");
    for secret in ["my-client-secret", "access-", "refresh-"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
