//! The tools of a conversation.

use std::collections::{BTreeSet, HashSet};

use switchboard_orchestration::{Agent, RunReport};

use crate::{
    scoring::{CallOutcome, call_outcome},
    suite::{ExpectedCall, ToolPattern, Turn, is_builtin_tool},
};

/// All tools that existed during a conversation, even if the recipe did not offer them.
#[derive(Default)]
pub(super) struct AvailableTools {
    /// Name of the server, if any, and name of each tool.
    tools: BTreeSet<(Option<String>, String)>,
}

impl AvailableTools {
    /// Adds the tools that the agent has now and the tools that the run called.
    pub(super) async fn add_current_tools(&mut self, agent: &Agent, report: &RunReport) {
        if let Some(host) = agent.tools() {
            let tools = host.tools().await.tools;
            self.tools
                .extend(tools.iter().map(|tool| match &tool.origin {
                    Some(origin) => (Some(origin.server.clone()), origin.tool.clone()),
                    None => (None, tool.name.clone()),
                }));
        }
        // A tool that the model called may no longer exist.
        let calls = report.tool_calls.iter();
        let calls = calls.filter(|call| call_outcome(call) != CallOutcome::Hallucinated);
        let called = calls.map(|call| (call.server.clone(), call.tool.clone()));
        self.tools.extend(called);
    }

    /// Returns one sentence for each required call or forbidden pattern of a turn that matches no
    /// existing tool.
    pub(super) fn describe_missing_tools(&self, turn: &Turn) -> Vec<String> {
        let mut missing = Vec::new();
        let required = turn.calls.iter().flatten().filter(|call| !call.optional);
        for call in required {
            let all: Vec<&ExpectedCall> = std::iter::once(call).chain(&call.or).collect();
            if !all.iter().any(|call| self.has(call)) {
                let names: Vec<String> = all.iter().map(|call| call.name()).collect();
                missing.push(format!("unknown tool `{}`", names.join("` or `")));
            }
        }
        // If no tools exist, forbidden patterns need not match any.
        let patterns = turn.forbidden.iter().filter(|_| !self.tools.is_empty());
        for text in patterns {
            let pattern = ToolPattern::new(text);
            let mut tools = self.tools.iter();
            let matches = tools.any(|(server, tool)| pattern.matches(server.as_deref(), tool));
            if !matches && !is_builtin_tool(&pattern) {
                missing.push(format!(
                    "`{text}` forbids nothing: no `tool` or `server/tool` matches"
                ));
            }
        }
        let mut unique = HashSet::new();
        missing.retain(|sentence| unique.insert(sentence.clone()));
        missing
    }

    fn has(&self, call: &ExpectedCall) -> bool {
        let is_tool = |(server, tool): &(Option<String>, String)| {
            *tool == call.tool && (call.server.is_none() || call.server == *server)
        };
        self.tools.iter().any(is_tool)
            || (call.server.is_none() && is_builtin_tool(&ToolPattern::new(&call.tool)))
    }
}
