//! Data that a program before version 1 of the stored formats wrote.

use std::fs;

use crate::support::Place;

/// The last commit whose program can export the data.
const COMMIT: &str = "f008d49";

#[tokio::test]
async fn an_earlier_session_store_is_refused_and_unchanged() {
    let place = Place::new()
        .with_file("switchboard.yaml", "sessions: {store: sessions.db}\n")
        .with_file("empty.jsonl", "");
    let store = place.path().join("sessions.db");
    // The earlier programs used WAL mode too.
    let tables = "PRAGMA journal_mode = WAL;
        CREATE TABLE switchboard_schema (version BIGINT NOT NULL);
        INSERT INTO switchboard_schema (version) VALUES (3)";
    let connection = rusqlite::Connection::open(&store).unwrap();
    connection.execute_batch(tables).unwrap();
    drop(connection);
    let before = fs::read(&store).unwrap();
    for args in [
        &["sessions"][..],
        &["sessions", "export"],
        &["sessions", "import", "empty.jsonl"],
        &["ask", "--session", "new", "Hello?"],
        &["serve", "--bind", "127.0.0.1:0"],
    ] {
        let done = place.run(args).await;
        assert_ne!(done.code, 0, "{args:?}: {done}");
        assert!(done.stderr.contains(COMMIT), "{args:?}: {done}");
    }
    assert!(fs::read(&store).unwrap() == before, "the store changed");
}

#[tokio::test]
async fn an_earlier_export_is_refused() {
    let export = "[{\"header\":{\"format\":\"switchboard-sessions\",\"version\":1}}\n]";
    let place = Place::new().with_file("export.json", export);
    let done = place.run(["sessions", "import", "export.json"]).await;
    assert_ne!(done.code, 0, "{done}");
    assert!(done.stderr.contains(COMMIT), "{done}");
}

#[tokio::test]
async fn earlier_tool_pins_and_logins_are_reported_and_unchanged() {
    let place = Place::new().with_variable("SWITCHBOARD_LOG", "warn");
    let data = place.path().join(".local/share/switchboard");
    let files = [
        ("tools/known.json", r#"{"version":1,"places":{}}"#),
        ("logins/crm.json", r#"{"version":0}"#),
    ];
    for (file, text) in files {
        let file = data.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let config = "mcp_servers: {crm: {url: 'http://127.0.0.1:1/mcp'}}\n";
    let place = place.with_file("switchboard.yaml", config);
    let asked = place.run(["ask", "Hello?"]).await;
    assert!(asked.stderr.contains("known.json"), "{asked}");
    assert!(asked.stderr.contains("logins"), "{asked}");
    assert_eq!(asked.stderr.matches(COMMIT).count(), 2, "{asked}");
    for (file, text) in files {
        assert_eq!(fs::read_to_string(data.join(file)).unwrap(), text, "{file}");
    }
}
