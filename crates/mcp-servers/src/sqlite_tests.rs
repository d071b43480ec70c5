use sqlx::Executor;

use super::*;

const LAYOUT: Layout = Layout {
    application_id: 7,
    version: 1,
    schema: "PRAGMA application_id = 7; PRAGMA user_version = 1; CREATE TABLE things (id INTEGER);",
    seed: "INSERT INTO things VALUES (1), (2);",
};

async fn count(pool: &SqlitePool) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM things")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn memory_is_kept_by_one_connection_and_shared_by_nobody_else() {
    let one = open(&LAYOUT, None).await.unwrap();
    let other = open(&LAYOUT, None).await.unwrap();
    one.execute("INSERT INTO things VALUES (3)").await.unwrap();
    assert_eq!((count(&one).await, count(&other).await), (3, 2));
    assert_eq!(one.options().get_max_connections(), 1);
    assert_eq!(one.options().get_idle_timeout(), None);
    assert_eq!(one.options().get_max_lifetime(), None);
}

#[tokio::test]
async fn what_sqlite_says_about_a_protected_file_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    open(&LAYOUT, Some(&file)).await.unwrap().close().await;
    let protected = SqliteConnectOptions::new().filename(&file).read_only(true);
    let problem = open_with(&LAYOUT, protected).await.unwrap_err();
    assert!(matches!(problem, DataProblem::NotWritable), "{problem:?}");
}

#[tokio::test]
async fn what_sqlite_says_about_a_locked_file_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let holder = open(&LAYOUT, Some(&file)).await.unwrap();
    let lock = holder.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let impatient = SqliteConnectOptions::new()
        .filename(&file)
        .busy_timeout(Duration::ZERO);
    let problem = open_with(&LAYOUT, impatient.clone()).await.unwrap_err();
    assert!(matches!(problem, DataProblem::Busy), "{problem:?}");

    let pool = SqlitePoolOptions::new()
        .connect_with(impatient)
        .await
        .unwrap();
    let error = pool
        .execute("INSERT INTO things VALUES (3)")
        .await
        .unwrap_err();
    assert!(is_busy(&error), "{error}");
    let error = crate::tool::ToolError::from(error);
    assert!(matches!(error, crate::tool::ToolError::Busy), "{error}");
    lock.rollback().await.unwrap();
    pool.execute("INSERT INTO things VALUES (3)").await.unwrap();
    assert_eq!(count(&holder).await, 3);
}

#[tokio::test]
async fn other_failures_are_not_for_the_model() {
    let pool = open(&LAYOUT, None).await.unwrap();
    let error = pool.execute("SELECT * FROM secrets").await.unwrap_err();
    assert!(!is_busy(&error));
    let error = crate::tool::ToolError::from(error);
    assert!(!error.to_string().contains("secrets"), "{error}");
    assert!(error.to_string().contains("log"), "{error}");
}

#[tokio::test]
async fn a_seed_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let broken = Layout {
        seed: "INSERT INTO things VALUES (1); INSERT INTO nowhere VALUES (1);",
        ..LAYOUT
    };
    let error = open(&broken, Some(&file)).await.unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    let pool = open(&LAYOUT, Some(&file)).await.unwrap();
    assert_eq!(count(&pool).await, 2);
}
