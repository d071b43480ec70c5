//! Servers with a data file.

use std::path::Path;

use rmcp::model::ProtocolVersion;
use rusqlite::Connection;
use serde_json::{Value, json};
use switchboard_mcp_servers::{ServerOptions, bind_http};

use crate::client::{NAME, call, data, over_pipe};

/// Opens the data file as another program does.
pub(crate) fn database(file: &Path) -> Connection {
    Connection::open(file).unwrap()
}

/// Returns the error of a server that starts with this data file, without the path of the folder.
async fn problem(file: &Path) -> String {
    let options = ServerOptions::new().with_data_file(file);
    let error = bind_http(NAME, ([127, 0, 0, 1], 0).into(), options).await;
    let error = error.unwrap_err();
    assert!(error.is_usage_error());
    let folder = file.parent().unwrap().display().to_string();
    error.to_string().replace(&folder, "FOLDER")
}

#[tokio::test]
async fn tickets_are_stored_and_the_file_is_filled_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let ticket = json!({"customer_id": 42, "subject": "Broken", "priority": "low"});
    for expected in 1..=2 {
        let options = ServerOptions::new().with_data_file(&file);
        let piped = over_pipe(options, ProtocolVersion::LATEST).await;
        let info = piped.client.peer_info().unwrap();
        let instructions = info.instructions.clone().unwrap();
        assert!(
            instructions.ends_with("New tickets are stored."),
            "{instructions}"
        );
        let made = data(call(&piped.client, "create_support_ticket", ticket.clone()).await);
        assert_eq!(made["ticket_id"], expected);
        piped.end().await;
    }
    let direct = database(&file);
    let mut statement = direct
        .prepare("SELECT customer_id, subject, description, priority, status FROM support_tickets")
        .unwrap();
    let tickets = statement.query_map([], |row| {
        Ok((
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
        ))
    });
    let tickets: Vec<(i64, String, Option<String>, String, String)> =
        tickets.unwrap().map(Result::unwrap).collect();
    let ticket = (
        42,
        "Broken".to_owned(),
        None,
        "low".to_owned(),
        "open".to_owned(),
    );
    assert_eq!(tickets, [ticket.clone(), ticket]);
    let counts: (i64, i64) = direct
        .query_row(
            "SELECT (SELECT COUNT(*) FROM customers), (SELECT COUNT(*) FROM purchases)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(counts, (48, 145));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_together_share_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let start = || {
        let options = ServerOptions::new().with_data_file(&file);
        tokio::spawn(over_pipe(options, ProtocolVersion::LATEST))
    };
    let servers = [start(), start(), start()];
    let mut tickets: Vec<Value> = Vec::new();
    for server in servers {
        let piped = server.await.unwrap();
        let ticket = json!({"customer_id": 1, "subject": "Hello"});
        let ticket = data(call(&piped.client, "create_support_ticket", ticket).await);
        tickets.push(ticket["ticket_id"].clone());
        piped.end().await;
    }
    assert_eq!(tickets, [1, 2, 3]);
}

#[tokio::test]
async fn other_files_are_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    let notes = "Buy coffee.\n".repeat(1000);
    std::fs::write(&file, &notes).unwrap();
    insta::assert_snapshot!(problem(&file).await, @"the data file `FOLDER/notes.txt` cannot be used: it is not an SQLite database; use another path (a missing file is created)");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), notes);

    let file = folder.path().join("other.db");
    let other = database(&file);
    let create = "CREATE TABLE customers (id INTEGER)";
    other.execute_batch(create).unwrap();
    insta::assert_snapshot!(problem(&file).await, @"the data file `FOLDER/other.db` cannot be used: it is the database of another program; use another path (a missing file is created)");
    let count = "SELECT COUNT(*) FROM sqlite_schema";
    let tables: i64 = other.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);

    let file = folder.path().join("shop.db");
    let options = ServerOptions::new().with_data_file(&file);
    let piped = over_pipe(options, ProtocolVersion::LATEST).await;
    piped.end().await;
    let newer = "PRAGMA user_version = 7";
    database(&file).execute_batch(newer).unwrap();
    insta::assert_snapshot!(problem(&file).await, @"the data file `FOLDER/shop.db` cannot be used: it was written by a newer version (layout 7; this version supports 1); update this program");

    let here = folder.path().join("here");
    std::fs::create_dir(&here).unwrap();
    insta::assert_snapshot!(problem(&here).await, @"the data file `FOLDER/here` cannot be used: it is a folder; specify a file in it");

    let missing = folder.path().join("nowhere");
    insta::assert_snapshot!(problem(&missing.join("shop.db")).await, @"the data file `FOLDER/shop.db` cannot be used: the folder `FOLDER` does not exist; create it first");
    assert!(!missing.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_cannot_be_created_has_an_error() {
    // The name is too long for the file system. A write-protected folder would not work here,
    // because many containers run as root.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x".repeat(300));
    let text = problem(&file).await;
    assert!(text.contains("check the path"), "{text}");
}

#[tokio::test]
async fn a_server_waits_for_another_process_that_is_writing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let options = ServerOptions::new().with_data_file(&file);
    let piped = over_pipe(options, ProtocolVersion::LATEST).await;
    let other = database(&file);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ticket = json!({"customer_id": 42, "subject": "Waits"});
    let (ticket, ()) = tokio::join!(
        call(&piped.client, "create_support_ticket", ticket),
        async {
            // The ticket waits for the lock or starts after its release. In both cases it is
            // stored.
            other.execute_batch("COMMIT").unwrap();
        },
    );
    assert_eq!(data(ticket)["ticket_id"], 1);
    piped.end().await;
}
