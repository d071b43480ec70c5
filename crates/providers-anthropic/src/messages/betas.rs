//! Determines the values of the `anthropic-beta` header that options and request fields need.
//!
//! Sources: the values that `@ai-sdk/anthropic` 3.0.138 adds, and the values in the official SDK
//! (anthropic 2.11.0). The value of a feature that is generally available has no effect.

use std::collections::BTreeSet;

use serde_json::Value;
use switchboard_domain::JsonObject;

use super::wire;
use crate::{CacheLifetime, MessagesOptions, ServerTool};

/// Pairs of a server tool's type and the value of the `anthropic-beta` header that this tool
/// requires.
const TOOL_BETAS: [(&str, &str); 5] = [
    ("code_execution_20250522", "code-execution-2025-05-22"),
    ("code_execution_20250825", "code-execution-2025-08-25"),
    ("web_fetch_20250910", "web-fetch-2025-09-10"),
    ("web_search_20260209", "code-execution-web-tools-2026-02-09"),
    ("web_fetch_20260209", "code-execution-web-tools-2026-02-09"),
];
/// Pairs of an additional request field and the value of the `anthropic-beta` header that this
/// field requires.
const FIELD_BETAS: [(&str, &str); 2] = [
    ("context_management", "context-management-2025-06-27"),
    ("speed", "fast-mode-2026-02-01"),
];
/// Values of the `anthropic-beta` header that the request field `container.skills` requires.
const SKILL_BETAS: [&str; 3] = [
    "code-execution-2025-08-25",
    "skills-2025-10-02",
    "files-api-2025-04-14",
];
/// Value of the `anthropic-beta` header for a cache lifetime of one hour.
const LONG_CACHE: &str = "extended-cache-ttl-2025-04-11";
/// Value of the `anthropic-beta` header that allows thinking between tool calls for a model with a
/// thinking budget.
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";

/// Returns the required values of the `anthropic-beta` header, sorted and without duplicates,
/// because prompt caches need the same header in every request. Returns an empty list if
/// [`MessagesOptions::automatic_betas`] is `false`.
///
/// `extra` contains the additional request fields that the caller set. `thinks_between_tools` is
/// whether the request allows thinking between tool calls and the model needs a beta for it.
pub(crate) fn required_betas(
    options: &MessagesOptions,
    server_tools: &[wire::ServerTool],
    extra: &JsonObject,
    thinks_between_tools: bool,
) -> Vec<String> {
    if !options.automatic_betas {
        return Vec::new();
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let declared = server_tools.iter().map(|tool| &tool.declaration);
    let extra_tools = extra.get("tools").and_then(Value::as_array);
    let extra_tools = extra_tools
        .into_iter()
        .flatten()
        .filter_map(Value::as_object);
    for tool in declared.chain(extra_tools) {
        let kind = tool.get("type").and_then(Value::as_str).unwrap_or_default();
        let known = TOOL_BETAS.iter().find(|(it, _)| *it == kind);
        names.extend(known.map(|(_, beta)| *beta));
    }
    let tools = options.server_tools.iter();
    names.extend(
        tools
            .flat_map(ServerTool::required_betas)
            .map(String::as_str),
    );
    let is_set = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let fields = FIELD_BETAS.iter().filter(|(it, _)| is_set(extra.get(*it)));
    names.extend(fields.map(|(_, beta)| *beta));
    if is_set(extra.get("container").and_then(|it| it.get("skills"))) {
        names.extend(SKILL_BETAS);
    }
    let lifetimes = options.cache.cache_lifetimes();
    if lifetimes.is_some_and(|(prefix, _)| prefix == CacheLifetime::Hour) {
        names.insert(LONG_CACHE);
    }
    if options.interleaved_thinking && thinks_between_tools {
        names.insert(INTERLEAVED_THINKING);
    }
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{CachePolicy, server_tool::RawServerTool};

    fn names(options: &MessagesOptions, extra: &Value, thinks_between_tools: bool) -> Vec<String> {
        let tools = options.server_tools.iter().map(|tool| wire::ServerTool {
            declaration: tool.to_declaration(None),
            cache_control: None,
        });
        let (tools, extra) = (tools.collect::<Vec<_>>(), extra.as_object().unwrap());
        required_betas(options, &tools, extra, thinks_between_tools)
    }

    #[test]
    fn a_plain_request_needs_no_beta() {
        let options = MessagesOptions::default();
        assert!(names(&options, &json!({"top_k": 1, "speed": null}), true).is_empty());
    }

    #[test]
    fn each_option_adds_its_betas_once() {
        let raw = RawServerTool {
            declaration: JsonObject::new(),
            betas: vec!["z-1".into()],
        };
        let declared = |kind: &str| {
            let declaration = json!({"type": kind});
            ServerTool::from_declaration(declaration.as_object().cloned().unwrap())
        };
        let mut options = MessagesOptions {
            server_tools: vec![
                declared("web_fetch_20250910"),
                declared("code_execution_20250825"),
                ServerTool::Raw(raw),
            ],
            cache: CachePolicy::Prefix {
                lifetime: CacheLifetime::Hour,
            },
            interleaved_thinking: true,
            ..MessagesOptions::default()
        };
        let extra = json!({
            "tools": [{"type": "web_search_20260209"}], "speed": "fast",
            "container": {"skills": [{"type": "anthropic"}]}, "context_management": {"edits": []},
        });
        let all = [
            "code-execution-2025-08-25",
            "code-execution-web-tools-2026-02-09",
            "context-management-2025-06-27",
            "extended-cache-ttl-2025-04-11",
            "fast-mode-2026-02-01",
            "files-api-2025-04-14",
            "interleaved-thinking-2025-05-14",
            "skills-2025-10-02",
            "web-fetch-2025-09-10",
            "z-1",
        ];
        assert_eq!(names(&options, &extra, true), all);
        assert!(!names(&options, &extra, false).contains(&all[6].to_owned()));
        options.automatic_betas = false;
        assert!(names(&options, &extra, true).is_empty());
    }
}
