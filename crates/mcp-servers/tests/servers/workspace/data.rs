//! Data files: lists, records and queries.

use std::{fmt::Write as _, fs, time::Duration};

use serde_json::{Value, json};

use super::support::Workspace;
use crate::client::{calls, text, texts};

async fn shop() -> Workspace {
    let workspace = Workspace::with(|it| it.query_timeout = Duration::from_secs(20)).await;
    fill(&workspace);
    workspace
}

fn fill(workspace: &Workspace) {
    workspace.write(
        "data/sales 2026.csv",
        "id,customer,amount,zip\n1,anna,10.5,01234\n2,ben,20,99999\n3,anna,,\n",
    );
    workspace.write(
        "data/customers.json",
        r#"[{"name": "anna", "tags": ["new", "vip"], "active": true}, {"name": "ben", "since": 2020}]"#,
    );
    workspace.write(
        "data/log.jsonl",
        "{\"level\": \"info\"}\n{\"level\": \"error\"}\n",
    );
    workspace.write("data/points.tsv", "x\ty\n1\t2\n");
    workspace.write("data/broken.json", "{");
    workspace.write("data/notes.txt", "no data");
    workspace.write("data/deeper/more.ndjson", "{\"a\": 1}\n");
    workspace.write("data/deeper/points.csv", "x,y\n");
}

const GOOD_CALLS: &str = r#"
data_list {}
data_list {"path": "data"}
data_list {"recursive": true}
data_read {"path": "data/sales 2026.csv"}
data_read {"path": "data/sales 2026.csv", "offset": 1, "limit": 1, "columns": ["amount", "id"]}
data_read {"path": "data/customers.json"}
data_read {"path": "data/log.jsonl"}
data_read {"path": "data/points.tsv"}
data_list {"path": "data", "limit": 1}
data_list {"collection": "customers", "limit": 1}
data_read {"collection": "data/points"}
data_read {"collection": "sales 2026", "id": 2, "columns": ["id", "amount"]}
"#;

/// Calls that fail.
const BAD_CALLS: &str = r#"
data_read {"path": "data/broken.json"}
data_read {"path": "data/notes.txt"}
data_read {"path": "data/points.csv"}
data_read {"path": "data/points.tsv", "columns": ["z"]}
data_read {"path": "data/customers.json", "columns": ["nam"]}
data_read {"path": "data/points.tsv", "offset": 1}
data_read {"path": "data/points.tsv", "limit": 0}
data_read {}
data_read {"path": "data/points.tsv", "collection": "points"}
data_list {"path": "data", "collection": "customers"}
data_list {"collection": "points"}
data_read {"collection": "ustomers"}
data_read {"collection": "../outside/secret.csv"}
data_read {"collection": "customers", "id": "anna"}
data_read {"collection": "sales 2026", "id": "4"}
data_read {"collection": "sales 2026", "id": 2, "offset": 1}
"#;

#[tokio::test]
async fn data_files_are_listed_and_read() {
    let workspace = shop().await;
    let mut seen = texts(&workspace.client, calls(GOOD_CALLS), false).await;
    seen += &texts(&workspace.client, calls(BAD_CALLS), true).await;
    insta::assert_snapshot!(seen);
    let records = workspace
        .data("data_read", json!({"path": "data/customers.json"}))
        .await;
    assert_eq!(records["records"][0]["tags"], json!(["new", "vip"]));
    assert_eq!(records["records"][1]["tags"], json!(null));
    let first = json!({"collection": "log", "limit": 1});
    let first = workspace.data("data_list", first).await;
    assert_eq!(first["records"], json!([{"level": "info"}]));
    assert_eq!(first["truncated"], true);
}

#[tokio::test]
async fn long_values_are_shortened_and_records_paged() {
    let workspace = Workspace::new().await;
    let rows: Vec<String> = (0..3000)
        .map(|it| format!("{it},{}\n", "x".repeat(100)))
        .collect();
    workspace.write("a.csv", format!("id,text\n{}", rows.concat()));
    let (mut next, mut ids) = (json!(0), Vec::new());
    while !next.is_null() {
        let page = json!({"path": "a.csv", "offset": next, "limit": 1000});
        let page = workspace.data("data_read", page).await;
        ids.extend(
            page["records"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["id"].clone()),
        );
        assert_eq!(page["total"], 3000);
        next = page["next_offset"].clone();
    }
    assert_eq!(Value::from(ids), Value::from((0..3000).collect::<Vec<_>>()));

    workspace.write(
        "b.json",
        json!([{"a": "y".repeat(1 << 20), "b": ["z".repeat(1 << 20)]}]).to_string(),
    );
    let long = workspace.call("data_read", json!({"path": "b.json"})).await;
    assert!(text(&long).len() < 20_000);
    assert!(text(&long).contains("yyy… (1048576 bytes in total)"));
    let long = json!({"sql": "SELECT * FROM b", "files": ["b.json"]});
    let long = workspace.call("data_query", long).await;
    assert!(text(&long).len() < 20_000);
    assert!(text(&long).contains("yyy… (1048576 bytes in total)"));
}

#[tokio::test]
async fn queries_are_answered() {
    let workspace = shop().await;
    let mut seen = String::new();
    for (sql, files) in [
        (
            "SELECT customer, SUM(amount) AS total, COUNT(*) FROM sales_2026 GROUP BY customer ORDER BY 2 DESC;",
            vec!["data/sales 2026.csv"],
        ),
        (
            "SELECT c.name, since, active, json_array_length(tags) AS tags, amount FROM customers c LEFT JOIN sales_2026 s ON s.customer = c.name ORDER BY s.id",
            vec!["data/sales 2026.csv", "data/customers.json"],
        ),
        (
            "SELECT zip, typeof(zip), typeof(amount), typeof(id) FROM sales_2026",
            vec!["data/sales 2026.csv"],
        ),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n",
            vec!["data/points.tsv"],
        ),
        (
            "SELECT x'00ff' AS blob, 1e400 AS infinite, NULL AS absent, CAST(x'ff41' AS TEXT) AS odd, 9007199254740993 AS large",
            vec!["data/points.tsv"],
        ),
        ("SELECT * FROM points WHERE x > 1", vec!["data/points.tsv"]),
        (
            "SELECT level, 'it''s; fine' AS note FROM log -- ; done",
            vec!["data/log.jsonl", "data/log.jsonl"],
        ),
    ] {
        let arguments = json!({"sql": sql, "files": files});
        let result = workspace.call("data_query", arguments).await;
        writeln!(seen, "{sql}\n{}\n", text(&result)).unwrap();
    }
    insta::assert_snapshot!(seen);
    let limited =
        json!({"sql": "SELECT id FROM sales_2026", "files": ["data/sales 2026.csv"], "limit": 2});
    let limited = workspace.data("data_query", limited).await;
    assert_eq!(limited["rows"], json!([[1], [2]]));
    assert_eq!(limited["truncated"], true);
    assert_eq!(limited["tables"][0]["name"], "sales_2026");
}

#[tokio::test]
async fn files_with_equal_names_have_separate_tables() {
    let workspace = Workspace::new().await;
    for (file, value) in [
        ("a/x.csv", 1),
        ("b/X.csv", 2),
        ("3.csv", 3),
        ("sqlite_y.csv", 4),
    ] {
        workspace.write(file, format!("v\n{value}\n"));
    }
    let sql = "SELECT x.v, X_2.v, t_3.v, t_sqlite_y.v FROM x, X_2, t_3, t_sqlite_y";
    let files = ["a/x.csv", "b/X.csv", "3.csv", "sqlite_y.csv"];
    let answer = workspace
        .data("data_query", json!({"sql": sql, "files": files}))
        .await;
    assert_eq!(answer["rows"], json!([[1, 2, 3, 4]]));
    workspace.write("empty.csv", "");
    let empty = json!({"sql": "SELECT COUNT(*) FROM empty", "files": ["empty.csv"]});
    let expected = json!([[0]]);
    assert_eq!(workspace.data("data_query", empty).await["rows"], expected);
}

#[tokio::test]
async fn a_query_can_only_read_its_tables() {
    let workspace = shop().await;
    let database = workspace.root().join("new.db");
    let path = database.display();
    let before = workspace.read("data/points.tsv");
    let mut seen = String::new();
    for sql in [
        format!("ATTACH '{path}' AS other"),
        format!("SELECT 1; ATTACH '{path}' AS other; CREATE TABLE other.t (a)"),
        format!("SELECT $a('); ATTACH '{path}' AS other; --')"),
        format!("VACUUM INTO '{path}'"),
        "PRAGMA query_only = OFF".to_owned(),
        "SELECT 1; PRAGMA query_only = OFF; DELETE FROM points".to_owned(),
        "INSERT INTO points VALUES (3, 4)".to_owned(),
        "WITH a AS (SELECT 1) INSERT INTO points SELECT 3, 4".to_owned(),
        "WITH a AS (SELECT 1) DELETE FROM points".to_owned(),
        "CREATE TABLE t (a)".to_owned(),
        "SELECT load_extension('/tmp/evil')".to_owned(),
        "SELECT readfile('/etc/passwd')".to_owned(),
        "SELECT writefile('x', 'y')".to_owned(),
        "SELECT * FROM pragma_query_only(0)".to_owned(),
        "SELECT * FROM fsdir('/')".to_owned(),
        "SELECT * FROM customers".to_owned(),
        "SELECT absent FROM points".to_owned(),
        "SELEC 1".to_owned(),
        "EXPLAIN SELECT 1".to_owned(),
        "SELECT 1 FROM".to_owned(),
        "BEGIN".to_owned(),
        " ".to_owned(),
    ] {
        let arguments = json!({"sql": sql, "files": ["data/points.tsv"]});
        let refused = workspace.refused("data_query", arguments).await;
        let shown = format!("{sql}\n{refused}\n\n");
        seen.push_str(&shown.replace(&path.to_string(), "FILE"));
    }
    insta::assert_snapshot!(seen);
    assert!(!database.exists());
    assert_eq!(workspace.read("data/points.tsv"), before);
    // Each query has a separate database, so tables of earlier queries are not visible.
    let sql = "SELECT group_concat(name) FROM sqlite_schema";
    let tables = json!({"sql": sql, "files": ["data/points.tsv"]});
    let tables = workspace.data("data_query", tables).await;
    assert_eq!(tables["rows"], json!([["points"]]));
}

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";

#[tokio::test]
async fn an_endless_query_is_stopped() {
    let workspace = Workspace::with(|it| it.query_timeout = Duration::from_millis(200)).await;
    fill(&workspace);
    let endless = json!({"sql": ENDLESS, "files": ["data/points.tsv"]});
    // More queries than may run concurrently are stopped, so each of them must release its permit.
    for _ in 0..4 {
        let refused = workspace.refused("data_query", endless.clone()).await;
        assert_eq!(
            refused,
            "The query was stopped after 0.2 seconds. Select less data or simplify the query."
        );
    }
    // An infinite result is truncated at the limit, without an error.
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let rows = json!({"sql": sql, "files": ["data/points.tsv"], "limit": 3});
    let rows = workspace.data("data_query", rows).await;
    assert_eq!(rows["rows"], json!([[1], [2], [3]]));
}

#[tokio::test]
async fn a_cancelled_query_is_stopped() {
    let workspace = Workspace::with(|it| it.query_timeout = Duration::from_hours(1)).await;
    fill(&workspace);
    let endless = || {
        let endless = json!({"sql": ENDLESS, "files": ["data/points.tsv"]});
        workspace.call("data_query", endless)
    };
    // The two queries take all permits and are then cancelled.
    let both = async { tokio::join!(endless(), endless()) };
    let ended = tokio::time::timeout(Duration::from_millis(500), both).await;
    assert!(ended.is_err());
    // The permits are free again, although the time limit of the queries is an hour.
    let simple = json!({"sql": "SELECT 1", "files": ["data/points.tsv"]});
    let simple = workspace.data("data_query", simple);
    let simple = tokio::time::timeout(Duration::from_mins(1), simple).await;
    assert_eq!(simple.unwrap()["rows"], json!([[1]]));
}

#[tokio::test]
async fn concurrent_queries_wait_for_each_other() {
    let workspace = shop().await;
    let ask = |number: usize| {
        let sql = format!("SELECT {number}");
        workspace.data(
            "data_query",
            json!({"sql": sql, "files": ["data/points.tsv"]}),
        )
    };
    let answers = futures_util::future::join_all((0..20).map(ask)).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer["rows"], json!([[number]]));
    }
}

/// Runs in a separate process, because the limit applies to all connections of a process and would
/// disturb other tests.
#[tokio::test]
async fn the_memory_of_a_query_is_limited() {
    let ended = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "workspace::data::queries_need_too_much_memory",
            "--ignored",
        ])
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

#[tokio::test]
#[ignore = "takes all the memory of SQLite: the test above starts it as a child process"]
async fn queries_need_too_much_memory() {
    let workspace = shop().await;
    for sql in [
        "SELECT zeroblob(900000000) || zeroblob(900000000)",
        "WITH RECURSIVE n(i, t) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, t || t FROM n) SELECT MAX(length(t)) FROM n",
        "SELECT length(hex(zeroblob(400000000)))",
        "WITH RECURSIVE n(i, t) AS (SELECT 1, hex(zeroblob(5000000)) UNION SELECT i + 1, t FROM n) SELECT COUNT(*) FROM n",
    ] {
        let arguments = json!({"sql": sql, "files": ["data/points.tsv"]});
        let refused = workspace.refused("data_query", arguments).await;
        assert!(
            refused.starts_with("The query needs too much memory")
                || refused.contains("string or blob too big"),
            "{sql}: {refused}"
        );
    }
    let after = json!({"sql": "SELECT 1", "files": ["data/points.tsv"]});
    let expected = json!([[1]]);
    assert_eq!(workspace.data("data_query", after).await["rows"], expected);
}

#[tokio::test]
async fn small_files_with_huge_tables_are_refused() {
    let workspace = Workspace::new().await;
    let wide: Vec<String> = (0..3000).map(|it| format!("{{\"c{it}\":1}}\n")).collect();
    workspace.write("wide.jsonl", wide.concat());
    workspace.write("head.csv", format!("{}\n", ",".repeat(5000)));
    workspace.write(
        "rows.csv",
        format!("{}\n{}", "a,".repeat(1500), "1\n".repeat(2000)),
    );
    workspace.write("deep.json", "[".repeat(1_000_000));
    for file in ["wide.jsonl", "head.csv", "rows.csv", "deep.json"] {
        let refused = workspace.refused("data_read", json!({"path": file})).await;
        assert!(
            refused.starts_with(&format!("{file} is not valid ")),
            "{refused}"
        );
    }
    // The total size of the files may be at most twice the maximum size of one file.
    let small = Workspace::with(|options| options.max_file_bytes = 1000).await;
    for file in ["a.csv", "b.csv", "c.csv"] {
        small.write(file, "v\n1234567\n".repeat(90));
    }
    let two = json!({"sql": "SELECT COUNT(*) FROM a, b", "files": ["a.csv", "b.csv"]});
    small.data("data_query", two).await;
    let three = json!({"sql": "SELECT 1", "files": ["a.csv", "b.csv", "c.csv"]});
    let refused = small.refused("data_query", three).await;
    let expected = "c.csv is too large: 900 bytes, at most 200 are allowed.";
    assert_eq!(refused, expected);
    assert_eq!(fs::read_dir(small.root()).unwrap().count(), 3);
}
