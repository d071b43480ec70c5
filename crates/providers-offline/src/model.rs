//! The planner behind the port of a model.

use std::fmt;

use async_trait::async_trait;
use futures_util::stream;
use jiff::{Zoned, civil::Date};
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, Message, ModelCapabilities, ModelError, ModelId, ModelStream,
    ToolDefinition,
};

use crate::{dialogue::Dialogue, events::events, phases, plan::Plan};

/// The provider half of the planner's id.
pub const PROVIDER: &str = "offline";
/// The model half of the planner's id.
pub const MODEL: &str = "planner";

/// The keyless planner, `offline/planner`.
///
/// It keeps nothing between requests: a question that it asked is understood again from the
/// messages. It needs no network and never fails; what it cannot do it says in its answer, and
/// options that mean nothing to it are reported as warnings.
#[derive(Clone)]
pub struct OfflinePlanner {
    id: ModelId,
    capabilities: ModelCapabilities,
    today: Option<Date>,
}

impl OfflinePlanner {
    /// A planner that reads "yesterday" by the system's clock and time zone.
    pub fn new() -> Self {
        Self {
            id: ModelId::new(PROVIDER, MODEL),
            capabilities: ModelCapabilities {
                context_window: None,
                max_output_tokens: None,
                tools: Some(true),
                parallel_tools: Some(true),
                forced_tool_choice: Some(true),
                structured_output: Some(false),
                sampling: Some(false),
                reasoning: Some(false),
                images: Some(false),
                documents: Some(false),
                audio: Some(false),
            },
            today: None,
        }
    }

    /// Fixes the day from which "yesterday" and "last week" count.
    #[must_use]
    pub fn with_today(mut self, today: Date) -> Self {
        self.today = Some(today);
        self
    }

    /// What to do next in this conversation. The same decision that [`ChatModel::stream`] streams.
    pub fn plan(&self, request: &ChatRequest) -> Plan {
        let today = self.day();
        let plan = |request: &ChatRequest| Dialogue::new(request, today).plan();
        phases::formatted(request, today, plan).unwrap_or_else(|| plan(request))
    }

    /// Does everything once that takes time only when it is done first, such as compiling expressions: some milliseconds, on a thread
    /// that may be kept busy. For whoever has to wait for something else before it can ask `question`.
    pub fn prepare(question: &str) {
        let schema = json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["id"],
        });
        let tool = ToolDefinition::new("read-value", "Returns the value of a thing", schema);
        let request = ChatRequest::new([Message::user(question)]).with_tools([tool]);
        Self::new().plan(&request);
    }

    fn day(&self) -> Date {
        self.today.unwrap_or_else(|| Zoned::now().date())
    }
}

impl Default for OfflinePlanner {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OfflinePlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfflinePlanner")
            .field("today", &self.today)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for OfflinePlanner {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let plan = self.plan(request);
        Ok(Box::pin(stream::iter(
            events(request, &plan).into_iter().map(Ok),
        )))
    }
}
