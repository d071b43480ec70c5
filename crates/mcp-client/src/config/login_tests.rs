use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::config::{ServerConfig, ServerTransport, parse_config_document, parse_mcp_servers};

fn one(authorization: &Value) -> Result<ServerConfig, ConfigError> {
    let server = json!({"url": "https://h/mcp", "authorization": authorization});
    parse_mcp_servers(&json!({"s": server})).map(|mut servers| servers.remove(0))
}

#[test]
fn everything_about_a_login_is_read() {
    let config = one(&json!({
        "grant": "client_credentials",
        "client_id": "id",
        "client_secret": "secret-1",
        "private_key": "secret-2",
        "token_endpoint_auth_method": "client_secret_post",
        "client_metadata_url": "https://c.example/client.json",
        "scopes": ["a", "b"],
        "issuer": "https://as.example",
        "metadata_url": "https://as.example/metadata",
        "account": "work",
        "redirect_port": 8765,
    }))
    .unwrap();
    let read = &config.authorization;
    assert_eq!(
        read.client_secret.as_ref().unwrap().expose_secret(),
        "secret-1"
    );
    insta::assert_debug_snapshot!(read);
    assert!(!format!("{config:?}").contains("secret-"));
    assert!(config.transport.env_or_headers().is_empty());

    let plain = one(&json!({})).unwrap().authorization;
    assert_eq!(plain.grant, GrantType::AuthorizationCode);
    let texts = one(&json!({"scopes": " a  b ", "account": null})).unwrap();
    let scopes = texts.authorization.scopes.unwrap();
    assert_eq!(scopes, ["a", "b"]);
}

#[test]
fn as_text_it_is_a_header_as_before() {
    let config = one(&json!("Bearer t")).unwrap();
    assert_eq!(config.transport.env_or_headers()[0].0, "Authorization");
    assert!(config.authorization.client_id.is_none());
}

#[test]
fn a_bad_one_of_another_host_hides_no_other_server() {
    let server = json!({"url": "https://h/mcp", "authorization": {"client": "x"}});
    let good = json!({"url": "https://h/mcp", "authorization": {"client_id": "x"}});
    let document = json!({"mcpServers": {"bad": server, "good": good}});
    let servers = parse_config_document(&document).unwrap();
    assert!(matches!(
        servers[0].transport,
        ServerTransport::Unusable { .. }
    ));
    assert_eq!(servers[1].authorization.client_id.as_deref(), Some("x"));
}

/// The messages are shown to a person.
#[test]
fn errors_say_where_what_and_what_to_do() {
    let errors = [
        json!({"clientid": "x"}),
        json!({"grant": "implicit"}),
        json!({"grant": "client_credentials"}),
        json!({"client_secret": "secret-1"}),
        json!({"client_id": "x", "client_secret": "secret-1"}),
        json!({"client_id": " "}),
        json!({"client_id": 5}),
        json!({"scopes": {"a": true}}),
        json!({"issuer": "as.example"}),
        json!({"client_metadata_url": "http://c.example/client.json"}),
        json!({"client_metadata_url": "https://c.example"}),
        json!({"redirect_port": 70000}),
        json!({"token_endpoint_auth_method": "tls_client_auth"}),
        json!(5),
    ]
    .map(|authorization| {
        let error = one(&authorization).unwrap_err().to_string();
        assert!(!error.contains("secret-"), "{error}");
        json!({"authorization": authorization, "error": error})
    });
    let both = json!({"s": {
        "url": "https://h/mcp",
        "authorization": {"client_id": "x"},
        "headers": {"AUTHORIZATION": "y"},
    }});
    let both = json!({"ours": both, "error": parse_mcp_servers(&both).unwrap_err().to_string()});
    let process = json!({"s": {"command": "x", "authorization": {"client_id": "x"}}});
    let process =
        json!({"ours": process, "error": parse_mcp_servers(&process).unwrap_err().to_string()});
    insta::assert_json_snapshot!([&errors[..], &[both, process]].concat());
}
