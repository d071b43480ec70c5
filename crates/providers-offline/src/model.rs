//! Implements the trait `ChatModel` of the domain crate for the demo model.

use async_trait::async_trait;
use futures_util::stream;
use jiff::{Zoned, civil::Date};
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelId, ModelStream,
};

use crate::{plan_events::plan_to_events, step_planner::Plan};

/// Provider name in the model id `offline/planner`.
pub const PROVIDER: &str = "offline";
/// Model name in the model id `offline/planner`.
pub const MODEL: &str = "planner";

/// The demo model `offline/planner`.
///
/// It stores nothing between requests and never fails. Stop sequences and a JSON Schema for the
/// answer are ignored with a warning. Temperature, `top_p`, seed and reasoning effort have no
/// effect.
#[derive(Debug, Clone)]
pub struct DemoModel {
    id: ModelId,
    capabilities: ModelCapabilities,
    today: Option<Date>,
}

impl DemoModel {
    /// Creates a demo model. It resolves relative dates such as "yesterday" with the clock and the
    /// time zone of the system.
    pub fn new() -> Self {
        Self {
            id: ModelId::new(PROVIDER, MODEL),
            capabilities: ModelCapabilities {
                tools: Some(true),
                parallel_tools: Some(true),
                forced_tool_choice: Some(true),
                structured_output: Some(false),
                sampling: Some(false),
                reasoning: Some(false),
                images: Some(false),
                documents: Some(false),
                audio: Some(false),
                tool_search: Some(false),
                requires_approval: true,
                ..ModelCapabilities::default()
            },
            today: None,
        }
    }

    /// Sets the day that "today", "yesterday" and "tomorrow" refer to, for reproducible answers.
    #[must_use]
    pub fn with_today(mut self, today: Date) -> Self {
        self.today = Some(today);
        self
    }

    /// Returns the demo model's next step in a conversation. [`ChatModel::stream`] emits the same
    /// step as model events.
    pub fn plan(&self, request: &ChatRequest) -> Plan {
        let today = self.today.unwrap_or_else(|| Zoned::now().date());
        Plan::from_request(request, today)
    }
}

impl Default for DemoModel {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ChatModel for DemoModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        let events = plan_to_events(request, &self.plan(request));
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}
