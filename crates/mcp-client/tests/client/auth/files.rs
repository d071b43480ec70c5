//! Storage of tokens in files.

use std::fs;

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use switchboard_mcp_client::auth::{
    ClientAuth, FileStore, GrantKey, Registration, StoredClient, StoredGrant, StoredTokens,
    TokenStore, parse_grant, serialize_grant,
};

use crate::auth::stage::soon;

fn key(issuer: &str) -> GrantKey {
    GrantKey {
        issuer: issuer.to_owned(),
        resource: "https://h/mcp".to_owned(),
        principal: "default".to_owned(),
    }
}

fn grant(access: &str, issued_at: u64) -> StoredGrant {
    StoredGrant {
        server: "https://h/mcp".to_owned(),
        client: StoredClient {
            id: "client".to_owned(),
            secret: Some("client-secret".into()),
            auth_method: ClientAuth::ClientSecretPost,
            redirect_uri: Some("http://127.0.0.1:5/callback".to_owned()),
            registration: Registration::Dynamic,
        },
        token_endpoint: "https://as/token".to_owned(),
        revocation_endpoint: None,
        tokens: Some(StoredTokens {
            access: access.into(),
            refresh: Some("refresh".into()),
            expires_at: Some(7),
        }),
        scopes: vec!["a".to_owned()],
        wanted_scopes: vec!["b".to_owned()],
        issued_at,
    }
}

#[test]
fn the_stored_format_is_stable() {
    let fixture = json!({
        "version": 1,
        "issuer": "https://as",
        "resource": "https://h/mcp",
        "principal": "default",
        "server": "https://h/mcp",
        "token_endpoint": "https://as/token",
        "client_id": "client",
        "client_secret": "client-secret",
        "auth_method": "client_secret_post",
        "registration": "dynamic",
        "redirect_uri": "http://127.0.0.1:5/callback",
        "access_token": "access",
        "refresh_token": "refresh",
        "expires_at": 7,
        "issued_at": 5,
        "scopes": ["a"],
        "wanted_scopes": ["b"],
    });
    let written = |key: &GrantKey, grant: &StoredGrant| -> Value {
        serde_json::from_str(serialize_grant(key, grant).expose_secret()).unwrap()
    };
    assert_eq!(written(&key("https://as"), &grant("access", 5)), fixture);
    let (key, grant) = parse_grant(&fixture.to_string()).unwrap();
    assert_eq!(written(&key, &grant), fixture);
    let mut newer = fixture;
    newer["version"] = 2.into();
    assert!(parse_grant(&newer.to_string()).is_none());
}

async fn accesses(store: &FileStore) -> Vec<String> {
    let found = store.find_grants("https://h/mcp", "default").await.unwrap();
    let access = |grant: &StoredGrant| grant.tokens.as_ref().unwrap().access.clone();
    let found = found.iter().map(|(_, grant)| access(grant));
    found
        .map(|token| token.expose_secret().to_owned())
        .collect()
}

#[tokio::test]
async fn what_is_kept_is_found_again_the_latest_first() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("a/tokens");
    let store = FileStore::new(&inside);
    assert_eq!(accesses(&store).await, [""; 0]);
    assert!(!store.remove_grant(&key("i")).await.unwrap());
    store.save_grant(&key("i"), &grant("old", 5)).await.unwrap();
    store
        .save_grant(&key("j"), &grant("other", 6))
        .await
        .unwrap();
    store.save_grant(&key("i"), &grant("new", 7)).await.unwrap();
    assert_eq!(accesses(&store).await, ["new", "other"]);
    assert_eq!(accesses(&FileStore::new(&inside)).await, ["new", "other"]);
    assert!(
        store
            .find_grants("https://h/mcp", "x")
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .find_grants("https://x/mcp", "default")
            .await
            .unwrap()
            .is_empty()
    );

    // Damaged files, unfinished files and files of a later version do not hide the valid ones.
    fs::write(inside.join("odd.json"), "{").unwrap();
    fs::write(inside.join("later.json"), r#"{"version": 2}"#).unwrap();
    fs::write(inside.join("cut.new"), "{").unwrap();
    assert_eq!(accesses(&store).await, ["new", "other"]);

    assert!(store.remove_grant(&key("i")).await.unwrap());
    assert_eq!(accesses(&store).await, ["other"]);
    let left: Vec<_> = fs::read_dir(&inside).unwrap().collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_them() {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("tokens");
    fs::create_dir(&inside).unwrap();
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
    let store = FileStore::new(&inside);
    store.save_grant(&key("i"), &grant("t", 5)).await.unwrap();
    let lock = store.lock_grant(&key("i")).await.unwrap();
    assert_eq!(mode(&inside), 0o700);
    let mut files = 0;
    for file in fs::read_dir(&inside).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
        files += 1;
    }
    assert_eq!(files, 2);
    drop(lock);
}

#[tokio::test]
async fn one_at_a_time_renews_and_others_are_not_held_up() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (FileStore::new(folder.path()), FileStore::new(folder.path()));
    let held = one.lock_grant(&key("i")).await.unwrap();
    drop(soon(other.lock_grant(&key("j"))).await.unwrap());
    for store in [&one, &other] {
        let key = key("i");
        let mut waiting = std::pin::pin!(store.lock_grant(&key));
        let at_once = futures_util::poll!(&mut waiting);
        assert!(at_once.is_pending(), "{store:?}");
    }
    drop(held);
    drop(soon(other.lock_grant(&key("i"))).await.unwrap());
    drop(soon(one.lock_grant(&key("i"))).await.unwrap());
}
