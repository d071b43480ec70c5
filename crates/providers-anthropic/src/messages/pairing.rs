//! Calls of the provider's own tools and their results: the API refuses one without the other ("…
//! tool use with id … was found without a corresponding … tool result block").

use std::collections::HashSet;

use serde_json::Value;
use switchboard_domain::{ChatRequest, ModelId, Part, Role};

/// Blocks of the provider's own that have lost their counterpart: it was cut off by the output limit,
/// or trimmed away with the beginning of the conversation.
#[derive(Debug, Default)]
pub(crate) struct Unpaired<'a> {
    /// Ids of calls that no result will come for.
    calls: HashSet<&'a str>,
    /// Ids of calls that there are results of, but not the calls.
    results: HashSet<&'a str>,
}

impl<'a> Unpaired<'a> {
    /// What has lost its counterpart in a conversation with `model`.
    ///
    /// A call without a result may still get it as long as the person has not spoken since: the turn
    /// paused, or the provider's code waits for results of the request's tools.
    pub(crate) fn of(request: &'a ChatRequest, model: &ModelId) -> Self {
        // Calls of this turn, and of the turns before it.
        let (mut waiting, mut lost) = (HashSet::new(), HashSet::new());
        let mut results = HashSet::new();
        for message in &request.messages {
            let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
            if message.role == Role::User && !message.parts.iter().all(is_result) {
                lost.extend(waiting.drain());
            }
            for part in &message.parts {
                let Part::Opaque(opaque) = part else {
                    continue;
                };
                let Some(block) = opaque.provider_state.for_model(model) else {
                    continue;
                };
                if let Some(id) = call(block) {
                    waiting.insert(id);
                } else if let Some(id) = result(block)
                    && !waiting.remove(id)
                    && !lost.remove(id)
                {
                    results.insert(id);
                }
            }
        }
        Self {
            calls: lost,
            results,
        }
    }

    /// Whether a block has lost its counterpart.
    pub(crate) fn contains(&self, block: &Value) -> bool {
        match (call(block), result(block)) {
            (Some(id), _) => self.calls.contains(id),
            (None, Some(id)) => self.results.contains(id),
            (None, None) => false,
        }
    }
}

/// The id of a call of the provider's own tools: `server_tool_use`, `mcp_tool_use`.
fn call(block: &Value) -> Option<&str> {
    let kind = block.get("type")?.as_str()?;
    kind.ends_with("_tool_use")
        .then(|| block.get("id")?.as_str())
        .flatten()
}

/// The id of the call that a block is the result of.
fn result(block: &Value) -> Option<&str> {
    block.get("tool_use_id")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_domain::{Message, Opaque, ProviderState, ToolResult};

    use super::*;

    fn model() -> ModelId {
        ModelId::new("anthropic", "claude-opus-5-5")
    }

    fn block(provider: &str, data: Value) -> Part {
        Part::Opaque(Opaque {
            kind: "x".into(),
            text: None,
            provider_state: ProviderState {
                provider: provider.into(),
                model: None,
                data,
            },
        })
    }

    fn search(id: &str) -> Value {
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
    }

    fn found(id: &str) -> Value {
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
    }

    fn said(blocks: &[Value]) -> Message {
        let parts = blocks.iter().map(|it| block("anthropic", it.clone()));
        Message::new(Role::Assistant, parts)
    }

    /// Which of `search` and `found` under this id are unpaired.
    fn unpaired(messages: Vec<Message>, id: &str) -> (bool, bool) {
        let request = ChatRequest::new(messages);
        let model = model();
        let unpaired = Unpaired::of(&request, &model);
        (
            unpaired.contains(&search(id)),
            unpaired.contains(&found(id)),
        )
    }

    #[test]
    fn a_pair_is_whole_also_over_several_messages() {
        let together = vec![Message::user("?"), said(&[search("s"), found("s")])];
        assert_eq!(unpaired(together, "s"), (false, false));
        let results = Message::tool_results([ToolResult::text("t", "f", "x")]);
        let apart = vec![
            Message::user("?"),
            said(&[search("s")]),
            results,
            said(&[found("s")]),
            Message::user("And now?"),
        ];
        assert_eq!(unpaired(apart, "s"), (false, false));
    }

    #[test]
    fn a_call_waits_until_the_person_speaks() {
        let paused = vec![Message::user("?"), said(&[search("s")])];
        assert_eq!(unpaired(paused.clone(), "s"), (false, false));
        let over = [paused, vec![Message::user("Never mind.")]].concat();
        assert_eq!(unpaired(over, "s"), (true, false));
    }

    #[test]
    fn a_result_whose_call_was_trimmed_is_unpaired() {
        let trimmed = vec![Message::user("?"), said(&[found("s")])];
        assert_eq!(unpaired(trimmed, "s"), (false, true));
        // What another provider minted is sent as text anyway.
        let foreign = Message::new(Role::Assistant, [block("acme", found("s"))]);
        assert_eq!(unpaired(vec![foreign], "s"), (false, false));
    }
}
