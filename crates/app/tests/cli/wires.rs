//! Each wire with a fake model server: two parallel tool calls, streaming, and interruption.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Gate, Say};
use tokio::{io::AsyncReadExt as _, process::Command};

use crate::{
    slow_server::SlowServer,
    support::{Done, Place, calls, program},
};

/// A wire with the values that its tests need.
#[derive(Clone, Copy)]
struct Wire {
    model: &'static str,
    key: &'static str,
    base_url: &'static str,
    /// Path at the end of the base URL.
    suffix: &'static str,
    path: &'static str,
    answer: fn(Vec<Say>) -> Answer,
    /// Number of the piece with the second text in a scripted answer with two texts.
    second_text: usize,
}

const WIRES: [Wire; 5] = [
    Wire {
        model: "anthropic/claude-sonnet-5-5",
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        suffix: "",
        path: "/v1/messages",
        answer: |say| Answer::anthropic(say),
        // The pieces before it are `message_start`, `content_block_start` and the first text.
        second_text: 3,
    },
    Wire {
        model: "openai/gpt-6.1-sol",
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        suffix: "/v1",
        path: "/v1/chat/completions",
        answer: |say| Answer::openai_chat(say),
        // The pieces before it are the role and the first text.
        second_text: 2,
    },
    Wire {
        model: "openai-responses/gpt-6.1-sol",
        key: "OPENAI_API_KEY",
        base_url: "OPENAI_BASE_URL",
        suffix: "/v1",
        path: "/v1/responses",
        answer: |say| Answer::openai_responses(say),
        // The pieces before it are `created`, `output_item.added` and the first text.
        second_text: 3,
    },
    Wire {
        model: "gemini/gemini-3.8-flash",
        key: "GEMINI_API_KEY",
        base_url: "GOOGLE_GEMINI_BASE_URL",
        suffix: "",
        path: "/v1beta/models/gemini-3.8-flash:streamGenerateContent",
        answer: |say| Answer::gemini(say),
        second_text: 1,
    },
    Wire {
        model: "ollama/qwen3:8b",
        // Ollama uses no key. A value in this variable must have no effect.
        key: "OLLAMA_API_KEY",
        base_url: "OLLAMA_HOST",
        suffix: "",
        path: "/api/chat",
        answer: |say| Answer::ollama(say),
        second_text: 1,
    },
];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the text of a content that is a string or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().map(|part| text(&part["text"])).collect(),
        other => text(other),
    }
}

fn place(wire: Wire, fake: &FakeModel) -> Place {
    // The adapter first asks Ollama for the capabilities of the model.
    let able = json!({"capabilities": ["completion", "tools"], "model_info": {}});
    fake.aside("/api/show", Answer::json(200, &able));
    Place::new()
        .with_variable(wire.key, "sk-secret")
        .with_variable(
            wire.base_url,
            &format!("{}{}", fake.base_url(), wire.suffix),
        )
}

const LEFT: &str = "slow__left";
const RIGHT: &str = "slow__right";

fn two_calls() -> Vec<Say> {
    vec![
        Say::text("Let me look."),
        Say::call("call_1", LEFT, json!({"far": 1})),
        Say::call("call_2", RIGHT, json!({"far": 2})),
    ]
}

fn in_two_halves(wire: Wire, gate: &Gate) -> Answer {
    let said = vec![
        Say::text("The first half"),
        Say::text(" and the second half."),
    ];
    (wire.answer)(said).gate_before(wire.second_text, gate)
}

#[tokio::test]
async fn two_parallel_calls_stream_and_finish_on_every_wire() {
    for wire in WIRES {
        let fake = FakeModel::start().await.unwrap();
        let mut server = SlowServer::start().await;
        fake.answer((wire.answer)(two_calls()));
        fake.answer((wire.answer)(vec![Say::text("Both are done.")]));
        let place = place(wire, &fake).with_file("mcp.json", &server.config());
        let args = ["ask", "--mcp-config", "mcp.json", "--model", wire.model];
        let child = place.start(args.into_iter().chain(["-o", "json", "Look around"]));

        // Both calls have started before one of them has a result.
        let mut asked = [server.called().await, server.called().await];
        asked.sort_by_key(|params| text(&params["name"]));
        assert_eq!(asked[0]["name"], "left");
        assert_eq!(asked[0]["arguments"], json!({"far": 1}));
        assert_eq!(asked[1]["name"], "right");
        server.answer(2);

        let output = child.wait_with_output().await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{report:#}");
        assert_eq!(report["answer"], "Both are done.");
        assert_eq!(report["outcome"], "completed");
        assert_eq!(report["steps"], 2);
        assert_eq!(report["model"], wire.model);
        assert_eq!(
            calls(&report),
            [
                ("slow".into(), "left".into(), json!({"far": 1}), false),
                ("slow".into(), "right".into(), json!({"far": 2}), false),
            ]
        );
        let second = fake.request(1).await;
        assert_eq!(second.path(), wire.path);
        let results = second.json().to_string();
        assert!(results.contains("left is done") && results.contains("right is done"));
        let both = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8(both).unwrap().contains("sk-secret"));
    }
}

#[tokio::test]
async fn text_reaches_standard_output_before_the_answer_is_complete() {
    for wire in WIRES {
        let fake = FakeModel::start().await.unwrap();
        let gate = Gate::new();
        fake.answer(in_two_halves(wire, &gate));
        let place = place(wire, &fake);
        let mut child = place.start(["ask", "--no-tools", "-m", wire.model, "Tell"]);
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0; 14];
        stdout.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"The first half");
        // The first half was received while the gate held the second half.
        gate.open();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, " and the second half.\n");
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
    }
}

#[cfg(unix)]
mod interrupted {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::{
        io::{AsyncBufReadExt as _, BufReader},
        process::Child,
    };

    use super::*;

    fn interrupt(child: &Child) {
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
    }

    #[tokio::test]
    async fn an_interruption_during_an_answer_aborts_the_request() {
        for wire in WIRES {
            let fake = FakeModel::start().await.unwrap();
            let gate = Gate::new();
            fake.answer(in_two_halves(wire, &gate));
            let place = place(wire, &fake);
            let args = ["ask", "--no-tools", "-o", "jsonl", "-m", wire.model, "Tell"];
            let mut child = place.start(args);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut next = async || -> Value {
                let line = lines.next_line().await.unwrap().unwrap();
                serde_json::from_str(&line).unwrap()
            };
            while next().await["type"] != "text_delta" {}
            interrupt(&child);
            fake.request(0).await.client_gone().await;
            let report = loop {
                let event = next().await;
                if event["type"] == "run_finished" {
                    break event["report"].clone();
                }
            };
            assert_eq!(report["outcome"], "cancelled");
            assert_eq!(report["answer"], "The first half");
            assert_eq!(child.wait().await.unwrap().code(), Some(130));
        }
    }

    #[tokio::test]
    async fn a_second_interruption_ends_the_program_with_a_blocked_output() {
        let fake = FakeModel::start().await.unwrap();
        let wire = WIRES[1];
        // The answer is larger than the buffer of a pipe.
        let pieces = (0..200).map(|_| Say::text("x".repeat(8192)));
        fake.answer((wire.answer)(pieces.collect()));
        let place = place(wire, &fake);
        let mut child = place.start(["ask", "--no-tools", "-m", wire.model, "Tell"]);
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0; 1];
        stdout.read_exact(&mut first).await.unwrap();
        interrupt(&child);
        interrupt(&child);
        // The system may merge two signals of one kind into one, so the signal is repeated.
        let ended = async {
            loop {
                tokio::select! {
                    status = child.wait() => return status.unwrap(),
                    // sleep: between two signals, so that the system does not merge them
                    () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {}
                }
                interrupt(&child);
            }
        };
        assert_eq!(ended.await.code(), Some(130));
    }

    #[tokio::test]
    async fn an_interruption_during_calls_cancels_them_at_their_servers() {
        for wire in WIRES {
            let fake = FakeModel::start().await.unwrap();
            let mut server = SlowServer::start().await;
            fake.answer((wire.answer)(two_calls()));
            let place = place(wire, &fake).with_file("mcp.json", &server.config());
            let args = ["ask", "--mcp-config", "mcp.json", "--model", wire.model];
            let child = place.start(args.into_iter().chain(["-o", "json", "Look around"]));
            server.called().await;
            server.called().await;
            interrupt(&child);
            let cancelled = [server.cancelled().await, server.cancelled().await];
            assert_ne!(cancelled[0]["requestId"], cancelled[1]["requestId"]);
            let output = child.wait_with_output().await.unwrap();
            assert_eq!(output.status.code(), Some(130));
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["outcome"], "cancelled");
            // After an interruption, every call has a result.
            assert_eq!(calls(&report).len(), 2);
            assert!(calls(&report).iter().all(|(.., is_error)| *is_error));
            assert_eq!(fake.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn provider_errors_are_printed_and_the_run_fails() {
    let fake = FakeModel::start().await.unwrap();
    let wire = WIRES[0];
    fake.answer(Answer::json(
        401,
        &json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
    ));
    let place = place(wire, &fake);
    let done = place
        .run(["ask", "--no-tools", "-o", "json", "-m", wire.model, "Hi"])
        .await;
    assert_eq!(done.code, 1, "{done}");
    assert_eq!(done.json()["error"]["kind"], "authentication");
    assert_eq!(done.json()["error"]["status"], 401);
    assert!(done.stderr.contains("invalid x-api-key"), "{done}");
}

#[tokio::test]
async fn without_a_key_a_local_ollama_is_used() {
    let fake = FakeModel::start().await.unwrap();
    fake.otherwise(|_, request| match request.path() {
        "/api/tags" => Answer::json(200, &json!({"models": [{"name": "qwen3:8b", "model": "qwen3:8b"}]})),
        "/api/show" => Answer::json(200, &json!({"capabilities": ["completion", "tools"], "model_info": {}})),
        "/api/chat" => Answer::ndjson(
            "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"From \
             here.\"},\"done\":false}\n\
             {\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
        ),
        _ => Answer::json(200, &json!({"version": "0.12.0"})),
    });
    let place = Place::new().with_variable("OLLAMA_HOST", &fake.base_url());
    let done = place.run(["ask", "--no-tools", "Where are you?"]).await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(done.stdout, "From here.\n", "{done}");
    assert!(done.stderr.contains("ollama/qwen3:8b"), "{done}");
}

#[tokio::test]
async fn another_server_gets_only_the_credentials_of_its_entry() {
    let fake = FakeModel::start().await.unwrap();
    let entries = format!(
        "providers:\n  gw: {{type: anthropic, base_url: '{url}'}}\n  \
         named: {{type: anthropic, base_url: '{url}', api_key_env: GW_KEY}}\n  \
         oa: {{type: openai, base_url: '{url}/v1'}}\n",
        url = fake.base_url()
    );
    let place = place(WIRES[0], &fake)
        .with_file("switchboard.yaml", &entries)
        .with_variable("ANTHROPIC_AUTH_TOKEN", "tok-secret")
        .with_variable("ANTHROPIC_CUSTOM_HEADERS", "X-Gate: gate-secret")
        .with_variable("OPENAI_API_KEY", "sk-openai-secret")
        .with_variable("GW_KEY", "gw-key-1234");
    for model in ["gw/x", "named/x", "oa/x"] {
        place.run(["ask", "--no-tools", "-m", model, "Hi"]).await;
    }
    let mut keys = Vec::new();
    for request in fake.requests() {
        assert_eq!(request.header("authorization"), None, "{}", request.path());
        assert_eq!(request.header("x-gate"), None);
        keys.extend(request.header("x-api-key").map(str::to_owned));
    }
    assert!(keys.iter().all(|key| key == "gw-key-1234"), "{keys:?}");
    assert!(!keys.is_empty());
}

#[tokio::test]
async fn a_closed_output_ends_the_run() {
    let fake = FakeModel::start().await.unwrap();
    let gate = Gate::new();
    let wire = WIRES[1];
    fake.answer(in_two_halves(wire, &gate));
    let place = place(wire, &fake);
    let mut child = place.start(["ask", "--no-tools", "-m", wire.model, "Tell"]);
    drop(child.stdout.take());
    let request = fake.request(0).await;
    request.client_gone().await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn the_wait_before_a_retry_is_shown() {
    let fake = FakeModel::start().await.unwrap();
    let wire = WIRES[1];
    let busy = json!({"error": {"message": "too much at once"}});
    fake.answer(Answer::json(429, &busy).header("retry-after-ms", "20"));
    fake.answer((wire.answer)(vec![Say::text("At last.")]));
    let place = place(wire, &fake);
    let done = place
        .run(["ask", "--no-tools", "-m", wire.model, "Tell"])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(done.stdout, "At last.\n", "{done}");
    let line = "too much at once (HTTP 429). Retrying (attempt 2).";
    assert!(done.stderr.contains(line), "{done}");
}

#[tokio::test]
async fn standard_input_is_the_question_or_sent_with_it() {
    let fake = FakeModel::start().await.unwrap();
    let wire = WIRES[1];
    fake.otherwise(move |_, _| (wire.answer)(vec![Say::text("Read.")]));
    let place = place(wire, &fake).with_file("notes.txt", "from a file\n");
    let args = ["ask", "--no-tools", "-m", wire.model, "What is this?"];
    let done = place.run_with_input(args, "two\nlines\n").await;
    assert_eq!((done.code, done.stdout.as_str()), (0, "Read.\n"), "{done}");
    // A pipe that ends without data, as scripts often have it, is no input.
    assert_eq!(place.run_with_input(args, "").await.code, 0);
    let file = std::fs::File::open(place.path().join("notes.txt")).unwrap();
    assert_eq!(place.run_with_stdin(args, file).await.code, 0);
    let from_input = ["ask", "--no-tools", "-m", wire.model, "-"];
    let done = place.run_with_input(from_input, "two\nlines").await;
    assert_eq!(done.code, 0, "{done}");
    let asked: Vec<String> = fake
        .requests()
        .iter()
        .map(|it| text_of(&it.json()["messages"][0]["content"]))
        .collect();
    assert_eq!(
        asked,
        [
            "What is this?\n\n<stdin>\ntwo\nlines\n</stdin>",
            "What is this?",
            "What is this?\n\n<stdin>\nfrom a file\n</stdin>",
            "two\nlines",
        ]
    );
    let done = place.run_with_input(args, &"a".repeat((1 << 20) + 1)).await;
    assert_eq!(done.code, 2, "{done}");
    assert!(done.stderr.contains("larger than 1048576 bytes"), "{done}");
    assert_eq!(fake.requests().len(), 4);
}

/// The shell has the same pipe, so the pipe was not created for this command and is not read.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_inherited_pipe_without_data_is_not_awaited() {
    let fake = FakeModel::start().await.unwrap();
    let wire = WIRES[1];
    fake.answer((wire.answer)(vec![Say::text("Hello.")]));
    let place = place(wire, &fake);
    let (reader, _writer) = std::io::pipe().unwrap();
    let done = place
        .run_in_shell(
            &format!("\"$0\" ask --no-tools -m {} Hi; exit $?", wire.model),
            reader,
        )
        .await;
    assert_eq!((done.code, done.stdout.as_str()), (0, "Hello.\n"), "{done}");
    assert!(done.stderr.contains("open pipe without data"), "{done}");
    let body = fake.request(0).await;
    assert_eq!(text_of(&body.json()["messages"][0]["content"]), "Hi");
}

async fn run_example(name: &str, argument: &str, variables: &[(&str, &str)]) -> Done {
    // A filter of targets such as `--test cli` does not build the examples.
    let examples = program().with_file_name("examples");
    let mut command = Command::new(
        examples
            .join(name)
            .with_extension(std::env::consts::EXE_EXTENSION),
    );
    command.arg(argument).env_clear().envs(variables.to_vec());
    Done::from(command.output().await.unwrap())
}

#[tokio::test]
async fn the_example_of_each_provider_calls_its_tool_and_prints_the_answer() {
    let [anthropic, chat, openai, gemini, ollama] = WIRES;
    for (wire, name) in [
        (anthropic, "anthropic"),
        (openai, "openai"),
        (chat, "openai_compatible"),
        (gemini, "gemini"),
        (ollama, "ollama"),
    ] {
        let fake = FakeModel::start().await.unwrap();
        let url = format!("{}{}", fake.base_url(), wire.suffix);
        let say = Say::call("call_1", "weather", json!({"city": "Oslo"}));
        fake.answer((wire.answer)(vec![say]));
        fake.answer((wire.answer)(vec![Say::text("Take an umbrella.")]));
        let variables = [(wire.key, "sk-secret"), (wire.base_url, url.as_str())];
        let done = run_example(name, &url, &variables).await.exits(0);
        assert_eq!(done.stdout, "Take an umbrella.\n", "{name}: {done}");
        let result = fake.request(1).await.json().to_string();
        assert!(result.contains("It rains in Oslo."), "{name}: {result}");
    }
}

#[tokio::test]
async fn an_example_without_a_key_or_server_prints_the_reason() {
    // No process listens on this port.
    let closed = "http://127.0.0.1:9";
    for (name, variables, reason) in [
        ("anthropic", &[][..], "ANTHROPIC_API_KEY"),
        ("openai", &[], "OPENAI_API_KEY"),
        ("openai_compatible", &[], "no connection"),
        ("gemini", &[], "GEMINI_API_KEY"),
        ("ollama", &[("OLLAMA_HOST", closed)], "ollama serve"),
    ] {
        let done = run_example(name, closed, variables).await.exits(1);
        assert!(
            done.stderr.starts_with("Error: ") && done.stderr.contains(reason),
            "{name}: {done}"
        );
    }
}
