//! The planner behind the port of a model.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::stream;
use jiff::{Zoned, civil::Date};
use serde_json::json;
use switchboard_domain::{
    ChatModel, ChatRequest, Message, ModelCapabilities, ModelError, ModelId, ModelStream,
    ToolDefinition,
};

use crate::{dialogue::Dialogue, events::events, phases, plan::Plan, rank::Index};

/// The provider half of the planner's id.
pub const PROVIDER: &str = "offline";
/// The model half of the planner's id.
pub const MODEL: &str = "planner";

/// The keyless planner, `offline/planner`.
///
/// It keeps nothing of a conversation between requests: a question that it asked is understood again from the
/// messages. What the tools of the last request say is kept, for the next step with the same ones. It needs no network and never fails; what it cannot do it says in its answer, and
/// options that mean nothing to it are reported as warnings.
#[derive(Clone)]
pub struct DemoModel {
    id: ModelId,
    capabilities: ModelCapabilities,
    today: Option<Date>,
    /// The tools of the last request, read and indexed. To read them takes a third of a step's time.
    known: Arc<Mutex<Option<Arc<Index>>>>,
}

impl DemoModel {
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
                tool_search: Some(false),
                requires_approval: true,
            },
            today: None,
            known: Arc::default(),
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
        let plan = |request: &ChatRequest| {
            let index = self.index(&request.tools);
            Dialogue::new(request, index, today).plan()
        };
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

    fn index(&self, tools: &[Arc<ToolDefinition>]) -> Arc<Index> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known().as_ref().filter(|index| index.is_of(tools)).cloned();
        same.unwrap_or_else(|| {
            // Not under the lock: others ask at the same time.
            let index = Arc::new(Index::new(tools));
            *known() = Some(Arc::clone(&index));
            index
        })
    }

    fn day(&self) -> Date {
        self.today.unwrap_or_else(|| Zoned::now().date())
    }
}

impl Default for DemoModel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DemoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DemoModel")
            .field("today", &self.today)
            .finish_non_exhaustive()
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
        let plan = self.plan(request);
        Ok(Box::pin(stream::iter(
            events(request, &plan).into_iter().map(Ok),
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::extract::COMPILED;

    #[test]
    fn the_same_tools_are_read_once() {
        let tool = |name: &str| Arc::new(ToolDefinition::new(name, "", json!({"type": "object"})));
        let (one, other) = (vec![tool("one")], vec![tool("one"), tool("other")]);
        let planner = DemoModel::new();
        let first = planner.index(&one);
        assert!(Arc::ptr_eq(&first, &planner.clone().index(&one)));
        // Others are not mistaken for them, be it that they are called the same.
        assert!(!Arc::ptr_eq(&first, &planner.index(&[tool("one")])));
        let both = planner.index(&other);
        assert_eq!(both.tools.len(), 2);
        assert_eq!(planner.index(&one).tools.len(), 1);
    }

    /// Patterns are compiled once in a process, so that this needs one in which no other test asks anything.
    #[test]
    fn who_prepares_compiles_nothing_later() {
        let alone = "model::tests::alone_in_a_process";
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", alone, "--ignored", "--nocapture"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    #[ignore = "`who_prepares_compiles_nothing_later` starts it in a process of its own"]
    fn alone_in_a_process() {
        let question = "Show notes/plan.md of 2026-11-02 for customer 42 in \"May\", 3 weeks ago";
        assert_eq!(COMPILED.get(), 0);
        DemoModel::prepare(question);
        let prepared = COMPILED.get();
        assert!(prepared > 5, "{prepared}");
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let tool = ToolDefinition::new("paper-view", "Shows a paper", schema);
        let request = ChatRequest::new([Message::user(question)]).with_tools([tool]);
        DemoModel::new().plan(&request);
        assert_eq!(COMPILED.get(), prepared);
    }
}
