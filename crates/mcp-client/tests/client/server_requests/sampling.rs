//! Requests of a server to a model.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatResponse, FinishReason, Message, SampleError, SampleRequest, Sampler, ToolCallError,
    ToolChoiceOutcome, Usage,
};
use switchboard_mcp_client::{ClientHandlers, McpHost, SamplingLimits};

use crate::server_requests::support::*;

#[derive(Default)]
struct Model {
    asked: Mutex<Vec<SampleRequest>>,
}

#[async_trait]
impl Sampler for Model {
    async fn sample(&self, sample: &SampleRequest) -> Result<ChatResponse, SampleError> {
        self.asked.lock().unwrap().push(sample.clone());
        Ok(ChatResponse {
            message: Message::assistant("Hello!"),
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

fn handlers(model: &Arc<Model>) -> ClientHandlers {
    ClientHandlers {
        sampler: Some(model.clone()),
        ..ClientHandlers::default()
    }
}

/// Returns the answer that the server got, or the error of the request or of the call.
async fn sample(host: &McpHost) -> Result<Value, String> {
    match call(host, "sample").await {
        Ok(answer) => match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(answer),
        },
        Err(ToolCallError::Refused { code, message, .. }) => Err(format!("{code}: {message}")),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_server_may_ask_a_model_unless_it_was_allowed_to() {
    with_each(every_variant().await, |support| async move {
        let model = Arc::new(Model::default());
        let host = support.host(handlers(&model)).await;
        assert_eq!(call(&host, "offered").await.unwrap(), json!({}));
        let error = sample(&host).await.unwrap_err();
        assert!(error.contains("-32601"), "{error}");
        // With protocol 2026-07-28, the server gets no error. The call fails with this reason.
        let why =
            "the server requires sampling: set `sampling` in the server's configuration to allow \
             it";
        assert_eq!(error.contains(why), support.version == MODERN, "{error}");
        assert!(model.asked.lock().unwrap().is_empty());
        soon(host.close()).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_may_ask_gets_answers_within_its_limits() {
    with_each(every_variant().await, |mut support| async move {
        support.config.sampling = Some(SamplingLimits {
            calls: 1,
            max_tokens: 100,
        });
        let model = Arc::new(Model::default());
        let host = support.host(handlers(&model)).await;
        let expected = json!({"sampling": {"tools": {}}});
        assert_eq!(call(&host, "offered").await.unwrap(), expected);
        assert_eq!(
            sample(&host).await.unwrap(),
            json!({
                "role": "assistant", "model": "m-1", "stopReason": "endTurn",
                "content": {"type": "text", "text": "Hello!"},
            })
        );
        let asked = model.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].server, "s");
        let request = &asked[0].request;
        assert_eq!(request.max_output_tokens, Some(100));
        let said: Vec<String> = request.messages.iter().map(|m| m.text()).collect();
        assert_eq!(said, ["Be brief.", "Say hello"]);
        let error = sample(&host).await.unwrap_err();
        assert!(error.contains("the limit of 1 model answers"), "{error}");
        assert_eq!(model.asked.lock().unwrap().len(), 1);
        soon(host.close()).await;
    })
    .await;
}
