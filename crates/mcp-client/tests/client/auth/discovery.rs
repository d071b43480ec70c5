//! Discovery of the authorization server, in the order of the specification.

use serde_json::{Value, json};
use switchboard_mcp_client::auth::AuthError;

use crate::{auth::stage::*, auth::world::World};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";

async fn fails(world: &World) -> AuthError {
    let error = login(&server(world), &unattended()).await.unwrap_err();
    // No browser page was opened, and no secret was sent.
    assert_eq!(world.count("GET /authorize"), 0, "{error}");
    assert_eq!(world.count("POST /token"), 0, "{error}");
    error
}

#[tokio::test]
async fn all_well_known_addresses_are_tried_in_order() {
    let [oauth, oidc] = ["oauth-authorization-server", "openid-configuration"];
    let with_path = [
        format!("GET /.well-known/{oauth}/tenant/1"),
        format!("GET /.well-known/{oidc}/tenant/1"),
        format!("GET /tenant/1/.well-known/{oidc}"),
    ];
    let without_path = [
        format!("GET /.well-known/{oauth}"),
        format!("GET /.well-known/{oidc}"),
    ];
    for (path, found, expected) in [
        (
            "",
            "/.well-known/oauth-authorization-server",
            &without_path[..1],
        ),
        ("", "/.well-known/openid-configuration", &without_path[..]),
        (
            "/tenant/1",
            "/.well-known/oauth-authorization-server/tenant/1",
            &with_path[..1],
        ),
        (
            "/tenant/1",
            "/.well-known/openid-configuration/tenant/1",
            &with_path[..2],
        ),
        (
            "/tenant/1",
            "/tenant/1/.well-known/openid-configuration",
            &with_path[..],
        ),
    ] {
        let world = World::with_issuer_path(path).await;
        world.manners().metadata_path = Some(found);
        login(&server(&world), &unattended()).await.unwrap();
        assert_eq!(world.well_known()[1..], *expected, "{found}");
    }
}

#[tokio::test]
async fn metadata_of_the_resource_are_found_without_being_named() {
    for at_root in [false, true] {
        let world = World::new().await;
        world.manners().names_metadata = false;
        if at_root {
            world.set_resource("resource", json!(world.mcp));
        }
        let info = login(&server(&world), &unattended()).await.unwrap();
        let asked = world.well_known();
        let expected = [format!("GET {RESOURCE}/mcp"), format!("GET {RESOURCE}")];
        let number = if at_root { 2 } else { 1 };
        assert_eq!(asked[..number], expected[..number]);
        let resource = if at_root {
            world.mcp.clone()
        } else {
            world.url()
        };
        assert_eq!(info.resource, resource);
        assert_eq!(world.pages()[0]["resource"], resource);
        let options = unattended();
        login(&server(&world), &options).await.unwrap();
        call_works(&ready_host(&server(&world), &options).await, "some").await;
    }
}

#[tokio::test]
async fn servers_of_2025_03_26_are_their_own_authorization_servers() {
    for has_metadata in [true, false] {
        let world = World::new().await;
        {
            let mut manners = world.manners();
            manners.resource = None;
            manners.names_metadata = false;
            if !has_metadata {
                manners.metadata_path = None;
            }
        }
        let options = unattended();
        let info = login(&server(&world), &options).await.unwrap();
        assert_eq!(info.issuer, world.mcp);
        call_works(&ready_host(&server(&world), &options).await, "some").await;
    }
}

#[tokio::test]
async fn a_server_that_only_refuses_is_not_said_to_need_a_login() {
    let world = World::new().await;
    {
        let mut manners = world.manners();
        manners.resource = None;
        manners.names_metadata = false;
        manners.metadata_path = None;
    }
    let host = host(&server(&world), &unattended()).await;
    let reason = reason(&host);
    assert!(
        reason.contains("set `authorization` or `headers`"),
        "{reason}"
    );
}

#[tokio::test]
async fn metadata_of_somebody_else_are_refused() {
    for issuer in ["https://evil.example", "", "/"] {
        let world = World::new().await;
        let issuer = match issuer {
            // Equal to the real issuer after URL normalization, but not as a string.
            "/" => format!("{}/", world.issuer),
            issuer => issuer.to_owned(),
        };
        world.set_metadata(json!({"issuer": issuer}));
        let error = fails(&world).await;
        assert!(matches!(error, AuthError::IssuerMismatch { .. }), "{error}");
        let host = host(&server(&world), &unattended()).await;
        assert!(reason(&host).contains("expected `http://127.0.0.1"));
    }
    for resource in ["https://evil.example/mcp", "http://127.0.0.1:1/mcp"] {
        let world = World::new().await;
        world.set_resource("resource", json!(resource));
        let error = fails(&world).await;
        assert!(
            matches!(error, AuthError::ResourceMismatch { .. }),
            "{error}"
        );
        assert_eq!(world.count("POST /register"), 0);
    }
}

#[tokio::test]
async fn without_pkce_there_is_no_login() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let world = World::new().await;
        world.set_metadata(json!({"code_challenge_methods_supported": methods}));
        let error = fails(&world).await;
        assert!(
            error.to_string().contains("does not support PKCE"),
            "{error}"
        );
        assert_eq!(world.count("POST /register"), 0);
    }
}

#[tokio::test]
async fn the_issuer_of_the_redirect_is_checked_before_the_code_is_used() {
    let promise = json!({"authorization_response_iss_parameter_supported": true});
    for (metadata, iss, is_right) in [
        (promise.clone(), Some(""), true),
        (promise.clone(), None, false),
        (promise, Some("https://evil.example"), false),
        (json!({}), Some(""), true),
        (json!({}), Some("/"), false),
        (json!({}), Some("https://evil.example"), false),
    ] {
        let world = World::new().await;
        world.set_metadata(metadata);
        let whole = |iss: &str| match iss {
            "" | "/" => format!("{}{iss}", world.issuer),
            other => other.to_owned(),
        };
        world.manners().iss = iss.map(whole);
        let outcome = login(&server(&world), &unattended()).await;
        match outcome {
            Ok(_) => assert!(is_right, "{iss:?}"),
            Err(error) => {
                assert!(!is_right, "{iss:?}: {error}");
                assert!(matches!(error, AuthError::IssuerMismatch { .. }), "{error}");
                assert_eq!(world.count("POST /token"), 0);
            }
        }
    }
}

#[tokio::test]
async fn addresses_inside_are_not_asked() {
    const INSIDE: [&str; 4] = [
        "https://169.254.169.254/latest/meta-data",
        "https://10.1.2.3/token",
        "http://192.168.0.1/",
        "https://[fd00::1]/",
    ];
    let is_guarded = |error: &AuthError| matches!(error, AuthError::Guarded { .. });
    for inside in INSIDE {
        for field in [
            "token_endpoint",
            "authorization_endpoint",
            "registration_endpoint",
        ] {
            let world = World::new().await;
            world.set_metadata(json!({field: inside}));
            let error = fails(&world).await;
            assert!(is_guarded(&error), "{field}: {error}");
        }
        let world = World::new().await;
        world.set_resource("authorization_servers", named(inside));
        let error = fails(&world).await;
        assert!(is_guarded(&error), "{error}");

        // The target of a redirect is checked too.
        let world = World::new().await;
        let mut config = server(&world);
        config.authorization.metadata_url = Some(format!("{}/away/{inside}", world.issuer));
        let error = login(&config, &unattended()).await.unwrap_err();
        assert!(is_guarded(&error), "{error}");

        let world = World::new().await;
        {
            let mut manners = world.manners();
            manners.names_metadata = false;
            manners.challenge = format!(", resource_metadata=\"{inside}\"");
        }
        let error = fails(&world).await;
        assert!(is_guarded(&error), "{error}");
        let host = host(&server(&world), &unattended()).await;
        let reason = reason(&host);
        assert!(reason.contains("is not allowed: it"), "{reason}");
    }
}

#[tokio::test]
async fn what_is_configured_of_an_authorization_server_counts() {
    let world = World::new().await;
    let (mut config, options) = (server(&world), unattended());
    world.set_resource(
        "authorization_servers",
        json!([world.other_issuer, world.issuer]),
    );
    config.authorization.issuer = Some(world.issuer.clone());
    let info = login(&config, &options).await.unwrap();
    assert_eq!(info.issuer, world.issuer);

    // The MCP server names no authorization server.
    for resource in [None, Some(json!({"resource": world.url()}))] {
        world.manners().names_metadata = resource.is_some();
        world.manners().resource = resource;
        let info = login(&config, &options).await.unwrap();
        assert_eq!(info.issuer, world.issuer);
    }

    // The configuration contains the URL of the metadata.
    world.manners().metadata_path = Some("/elsewhere");
    config.authorization.metadata_url = Some(format!("{}/elsewhere", world.issuer));
    let info = login(&config, &options).await.unwrap();
    assert_eq!(info.issuer, world.issuer);
    config.authorization.issuer = Some(world.other_issuer.clone());
    let error = login(&config, &options).await.unwrap_err();
    assert!(matches!(error, AuthError::IssuerMismatch { .. }), "{error}");
}

#[tokio::test]
async fn metadata_without_end_or_sense_are_refused() {
    let long = "x".repeat(300 * 1024);
    for (metadata, expected) in [
        (json!({"service_documentation": long}), "bytes"),
        (json!({"token_endpoint": 5}), "invalid type"),
        (json!({"token_endpoint": null}), "has no token endpoint"),
        (
            json!({"token_endpoint": "no address"}),
            "is not a valid URL",
        ),
        (
            json!({"authorization_endpoint": "javascript:alert(1)"}),
            "it does not use https",
        ),
    ] {
        let world = World::new().await;
        world.set_metadata(metadata);
        let error = fails(&world).await.to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.len() < 500, "{error}");
    }
    for servers in [json!([]), Value::Null] {
        let world = World::new().await;
        world.set_resource("authorization_servers", servers);
        let error = fails(&world).await.to_string();
        assert!(error.contains("lists no authorization server"), "{error}");
    }
}
