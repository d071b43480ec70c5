//! `ask --session` and `sessions`.

use crate::support::{Done, Place, calls};

const QUESTION: &str = "What is the account value of customer 42?";

async fn ask(place: &Place, more: &[&str]) -> Done {
    let args = [&["ask", "-o", "json"], more, &[QUESTION]].concat();
    place.run(args).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_with_session_is_stored_and_others_are_not() {
    let place = Place::new();
    let start_owned = ask(&place, &[]).await.json();
    assert!(start_owned["session_id"].is_null(), "{start_owned}");
    let none = place.run(["sessions", "list", "-o", "json"]).await.json();
    assert_eq!(none, serde_json::json!([]));

    let first = ask(&place, &["--session", "ada"]).await.exits(0);
    assert_eq!(first.json()["session_id"], "ada");
    assert_eq!(calls(&first.json())[0].1, "calculate_account_value");
    let second = ask(&place, &["--session", "ada"]).await.json();
    assert_eq!(second["session_id"], "ada");
    let list = place.run(["sessions", "-o", "json"]).await.json();
    assert_eq!(list[0]["id"], "ada");
    assert_eq!(list[0]["messages"], 8, "{list}");

    let wrong = ask(&place, &["--session", "a/b"]).await.exits(2);
    wrong.stderr_contains("is not a valid session id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_stores_every_question() {
    let place = Place::new().with_file(
        "switchboard.yaml",
        "sessions:\n  store: kept/talks.db\n  keep: true\n",
    );
    let report = ask(&place, &[]).await.json();
    let id = report["session_id"].as_str().unwrap().to_owned();
    assert!(place.path().join("kept/talks.db").exists());
    // The unique beginning of an id is sufficient.
    let shown = place.run(["sessions", "show", &id[..30]]).await;
    assert!(
        shown.stdout.starts_with(&format!("# {QUESTION}\n")),
        "{shown}"
    );
    assert!(shown.stdout.contains("calculate_account_value"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_exported_imported_deleted_and_pruned() {
    let place = Place::new();
    for id in ["one", "two"] {
        assert_eq!(ask(&place, &["--session", id]).await.code, 0);
    }
    let exported = place.run(["sessions", "export", "one"]).await.exits(0);
    assert!(exported.stdout.contains("\"id\":\"one\""), "{exported}");
    let file = place.path().join("one.json");
    std::fs::write(&file, &exported.stdout).unwrap();

    place.run(["sessions", "import", "one.json"]).await.exits(2);
    place.run(["sessions", "delete", "one"]).await.exits(0);
    let gone = place.run(["sessions", "show", "one"]).await.exits(2);
    assert!(gone.stderr.contains("unknown session `one`"), "{gone}");
    let imported = place.run(["sessions", "import", "one.json"]).await;
    assert_eq!(imported.stdout.trim(), "one", "{imported}");
    let again = place
        .run(["sessions", "import", "--new-ids", "one.json"])
        .await;
    assert_eq!(again.code, 0, "{again}");
    assert!(!again.stderr.contains("cancelled"), "{again}");
    let all = place.run(["sessions", "-o", "json"]).await.json();
    assert_eq!(all.as_array().unwrap().len(), 3, "{all}");

    // The import does not trust the approval state of a waiting run, because the file may have been
    // changed.
    let ticket = "Create a low priority ticket for customer 7 with subject \"test\"";
    let args = ["ask", "--approve", "later", "--session", "t", ticket];
    assert_eq!(place.run(args).await.code, 4);
    let exported = place.run(["sessions", "export", "t"]).await;
    std::fs::write(&file, &exported.stdout).unwrap();
    assert_eq!(place.run(["sessions", "delete", "t"]).await.code, 0);
    let imported = place.run(["sessions", "import", "one.json"]).await;
    imported.stderr_contains("unfinished runs were cancelled: ");

    let stored = place.run(["sessions", "prune"]).await.exits(2);
    assert!(stored.stderr.contains("keep_days"), "{stored}");
    std::fs::write(
        place.path().join("switchboard.yaml"),
        "sessions: {keep_sessions: 1}\n",
    )
    .unwrap();
    let pruned = place.run(["sessions", "prune"]).await;
    assert!(pruned.stderr.contains("deleted 3 sessions"), "{pruned}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_run_is_resumed_in_a_chat() {
    let place = Place::new();
    let ticket = "Create a low priority ticket for customer 7 with subject \"test\"";
    let args = ["ask", "--approve", "later", "--session", "t", ticket];
    let parked = place.run(args).await.exits(4);
    parked.stderr_contains("switchboard chat --session t");
    let busy = ask(&place, &["--session", "t"]).await.exits(2);
    assert!(busy.stderr.contains("waits for your approval"), "{busy}");

    // Over pipes, no person can decide about the call. So it is not executed, and the model gets the
    // reason.
    let input = "/continue\n/usage\n";
    let done = place
        .run_with_input(["chat", "--session", "t"], input)
        .await;
    assert!(done.stderr.contains("1 answer"), "{done}");
    done.stderr_contains("⊘ customer-service · create_support_ticket");
    ask(&place, &["--session", "t"]).await.exits(0);
}
