//! Asks models of a peer questions, and records their answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, ChatResponse, FinishReason, JsonObject, Message, ModelError, ModelErrorKind,
    ModelEvent, ResponseAccumulator, ToolCall, ToolCallError, ToolCatalog, ToolDefinition,
    ToolHost, ToolHostChanges, ToolInput, ToolOutput, ToolResult, ToolUse,
};
use switchboard_testkit::fixtures;
use tokio::time::timeout;

use crate::entry::Entry;

/// Maximum time of an answer. A server on this machine is much faster.
const PATIENCE: Duration = Duration::from_secs(40);

/// Maximum number of requests in a conversation.
const MAX_STEPS: usize = 4;

/// Text of the models before their calls.
pub(crate) const BEFORE: &str = "Ich frage nach: ";

/// Text of the models at the end. It has several pieces and characters of more than one byte.
pub(crate) const TEXT: &str = "Über Kiel 🌧️ zieht Regen auf; in Lübeck bleibt es trocken.";

/// Returns the inputs of the two calls of `get_weather` in one answer.
pub(crate) fn cities() -> [Value; 2] {
    [
        json!({"city": "Kiel", "unit": "celsius"}),
        json!({"city": "Lübeck"}),
    ]
}

/// The pieces and the outcome of one answer.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The text, joined from all text deltas.
    pub(crate) text: String,
    /// Number of the text deltas.
    pub(crate) pieces: usize,
    /// The response or the final error.
    pub(crate) outcome: Result<ChatResponse, ModelError>,
    asked: String,
}

impl Heard {
    pub(crate) fn answer(self) -> ChatResponse {
        self.outcome
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.asked))
    }

    pub(crate) fn error(self) -> ModelError {
        match self.outcome {
            Ok(answer) => panic!("{}: an answer, not an error: {answer:?}", self.asked),
            Err(error) => error,
        }
    }
}

/// Sends a request and reads the whole answer.
///
/// Checks that the text deltas add up to the response, and that no event follows an error.
pub(crate) async fn ask(entry: &Entry, request: ChatRequest) -> Heard {
    let model = entry.chat_model();
    let mut heard = Heard {
        text: String::new(),
        pieces: 0,
        outcome: Err(ModelError::new(
            "test",
            ModelErrorKind::Interrupted,
            "nothing came",
        )),
        asked: entry.to_string(),
    };
    let listening = async {
        let mut stream = model.stream(&request).await?;
        let mut answer = ResponseAccumulator::default();
        while let Some(event) = stream.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    assert!(stream.next().await.is_none(), "{entry}: more after {error}");
                    return Err(error);
                }
            };
            if let ModelEvent::TextDelta { text, .. } = &event {
                heard.text.push_str(text);
                heard.pieces += 1;
            }
            answer.push(&event).unwrap();
        }
        Ok(answer.finish().unwrap())
    };
    let outcome = timeout(PATIENCE, listening).await;
    heard.outcome = outcome.unwrap_or_else(|_| panic!("{entry}: it hangs"));
    match &heard.outcome {
        Ok(answer) => assert_eq!(heard.text, answer.message.text(), "{entry}: twice or lost"),
        Err(error) => assert_eq!(error.provider_name(), entry.provider, "{error}"),
    }
    heard
}

/// Asks a question without tools.
pub(crate) async fn ask_plainly(entry: &Entry, question: &str) -> Heard {
    ask(entry, ChatRequest::new([Message::user(question)])).await
}

/// A finished conversation with tools.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// Calls of the model, in order.
    pub(crate) calls: Vec<ToolUse>,
    /// Texts of the model, one for each response.
    pub(crate) texts: Vec<String>,
    /// All messages of the conversation.
    pub(crate) messages: Vec<Arc<Message>>,
    /// The last response.
    pub(crate) answer: ChatResponse,
    /// Inputs of the executed calls.
    pub(crate) ran: Vec<JsonObject>,
}

impl Conversation {
    /// Checks that the conversation consists of [`BEFORE`], two calls for [`cities`], and [`TEXT`].
    pub(crate) fn check(&self, entry: &Entry) {
        assert_eq!(self.texts, [BEFORE, TEXT], "{entry}");
        let inputs = cities().map(|input| input.as_object().cloned().unwrap());
        let called: Vec<(&str, &ToolInput)> = self
            .calls
            .iter()
            .map(|call| (call.name.as_str(), &call.input))
            .collect();
        let expected = inputs.clone().map(ToolInput::from);
        let expected: Vec<_> = expected.iter().map(|it| ("get_weather", it)).collect();
        assert_eq!(called, expected, "{entry}");
        assert_ne!(self.calls[0].id, self.calls[1].id, "{entry}");
        assert_eq!(self.ran, inputs, "{entry}");
    }
}

/// Asks a question and executes the model's calls, until the model answers without a call.
pub(crate) async fn converse(entry: &Entry, question: &str) -> Conversation {
    let tools = Weather::default();
    let mut request =
        ChatRequest::new([Message::user(question)]).with_tools(tools.list_tools().await.tools);
    let (mut calls, mut texts) = (Vec::new(), Vec::new());
    loop {
        let answer = ask(entry, request.clone()).await.answer();
        texts.push(answer.message.text());
        let message = Arc::new(answer.message.clone());
        request.messages.push(Arc::clone(&message));
        let wanted: Vec<ToolUse> = message.tool_uses().cloned().collect();
        assert_eq!(
            answer.finish == FinishReason::ToolUse,
            !wanted.is_empty(),
            "{entry}: {answer:?}"
        );
        if wanted.is_empty() {
            assert_eq!(answer.finish, FinishReason::Stop, "{entry}: {answer:?}");
            return Conversation {
                calls,
                texts,
                messages: request.messages,
                answer,
                ran: tools.ran.into_inner().unwrap(),
            };
        }
        assert!(texts.len() < MAX_STEPS, "{entry}: in circles: {texts:?}");
        let mut results = Vec::new();
        for tool_use in &wanted {
            results.push(result(&tools, tool_use).await);
        }
        calls.extend(wanted);
        request
            .messages
            .push(Arc::new(Message::from_tool_results(results)));
    }
}

/// Executes a call. An invalid call gets an error as its result.
async fn result(tools: &Weather, tool_use: &ToolUse) -> ToolResult {
    let ToolUse {
        id, name, input, ..
    } = tool_use;
    let input = match input {
        ToolInput::Object(input) => input.clone(),
        ToolInput::Malformed { reason, .. } => {
            return ToolResult::from_error_message(id, name, reason);
        }
    };
    let call = ToolCall {
        name: name.clone(),
        input,
        ..ToolCall::default()
    };
    match tools.call_tool(call).await {
        Ok(output) => output.into_result(id, name),
        Err(error) => ToolResult::from_error_message(id, name, error.to_string()),
    }
}

/// A tool host of this process with the tool `get_weather`.
#[derive(Debug, Default)]
pub(crate) struct Weather {
    /// Inputs of the executed calls.
    pub(crate) ran: Mutex<Vec<JsonObject>>,
}

impl Weather {
    fn definition() -> ToolDefinition {
        fixtures::weather()
    }
}

#[async_trait]
impl ToolHost for Weather {
    async fn list_tools(&self) -> ToolCatalog {
        ToolCatalog {
            tools: vec![Arc::new(Self::definition())],
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError> {
        let known = Self::definition().name;
        if call.name != known {
            return Err(ToolCallError::UnknownTool {
                name: call.name,
                available: vec![known],
            });
        }
        self.ran
            .lock()
            .unwrap()
            .push(call.input.clone().into_object());
        let city = call.input.get("city").and_then(|city| city.as_str());
        let city = city.unwrap_or("nowhere");
        Ok(ToolOutput::text(format!("{city}: 7 °C, grüner Regen")))
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::empty())
    }
}
