//! Patterns for tool names, such as those of forbidden tools.

use std::collections::BTreeSet;

use switchboard_orchestration::tools::{
    name_pattern::NamePattern, results::READ_TOOL, search::SEARCH_TOOL,
};

use super::{ExpectedCall, Turn};

/// Existing tools as pairs of server name and tool name. The server name is `None` for tools
/// without a server.
pub(crate) type ToolNames = BTreeSet<(Option<String>, String)>;

impl Turn {
    /// Returns the required calls and the forbidden patterns of the turn that match no tool in
    /// `tools`. Each item is a field path, such as `calls[0].tool`, and the problem. For a call
    /// with alternatives, one existing tool is sufficient. If `tools` is empty, patterns are not
    /// checked.
    pub(crate) fn find_missing_tools(&self, tools: &ToolNames) -> Vec<(String, String)> {
        let exists = |call: &&ExpectedCall| {
            let is_tool = |(server, tool): &(Option<String>, String)| {
                *tool == call.tool && (call.server.is_none() || call.server == *server)
            };
            tools.iter().any(is_tool)
                || (call.server.is_none() && is_builtin_tool(&ToolPattern::new(&call.tool)))
        };
        let mut missing = Vec::new();
        let calls = self.calls.iter().flatten().enumerate();
        for (at, call) in calls.filter(|(_, call)| !call.optional) {
            let all: Vec<&ExpectedCall> = std::iter::once(call).chain(&call.or).collect();
            if !all.iter().any(exists) {
                let names: Vec<String> = all.iter().map(|call| call.expected_tool_name()).collect();
                let problem = format!("unknown tool `{}`", names.join("` or `"));
                missing.push((format!("calls[{at}].tool"), problem));
            }
        }
        let patterns = self.forbidden.iter().enumerate();
        for (at, text) in patterns.filter(|_| !tools.is_empty()) {
            let pattern = ToolPattern::new(text);
            let mut tools = tools.iter();
            if !tools.any(|(server, tool)| pattern.matches(server.as_deref(), tool))
                && !is_builtin_tool(&pattern)
            {
                missing.push((
                    format!("forbidden[{at}]"),
                    format!("`{text}` has no effect"),
                ));
            }
        }
        missing
    }
}

/// A parsed pattern of forbidden tools, see [`Turn::forbidden`](super::Turn::forbidden).
pub(crate) struct ToolPattern {
    /// The whole text as a pattern for tool names, because a tool name may contain `/`.
    tool: NamePattern,
    /// The text before the first `/` as a pattern for server names, and the text after it as a
    /// pattern for tool names. `None` if the text contains no `/`.
    both: Option<(NamePattern, NamePattern)>,
}

impl ToolPattern {
    pub(crate) fn new(text: &str) -> Self {
        let both = text.split_once('/');
        Self {
            tool: NamePattern::new(text),
            both: both.map(|(server, tool)| (NamePattern::new(server), NamePattern::new(tool))),
        }
    }

    /// Returns whether the pattern matches a tool. `server` is `None` for built-in tools.
    pub(crate) fn matches(&self, server: Option<&str>, tool: &str) -> bool {
        let by_both = self.both.as_ref().zip(server);
        self.tool.matches(tool)
            || by_both.is_some_and(|((of_server, of_tool), server)| {
                of_server.matches(server) && of_tool.matches(tool)
            })
    }

    /// Returns the reason why the text is not a valid pattern for tools, such as white space at its
    /// end. Returns `None` for a valid pattern.
    pub(super) fn pattern_problem(text: &str) -> Option<&'static str> {
        if text.trim().is_empty() {
            return Some("must not be empty; `*` matches any tool");
        }
        if text.trim() != text {
            return Some("must not start or end with white space");
        }
        let is_half = text
            .split_once('/')
            .is_some_and(|(server, tool)| server.is_empty() || tool.is_empty());
        is_half.then_some("must be `tool` or `server/tool`, with `*` for any text")
    }
}

/// Returns whether a pattern matches a built-in tool, such as tool search. Built-in tools always
/// count as existing, although no server lists them.
fn is_builtin_tool(pattern: &ToolPattern) -> bool {
    [SEARCH_TOOL, READ_TOOL]
        .iter()
        .any(|tool| pattern.matches(None, tool))
}

#[cfg(test)]
mod tests {
    use super::ToolPattern;

    #[test]
    fn wildcards_match_in_server_and_tool() {
        for (pattern, server, tool, expected) in [
            ("delete", Some("shop"), "delete", true),
            ("delete", None, "delete", true),
            ("delete", Some("shop"), "delete_all", false),
            ("Delete", Some("shop"), "delete", false),
            ("delete_*", Some("shop"), "delete_all", true),
            ("*", Some("shop"), "x", true),
            ("*", None, "x", true),
            ("shop/*", Some("shop"), "x", true),
            ("shop/*", Some("shopping"), "x", false),
            ("shop/*", None, "x", false),
            ("*/x", Some("shop"), "x", true),
            ("*/x", None, "x", false),
            ("s?op/get_*", Some("shop"), "get_one", true),
            ("shop__x", Some("shop"), "x", false),
            // Names with a slash.
            ("ns/get", Some("shop"), "ns/get", true),
            ("shop/ns/get", Some("shop"), "ns/get", true),
        ] {
            let found = ToolPattern::new(pattern).matches(server, tool);
            assert_eq!(found, expected, "{pattern} {server:?} {tool}");
        }
    }
}
