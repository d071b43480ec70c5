use std::path::Path;

use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::config::{document_to_config, error::Problem};

fn read(value: &Value) -> Result<ServeConfig, Problem> {
    let config = document_to_config::read_config(&json!({ "serve": value }), Path::new("f.yaml"));
    config.map(|config| config.serve)
}

fn wrong(value: &Value) -> String {
    read(value).err().unwrap().to_string()
}

#[test]
fn every_setting_reaches_the_server() {
    let config = read(&json!({
        "bind": "0.0.0.0:80",
        "tokens": ["0123456789abcdef", {"token": "fedcba9876543210", "user": "ann", "tenant": "acme"}],
        "hosts": ["box.example"],
        "origins": ["https://app.example:8443"],
        "max_runs": 1, "max_runs_each": 2, "max_requests": 3, "max_requests_each": 10,
        "max_connections": 4, "max_body": 5, "header_time": 6, "body_time": 7, "write_time": 11,
        "approval_time": 8, "drain_time": 9, "keep_alive": 0.5,
    }))
    .unwrap();
    assert_eq!(config.bind, Some(([0, 0, 0, 0], 80).into()));
    let options = config.server_options();
    assert_eq!(options.tokens.len(), 2);
    assert!(format!("{:?}", options.tokens).contains("ann"));
    let secrets = config.token_secrets().map(ExposeSecret::expose_secret);
    let secrets: Vec<&str> = secrets.collect();
    assert_eq!(secrets, ["0123456789abcdef", "fedcba9876543210"]);
    assert_eq!(options.hosts, ["box.example"]);
    assert_eq!(options.origins, ["https://app.example:8443"]);
    assert_eq!(
        [
            options.max_runs,
            options.max_runs_each,
            options.max_requests,
            options.max_connections,
            options.max_body,
            options.max_requests_each
        ],
        [1, 2, 3, 4, 5, 10]
    );
    let times = [
        options.header_time,
        options.body_time,
        options.approval_time,
        options.drain_time,
        options.write_time,
    ];
    assert_eq!(times, [6, 7, 8, 9, 11].map(Duration::from_secs));
    assert_eq!(options.keep_alive, Duration::from_millis(500));
    let shown = format!("{options:?}");
    assert!(
        !shown.contains("0123456789abcdef") && !shown.contains("fedcba"),
        "{shown}"
    );
    // An empty configuration gives the defaults of the server.
    let plain = ServeConfig::default().server_options();
    assert_eq!(
        format!("{plain:?}"),
        format!("{:?}", ServerOptions::default())
    );
}

#[test]
fn errors_name_the_key_and_contain_no_token() {
    let secret = "s3cret with spaces in it";
    let error = wrong(&json!({"tokens": [secret]}));
    assert!(
        error.contains("serve.tokens[0]") && !error.contains("s3cret"),
        "{error}"
    );
    for (value, place) in [
        (json!({"tokens": "x"}), "serve.tokens"),
        (json!({"tokens": [{"user": "ann"}]}), "serve.tokens[0]"),
        (json!({"origins": ["*"]}), "serve.origins"),
        (json!({"origins": ["https://App.example"]}), "serve.origins"),
        (json!({"hosts": ["a:80"]}), "serve.hosts"),
        (json!({"keep_alive": 0}), "serve.keep_alive"),
        (
            json!({"max_run": 1}),
            "`serve.max_run` (did you mean `max_runs`?)",
        ),
        (
            json!({"tokens": [{"tok": "0123456789abcdef"}]}),
            "serve.tokens[0].tok",
        ),
        (json!([]), "serve"),
    ] {
        assert!(wrong(&value).contains(place), "{value}: {}", wrong(&value));
    }
}
