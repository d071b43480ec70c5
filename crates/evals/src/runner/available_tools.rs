//! Collects the tools that exist during a conversation.

use std::collections::HashSet;

use switchboard_orchestration::{Agent, RunReport};

use crate::{
    scoring::{CallOutcome, call_outcome},
    suite::{ToolNames, Turn},
};

/// All tools that existed at any time during a conversation, even if the recipe hides them.
#[derive(Default)]
pub(super) struct AvailableTools {
    tools: ToolNames,
}

impl AvailableTools {
    /// Adds the tools that exist now and the tools that the run has called.
    pub(super) async fn add_current_tools(&mut self, agent: &Agent, report: &RunReport) {
        if let Some(host) = agent.tool_host() {
            let tools = host.list_tools().await.tools;
            self.tools
                .extend(tools.iter().map(|tool| match &tool.origin {
                    Some(origin) => (Some(origin.server.clone()), origin.tool.clone()),
                    None => (None, tool.name.clone()),
                }));
        }
        // A server may have removed a tool after the model called it, so the called tools are added
        // too.
        let calls = report.tool_calls.iter();
        let calls = calls.filter(|call| call_outcome(call) != CallOutcome::Hallucinated);
        let called = calls.map(|call| (call.server.clone(), call.tool.clone()));
        self.tools.extend(called);
    }

    /// Returns one sentence for each required call and each forbidden pattern of a turn that
    /// matches no existing tool. This is probably a mistake in the suite.
    pub(super) fn describe_missing_tools(&self, turn: &Turn) -> Vec<String> {
        let missing = turn.find_missing_tools(&self.tools).into_iter();
        let sentences = missing.map(|(field, problem)| {
            if field.starts_with("forbidden") {
                format!("{problem}: no `tool` or `server/tool` matches")
            } else {
                problem
            }
        });
        let mut sentences: Vec<String> = sentences.collect();
        let mut unique = HashSet::new();
        sentences.retain(|sentence| unique.insert(sentence.clone()));
        sentences
    }
}
