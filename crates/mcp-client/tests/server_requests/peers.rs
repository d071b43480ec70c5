//! The reference server that shows every feature of the protocol asks, too. See `cargo xtask test
//! --peers`.

use std::{env, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatResponse, ElicitationForm, FinishReason, Message, SampleError, SampleRequest, Sampler,
    ToolChoiceOutcome, ToolContent, Usage,
};
use switchboard_mcp_client::{
    ClientHandlers, HostOptions, LogLevel, McpHost, Root, SamplingLimits, ServerConfig,
};

use crate::support::*;

struct Model;

#[async_trait]
impl Sampler for Model {
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError> {
        let asked = sample.request.messages.last().unwrap().text();
        Ok(ChatResponse {
            message: Message::assistant(format!("I read: {asked}")),
            finish: FinishReason::Stop,
            finish_raw: None,
            usage: Usage::default(),
            tool_choice: ToolChoiceOutcome::default(),
            warnings: Vec::new(),
            response_id: None,
            model: Some("m-1".to_owned()),
        })
    }
}

async fn text(host: &McpHost, tool: &str, input: Value) -> String {
    let output = soon(host.call_raw("everything", tool, object(input))).await;
    let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
    let pieces: Vec<String> = output.content.iter().map(ToolContent::as_text).collect();
    pieces.join("\n")
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_asks_for_all_it_can() {
    let folder = env::var_os("SWITCHBOARD_PEERS").expect("run `cargo xtask test --peers`");
    let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let script = PathBuf::from(folder).join(script);
    let mut config = ServerConfig::stdio("everything", "node", [script.to_str().unwrap(), "stdio"]);
    config.sampling = Some(SamplingLimits::default());
    config.log_level = LogLevel::Debug;
    let user = User::with_answers([
        accept(json!({"name": "Ada", "email": "nobody"})),
        accept(json!({"name": "Ada", "integer": 7, "untitledMultipleSelectEnum": ["Piano"]})),
        accept(json!({})),
        accept(json!({})),
        accept(json!({})),
    ]);
    let handlers = ClientHandlers {
        sampler: Some(Arc::new(Model)),
        roots: Some(vec![Root::folder(&env::temp_dir()).unwrap()]),
        ..user.handlers()
    };
    let options = HostOptions {
        client_handlers: handlers,
        ..HostOptions::default()
    };
    let host = McpHost::start(vec![config], options).unwrap();
    soon(host.settled()).await;

    let filled = text(&host, "trigger-elicitation-request", json!({})).await;
    for expected in [
        r#""name": "Ada""#,
        r#""integer": 7"#,
        r#""number": 3.14"#,
        r#""untitledSingleSelectEnum": "Monica""#,
        r#""titledSingleSelectEnum": "hero-1""#,
        r#""legacyTitledEnum": "pet-1""#,
        "Piano",
        "fish-1",
    ] {
        assert!(filled.contains(expected), "{expected}: {filled}");
    }
    assert!(
        !filled.contains("Guitar") && !filled.contains("nobody"),
        "{filled}"
    );

    let input = json!({"url": "https://example.org/a", "message": "Go there."});
    let agreed = text(&host, "trigger-url-elicitation", input).await;
    assert!(agreed.contains("accept"), "{agreed}");
    // It never says that it is done with the visit that it wants first.
    let input = json!({"url": "https://example.org/b", "message": "Go.", "errorPath": true});
    let agreed = text(&host, "trigger-url-elicitation", input).await;
    assert!(agreed.contains("accept"), "{agreed}");
    let asked = user.elicitations.lock().unwrap().clone();
    let urls: Vec<&str> = asked
        .iter()
        .filter_map(|asked| match &asked.form {
            ElicitationForm::Url { url, .. } => Some(url.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        urls,
        [
            "https://example.org/a",
            "https://modelcontextprotocol.io/",
            "https://example.org/b"
        ]
    );

    let sampled = text(&host, "trigger-sampling-request", json!({"prompt": "red"})).await;
    assert!(
        sampled.contains("I read: ") && sampled.contains("red"),
        "{sampled}"
    );
    let roots = text(&host, "get-roots-list", json!({})).await;
    assert!(roots.contains("file://"), "{roots}");
    // It logs that it has them.
    until(|| !host.servers()[0].logs.is_empty()).await;
    soon(host.close()).await;
}
