//! Which names of `anthropic-beta` an option or a field of the request needs: one table.
//!
//! Facts: what `@ai-sdk/anthropic` 3.0.138 adds by itself, and the names that the official SDK
//! (anthropic 2.11.0) knows. A feature that has left its beta needs none; its name does no harm.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;
use switchboard_domain::JsonObject;

use crate::{CacheLifetime, MessagesOptions, ServerTool};

/// By the type of a tool that is declared.
const OF_TOOLS: [(&str, &str); 5] = [
    ("code_execution_20250522", "code-execution-2025-05-22"),
    ("code_execution_20250825", "code-execution-2025-08-25"),
    ("web_fetch_20250910", "web-fetch-2025-09-10"),
    ("web_search_20260209", "code-execution-web-tools-2026-02-09"),
    ("web_fetch_20260209", "code-execution-web-tools-2026-02-09"),
];
/// By a field of the body that the caller added.
const OF_FIELDS: [(&str, &str); 2] = [
    ("context_management", "context-management-2025-06-27"),
    ("speed", "fast-mode-2026-02-01"),
];
/// `container.skills`.
const OF_SKILLS: [&str; 3] = [
    "code-execution-2025-08-25",
    "skills-2025-10-02",
    "files-api-2025-04-14",
];
/// Entries that live for an hour.
const LONG_CACHE: &str = "extended-cache-ttl-2025-04-11";
/// Thinking between calls, with a budget.
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";

/// What a request needs, each name once, in the order of the alphabet: the header is part of what
/// must be the same for a prompt cache to be hit.
pub(crate) fn needed<'a>(
    options: &'a MessagesOptions,
    declared: impl Iterator<Item = &'a JsonObject>,
    extra: &'a JsonObject,
    interleaves: bool,
) -> Vec<Cow<'a, str>> {
    if !options.automatic_betas {
        return Vec::new();
    }
    let mut names: BTreeSet<Cow<'a, str>> = BTreeSet::new();
    let in_extra = extra.get("tools").and_then(Value::as_array);
    let in_extra = in_extra.into_iter().flatten().filter_map(Value::as_object);
    for tool in declared.chain(in_extra) {
        let kind = tool.get("type").and_then(Value::as_str).unwrap_or_default();
        let known = OF_TOOLS.iter().find(|(it, _)| *it == kind);
        names.extend(known.map(|(_, beta)| Cow::Borrowed(*beta)));
    }
    for tool in &options.server_tools {
        if let ServerTool::Raw(raw) = tool {
            names.extend(raw.betas.iter().map(|it| Cow::Borrowed(it.as_str())));
        }
    }
    for (_, beta) in OF_FIELDS.iter().filter(|(it, _)| says(extra.get(*it))) {
        names.insert(Cow::Borrowed(beta));
    }
    if says(extra.get("container").and_then(|it| it.get("skills"))) {
        names.extend(OF_SKILLS.map(Cow::Borrowed));
    }
    let lifetimes = options.cache.lifetimes();
    if lifetimes.is_some_and(|(prefix, _)| prefix == CacheLifetime::Hour) {
        names.insert(Cow::Borrowed(LONG_CACHE));
    }
    if options.interleaved_thinking && interleaves {
        names.insert(Cow::Borrowed(INTERLEAVED_THINKING));
    }
    names.into_iter().collect()
}

fn says(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{CachePolicy, server_tool::RawServerTool};

    fn names(options: &MessagesOptions, extra: &Value, interleaves: bool) -> Vec<String> {
        let extra = extra.as_object().unwrap();
        let declared: Vec<JsonObject> = options
            .server_tools
            .iter()
            .map(|it| it.declaration(None))
            .collect();
        let names = needed(options, declared.iter(), extra, interleaves);
        names.into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn nothing_is_added_without_need() {
        let options = MessagesOptions::default();
        assert!(names(&options, &json!({"top_k": 1, "speed": null}), true).is_empty());
    }

    #[test]
    fn each_option_brings_what_it_needs_once() {
        let raw = RawServerTool {
            declaration: JsonObject::new(),
            betas: vec!["z-1".into()],
        };
        let mut options = MessagesOptions {
            server_tools: vec![
                ServerTool::web_fetch(),
                ServerTool::code_execution(),
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
