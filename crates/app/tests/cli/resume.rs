//! Options of a resumed run, and options that apply only at its start.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, Place, program};

const MODEL: &str = "openai/gpt-4o-mini";

fn ticket(id: &str) -> Answer {
    let input = json!({"customer_id": 7, "priority": "low", "subject": "s", "description": "d"});
    Answer::openai_chat([Say::call(
        id,
        "customer-service__create_support_ticket",
        input,
    )])
}

/// Asks a question whose first call waits for approval. Returns the id of the run.
async fn parked(fake: &FakeModel, place: &Place, options: &[&str]) -> String {
    fake.answer(ticket("a"));
    let ask = ["ask", "-m", MODEL, "--approve", "later", "-o", "json", "Hi"];
    let done = place.run(ask.iter().chain(options)).await.exits(4);
    done.json()["run_id"].as_str().unwrap().to_owned()
}

async fn resume(place: &Place, id: &str, options: &[&str]) -> Done {
    let args = ["runs", "resume", id, "-o", "json"];
    place.run(args.iter().chain(options)).await
}

fn failures(done: &Done) -> Vec<Value> {
    let report = done.json();
    let calls = report["tool_calls"].as_array().unwrap();
    calls.iter().map(|call| call["failure"].clone()).collect()
}

#[tokio::test]
async fn a_resumed_run_may_raise_its_step_limit() {
    let fake = FakeModel::start().await.unwrap();
    let place = Place::openai(&fake);
    let id = parked(&fake, &place, &["--max-steps", "1"]).await;
    let done = resume(&place, &id, &["--allow", "--max-steps", "1"]).await;
    assert_eq!(done.code, 2, "{done}");
    done.stderr_contains("--max-steps must exceed 1, the number");
    fake.answer(Answer::openai_chat([Say::text("Done.")]));
    let done = resume(&place, &id, &["--allow", "--max-steps", "2"]).await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(done.json()["answer"], "Done.", "{done}");

    // Without the option, the original limit applies.
    let id = parked(&fake, &place, &["--max-steps", "1"]).await;
    let place = place.with_variable("SWITCHBOARD_MAX_STEPS", "9");
    let done = resume(&place, &id, &["--allow"]).await.exits(3);
    assert_eq!(failures(&done), [Value::Null], "the call was made: {done}");
}

#[tokio::test]
async fn a_resumed_run_uses_the_new_approval_option() {
    let fake = FakeModel::start().await.unwrap();
    let place = Place::openai(&fake);
    let cases = [
        ("all", 0, vec![Value::Null, Value::Null]),
        ("none", 0, vec![Value::Null, json!("denied")]),
        ("later", 4, Vec::new()),
    ];
    for (approve, code, failed) in cases {
        let id = parked(&fake, &place, &[]).await;
        fake.answer(ticket("b"));
        if code == 0 {
            fake.answer(Answer::openai_chat([Say::text("Done.")]));
        }
        let done = resume(&place, &id, &["--allow", "--approve", approve]).await;
        assert_eq!(done.code, code, "{approve}: {done}");
        if code == 0 {
            assert_eq!(failures(&done), failed, "{approve}: {done}");
        } else {
            assert_eq!(done.json()["waiting"], json!(["b"]), "{done}");
        }
    }
    // With the variable, a further approval request is stored too.
    let id = parked(&fake, &place, &[]).await;
    fake.answer(ticket("b"));
    let place = place.with_variable("SWITCHBOARD_APPROVE", "later");
    resume(&place, &id, &["--allow"]).await.exits(4);
}

#[tokio::test]
async fn a_resumed_run_overrides_allowing_rules() {
    let server = json!({"command": program(), "args": ["mcp-server", "customer-service"]});
    let config = json!({
        "mcp_servers": {"customer-service": server, "lax": server},
        "approvals": {"rules": [{"server": "lax", "verdict": "allow"}]},
    });
    for (options, failure) in [
        (&["--allow"][..], Value::Null),
        (&["--allow", "--approve", "none"], json!("denied")),
    ] {
        let fake = FakeModel::start().await.unwrap();
        let place = Place::openai(&fake).with_file("switchboard.json", &config.to_string());
        let id = parked(&fake, &place, &[]).await;
        let input = json!({"customer_id": 7, "subject": "s"});
        fake.answer(Answer::openai_chat([Say::call(
            "b",
            "lax__create_support_ticket",
            input,
        )]));
        fake.answer(Answer::openai_chat([Say::text("Done.")]));
        let done = resume(&place, &id, options).await.exits(0);
        assert_eq!(failures(&done), [Value::Null, failure], "{done}");
    }
}

#[tokio::test]
async fn options_of_the_start_are_refused_when_resuming() {
    let fake = FakeModel::start().await.unwrap();
    // Variables and files for new questions do not matter.
    let place = Place::openai(&fake);
    let id = parked(&fake, &place, &[]).await;
    let place = place
        .with_variable("SWITCHBOARD_RECIPE", "not-there")
        .with_variable("SWITCHBOARD_STRATEGY", "circle")
        .with_variable("SWITCHBOARD_MODEL", "openai/gpt-4o")
        .with_file("switchboard.yaml", "recipe: not-there-either\n");
    for options in [
        &["--recipe", "general-chat"][..],
        &["--strategy", "loop"],
        &["--no-tools"],
    ] {
        let done = resume(&place, &id, &[options, &["--allow"]].concat()).await;
        assert_eq!(done.code, 2, "{options:?}: {done}");
        assert!(
            done.stderr.contains(options[0]) && done.stderr.contains("unexpected argument"),
            "{options:?}: {done}"
        );
    }
    fake.answer(Answer::openai_chat([Say::text("Done.")]));
    let done = resume(&place, &id, &["--allow", "--no-stream"]).await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(fake.request(1).await.json()["model"], "gpt-4o-mini");
}

#[tokio::test]
async fn a_named_model_overrides_the_variable() {
    let fake = FakeModel::start().await.unwrap();
    let place = Place::openai(&fake).with_variable("SWITCHBOARD_MODEL", "openai/gpt-4o");
    let id = parked(&fake, &place, &[]).await;
    assert_eq!(fake.request(0).await.json()["model"], "gpt-4o-mini");
    fake.answer(Answer::openai_chat([Say::text("Done.")]));
    let done = resume(&place, &id, &["--allow", "-m", "openai/gpt-4o"]).await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(fake.request(1).await.json()["model"], "gpt-4o");
}
