use std::sync::Mutex;

use futures_util::stream;
use serde_json::json;
use switchboard_domain::{
    FinishReason, Message, ModelEvent, PartStart, ResponseFormat, ToolChoice, ToolDefinition,
};

use super::*;

/// A model that always answers the same text and stores the last request.
struct Says {
    id: ModelId,
    capabilities: ModelCapabilities,
    text: &'static str,
    asked: Mutex<Vec<ChatRequest>>,
}

impl Says {
    fn new(text: &'static str) -> Arc<Self> {
        Arc::new(Self {
            id: ModelId::new("local", "small"),
            capabilities: ModelCapabilities {
                tools: Some(false),
                structured_output: Some(true),
                ..ModelCapabilities::default()
            },
            text,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> ChatRequest {
        self.asked.lock().unwrap().last().unwrap().clone()
    }
}

#[async_trait]
impl ChatModel for Says {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        self.asked.lock().unwrap().push(request.clone());
        let part = PartStart::Text;
        let text = self.text.to_owned();
        Ok(Box::pin(stream::iter([
            Ok(ModelEvent::PartStarted { index: 0, part }),
            Ok(ModelEvent::TextDelta { index: 0, text }),
            Ok(ModelEvent::PartFinished { index: 0 }),
            Ok(ModelEvent::Finished {
                reason: FinishReason::Stop,
                raw: None,
            }),
        ])))
    }
}

fn request() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ChatRequest::new([Message::user("Rain in Paris?")])
        .with_tools([ToolDefinition::new("weather", "", schema)])
}

const CALL: &str = "```json\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n```";

#[tokio::test]
async fn a_call_in_the_text_is_a_tool_use_and_nothing_else_is_touched() {
    let says = Says::new(CALL);
    let model = TextCallModel::wrap_model(says.clone(), TextCallFormats::ALL);
    let answer = model.complete(&request()).await.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolUse);
    let calls: Vec<_> = answer.message.tool_uses().collect();
    assert_eq!(calls[0].name, "weather");
    assert_eq!(says.asked(), request());

    let plain = TextCallModel::wrap_model(says, TextCallFormats::NONE);
    let answer = plain.complete(&request()).await.unwrap();
    assert_eq!(answer.finish, FinishReason::Stop);
    assert_eq!(answer.message.text(), CALL);
}

#[tokio::test]
async fn a_model_without_tool_support_receives_them_in_the_prompt() {
    let says = Says::new("<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>");
    let model =
        TextCallModel::wrap_model(says.clone(), TextCallFormats::NONE).with_prompted_tools();
    assert_eq!(model.capabilities().tools, Some(true));
    let answer = model.complete(&request()).await.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolUse);
    let asked = says.asked();
    assert_eq!(asked.tools, []);
    assert!(asked.messages[0].text().contains("\"weather\""));

    // A required call is enforced with a schema, because the model enforces schemas.
    let forced = request().with_tool_choice(ToolChoice::Required);
    let answer = model.complete(&forced).await.unwrap();
    assert_ne!(says.asked().response_format, ResponseFormat::Text);
    assert_ne!(
        answer.tool_choice,
        switchboard_domain::ToolChoiceOutcome::Native
    );

    // A request without tools is sent unchanged.
    let plain = ChatRequest::new([Message::user("Hello?")]);
    model.complete(&plain).await.unwrap();
    assert_eq!(says.asked(), plain);
}
