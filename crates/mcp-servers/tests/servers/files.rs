//! Data in a file.

use std::path::Path;

use rmcp::model::ProtocolVersion;
use rusqlite::Connection;
use serde_json::{Value, json};
use switchboard_mcp_servers::{DataProblem, ServerError, ServerOptions, bind_http};

use crate::client::{NAME, call, data, over_pipe};

/// Opens the file as another program does.
pub(crate) fn database(file: &Path) -> Connection {
    Connection::open(file).unwrap()
}

async fn problem(file: &Path) -> (DataProblem, String) {
    let options = ServerOptions::new().with_data(file);
    let error = bind_http(NAME, ([127, 0, 0, 1], 0).into(), options)
        .await
        .unwrap_err();
    assert!(error.is_usage());
    let text = error
        .to_string()
        .replace(&file.parent().unwrap().display().to_string(), "FOLDER");
    match error {
        ServerError::Data { path, problem } => {
            assert_eq!(path, file);
            (problem, text)
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn tickets_are_stored_and_the_file_is_filled_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let ticket = json!({"customer_id": 42, "subject": "Broken", "priority": "low"});
    for expected in 1..=2 {
        let options = ServerOptions::new().with_data(&file);
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
        let options = ServerOptions::new().with_data(&file);
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
async fn a_file_of_another_kind_is_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    let notes = "Buy coffee.\n".repeat(1000);
    std::fs::write(&file, &notes).unwrap();
    let (found, text) = problem(&file).await;
    assert!(matches!(found, DataProblem::NotADatabase), "{found:?}");
    insta::assert_snapshot!(text, @"the data file `FOLDER/notes.txt` cannot be used: it is not an SQLite database; give another path, and a missing file is created");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), notes);
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.db");
    let other = database(&file);
    other
        .execute_batch("CREATE TABLE customers (id INTEGER)")
        .unwrap();
    let (found, text) = problem(&file).await;
    assert!(matches!(found, DataProblem::Foreign), "{found:?}");
    insta::assert_snapshot!(text, @"the data file `FOLDER/other.db` cannot be used: it is the database of another program; give another path, and a missing file is created");
    let tables: i64 = other
        .query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn a_newer_layout_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let options = ServerOptions::new().with_data(&file);
    over_pipe(options, ProtocolVersion::LATEST)
        .await
        .end()
        .await;
    let direct = database(&file);
    direct.execute_batch("PRAGMA user_version = 7").unwrap();
    let (found, text) = problem(&file).await;
    assert!(
        matches!(found, DataProblem::Newer { found: 7, known: 1 }),
        "{found:?}"
    );
    insta::assert_snapshot!(text, @"the data file `FOLDER/shop.db` cannot be used: a newer version wrote it (layout 7; this version supports 1); update this program");
}

#[tokio::test]
async fn a_folder_and_a_missing_folder_have_separate_errors() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    std::fs::create_dir(&here).unwrap();
    let (found, text) = problem(&here).await;
    assert!(matches!(found, DataProblem::Folder), "{found:?}");
    insta::assert_snapshot!(text, @"the data file `FOLDER/here` cannot be used: it is a folder; name a file in it");

    let missing = folder.path().join("nowhere");
    let (found, text) = problem(&missing.join("shop.db")).await;
    let DataProblem::NoFolder { folder } = found else {
        panic!("{found:?}")
    };
    assert_eq!(folder, missing);
    insta::assert_snapshot!(text, @"the data file `FOLDER/shop.db` cannot be used: the folder `FOLDER` does not exist; create it first");
    assert!(!missing.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_cannot_be_created_has_an_error() {
    // Write protection does not hold for root, who runs many containers; a name that is too long
    // for the file system holds for everyone.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x".repeat(300));
    let (found, text) = problem(&file).await;
    assert!(matches!(found, DataProblem::NotWritable), "{found:?}");
    assert!(text.contains("check its name"), "{text}");
}

#[tokio::test]
async fn a_server_waits_for_another_process_that_is_writing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let options = ServerOptions::new().with_data(&file);
    let piped = over_pipe(options, ProtocolVersion::LATEST).await;
    let other = database(&file);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ticket = json!({"customer_id": 42, "subject": "Waits"});
    let (ticket, ()) = tokio::join!(
        call(&piped.client, "create_support_ticket", ticket),
        async {
            // The ticket is on its way by now, or will find the file free: both must succeed.
            other.execute_batch("COMMIT").unwrap();
        },
    );
    assert_eq!(data(ticket)["ticket_id"], 1);
    piped.end().await;
}
