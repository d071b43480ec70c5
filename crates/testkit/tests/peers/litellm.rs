//! Tests with a `litellm` proxy in front of aimock. The proxy translates every wire to Chat
//! Completions.

use futures_util::future::join_all;
use serde_json::{Value, json};
use switchboard_domain::ModelErrorKind;
use switchboard_providers_openai::Profile;

use crate::{
    aimock::{Fixtures, aimock, failure, tell},
    conversation::{BEFORE, TEXT, ask_plainly, cities, converse},
    entry::{Entry, Form, HOSTED},
    peer::{Peer, python_program},
    wires::Wire,
};

const KEY: &str = "sk-of-the-proxy";
const MODEL: &str = "gpt-4.1";

async fn litellm(behind: &Peer) -> Peer {
    let config = json!({
        "model_list": [{
            "model_name": MODEL,
            "litellm_params": {
                "model": format!("openai/{MODEL}"),
                "api_base": behind.at("/v1"),
                "api_key": "key-of-the-proxy",
            },
        }],
        // The proxy does not retry, because the tests check the retries of our adapters.
        "litellm_settings": {"num_retries": 0, "request_timeout": 20},
        "router_settings": {"num_retries": 0, "disable_cooldowns": true},
        "general_settings": {"master_key": KEY},
    });
    let mut command = python_program("litellm");
    command.args([
        "--config",
        "litellm.yaml",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    ]);
    // The proxy uses its local tables of costs and headers, so that it needs no network.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    command.env("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True");
    Peer::start(command, "Uvicorn running on ", &[("litellm.yaml", &config)]).await
}

fn entries(proxy: &Peer) -> Vec<Entry> {
    let as_configured = |mut entry: Entry| {
        MODEL.clone_into(&mut entry.connection.model);
        KEY.clone_into(&mut entry.connection.key);
        entry.connection.profile = Profile::from_name("litellm").unwrap();
        entry
    };
    let all = Entry::each(proxy, &HOSTED).into_iter();
    all.map(as_configured).collect()
}

// All checks are in one test, because the proxy takes longer to start than all checks together.
#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_litellm_translates_every_wire() {
    let behind = aimock().await;
    let proxy = litellm(&behind).await;
    let entries = entries(&proxy);
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        add_weather(&mut fixtures, entry);
        add_faults(&mut fixtures, entry);
    }
    tell(&behind, fixtures).await;
    join_all(entries.iter().map(check_weather)).await;
    join_all(entries.iter().map(check_faults)).await;
}

fn add_weather(fixtures: &mut Fixtures, entry: &Entry) {
    let question = format!("the weather, asked by {entry}");
    let before = json!({"userMessage": question, "hasToolResult": false});
    let [kiel, luebeck] = cities();
    let first = json!({"content": BEFORE, "toolCalls": [
        {"id": "call_kiel", "name": "get_weather", "arguments": kiel},
        {"id": "call_luebeck", "name": "get_weather", "arguments": luebeck},
    ]});
    let after = json!({
        "userMessage": question,
        "hasToolResult": true,
        "toolResultContains": "ner Regen",
    });
    fixtures.add_if(&before, &first, &json!({})).add_if(
        &after,
        &json!({"content": TEXT}),
        &json!({}),
    );
}

async fn check_weather(entry: &Entry) {
    let talk = converse(entry, &format!("the weather, asked by {entry}")).await;
    talk.check(entry);
}

fn add_faults(fixtures: &mut Fixtures, entry: &Entry) {
    let answer = json!({"content": TEXT});
    let failed = |status, further: Value| failure(Wire::Chat, status, &further);
    let limited = failed(429, json!({"retryAfter": 1}));
    fixtures
        .add_at(&format!("limited, {entry}"), 0, &limited)
        .add_at(&format!("limited, {entry}"), 1, &answer)
        .add(&format!("always, {entry}"), &limited, &json!({}))
        .add(
            &format!("failing, {entry}"),
            &failed(500, json!({})),
            &json!({}),
        )
        .add(
            &format!("refused, {entry}"),
            &failed(400, json!({"param": "messages[0].content"})),
            &json!({}),
        )
        .add(
            &format!("cut, {entry}"),
            &answer,
            &json!({"truncateAfterChunks": 9, "latency": 5}),
        );
}

async fn check_faults(entry: &Entry) {
    let heard = ask_plainly(entry, &format!("limited, {entry}")).await;
    assert_eq!(heard.text, TEXT, "{entry}");
    assert_eq!(heard.answer().message.text(), TEXT, "{entry}");

    let failed = async |question: &str, status: u16| {
        let heard = ask_plainly(entry, &format!("{question}, {entry}")).await;
        assert_eq!(heard.text, "", "{entry}");
        let error = heard.error();
        assert_eq!(error.http_status(), Some(status), "{entry}: {error}");
        assert!(error.message().contains("as the test wants"), "{error}");
        error.kind
    };
    // The proxy does not forward the header with the delay of the rate limit, so the delay is not
    // checked.
    let kind = failed("always", 429).await;
    assert!(
        matches!(kind, ModelErrorKind::RateLimited { .. }),
        "{entry}: {kind:?}"
    );
    let overloaded = ModelErrorKind::Overloaded { retry_after: None };
    assert_eq!(failed("failing", 500).await, overloaded, "{entry}");
    match entry.wire {
        // On Gemini's wire, the proxy reports every error as an error of the proxy itself.
        Wire::Gemini => assert_eq!(failed("refused", 500).await, overloaded, "{entry}"),
        wire => {
            let named = wire == Wire::Chat;
            let field = named.then(|| "messages[0].content".to_owned());
            let refused = ModelErrorKind::InvalidRequest { field };
            assert_eq!(failed("refused", 400).await, refused, "{entry}");
        }
    }

    let is_of_openai = matches!(entry.wire, Wire::Chat | Wire::Responses);
    let mut unknown = entry.clone();
    "gpt-unknown".clone_into(&mut unknown.connection.model);
    let error = ask_plainly(&unknown, "hello").await.error();
    assert_eq!(error.http_status(), Some(400), "{entry}: {error}");
    assert!(error.message().contains("Invalid model name"), "{error}");
    if is_of_openai {
        assert_eq!(error.kind, ModelErrorKind::NotFound, "{entry}: {error}");
    }
    assert!(!error.is_transient(), "{entry}: {error}");

    // The proxy needs a database to check keys. Without one, it only reports that it has none.
    let error = ask_plainly(&entry.clone().with_key("sk-wrong"), "hello")
        .await
        .error();
    assert_eq!(error.http_status(), Some(400), "{entry}: {error}");
    assert!(!error.is_transient(), "{entry}: {error}");
    assert!(
        !format!("{error} {error:?}").contains("sk-wrong"),
        "{error}"
    );

    if entry.form == Form::Streamed {
        check_cut(entry).await;
    }
}

/// Checks an answer that ends early: the proxy reports the error within its own stream.
async fn check_cut(entry: &Entry) {
    let heard = ask_plainly(entry, &format!("cut, {entry}")).await;
    assert!(TEXT.starts_with(&heard.text), "{entry}: {}", heard.text);
    assert!(heard.text.len() < TEXT.len(), "{entry}: all was heard");
    let error = heard.error();
    let is_typed = matches!(
        error.kind,
        ModelErrorKind::Interrupted | ModelErrorKind::Overloaded { retry_after: None }
    );
    assert!(is_typed, "{entry}: {error}");
    assert_eq!(error.http_status(), Some(200), "{entry}: {error}");
}
