//! `eval`: suites, reports and exit codes.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, Place, program};

/// Two scenarios that the planner passes.
const SUITE: &str = "\
title: A shop
models: [offline/planner]
thresholds: {passed: 1, accuracy: 100%}
scenarios:
  - name: The customer exists
    kind: entity exists
    turns:
      - say: What is the account value of customer 42?
        calls: [{server: customer-service, tool: calculate_account_value, input: {customer_id: 42}}]
        forbidden: [create_support_ticket]
        answer: {contains: ['530.19']}
      - say: And of customer 7?
        calls: [{tool: calculate_account_value, input: {customer_id: 7}, optional: true}]
  - name: Small talk
    kind: casual question
    turns:
      - {say: Good morning!, calls: []}
";

/// A suite with an expectation that fails.
fn wrong() -> String {
    suite().replace("customer_id: 42", "customer_id: 41")
}

fn suite() -> String {
    // In a suite, a share is a number from 0 to 1.
    SUITE.replace("100%", "1.0")
}

pub(crate) async fn eval(place: &Place, args: &[&str]) -> Done {
    place.run([&["eval"], args].concat()).await
}

fn read(place: &Place, file: &str) -> Value {
    let text = place.read_file(file);
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_planner_is_evaluated_with_the_bundled_server() {
    let place = Place::new()
        .with_file("switchboard.yaml", "audit: audit.jsonl")
        .with_file("shop.yaml", &suite());
    let files = ["--json", "report.json", "--html", "report.html"];
    let done = eval(&place, &[&["shop.yaml"][..], &files].concat()).await;
    assert_eq!(done.code, 0, "{done}");
    for said in [
        "A shop",
        "offline/planner",
        "customer-service/calculate_account_value",
        "entity exists",
        "all 2 runs passed",
    ] {
        assert!(done.stdout.contains(said), "{said}: {done}");
    }
    assert!(done.stderr.contains("[2/2] passed"), "{done}");
    let report = read(&place, "report.json");
    assert_eq!(report["runs"].as_array().unwrap().len(), 2);
    let call = &report["runs"][0]["turns"][0]["calls"][0];
    assert_eq!(call["tool"], "calculate_account_value");
    assert_eq!(call["verdict"], "right");
    assert_eq!(report["summary"][0]["passed"], 2);
    assert_eq!(report["missed"], json!([]));
    assert!(
        report["program"]
            .as_str()
            .unwrap()
            .starts_with("switchboard ")
    );
    // The runs are audited.
    let audit = place.read_file("audit.jsonl");
    assert!(audit.contains("calculate_account_value"), "{audit}");
    let page = place.read_file("report.html");
    assert!(page.to_lowercase().starts_with("<!doctype html>"));
    assert!(page.contains("The customer exists"));
}

#[tokio::test]
async fn a_failed_check_is_named_and_the_exit_code_is_1() {
    let place = Place::new().with_file("shop.yaml", &wrong());
    let done = eval(&place, &["shop.yaml", "--json", "report.json"]).await;
    assert_eq!(done.code, 1, "{done}");
    done.stdout_contains("`customer_id` is 42, expected 41");
    done.stderr_contains("missed: offline/planner: passed is");
    // The report is written nevertheless.
    assert_eq!(read(&place, "report.json")["summary"][0]["passed"], 1);
    // The command line overrides the suite.
    let lower = ["shop.yaml", "--min-passed", "50%", "--min-accuracy", "0"];
    eval(&place, &lower).await.exits(0);
    // An existing report is judged in the same way, and nothing runs.
    let place = place.with_file("shop.yaml", "");
    for (least, code) in [("50%", 0), ("0.51", 1)] {
        let args = ["--report", "report.json", "--min-accuracy", "0"];
        let done = eval(&place, &[&args[..], &["--min-passed", least]].concat()).await;
        assert_eq!(done.code, code, "{done}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn errors_in_a_suite_name_their_location() {
    let scenario = |turn: &str| format!("scenarios:\n- name: One\n  turns:\n  - {turn}\n");
    let table: [(&str, String, &[&str]); 14] = [
        (
            "a.yaml",
            scenario("{say: x, cals: []}"),
            &[
                "a.yaml: scenarios[0].turns[0].cals: unknown field `cals`",
                "line 4",
            ],
        ),
        (
            "a.yaml",
            scenario("{say: x, calls: [{tool: t, input: {id: {$like: 1}}}]}"),
            &["a.yaml: line 4: scenarios[0].turns[0].calls[0].input.id"],
        ),
        (
            "a.json",
            "{\n\"scenarios\": {}}".to_owned(),
            &["a.json", "line 2"],
        ),
        (
            "a.json",
            "{\n// as editors write it\n\"scenarios\": [\n{\"name\": \"\", \"turns\": []}]}"
                .to_owned(),
            &["a.json: line 4: scenarios[0].name: must not be empty"],
        ),
        ("a.txt", String::new(), &["unknown suite `a.txt`"]),
        ("a.toml", String::new(), &["use .yaml, .yml or .json"]),
        (
            "a.yaml",
            format!("servers: [custmer-service]\n{}", scenario("say: x")),
            &[
                "a.yaml: line 1: servers[0]: unknown server `custmer-service` (did you mean \
                 `customer-service`?)",
            ],
        ),
        (
            "a.yaml",
            "scenarios:\n- {name: One, turns: [{say: x}]}\n- name: Two\n  servers: [nowhere]\n  \
             turns: [{say: x}]\n"
                .to_owned(),
            &["a.yaml: line 4: scenarios[1].servers[0]: unknown server `nowhere`"],
        ),
        (
            "a.yaml",
            format!("recipe: nothing-such\n{}", scenario("say: x")),
            &["a.yaml: line 1: recipe: ", "nothing-such"],
        ),
        (
            "a.yaml",
            format!(
                "mcp_servers:\n  x:\n    command: x\n    env:\n      KEY: \
                 \"${{NOT_SET_HERE}}\"\n{}",
                scenario("say: x")
            ),
            &["a.yaml: line 3: mcp_servers.x: the variable `NOT_SET_HERE` is not set"],
        ),
        (
            "a.yaml",
            format!("mcp_servers:\n  x:\n    comand: x\n{}", scenario("say: x")),
            &["a.yaml: line 3: `mcp_servers.x.comand` is not a known key"],
        ),
        (
            "a.yaml",
            "scenarios: [{name: One, parameters: {max_step: 1}, turns: [{say: x}]}]".to_owned(),
            &["a.yaml: line 1: scenarios[0].parameters: unknown field `max_step`"],
        ),
        (
            "a.yaml",
            format!(
                "mcp_servers: {{x: {{bundled: nothing}}}}\n{}",
                scenario("say: x")
            ),
            &[
                "a.yaml: line 1: mcp_servers.x.bundled: ",
                "Available: customer-service",
            ],
        ),
        (
            "a.yaml",
            format!("models: [acme/one]\n{}", scenario("say: x")),
            &["unknown provider `acme`"],
        ),
    ];
    for (file, text, said) in table {
        let place = Place::new().with_file(file, &text);
        let done = eval(&place, &[file]).await;
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{done}");
        for said in said {
            assert!(done.stderr.contains(said), "{said}: {done}");
        }
    }
    let place = Place::new().with_file("shop.yaml", &suite());
    for (args, said) in [
        (
            &["--json", "nowhere/report.json"][..],
            "cannot write nowhere/report.json",
        ),
        (&["--scenario", "nothing*"], "no scenario matches this name"),
        (&["--approve", "later"], "an evaluation cannot wait"),
        (&["--min-passed", "90"], "must be a number"),
        (
            &["--compare", "shop.yaml"],
            "the file is not an evaluation report",
        ),
        (
            &["--compare", "nope.json"],
            "error: nope.json: cannot read the report: file not found\n",
        ),
        (
            &["--scenario", "nothing*", "--kind", "casual*"],
            "Small talk",
        ),
    ] {
        let done = eval(&place, &[&["shop.yaml"], args].concat()).await;
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{done}");
        assert!(done.stderr.contains(said), "{said}: {done}");
    }
}

#[tokio::test]
async fn scenarios_kinds_and_repetitions_are_selected() {
    // Without expected calls, the share of correct calls is unknown.
    let place = Place::new().with_file("shop.yaml", &suite().replace(", accuracy: 1.0", ""));
    let json = ["shop.yaml", "-q", "-o", "json"];
    for (args, names) in [
        (&["--scenario", "small"][..], &["Small talk"][..]),
        (&["--scenario", "*exists"], &["The customer exists"]),
        (
            &["--kind", "casual*", "--repetitions", "3"],
            &["Small talk", "Small talk", "Small talk"],
        ),
        (
            &["--kind", "question", "--kind", "entity", "--at-once", "1"],
            &["The customer exists", "Small talk"],
        ),
    ] {
        let done = eval(&place, &[&json[..], args].concat()).await.exits(0);
        let report = done.json();
        let runs = report["runs"].as_array().unwrap();
        let found: Vec<&Value> = runs.iter().map(|run| &run["scenario"]).collect();
        assert_eq!(found, names, "{args:?}");
    }
}

#[tokio::test]
async fn scenarios_have_separate_servers() {
    let suite = |fresh: bool| {
        format!(
            "repetitions: 3\nscenarios:\n- name: A ticket\n  fresh_servers: {fresh}\n  turns:\n  \
             - say: 'Create a high priority support ticket for customer 7 about \"late \
             delivery\"'\n    \
             calls: [{{tool: create_support_ticket}}]\n"
        )
    };
    let answers = async |fresh: bool| {
        let place = Place::new().with_file("a.yaml", &suite(fresh));
        let done = eval(&place, &["a.yaml", "-q", "-o", "json"]).await.exits(0);
        let report = done.json();
        assert_eq!(report["summary"][0]["passed"], 3, "{done}");
        let runs = report["runs"].as_array().unwrap();
        let mut answers: Vec<String> = runs
            .iter()
            .map(|run| run["turns"][0]["answer"].as_str().unwrap().to_owned())
            .collect();
        answers.sort();
        answers.dedup();
        answers.len()
    };
    // Each scenario creates the first ticket of its server, or they create them one after the
    // other.
    assert_eq!((answers(true).await, answers(false).await), (1, 3));
}

/// Values of servers may be secrets, so a server that prints one does not get it into a file.
#[tokio::test]
async fn secrets_of_servers_are_in_no_report() {
    let server = json!({
        "bundled": "customer-service",
        "env": {"WHO": "Noor El-Amin", "HOW_MUCH": "${HOW_MUCH}"},
    });
    let suite = json!({
        "models": ["offline/planner"],
        "mcp_servers": {"shop": server},
        "scenarios": [{
            "name": "The value",
            "turns": [{
                "say": "What is the account value of customer 42?",
                "calls": [{"tool": "calculate_account_value", "input": {"customer_id": 42}}],
            }],
        }],
    });
    let place = Place::new()
        .with_variable("HOW_MUCH", "530.19 EUR")
        .with_file(
            "switchboard.yaml",
            "audit: audit.jsonl\naudit_results: true\n",
        )
        .with_file("a.json", &suite.to_string());
    let files = [
        "--record", "r.jsonl", "--json", "j.json", "--html", "p.html",
    ];
    let done = eval(&place, &[&["a.json", "-q"], &files[..]].concat()).await;
    assert_eq!(done.code, 0, "{done}");
    for file in ["r.jsonl", "j.json", "p.html", "audit.jsonl"] {
        let text = place.read_file(file);
        assert!(
            text.contains("[redacted]") && text.contains("calculate_account_value"),
            "{file}: {text}"
        );
        for secret in ["Noor El-Amin", "530.19 EUR"] {
            assert!(!text.contains(secret), "{secret} in {file}: {text}");
        }
    }
    // A replay does not need them.
    let elsewhere = Place::new()
        .with_file("a.json", &suite.to_string())
        .with_file("r.jsonl", &place.read_file("r.jsonl"));
    let done = eval(&elsewhere, &["a.json", "-q", "--replay", "r.jsonl"]).await;
    assert_eq!(done.code, 0, "{done}");
}

#[tokio::test]
async fn a_failing_model_is_evaluated_without_fallback() {
    let fake = FakeModel::start().await.unwrap();
    let error = json!({"error": {"message": "no such model", "code": "model_not_found"}});
    fake.otherwise(move |_, _| Answer::json(404, &error));
    let place = Place::openai(&fake)
        .with_file("switchboard.yaml", "fallback_models: [offline/planner]")
        .with_file("shop.yaml", &suite());
    let done = eval(
        &place,
        &[
            "shop.yaml",
            "-m",
            "openai/gpt-4o-mini",
            "-m",
            "offline/planner",
        ],
    )
    .await;
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stdout.contains("no such model"), "{done}");
    let missed = done.stderr.lines().filter(|line| line.contains("missed:"));
    assert!(
        missed.clone().count() > 0 && missed.clone().all(|it| it.contains("openai/gpt-4o-mini")),
        "{done}"
    );
}

#[tokio::test]
async fn an_evaluation_asks_no_person_and_denies_restricted_calls() {
    let suite = "scenarios:\n- name: A ticket\n  turns:\n  \
                 - say: 'Create a low priority ticket for customer 7 with subject \"test\"'\n    \
                 calls: [{tool: create_support_ticket}]\n";
    let place = Place::new().with_file("a.yaml", suite);
    let args = ["a.yaml", "-q", "-o", "json", "--approve", "none"];
    let done = eval(&place, &args).await;
    let report = done.json();
    let call = &report["runs"][0]["turns"][0]["calls"][0];
    assert_eq!(call["outcome"], "not_executed", "{done}");
}

#[tokio::test]
async fn two_reports_are_compared() {
    let place = Place::new()
        .with_file("shop.yaml", &suite())
        .with_file("other.yaml", &wrong());
    let done = eval(&place, &["shop.yaml", "-q", "--json", "before.json"]).await;
    assert_eq!(done.code, 0, "{done}");
    let anyway = ["--min-passed", "0", "--min-accuracy", "0"];
    let with = |args: &[&'static str]| [args, &anyway[..]].concat();
    let now = with(&[
        "other.yaml",
        "-q",
        "--json",
        "now.json",
        "--compare",
        "before.json",
    ]);
    let done = eval(&place, &now).await.exits(0);
    let worse = "worse The customer exists: 1 of 1 before, 0 of 1 now";
    assert!(done.stdout.contains(worse), "{done}");
    assert_eq!(
        read(&place, "now.json")["comparison"]["models"][0]["scenarios"][0]["change"],
        "worse"
    );
    // Nothing runs for this.
    let shown = with(&["--report", "now.json", "--compare", "before.json"]);
    let done = eval(&place, &shown).await;
    assert!(done.code == 0 && done.stdout.contains(worse), "{done}");
    let done = eval(&place, &[&shown[..], &["--fail-if-worse"]].concat()).await;
    assert_eq!(done.code, 1, "{done}");
    done.stderr_contains("missed: offline/planner: passed: 100.0% before, 50.0% now");
    let back = [
        "--report",
        "before.json",
        "--compare",
        "now.json",
        "--fail-if-worse",
    ];
    let done = eval(&place, &back).await;
    assert!(
        done.code == 0 && done.stdout.contains("better The customer exists"),
        "{done}"
    );
}

#[tokio::test]
async fn made_up_values_are_compared_without_and_with_tools() {
    let fake = FakeModel::start().await.unwrap();
    let made_up = "Customer 42 has 812.50 EUR, see INV-2077 of 2024-03-01.";
    fake.answer(Answer::openai_chat([Say::text(made_up)]));
    let (tool, input) = ("shop__calculate_account_value", json!({"customer_id": 42}));
    fake.answer(Answer::openai_chat([Say::call("a", tool, input)]));
    fake.answer(Answer::openai_chat([Say::text(
        "Customer 42 has 530.19 EUR.",
    )]));
    let suite = json!({
        "models": ["openai/gpt-4o-mini"],
        "thresholds": {"passed": 1, "accuracy": 1},
        "mcp_servers": {"shop": {"bundled": "customer-service", "env": {"OWNER": "${OWNER}"}}},
        "scenarios": [{
            "name": "The value",
            "servers": ["shop"],
            "turns": [{
                "say": "What is the account value of customer 42?",
                "calls": [{"tool": "calculate_account_value"}],
                "answer": {"contains": ["EUR"]},
            }],
        }],
    });
    let place = Place::openai(&fake).with_file("a.json", &suite.to_string());
    // The server is not started, so its variable need not be set.
    let without = ["a.json", "-q", "--no-tools", "--json", "before.json"];
    let done = eval(&place, &without).await.exits(0);
    done.stdout_contains("without tools: ");
    assert_eq!(fake.request(0).await.json()["tools"], Value::Null);
    let report = read(&place, "before.json");
    assert_eq!(
        (&report["no_tools"], &report["summary"][0]["made_up_values"]),
        (&json!(true), &json!(3))
    );
    let values = &report["runs"][0]["turns"][0]["made_up_values"];
    assert_eq!(*values, json!(["812.50", "INV-2077", "2024-03-01"]));
    let place = place.with_variable("OWNER", "Ann Smith");
    let with = ["a.json", "-q", "--html", "now.html", "--fail-if-worse"];
    let compared = ["--compare", "before.json"];
    let done = eval(&place, &[&with[..], &compared].concat())
        .await
        .exits(0);
    let mut lines = done.stdout.lines();
    let row = lines
        .find(|it| it.starts_with("Made-up values per run"))
        .unwrap();
    let cells: Vec<&str> = row.split_whitespace().skip(4).collect();
    assert_eq!(cells, ["3.00", "0.00", "−3.00", "better"], "{done}");
    assert!(place.read_file("now.html").contains(", without tools."));
}

#[tokio::test]
async fn incomparable_reports_are_not_an_improvement() {
    let place = Place::new()
        .with_file("shop.yaml", &suite())
        .with_file("other.yaml", &suite().replace("The customer", "A customer"));
    for (suite, file) in [("shop.yaml", "shop.json"), ("other.yaml", "other.json")] {
        eval(&place, &[suite, "-q", "--json", file]).await.exits(0);
    }
    // A newer version counts as another model.
    let report = read(&place, "shop.json").to_string();
    let newer = report.replace("offline/planner", "offline/planner-2");
    std::fs::write(place.path().join("newer.json"), newer).unwrap();
    let compare = async |now: &str, before: &str, more: &[&str]| {
        let args = ["--report", now, "--compare", before, "-o", "json"];
        eval(&place, &[&args[..], more].concat()).await
    };
    let worse = ["--fail-if-worse"];
    let none = "missed: nothing can be compared";
    let gone =
        "missed: offline/planner: `The customer exists` passed 1 of 1 before, and is missing now";
    for (now, before, said) in [
        ("newer.json", "shop.json", none),
        ("other.json", "shop.json", gone),
    ] {
        compare(now, before, &[]).await.exits(0);
        let done = compare(now, before, &worse).await.exits(1);
        assert!(done.stderr.contains(said), "{said}: {done}");
        assert_eq!(done.json()["missed"].as_array().unwrap().len(), 1);
    }
    // A partial run expects missing scenarios.
    let part = ["shop.yaml", "-q", "--scenario", "The customer*"];
    let compared = ["--compare", "shop.json", "--fail-if-worse"];
    let done = eval(&place, &[&part[..], &compared].concat()).await;
    assert_eq!(done.code, 0, "{done}");
}

#[tokio::test]
async fn a_failed_server_leaves_no_old_report_and_no_empty_recording() {
    let place = Place::new()
        .with_file("shop.yaml", &suite())
        .with_file("report.json", "stale")
        .with_file("report.html", "stale");
    let files = ["--json", "report.json", "--html", "report.html"];
    let record = ["shop.yaml", "-q", "--record", "run.jsonl"];
    eval(&place, &record).await.exits(0);
    let recorded = || place.read_file("run.jsonl");
    let before = recorded();
    assert!(before.contains("calculate_account_value"));
    let broken = format!(
        "mcp_servers: {{x: {{command: no-such-program}}}}\n{}",
        suite()
    );
    let broken = broken.replace("server: customer-service", "server: x");
    std::fs::write(place.path().join("shop.yaml"), broken).unwrap();
    let done = eval(&place, &[&record[..], &files].concat()).await;
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done}");
    assert!(done.stderr.contains("no-such-program"), "{done}");
    assert_eq!(recorded(), before, "what was paid for is there");
    let report = read(&place, "report.json");
    assert_eq!(report["runs"], json!([]));
    assert_eq!(report["not_run"], 2);
    assert_eq!(report["missed"][0], "no runs were executed");
    let page = place.read_file("report.html");
    assert!(page.to_lowercase().starts_with("<!doctype html>"), "{page}");
    // Judging the report again fails as well.
    eval(&place, &["--report", "report.json"]).await.exits(1);
}

#[tokio::test]
async fn shipped_suites_are_listed_and_run_without_configuration() {
    let place = Place::new();
    let done = eval(&place, &["--list", "-o", "json"]).await.exits(0);
    let listed = done.json();
    for suite in listed.as_array().unwrap() {
        let name = suite["name"].as_str().unwrap();
        let args = [name, "-m", "offline/planner", "-q", "-o", "json"];
        let any = ["--min-passed", "0", "--min-accuracy", "0"];
        let most = ["--max-hallucinated", "1", "--max-unnecessary", "1"];
        let done = eval(&place, &[&args[..], &any, &most].concat()).await;
        assert_eq!(done.code, 0, "{done}");
        let runs = done.json()["runs"].as_array().unwrap().len();
        assert_eq!(runs as u64, suite["scenarios"].as_u64().unwrap(), "{name}");
    }
}

#[tokio::test]
async fn leaderboard_entries_are_run() {
    let questions = json!({
        "id": "simple_python_0",
        "question": [[{"role": "user", "content": "What is the area of a triangle of base 10 and \
            height 5?"}]],
        "function": [{
            "name": "area", "description": "The area of a triangle.",
            "parameters": {
                "type": "dict", "required": ["base", "height"],
                "properties": {"base": {"type": "integer"}, "height": {"type": "integer"}},
            },
        }],
    });
    let answers =
        json!({"id": "simple_python_0", "ground_truth": [{"area": {"base": [10], "height": [5]}}]});
    let fake = FakeModel::start().await.unwrap();
    let input = |base: u32| json!({"base": base, "height": 5});
    fake.answer(Answer::openai_chat([Say::call("a", "area", input(10))]));
    fake.answer(Answer::openai_chat([Say::call("a", "area", input(11))]));
    let place = Place::openai(&fake).with_file("simple.json", &questions.to_string());
    std::fs::create_dir(place.path().join("possible_answer")).unwrap();
    let place = place.with_file("possible_answer/simple.json", &answers.to_string());
    let args = [
        "--bfcl",
        "simple.json",
        "-m",
        "openai/gpt-4o-mini",
        "--min-passed",
        "1",
    ];
    for code in [0, 1] {
        let done = eval(&place, &args).await;
        assert_eq!(done.code, code, "{done}");
    }
    assert_eq!(fake.requests().len(), 2, "the first answer is judged");
    // A question without answers cannot be judged.
    std::fs::remove_dir_all(place.path().join("possible_answer")).unwrap();
    let done = eval(&place, &args).await.exits(2);
    assert!(done.stderr.contains("simple.json: "), "{done}");
}

#[cfg(unix)]
mod interrupted {
    use std::path::Path;

    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::*;
    use crate::slow_server::SlowServer;

    /// A bundled server that writes its process id to a file.
    pub(super) fn counted() -> Value {
        let script = "echo $$ >> started; exec \"$0\" mcp-server customer-service";
        json!({"command": "sh", "args": ["-c", script, program()]})
    }

    fn is_there(pid: &str) -> bool {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        test_kill_process(pid).is_ok()
    }

    fn started(folder: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(folder.join("started")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn an_interruption_during_startup_reports_no_results() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", silent.local_addr().unwrap());
        let suite = json!({
            "mcp_servers": {"silent": {"url": url}},
            "scenarios": [{"name": "One", "turns": [{"say": "Hello"}]}],
        });
        let place = Place::new()
            .with_file("a.json", &suite.to_string())
            .with_file("report.json", "stale");
        let child = place.start(["eval", "a.json", "-o", "json", "--json", "report.json"]);
        let _asked = silent.accept().await.unwrap();
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
        let done = Done::from(child.wait_with_output().await.unwrap());
        assert_eq!(done.code, 130, "{done}");
        for report in [done.json(), read(&place, "report.json")] {
            assert_eq!(report["runs"], json!([]));
            assert_eq!(report["not_run"], 1);
        }
    }

    #[tokio::test]
    async fn an_interruption_reports_the_finished_scenarios() {
        let fake = FakeModel::start().await.unwrap();
        let mut slow = SlowServer::start().await;
        fake.answer(Answer::openai_chat([Say::text("Good morning.")]));
        let far = json!({"far": 1});
        fake.answer(Answer::openai_chat([Say::call("a", "slow__left", far)]));
        let suite = json!({
            "title": "Slow", "models": ["openai/gpt-4o-mini"],
            "scenarios": [
                {"name": "First", "turns": [{"say": "Good morning!", "calls": []}]},
                {"name": "Second", "turns": [{"say": "Look to the left"}]},
                {"name": "Third", "fresh_servers": true, "turns": [{"say": "Hello"}]},
            ],
        });
        let mut config: Value = serde_json::from_str(&slow.config()).unwrap();
        config["mcpServers"]["counted"] = counted();
        let place = Place::openai(&fake)
            .with_file("mcp.json", &config.to_string())
            .with_file("a.json", &suite.to_string());
        let args = [
            "eval",
            "a.json",
            "--mcp-config",
            "mcp.json",
            "--at-once",
            "1",
        ];
        let files = ["--json", "report.json", "--record", "run.jsonl"];
        let child = place.start(args.into_iter().chain(files));
        slow.called().await;
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
        slow.cancelled().await;
        let done = Done::from(child.wait_with_output().await.unwrap());
        assert_eq!(done.code, 130, "{done}");
        done.stdout_contains("unfinished: 2 of 3 runs were not executed");
        let report = read(&place, "report.json");
        assert_eq!(report["not_run"], 2);
        assert_eq!(report["runs"].as_array().unwrap().len(), 1);
        assert_eq!(fake.requests().len(), 2);
        let pids = started(place.path());
        assert_eq!(pids.len(), 1);
        assert!(!is_there(&pids[0]), "the server runs on");
        // The recorded part can be replayed.
        let replay = ["a.json", "--replay", "run.jsonl", "--scenario", "First"];
        eval(&place, &replay).await.exits(0);
        assert_eq!((fake.requests().len(), started(place.path()).len()), (2, 1));
    }
}
