//! A server asks for the folders it may work in.

use std::path::Path;

use serde_json::{Value, json};
use switchboard_mcp_client::{Answering, Root};

use crate::stage::*;

fn folder(path: &str) -> Root {
    Root::folder(Path::new(path)).unwrap()
}

fn listed(paths: &[&str]) -> Value {
    let roots: Vec<Value> = paths
        .iter()
        .map(|path| json!({"uri": format!("file://{path}"), "name": path.trim_start_matches('/')}))
        .collect();
    json!({"roots": roots})
}

#[tokio::test]
async fn roots_are_listed_and_their_change_is_told() {
    with_each(every_form().await, |stage| async move {
        let answering = Answering {
            roots: Some(vec![folder("/one")]),
            ..Answering::default()
        };
        let host = stage.host(answering).await;
        assert_eq!(
            call(&host, "offered").await.unwrap(),
            json!({"roots": {"listChanged": true}})
        );
        assert_eq!(call(&host, "roots").await.unwrap(), listed(&["/one"]));
        host.set_roots(vec![folder("/two"), folder("/three")]).await;
        if stage.is_older() {
            assert_eq!(call(&host, "roots_changed").await.unwrap(), json!(true));
        }
        assert_eq!(
            call(&host, "roots").await.unwrap(),
            listed(&["/two", "/three"])
        );
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_has_its_own_roots_or_none() {
    with_each(every_form().await, |mut stage| async move {
        let host = stage.host(Answering::default()).await;
        let none = call(&host, "roots").await.unwrap();
        if stage.is_older() {
            // It asked for what was not offered.
            let error = none["error"].as_str().unwrap();
            assert!(error.contains("-32601"), "{error}");
        } else {
            assert_eq!(none, listed(&[]));
        }
        soon(host.close()).await;

        stage.config.roots = Some(vec![folder("/own")]);
        let answering = Answering {
            roots: Some(vec![folder("/one")]),
            ..Answering::default()
        };
        let host = stage.host(answering).await;
        host.set_roots(vec![folder("/two")]).await;
        assert_eq!(call(&host, "roots").await.unwrap(), listed(&["/own"]));
        soon(host.close()).await;
    })
    .await;
}
