use super::*;

static LAYOUT: Layout = Layout {
    application_id: 7,
    version: 1,
    schema: "PRAGMA application_id = 7; PRAGMA user_version = 1; CREATE TABLE things (id INTEGER);",
    seed: "INSERT INTO things VALUES (1), (2);",
};

static BROKEN_LAYOUT: Layout = Layout {
    application_id: 7,
    version: 1,
    schema: LAYOUT.schema,
    seed: "INSERT INTO things VALUES (1); INSERT INTO nowhere VALUES (1);",
};

async fn count(database: &Database) -> i64 {
    let count = database.read_in_transaction(|transaction| {
        Ok(transaction.query_row("SELECT COUNT(*) FROM things", [], |row| row.get(0))?)
    });
    count.await.unwrap()
}

async fn execute(database: &Database, sql: &'static str) -> Result<(), ToolError> {
    let done =
        database.write_in_transaction(move |transaction| Ok(transaction.execute_batch(sql)?));
    done.await
}

#[tokio::test]
async fn a_write_protected_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    drop(Database::open(&LAYOUT, Some(&file)).await.unwrap());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let protected = Connection::open_with_flags(&file, flags).unwrap();
    let problem = init_database(&LAYOUT, protected).unwrap_err();
    assert!(
        problem.0.starts_with("it cannot be created or written"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_locked_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let database = Database::open(&LAYOUT, Some(&file)).await.unwrap();
    database
        .connection
        .lock()
        .await
        .busy_timeout(Duration::ZERO)
        .unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let without_timeout = Connection::open(&file).unwrap();
    without_timeout.busy_timeout(Duration::ZERO).unwrap();
    let problem = init_database(&LAYOUT, without_timeout).unwrap_err();
    assert!(
        problem.0.starts_with("another process has locked it"),
        "{problem}"
    );

    let insert = "INSERT INTO things VALUES (3)";
    let error = execute(&database, insert).await.unwrap_err();
    assert!(matches!(error, ToolError::Busy), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    execute(&database, insert).await.unwrap();
    assert_eq!(count(&database).await, 3);
}

#[tokio::test]
async fn details_of_other_failures_are_not_sent_to_the_model() {
    let database = Database::open(&LAYOUT, None).await.unwrap();
    let error = execute(&database, "SELECT * FROM secrets")
        .await
        .unwrap_err();
    assert!(matches!(error, ToolError::Database(_)), "{error}");
    assert!(!error.to_string().contains("secrets"), "{error}");
    assert!(error.to_string().contains("log"), "{error}");
}

#[tokio::test]
async fn a_seed_that_fails_leaves_the_file_empty() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let error = Database::open(&BROKEN_LAYOUT, Some(&file)).await;
    let error = error.err().unwrap();
    assert!(error.to_string().contains("nowhere"), "{error}");
    let database = Database::open(&LAYOUT, Some(&file)).await.unwrap();
    assert_eq!(count(&database).await, 2);
}
