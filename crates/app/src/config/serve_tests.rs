use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

fn wrong(value: &Value) -> String {
    read(value).unwrap_err().to_string()
}

#[test]
fn everything_that_can_be_said_reaches_the_server() {
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
    let options = config.options();
    assert_eq!(options.tokens.len(), 2);
    assert!(format!("{:?}", options.tokens).contains("ann"));
    let secrets = config.secrets().iter().map(ExposeSecret::expose_secret);
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
    for shown in [format!("{config:?}"), format!("{options:?}")] {
        assert!(
            !shown.contains("0123456789abcdef") && !shown.contains("fedcba"),
            "{shown}"
        );
    }
    // Without anything it is as the server has it.
    let plain = ServeConfig::default().options();
    assert_eq!(
        format!("{plain:?}"),
        format!("{:?}", ServerOptions::default())
    );
}

#[test]
fn a_file_closer_by_wins_key_by_key() {
    let user =
        read(&json!({"max_runs": 1, "hosts": ["a"], "tokens": ["0123456789abcdef"]})).unwrap();
    let project = read(&json!({"max_runs": 2})).unwrap();
    let options = user.merged_with(project).options();
    assert_eq!((options.max_runs, options.tokens.len()), (2, 1));
    assert_eq!(options.hosts, ["a"]);
}

#[test]
fn what_is_wrong_is_named_and_no_token_is_told() {
    let secret = "s3cret with spaces in it";
    let said = wrong(&json!({"tokens": [secret]}));
    assert!(
        said.contains("serve.tokens.0") && !said.contains("s3cret"),
        "{said}"
    );
    for (value, place) in [
        (json!({"tokens": "x"}), "serve.tokens"),
        (json!({"tokens": [{"user": "ann"}]}), "serve.tokens.0"),
        (json!({"origins": ["*"]}), "serve.origins"),
        (json!({"origins": ["https://App.example"]}), "serve.origins"),
        (json!({"hosts": ["a:80"]}), "serve.hosts"),
        (json!({"keep_alive": 0}), "serve.keep_alive"),
        (json!({"max_run": 1}), "serve.max_run"),
        (json!([]), "serve"),
    ] {
        assert!(wrong(&value).contains(place), "{value}: {}", wrong(&value));
    }
}
