use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::config::document_to_config;

fn read(sessions: &Value) -> Result<SessionsConfig, String> {
    let file = Path::new("/home/ada/switchboard.yaml");
    let config = document_to_config::read_config(&json!({ "sessions": sessions }), file);
    config
        .map(|config| config.sessions)
        .map_err(|problem| problem.to_string())
}

#[test]
fn a_file_is_relative_to_the_configuration_and_an_address_is_secret() {
    let config = read(&json!({"store": "kept/talks.db", "keep": true, "keep_days": 30})).unwrap();
    assert!(
        matches!(&config.store, Some(StoreLocation::File(path)) if path == Path::new("/home/ada/kept/talks.db"))
    );
    assert_eq!(
        config.unused_session_retention(),
        Some(Duration::from_hours(30 * 24))
    );
    assert_eq!(config.keep, Some(true));

    let address = "postgres://ada:hush@db/talks";
    let config = read(&json!({"store": address})).unwrap();
    let secrets = config.database_address_secrets();
    let secrets: Vec<&str> = secrets
        .iter()
        .map(secrecy::ExposeSecret::expose_secret)
        .collect();
    assert_eq!(secrets, [address, "hush"]);
    let Some(StoreLocation::Postgres(store)) = config.store else {
        panic!("another store");
    };
    assert_eq!(store.expose_secret(), address);
}

#[test]
fn errors_contain_no_value() {
    for (value, expected) in [
        (
            json!({"store": "mysql://ada:hush@db/talks"}),
            "`sessions.store` must be a file, or an address with postgres://",
        ),
        (json!({"store": ""}), "`sessions.store` must be a file"),
        (
            json!({"keep_days": 0}),
            "`sessions.keep_days` must be a whole number of at least 1",
        ),
        (
            json!({"keep_day": 3}),
            "unknown key `sessions.keep_day` (did you mean `keep_days`?)",
        ),
    ] {
        let error = read(&value).err().unwrap();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }
}
