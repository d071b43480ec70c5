//! Requests of a server for the folders that it may use.

use std::path::Path;

use serde_json::{Value, json};
use switchboard_mcp_client::{ClientHandlers, Root, root_from_path};

use crate::server_requests::support::*;

fn folder(path: &str) -> Root {
    root_from_path(Path::new(path)).unwrap()
}

fn listed(paths: &[&str]) -> Value {
    let roots: Vec<Value> = paths
        .iter()
        .map(|path| json!({"uri": format!("file://{path}"), "name": path.trim_start_matches('/')}))
        .collect();
    json!({"roots": roots})
}

#[tokio::test]
async fn a_server_has_its_own_roots_or_none() {
    with_each(every_variant().await, |mut support| async move {
        let host = support.host(ClientHandlers::default()).await;
        let none = call(&host, "roots").await.unwrap();
        if support.is_legacy() {
            // The client did not declare roots, so the request is an error.
            let error = none["error"].as_str().unwrap();
            assert!(error.contains("-32601"), "{error}");
        } else {
            assert_eq!(none, listed(&[]));
        }
        soon(host.close()).await;

        support.config.roots = Some(vec![folder("/own")]);
        let host = support.host(ClientHandlers::default()).await;
        assert_eq!(call(&host, "offered").await.unwrap(), json!({"roots": {}}));
        assert_eq!(call(&host, "roots").await.unwrap(), listed(&["/own"]));
        soon(host.close()).await;
    })
    .await;
}
