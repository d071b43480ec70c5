//! Options of runs: strategies, recipes, fallbacks, rules, and runs that wait for a decision
//! and are resumed in another process.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, Place, calls, texts};

const TICKET: &str = "Create a low priority ticket for customer 7 with subject \"test\"";

async fn parked(place: &Place) -> String {
    let done = place
        .run(["ask", "--approve", "later", "-o", "jsonl", TICKET])
        .await;
    assert_eq!(done.code, 4, "{done}");
    let events = done.lines();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "run_parked", "{done}");
    assert!(!events.iter().any(|event| event["type"] == "tool_started"));
    let id = last["run_id"].as_str().unwrap().to_owned();
    assert!(done.stderr.contains(&format!("runs resume {id}")), "{done}");
    id
}

async fn list(place: &Place) -> Value {
    place.run(["runs", "list", "-o", "json"]).await.json()
}

#[tokio::test]
async fn a_waiting_run_is_resumed_by_another_process() {
    let place = Place::new();
    let id = parked(&place).await;
    let waiting = list(&place).await;
    assert_eq!(waiting[0]["run_id"], id);
    assert_eq!(waiting[0]["question"], TICKET);
    assert_eq!(waiting[0]["waiting"][0]["tool"], "create_support_ticket");
    assert_eq!(waiting[0]["waiting"][0]["input"]["customer_id"], 7);

    let args = ["runs", "resume", &id[..13], "--allow", "-o", "jsonl"];
    let done = place.run(args).await.exits(0);
    let events = done.lines();
    assert_eq!(events[0]["resumed"], true);
    let approved = |event: &&Value| event["type"] == "tool_approved";
    assert_eq!(events.iter().filter(approved).count(), 1);
    let report = &events.last().unwrap()["report"];
    let made = calls(report);
    assert_eq!(made[0].1, "create_support_ticket", "{done}");
    assert!(!made[0].3, "{done}");
    assert_eq!(report["run_id"], id);
    assert_eq!(
        list(&place).await,
        json!([]),
        "what is over waits no longer"
    );
    let again = place.run(["runs", "resume", &id, "--allow"]).await.exits(2);
    assert!(again.stderr.contains("unknown run"), "{again}");
}

#[tokio::test]
async fn a_waiting_call_is_edited_denied_or_discarded() {
    let place = Place::new();
    let id = parked(&place).await;
    let input = r#"{"customer_id": 8, "priority": "high", "subject": "edited"}"#;
    let args = [
        "runs", "resume", &id, "--allow", "--input", input, "-o", "json",
    ];
    let done = place.run(args).await.exits(0);
    assert_eq!(done.json()["tool_calls"][0]["input"]["subject"], "edited");

    let id = parked(&place).await;
    let args = [
        "runs",
        "resume",
        &id,
        "--deny",
        "not on a Sunday",
        "-o",
        "json",
    ];
    let report = place.run(args).await.json();
    let call = &report["tool_calls"][0];
    assert_eq!(call["attempts"], 0);
    assert_eq!(call["failure"], "denied");
    let message = call["result"]["content"][0]["text"].as_str().unwrap();
    assert!(message.contains("not on a Sunday"), "{message}");

    let id = parked(&place).await;
    place.run(["runs", "forget", &id]).await.exits(0);
    assert_eq!(list(&place).await, json!([]));
}

#[tokio::test]
async fn a_usage_error_keeps_the_stored_run() {
    let place = Place::new();
    let id = parked(&place).await;
    for (args, named) in [
        (vec!["runs", "resume", &id], "--allow"),
        (
            vec![
                "runs",
                "resume",
                &id,
                "--allow",
                "--input",
                r#"{"customer_id": "x"}"#,
            ],
            "customer_id",
        ),
        (
            vec!["runs", "resume", &id, "--allow", "--input", "7"],
            "object",
        ),
    ] {
        let done = place.run(&args).await;
        assert_eq!(done.code, 2, "{args:?}: {done}");
        assert!(done.stderr.contains(named), "{args:?}: {done}");
    }
    // It still waits, and the JSON output reports it.
    let args = ["runs", "resume", &id, "--approve", "later", "-o", "json"];
    let done = place.run(args).await.exits(4);
    assert_eq!(done.json()["outcome"], "waiting");
    assert_eq!(place.run(["runs", "resume", &id, "--allow"]).await.code, 0);
}

const MODEL: &str = "openai/gpt-4o-mini";

async fn ask(place: &Place, args: &[&str]) -> Done {
    let all = ["ask", "-m", MODEL, "-o", "json"].iter().chain(args);
    place.run(all).await
}

#[tokio::test]
async fn gather_format_returns_text_and_artifact() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::call(
        "a",
        "customer-service__calculate_account_value",
        json!({"customer_id": 42}),
    )]));
    let form = json!({"conversation": [
        {"type": "text", "content": "The account is worth 530.19 EUR."},
        {"type": "artifact", "artifactType": "table", "title": "Invoices", "content": "| 1 |"},
    ]});
    fake.answer(Answer::openai_chat([Say::call(
        "f",
        "response_formatter",
        form,
    )]));
    let done = ask(
        &Place::openai(&fake),
        &["--strategy", "gather-format", "What is customer 42 worth?"],
    )
    .await;
    assert_eq!(done.code, 0, "{done}");
    let report = done.json();
    let kinds = texts(&report["content"], "/type");
    assert_eq!(kinds, ["text", "artifact"], "{done}");
    assert_eq!(report["content"][1]["artifactType"], "table");
    let asked = fake.request(1).await.json().clone();
    assert_eq!(
        asked["tool_choice"]["function"]["name"],
        "response_formatter"
    );
    assert_eq!(asked["tools"].as_array().unwrap().len(), 1, "{asked}");
}

#[tokio::test]
async fn a_recipe_sets_prompt_and_tools() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([Say::text("Hello.")]));
    let place = Place::openai(&fake).with_file(
        "tickets.yaml",
        "name: tickets\ninstructions: You only write tickets.\ntools:\n  allow: \
         [create_support_ticket]\n",
    );
    let done = ask(&place, &["--recipe", "tickets.yaml", "Hi"]).await;
    assert_eq!(done.code, 0, "{done}");
    let asked = fake.request(0).await.json().clone();
    let names: Vec<_> = asked["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["customer-service__create_support_ticket"]);
    let prompt = asked["messages"][0]["content"].to_string();
    assert!(prompt.contains("You only write tickets."), "{prompt}");
}

#[tokio::test]
async fn a_fallback_model_answers_after_a_failure() {
    let (broken, whole) = (
        FakeModel::start().await.unwrap(),
        FakeModel::start().await.unwrap(),
    );
    broken.answer(Answer::new(401).piece(r#"{"error":{"message":"no"}}"#));
    whole.answer(Answer::openai_chat([Say::text("From the second.")]));
    let config = format!(
        "fallback_models: [second/some-model]\nproviders:\n  second:\n    base_url: {}/v1\n",
        whole.base_url()
    );
    let place = Place::openai(&broken).with_file("switchboard.yaml", &config);
    let done = ask(&place, &["--no-tools", "Hi"]).await.exits(0);
    let report = done.json();
    assert_eq!(report["answer"], "From the second.");
    assert_eq!(report["model"], "second/some-model");
}

#[tokio::test]
async fn rules_limits_and_context_are_configured() {
    let fake = FakeModel::start().await.unwrap();
    let ticket = |id: &str| {
        Say::call(
            id,
            "customer-service__create_support_ticket",
            json!({"customer_id": 7, "priority": "low", "subject": "s", "description": "d"}),
        )
    };
    fake.answer(Answer::openai_chat([ticket("a"), ticket("b")]));
    fake.answer(Answer::openai_chat([Say::text("ok")]));
    let place = Place::openai(&fake).with_file(
        "switchboard.yaml",
        "
limits: {max_calls_per_response: 1}
approvals:
  rules:
    - {tool: create_support_ticket, verdict: deny, reason: tickets are closed}
",
    );
    let report = ask(&place, &["Hi"]).await.json();
    let failures: Vec<_> = report["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["failure"].clone())
        .collect();
    assert_eq!(
        failures,
        [json!("denied"), json!("limit_reached")],
        "{report}"
    );

    for (config, named) in [
        ("limits: {max_call: 1}", "limits.max_call"),
        ("strategy: circle", "strategy"),
        (
            "approvals: {rules: [{tool: x, verdict: maybe}]}",
            "approvals.rules",
        ),
        ("guards: [{tool: x}]", "guards"),
        ("recipe: nothing-like-it", "nothing-like-it"),
    ] {
        let place = Place::new().with_file("switchboard.yaml", config);
        let done = place.run(["ask", "-m", "offline/planner", "Hi"]).await;
        assert_eq!(done.code, 2, "{config}: {done}");
        assert!(done.stderr.contains(named), "{config}: {done}");
    }
}

#[tokio::test]
async fn the_stricter_rule_of_two_files_applies() {
    let (allow, deny) = (
        "approvals: {rules: [{verdict: allow}]}\n",
        "approvals: {rules: [{tool: create_support_ticket, verdict: deny, reason: tickets are closed}]}\n",
    );
    for (users, projects, failure) in [
        (allow, deny, json!("denied")),
        (deny, allow, json!("denied")),
        (allow, allow, Value::Null),
        // A rule of one file applies under every policy.
        ("approve: none\n", allow, Value::Null),
    ] {
        let fake = FakeModel::start().await.unwrap();
        fake.otherwise(|asked, _| {
            let input = json!({"customer_id": 7, "subject": "test"});
            let call = Say::call("a", "customer-service__create_support_ticket", input);
            let said = if asked % 2 == 0 {
                call
            } else {
                Say::text("Over.")
            };
            Answer::openai_chat([said])
        });
        let place = Place::openai(&fake)
            .with_file("switchboard.yaml", projects)
            .with_variable("SWITCHBOARD_MODEL", "openai/gpt-6.1-sol");
        let folder = place.path().join(".config/switchboard");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("switchboard.yaml"), users).unwrap();
        let report = place.ask(TICKET).await;
        assert_eq!(
            report["tool_calls"][0]["failure"], failure,
            "{users}{projects}{report}"
        );
        // The option overrides rules of both files that allow the call.
        let args = ["ask", "--approve", "none", "-o", "json", TICKET];
        let report = place.run(args).await.json();
        assert_eq!(report["tool_calls"][0]["failure"], "denied", "{report}");
    }
}

#[tokio::test]
async fn servers_of_context_values_must_be_configured() {
    let context = "context: {token: secret}\ncontext_servers: [custmer-service]\n";
    let place = Place::new().with_file("switchboard.yaml", context);
    for (args, code) in [
        (&["ask", "Hi"][..], 2),
        (&["tools", "list"], 2),
        (&["doctor"], 1),
    ] {
        let done = place.run(args).await;
        assert_eq!(done.code, code, "{args:?}: {done}");
        let shown = format!("{}{}", done.stdout, done.stderr);
        assert!(
            shown.contains("`custmer-service`") && shown.contains("`customer-service`?"),
            "{args:?}: {done}"
        );
    }
    // Without servers, the setting has no effect.
    assert_eq!(place.run(["ask", "--no-tools", "Hi"]).await.code, 0);
    let none = format!("{context}mcp_servers: {{}}\n");
    let place = Place::new().with_file("switchboard.yaml", &none);
    assert_eq!(place.run(["ask", "Hi"]).await.code, 0);
}

#[tokio::test]
async fn a_waiting_run_occupies_its_session_until_it_ends() {
    let place = Place::new();
    let ask = ["ask", "--session", "s1", "--approve", "later", TICKET];
    for (ends, is_completed) in [
        (&["runs", "resume", "--allow"][..], true),
        (&["runs", "forget"], false),
    ] {
        let done = place.run(ask).await;
        assert_eq!(done.code, 4, "the session is free: {done}");
        let waiting = list(&place).await;
        let row = &waiting[0];
        assert_eq!(row["session_id"], "s1");
        assert_eq!(row["state"], "waiting");
        assert_eq!(row["question"], json!(TICKET));
        let id = row["run_id"].as_str().unwrap();
        let done = place.run(ask).await;
        assert_eq!(done.code, 2, "the session is busy: {done}");
        let done = place.run(ends.iter().chain(&[id])).await.exits(0);
        assert_eq!(list(&place).await, json!([]));
        if is_completed {
            let shown = place
                .run(["sessions", "show", "s1", "-o", "json"])
                .await
                .json();
            assert_eq!(shown["runs"][0]["outcome"], "completed", "{shown}");
        } else {
            assert!(done.stderr.contains("session s1"), "{done}");
        }
    }
}
