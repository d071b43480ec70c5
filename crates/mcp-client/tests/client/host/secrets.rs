//! Configured secrets stay secret, and servers get only configured environment variables.

use serde_json::json;
use switchboard_domain::ToolHost;
#[cfg(unix)]
use switchboard_mcp_client::ServerConfig;

use crate::host::stage::*;

const TOKEN: &str = "tok-5f0c1a77d2";

#[tokio::test]
async fn configured_secrets_reach_no_status_error_or_debug_text() {
    let mut config = program("s", "tells secrets");
    set_env(&mut config, "TOKEN", TOKEN);
    assert!(!format!("{config:?}").contains(TOKEN));
    let host = host([config]).await;
    assert_ready(&host, "s");
    let status = status(&host, "s");
    assert_eq!(status.stderr_tail, ["connecting with [redacted]"]);
    let error = call(&host, "s__work", json!({})).await.unwrap_err();
    let expected = "server `s` refused `work`: [redacted] is not accepted (code -32603)";
    assert_eq!(error.to_string(), expected);
    let everything = format!(
        "{host:?} {error:?} {status:?} {:?}",
        host.list_tools().await
    );
    assert!(!everything.contains(TOKEN), "{everything}");
}

#[cfg(unix)]
#[tokio::test]
async fn secrets_of_arguments_and_addresses_are_not_shown_either() {
    let mut config = program_after("export ARGUMENT=plain-but-secret", "s", "tells secrets");
    set_env(&mut config, "TOKEN", "none");
    config.secrets.push("plain-but-secret".into());
    let mut by_path = ServerConfig::http("by_path", "http://127.0.0.1:1/s/5f0c1a77d2/mcp");
    by_path.secrets.push("5f0c1a77d2".into());
    let shown = format!("{config:?} {by_path:?}");
    let host = host([config, by_path]).await;
    let expected = ["connecting with none", "asked for [redacted]"];
    assert_eq!(status(&host, "s").stderr_tail, expected);
    let expected = "streamable-http: http://127.0.0.1:1/s/[redacted]/mcp";
    assert_eq!(status(&host, "by_path").transport, expected);
    assert!(status(&host, "s").transport.contains("ARGUMENT=[redacted]"));
    let everything = format!("{shown} {host:?} {:?}", host.list_tools().await);
    for secret in ["plain-but-secret", "5f0c1a77d2"] {
        assert!(!everything.contains(secret), "{everything}");
    }
}

#[tokio::test]
async fn a_server_sees_little_of_our_environment() {
    // Cargo sets this variable. Servers must not get it.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let mut config = program("s", BOTH_ERAS);
    set_env(&mut config, "CONFIGURED", "yes");
    let host = host([config]).await;
    let names = text(&host, "s__environment").await;
    let names: Vec<&str> = names.lines().collect();
    assert!(
        names.contains(&"CONFIGURED") && names.contains(&"PATH"),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|name| name.starts_with("CARGO")),
        "{names:?}"
    );
}
