//! Tests with `llmock`, which interrupts streams at every position and reports faults of its
//! client.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use switchboard_domain::{FinishReason, ModelErrorKind, TimeoutPhase, ToolInput};
use switchboard_providers_openai::Profile;

use crate::{
    conversation::{BEFORE, TEXT, ask_plainly, cities, converse},
    entry::{Entry, Form, HOSTED, late},
    peer::{Peer, python_program},
    wires::{WIRES, Wire},
};

/// Time-out of the tests with slow answers. It is shorter than a slow answer, and long enough for a
/// busy machine.
const LIMIT: Duration = Duration::from_millis(1200);

async fn llmock(arguments: &[&str]) -> Peer {
    let mut command = python_program("llmock");
    command.args(["serve", "--port", "0"]).args(arguments);
    Peer::start(command, "Uvicorn running on ", &[]).await
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "/anthropic",
        Wire::Gemini => "/gemini",
        _ => "/v1",
    }
}

fn entry(peer: &Peer, wire: Wire, form: Form) -> Entry {
    Entry::under(peer, path(wire), wire, form)
}

fn entries(peer: &Peer, forms: &[Form]) -> Vec<Entry> {
    let each = |wire: &Wire| {
        let wire = *wire;
        forms.iter().map(move |form| entry(peer, wire, *form))
    };
    HOSTED.iter().flat_map(each).collect()
}

/// Queues the behaviour of the server for the next requests of an entry.
async fn script(peer: &Peer, entry: &Entry, behaviours: impl IntoIterator<Item = Value>) {
    let path = match entry.wire {
        Wire::Chat => "*/chat/completions",
        Wire::Responses => "/v1/responses",
        Wire::Anthropic => "/anthropic/*",
        _ => "/gemini/*",
    };
    let only = json!({"path": path, "stream": entry.form == Form::Streamed});
    let of_entry = |mut behaviour: Value| {
        behaviour["match"] = only.clone();
        behaviour
    };
    let behaviours: Vec<Value> = behaviours.into_iter().map(of_entry).collect();
    let count = behaviours.len();
    let body = json!({"behaviors": behaviours});
    let told = peer.tell("/_llmock/scenario", &body).await;
    assert_eq!(told["queued"], count, "{told}");
}

fn reply() -> Value {
    json!({"type": "reply", "text": TEXT})
}

/// Checks that the server has no scripted behaviour left, and that it reports no fault of the
/// client.
///
/// The server treats equal bodies as a repeated request, so each question is asked only once.
async fn check_verdict(peer: &Peer) {
    // The server reports this finding because it does not see that the caller got an error. The
    // tests check the error.
    const NOT_ASKED_AGAIN: &str = "truncated_stream_accepted";
    let pending = peer.told("/_llmock/scenario").await;
    assert_eq!(pending["pending"], json!([]));
    let verdict = peer.told("/_llmock/verdict").await;
    let findings = verdict["findings"].as_array().unwrap();
    let faults: Vec<&Value> = findings
        .iter()
        .filter(|it| it["severity"] == "error" && it["code"] != NOT_ASKED_AGAIN)
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Returns the status and the time in seconds of every request of an entry.
async fn attempts(peer: &Peer, entry: &Entry) -> Vec<(u64, f64)> {
    let requests = peer.told("/_llmock/requests").await;
    let is_of_entry = |request: &&Value| {
        let path = request["path"].as_str().unwrap();
        let of_wire = match entry.wire {
            Wire::Chat => path.ends_with("/chat/completions"),
            Wire::Responses => path.ends_with("/responses"),
            Wire::Anthropic => path.starts_with("/anthropic/"),
            _ => path.starts_with("/gemini/"),
        };
        of_wire && request["stream"] == (entry.form == Form::Streamed)
    };
    let requests = requests["requests"].as_array().unwrap();
    requests
        .iter()
        .filter(is_of_entry)
        .map(|it| {
            let status = it["status"].as_u64().unwrap();
            (status, it["started_at"].as_f64().unwrap())
        })
        .collect()
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_is_a_model_that_uses_tools() {
    let peer = llmock(&[]).await;
    let mut all = entries(&peer, &Form::BOTH);
    // These vendors use variants of OpenAI's wire.
    for (path, name, profile) in [
        ("/mistral/v1", "mistral-large-latest", "mistral"),
        ("/groq/openai/v1", "llama-3.3-70b-versatile", "groq"),
        ("/xai/v1", "grok-3", "xai"),
    ] {
        for form in Form::BOTH {
            let mut entry = Entry::under(&peer, path, Wire::Chat, form);
            entry.connection.provider = format!("my{path}");
            name.clone_into(&mut entry.connection.model);
            entry.connection.profile = Profile::from_name(profile).unwrap();
            all.push(entry);
        }
    }
    // By default, the server calls the tool with an input that matches its schema, and then answers
    // with a text.
    join_all(all.iter().map(async |entry| {
        let talk = converse(entry, "What is the weather?").await;
        assert_eq!(talk.calls.len(), 1, "{entry}: {:?}", talk.calls);
        assert_eq!(talk.calls[0].name, "get_weather", "{entry}");
        assert!(talk.ran[0]["city"].is_string(), "{entry}: {:?}", talk.ran);
        assert_eq!(talk.texts.len(), 2, "{entry}");
        assert!(!talk.texts[1].is_empty(), "{entry}");
        // In a stream, the real Mistral reports its usage without a request for it. This server
        // does not.
        let is_told = entry.form == Form::Whole || !entry.provider.contains("mistral");
        assert_eq!(talk.answer.usage.is_known(), is_told, "{entry}");
    }))
    .await;

    // The server plays a script: a text, two calls, and a final text.
    join_all(entries(&peer, &Form::BOTH).iter().map(async |entry| {
        let [kiel, luebeck] = cities();
        let first = json!({"type": "reply", "text": BEFORE, "tool_calls": [
            {"name": "get_weather", "arguments": kiel},
            {"name": "get_weather", "arguments": luebeck},
        ]});
        script(&peer, entry, [first, reply()]).await;
        converse(entry, "What is the weather?").await.check(entry);
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_calls_wrong_tools_and_goes_on() {
    let peer = llmock(&[]).await;
    join_all(entries(&peer, &Form::BOTH).iter().map(async |entry| {
        let fault = |kind: &str| json!({"type": "tool_fault", "kind": kind});
        script(&peer, entry, [fault("unknown_tool")]).await;
        let talk = converse(entry, "What is the weather?").await;
        assert_eq!(talk.calls[0].name, "llmock_unknown_tool", "{entry}");
        assert!(talk.ran.is_empty(), "{entry}");
        assert_eq!(talk.answer.finish, FinishReason::Stop, "{entry}");

        script(&peer, entry, [fault("malformed_arguments")]).await;
        let talk = converse(entry, "What is the weather?").await;
        let is_text_on_the_wire = match entry.wire {
            Wire::Anthropic => entry.form == Form::Streamed,
            Wire::Gemini => false,
            _ => true,
        };
        if is_text_on_the_wire {
            let input = &talk.calls[0].input;
            assert!(
                matches!(input, ToolInput::Malformed { .. }),
                "{entry}: {input:?}"
            );
            assert!(
                talk.ran.is_empty(),
                "{entry}: input that was cut off must not run"
            );
        } else {
            // On this wire, the server sends an empty object as input.
            assert_eq!(talk.ran.len(), 1, "{entry}");
        }
        assert_eq!(talk.answer.finish, FinishReason::Stop, "{entry}");
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_is_asked_again_as_it_wishes() {
    let peer = llmock(&[]).await;
    join_all(entries(&peer, &Form::BOTH).iter().map(async |entry| {
        // Without the delay that the server requests, the policy would wait for minutes.
        let limited = json!({"type": "fail", "status": 429, "retry_after": 0.7});
        let overloaded = json!({"type": "fail", "status": 529, "retry_after": 0.3});
        script(&peer, entry, [limited, overloaded, reply()]).await;
        let obedient = entry.clone().with_retry(late());
        let heard = ask_plainly(&obedient, "What is the weather?").await;
        assert_eq!(heard.text, TEXT, "{entry}");
        assert_eq!(heard.answer().message.text(), TEXT, "{entry}");
        let attempts = attempts(&peer, entry).await;
        let statuses: Vec<u64> = attempts.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [429, 529, 200], "{entry}");
        for (pair, wish) in attempts.windows(2).zip([0.7, 0.3]) {
            let waited = pair[1].1 - pair[0].1;
            assert!(waited >= wish, "{entry}: {waited} s instead of {wish} s");
        }
    }))
    .await;
    peer.tell("/_llmock/reset", &json!({})).await;
    join_all(entries(&peer, &Form::BOTH).iter().map(async |entry| {
        let failed = |status: u16| json!({"type": "fail", "status": status});
        script(&peer, entry, [failed(500), failed(502), reply()]).await;
        let heard = ask_plainly(entry, "What is the weather?").await;
        assert_eq!(heard.text, TEXT, "{entry}");
        let statuses: Vec<u64> = attempts(&peer, entry).await.iter().map(|it| it.0).collect();
        assert_eq!(statuses, [500, 502, 200], "{entry}");
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_is_given_up_with_a_typed_error() {
    let peer = llmock(&[]).await;
    let hour = Some(Duration::from_hours(1));
    let refused = ModelErrorKind::InvalidRequest { field: None };
    let overloaded = ModelErrorKind::Overloaded { retry_after: None };
    let none: Option<u32> = None;
    // The columns are status, requested delay, number of attempts, and error kind.
    let table = [
        (400, none, 1, refused.clone()),
        (401, none, 1, ModelErrorKind::Authentication),
        (402, none, 1, ModelErrorKind::QuotaExhausted),
        (403, none, 1, ModelErrorKind::Permission),
        (404, none, 1, ModelErrorKind::NotFound),
        (422, none, 1, refused),
        (
            429,
            Some(3600),
            1,
            ModelErrorKind::RateLimited { retry_after: hour },
        ),
        (500, none, 3, overloaded.clone()),
        (502, none, 3, overloaded),
        (
            503,
            Some(3600),
            1,
            ModelErrorKind::Overloaded { retry_after: hour },
        ),
        (
            529,
            Some(3600),
            1,
            ModelErrorKind::Overloaded { retry_after: hour },
        ),
    ];
    join_all(entries(&peer, &Form::BOTH).iter().map(async |entry| {
        let mut asked = 0;
        for (status, wish, times, kind) in &table {
            if (entry.wire, *status) == (Wire::Gemini, 402) {
                // Google has no status 402, and the server has no error in Google's format for it.
                continue;
            }
            let failure = json!({
                "type": "fail", "status": status, "retry_after": wish, "times": times,
                "message": "as the test wants",
            });
            script(&peer, entry, [failure]).await;
            let heard = ask_plainly(entry, &format!("What is {status}?")).await;
            assert_eq!(heard.text, "", "{entry}");
            let error = heard.error();
            assert_eq!(error.kind, *kind, "{entry}, {status}: {error}");
            assert_eq!(error.http_status(), Some(*status), "{entry}: {error}");
            assert!(error.message().contains("as the test wants"), "{error}");
            asked += times;
        }
        // The number of requests equals the sum of the expected attempts.
        assert_eq!(attempts(&peer, entry).await.len(), asked, "{entry}");
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_breaks_streams_and_nothing_is_said_twice() {
    let peer = llmock(&[]).await;
    join_all(entries(&peer, &[Form::Streamed]).iter().map(async |entry| {
        for kind in ["disconnect", "truncate", "malformed"] {
            for after in [0, 1, 2, 4, 7] {
                let fault = json!({"type": "stream_fault", "kind": kind, "after_chunks": after});
                script(&peer, entry, [fault, reply()]).await;
                let at = format!("{entry}: {kind} after {after}");
                let heard = ask_plainly(entry, &at).await;
                // No text was shown, so the request was repeated. The server's next answer is not
                // scripted.
                if heard.outcome.is_ok() {
                    assert!(!TEXT.starts_with(&heard.text), "{at}: {}", heard.text);
                    assert!(after < 7, "{at}");
                    continue;
                }
                assert!(TEXT.starts_with(&heard.text), "{at}: {}", heard.text);
                assert!(!heard.text.is_empty(), "{at}: not asked again");
                assert!(heard.text.len() < TEXT.len(), "{at}: {}", heard.text);
                let error = heard.error();
                let expected = match kind {
                    "malformed" => ModelErrorKind::Protocol,
                    _ => ModelErrorKind::Interrupted,
                };
                assert_eq!(error.kind, expected, "{at}: {error}");
                assert_eq!(error.http_status(), Some(200), "{at}: {error}");
            }
        }
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_breaks_off_in_the_middle_of_a_call() {
    let peer = llmock(&[]).await;
    let input = json!({"city": "Kiel an der Förde, Schleswig-Holstein"});
    let call = json!({"name": "get_weather", "arguments": input});
    join_all(entries(&peer, &[Form::Streamed]).iter().map(async |entry| {
        for kind in ["disconnect", "truncate", "malformed"] {
            // The fault occurs within the input of the call. Gemini sends the whole call at the
            // end.
            let after = match entry.wire {
                Wire::Gemini => 0,
                Wire::Responses => 4,
                _ => 3,
            };
            if (entry.wire, kind) == (Wire::Gemini, "disconnect") {
                continue;
            }
            let first = json!({"type": "reply", "tool_calls": [call]});
            let fault = json!({"type": "stream_fault", "kind": kind, "after_chunks": after});
            script(&peer, entry, [first, fault, reply()]).await;
            let heard = ask_plainly(entry, &format!("What is {kind}?")).await;
            // The incomplete call is discarded, and the request is repeated.
            let message = heard.answer().message;
            assert_eq!(message.text(), TEXT, "{entry}, {kind}");
            assert!(message.tool_uses().next().is_none(), "{entry}, {kind}");
        }
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_is_slow() {
    let peer = llmock(&["--stream-chunk-delay-ms", "130"]).await;
    join_all(entries(&peer, &[Form::Streamed]).iter().map(async |entry| {
        let mut hasty = entry.clone();
        hasty.connection.transport.idle_timeout = LIMIT;
        script(&peer, entry, [reply()]).await;
        let heard = ask_plainly(&hasty, "What is the weather?").await;
        assert_eq!(heard.answer().message.text(), TEXT, "{entry}");

        let stall = json!({
            "type": "stream_fault", "kind": "stall", "after_chunks": 6, "stall_seconds": 60,
        });
        script(&peer, entry, [stall, reply()]).await;
        let heard = ask_plainly(&hasty, "What is a stall?").await;
        assert!(TEXT.starts_with(&heard.text), "{entry}: {}", heard.text);
        assert!(heard.text.len() < TEXT.len(), "{entry}: {}", heard.text);
        let kind = ModelErrorKind::Timeout {
            phase: TimeoutPhase::Idle,
            after: LIMIT,
        };
        assert_eq!(heard.error().kind, kind, "{entry}");
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_is_asked_again_when_it_says_nothing() {
    let peer = llmock(&[]).await;
    join_all(entries(&peer, &[Form::Streamed]).iter().map(async |entry| {
        let mut hasty = entry.clone();
        hasty.connection.transport.first_byte_timeout = LIMIT;
        for slow in ["delay", "slow_first_token"] {
            let behaviour = json!({"type": slow, "seconds": 60});
            script(&peer, entry, [behaviour, reply(), reply()]).await;
            let heard = ask_plainly(&hasty, &format!("What is {slow}?")).await;
            assert_eq!(heard.answer().message.text(), TEXT, "{entry}");
        }
    }))
    .await;
    check_verdict(&peer).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_is_not_at_every_address() {
    let peer = llmock(&[]).await;
    for wire in WIRES {
        let entry = Entry::under(&peer, "/somewhere/else", wire, Form::Streamed);
        let error = ask_plainly(&entry, "Is anybody there?").await.error();
        assert_eq!(error.http_status(), Some(404), "{entry}: {error}");
        assert!(!error.is_transient(), "{entry}: {error}");
        // The server returns OpenAI's error format (`invalid_request_error`) to Anthropic's adapter
        // too.
        assert_eq!(error.kind, ModelErrorKind::NotFound, "{entry}: {error}");
    }
}

/// Checks the error for a file server, which answers every request with an HTML page, as failing
/// proxies do.
#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_python_answers_with_a_page_for_people() {
    let mut command = python_program("python");
    command.args(["-m", "http.server", "--bind", "127.0.0.1", "0"]);
    let peer = Peer::start(command, "(", &[]).await;
    for wire in WIRES {
        let entry = Entry::new(&peer, wire, Form::Streamed);
        let heard = ask_plainly(&entry, "Is anybody there?").await;
        assert_eq!(heard.text, "", "{entry}");
        let error = heard.error();
        let kind = ModelErrorKind::Overloaded { retry_after: None };
        assert_eq!(error.kind, kind, "{entry}: {error}");
        assert_eq!(error.http_status(), Some(501), "{entry}: {error}");
        // The message contains one line of the page.
        let message = error.message();
        assert!(message.contains("Unsupported method ('POST')"), "{message}");
        assert!(!message.contains('\n') && message.len() < 1000, "{message}");
    }
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_llmock_has_a_small_window() {
    let peer = llmock(&["--context-window", "50"]).await;
    join_all(entries(&peer, &Form::BOTH).iter().map(async |entry| {
        assert!(
            ask_plainly(entry, "Short?").await.outcome.is_ok(),
            "{entry}"
        );
        let error = ask_plainly(entry, &"long ".repeat(200)).await.error();
        assert_eq!(
            error.kind,
            ModelErrorKind::ContextOverflow,
            "{entry}: {error}"
        );
        assert_eq!(error.http_status(), Some(400), "{entry}: {error}");
        assert_eq!(attempts(&peer, entry).await.len(), 2, "{entry}");
    }))
    .await;
    check_verdict(&peer).await;
}
