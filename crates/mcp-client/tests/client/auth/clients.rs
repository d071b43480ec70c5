//! Registration of a client with an authorization server, and client authentication.

use serde_json::json;
use switchboard_mcp_client::auth::{AuthError, ClientAuth, GrantType};

use crate::{auth::stage::*, auth::world::World};

const DOCUMENT: &str = "https://switchboard.example/client.json";

#[tokio::test]
async fn a_configured_client_wins_over_a_document_and_that_over_registration() {
    let world = World::new().await;
    world.set_metadata(json!({"client_id_metadata_document_supported": true}));
    world.add_client("mine", None, "none");
    let (mut config, mut options) = (server(&world), unattended());
    options.client_metadata_url = Some(DOCUMENT.to_owned());
    assert_eq!(login(&config, &options).await.unwrap().client_id, DOCUMENT);
    config.authorization.client_id = Some("mine".to_owned());
    assert_eq!(login(&config, &options).await.unwrap().client_id, "mine");
    assert_eq!(world.count("POST /register"), 0);

    world.set_metadata(json!({}));
    let info = login(&server(&world), &options).await.unwrap();
    assert!(info.client_id.starts_with("client-"), "{info:?}");
    // The stored logins with other client ids are not used.
    assert_eq!(world.count("POST /register"), 1);
}

#[tokio::test]
async fn without_any_way_to_become_a_client_that_is_said() {
    let world = World::new().await;
    world.set_metadata(json!({"registration_endpoint": null}));
    let error = login(&server(&world), &unattended()).await.unwrap_err();
    assert!(error.to_string().contains("set `client_id`"));
}

#[tokio::test]
async fn secrets_are_sent_as_the_server_takes_them() {
    for (supported, sent) in [
        (json!(null), "client_secret_basic"),
        (json!(["client_secret_post"]), "client_secret_post"),
        (
            json!(["private_key_jwt", "client_secret_basic"]),
            "client_secret_basic",
        ),
    ] {
        let world = World::new().await;
        world.set_metadata(json!({"token_endpoint_auth_methods_supported": supported}));
        world.add_client("my client", Some("s3cret: ä/+"), sent);
        let (mut config, options) = (server(&world), unattended());
        config.authorization.client_id = Some("my client".to_owned());
        config.authorization.client_secret = Some("s3cret: ä/+".into());
        config.authorization.issuer = Some(world.issuer.clone());
        login(&config, &options).await.unwrap();
        let host = ready_host(&config, &options).await;
        world.end_access_tokens();
        call_works(&host, "some").await;
        assert_eq!(world.forms_of("refresh_token").len(), 1, "{sent}");
    }
}

#[tokio::test]
async fn a_client_with_a_secret_is_registered_where_the_server_wants_one() {
    let world = World::new().await;
    world.set_metadata(json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
    let (config, options) = logged_in(&world).await;
    assert!(world.forms()[0]["client_secret"].starts_with("client-secret-"));
    call_works(&ready_host(&config, &options).await, "some").await;
}

#[tokio::test]
async fn a_client_that_logs_itself_in_asks_nobody() {
    let world = World::new().await;
    world.manners().lifetimes = vec![20, 3600];
    world.set_resource("scopes_supported", json!(["jobs"]));
    world.add_client("job", Some("job-secret"), "client_secret_basic");
    let (mut config, options) = (server(&world), unattended());
    config.authorization.grant = GrantType::ClientCredentials;
    config.authorization.client_id = Some("job".to_owned());
    config.authorization.client_secret = Some("job-secret".into());
    config.authorization.issuer = Some(world.issuer.clone());
    let host = ready_host(&config, &options).await;
    call_works(&host, "some").await;
    world.end_access_tokens();
    call_works(&host, "some").await;
    // A call that needs more scopes works too.
    call_works(&host, "more").await;
    let forms = world.forms_of("client_credentials");
    assert_eq!(forms[0]["scope"], "jobs");
    assert_eq!(forms[0]["resource"], world.url());
    assert_eq!(forms.last().unwrap()["scope"], "jobs files:write");
    assert_eq!(world.count("GET /authorize"), 0);
    assert_eq!(world.forms().len(), forms.len());

    config.authorization.client_secret = Some("wrong-secret".into());
    let error = login(&config, &unattended()).await.unwrap_err().to_string();
    let expected = "the token request was refused: invalid_client (because[31m)";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_client_proves_itself_with_a_key() {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    use base64::{Engine, engine::general_purpose::STANDARD};

    let world = World::new().await;
    world.set_metadata(json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}));
    world.add_client("job", None, "private_key_jwt");
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let text = STANDARD.encode(key.to_pkcs8v1().unwrap().as_ref());
    let (mut config, options) = (server(&world), unattended());
    let authorization = &mut config.authorization;
    authorization.grant = GrantType::ClientCredentials;
    authorization.client_id = Some("job".to_owned());
    authorization.private_key =
        Some(format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----").into());
    call_works(&ready_host(&config, &options).await, "some").await;
    let form = world.forms().remove(0);
    assert!(form["client_assertion_type"].ends_with(":jwt-bearer"));
    assert_eq!(form["client_assertion"].split('.').count(), 3);

    config.authorization.auth_method = Some(ClientAuth::ClientSecretPost);
    let error = login(&config, &unattended()).await.unwrap_err().to_string();
    assert!(error.contains("needs a client_secret"), "{error}");
}

#[tokio::test]
async fn at_another_authorization_server_one_is_another_client() {
    let world = World::new().await;
    let (options, _) = attended();
    let host = ready_host(&server(&world), &options).await;
    call_works(&host, "some").await;
    world.set_resource("authorization_servers", named(&world.other_issuer));
    call_works(&host, "some").await;
    assert_eq!(world.count("POST /register"), 2);
    // The second issuer got neither the client id nor the refresh token of the first issuer.
    assert!(world.pages()[1]["client_id"].ends_with(&world.other_issuer));
    assert_eq!(world.forms_of("refresh_token").len(), 0);
}

#[tokio::test]
async fn a_configured_client_is_not_taken_to_another_authorization_server() {
    let world = World::new().await;
    world.add_client("mine", None, "none");
    let (mut config, options) = (server(&world), unattended());
    config.authorization.client_id = Some("mine".to_owned());
    login(&config, &options).await.unwrap();
    let host = ready_host(&config, &options).await;
    world.set_resource("authorization_servers", named(&world.other_issuer));
    let reason = call_fails(&host, "some").await;
    assert!(reason.contains("belongs to"), "{reason}");
    assert_eq!(world.forms().len(), 1);

    // The same error occurs if the configuration names the issuer, also for a first login with a
    // secret.
    config.authorization.client_secret = Some("my-secret-1".into());
    config.authorization.issuer = Some(world.issuer.clone());
    let error = login(&config, &unattended()).await.unwrap_err();
    assert!(matches!(error, AuthError::IssuerChanged { .. }), "{error}");
}

#[tokio::test]
async fn a_secret_needs_the_authorization_server_that_it_is_for() {
    let world = World::new().await;
    world.add_client("mine", Some("my-secret-1"), "client_secret_basic");
    let (mut config, options) = (server(&world), unattended());
    config.authorization.client_id = Some("mine".to_owned());
    config.authorization.client_secret = Some("my-secret-1".into());
    let error = login(&config, &options).await.unwrap_err();
    assert!(matches!(error, AuthError::Configuration { .. }), "{error}");
    assert!(error.to_string().contains("`issuer`"), "{error}");
    // The MCP server named an authorization server, but the client sent nothing to it.
    assert!(world.forms().is_empty());

    config.authorization.issuer = Some(world.issuer.clone());
    login(&config, &options).await.unwrap();
}
