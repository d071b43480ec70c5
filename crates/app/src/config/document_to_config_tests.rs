use secrecy::ExposeSecret as _;
use serde_json::json;

use std::num::NonZero;

use super::*;

fn read_of(value: &Value) -> Result<Config, String> {
    let config = read_config(value, Path::new("/project/switchboard.yaml"));
    config.map_err(|problem| problem.to_string())
}

#[test]
fn files_are_named_relative_to_the_configuration() {
    let read = |audit: &Value| read_of(&json!({ "audit": audit })).unwrap().audit;
    assert_eq!(read(&json!(null)), None);
    assert_eq!(read(&json!(true)), Some(AuditLocation::Default));
    assert_eq!(read(&json!(false)), Some(AuditLocation::Off));
    for (name, expected) in [("a.jsonl", "/project/a.jsonl"), ("/a.jsonl", "/a.jsonl")] {
        assert_eq!(
            read(&json!(name)),
            Some(AuditLocation::File(expected.into()))
        );
    }
    let log = read_of(&json!({"log_file": "logs/run.log"}))
        .unwrap()
        .log_file;
    assert_eq!(log, Some("/project/logs/run.log".into()));
}

#[test]
fn errors_name_the_key() {
    for (value, expected) in [
        (json!({"audit": 1}), "`audit` must be true, false or a file"),
        (json!({"audit": " "}), "`audit` must be"),
        (
            json!({"audit_results": "yes"}),
            "`audit_results` must be true or false",
        ),
        (json!({"otlp_endpoint": "localhost:4318"}), "http://"),
        (
            json!({"otlp_headers": {"a": "b"}}),
            "together with otlp_endpoint",
        ),
        (
            json!({"otlp_endpoint": "http://c", "otlp_headers": {"a": 1}}),
            "`otlp_headers` must be a map",
        ),
    ] {
        let error = read_of(&value).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_address_is_replaced_together_with_its_headers() {
    let user = json!({
        "otlp_endpoint": "http://user/?key=secret-1",
        "otlp_headers": {"x-key": "secret-2"},
        "otlp_content": true,
    });
    let user = read_of(&user).unwrap();
    let project = read_of(&json!({"otlp_endpoint": "http://project", "audit": false})).unwrap();
    let both = user.clone().merge_config(project).unwrap();
    assert_eq!(both.otlp_endpoint.as_deref(), Some("http://project"));
    assert!(both.otlp_headers.is_none());
    assert_eq!(both.otlp_content, Some(true));
    assert_eq!(both.audit, Some(AuditLocation::Off));

    let merged = user.merge_config(Config::default()).unwrap();
    let address = merged.otlp_endpoint.as_deref();
    assert_eq!(address, Some("http://user/?key=secret-1"));
    let headers = merged.otlp_headers.unwrap();
    assert_eq!(headers[0].1.expose_secret(), "secret-2");
}

#[test]
fn sections_are_merged_key_by_key() {
    let user = json!({
        "serve": {"max_runs": 1, "hosts": ["a"], "tokens": ["0123456789abcdef"]},
        "sessions": {"store": "a.db", "keep_days": 3},
    });
    let project = json!({
        "serve": {"max_runs": 2, "hosts": null},
        "sessions": {"keep_days": 5, "keep_sessions": 7},
    });
    let merged = read_of(&user).unwrap();
    let merged = merged.merge_config(read_of(&project).unwrap()).unwrap();
    let options = merged.serve.server_options();
    assert_eq!((options.max_runs, options.tokens.len()), (2, 1));
    assert_eq!(options.hosts, ["a"]);
    let sessions = merged.sessions;
    assert!(sessions.store.is_some());
    assert_eq!(
        [sessions.keep_days, sessions.keep_sessions].map(|it| it.map(NonZero::get)),
        [Some(5), Some(7)]
    );
}
