//! Finds calls of server tools without results, and results without calls. The API refuses both: "…
//! tool use with id … was found without a corresponding … tool result block".

use std::collections::HashSet;

use serde_json::Value;
use switchboard_domain::{ChatRequest, ModelId, Part, Role};

/// Call and result blocks of server tools whose counterpart is missing. Causes: the output limit
/// truncated the answer, or the start of the conversation was removed.
#[derive(Debug, Default)]
pub(super) struct UnpairedBlocks<'a> {
    /// Ids of server tool calls without a result.
    calls: HashSet<&'a str>,
    /// Ids of server tool calls that have a result block, but whose call block is missing.
    results: HashSet<&'a str>,
}

impl<'a> UnpairedBlocks<'a> {
    /// Finds the unpaired call and result blocks in a conversation with `model`.
    ///
    /// A call without a result counts as unpaired only if a later user message has content other
    /// than tool results. Without such a message, the result may still arrive: the API may have
    /// paused the turn, or code of the model may wait for results of other tools.
    pub(super) fn find_unpaired_blocks(request: &'a ChatRequest, model: &ModelId) -> Self {
        // Ids of calls without a result: `waiting` in the current turn, `lost` in earlier turns.
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
                let Some(block) = opaque.provider_state.data_for_model(model) else {
                    continue;
                };
                if let Some(id) = call_id(block) {
                    waiting.insert(id);
                } else if let Some(id) = result_id(block)
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

    /// Returns whether `block` is a call without a result or a result without a call.
    pub(super) fn contains_block(&self, block: &Value) -> bool {
        match (call_id(block), result_id(block)) {
            (Some(id), _) => self.calls.contains(id),
            (None, Some(id)) => self.results.contains(id),
            (None, None) => false,
        }
    }
}

/// Returns the call id of a block that contains a call of a server tool (`server_tool_use`,
/// `mcp_tool_use`). Returns `None` for other blocks.
fn call_id(block: &Value) -> Option<&str> {
    let kind = block.get("type")?.as_str()?;
    kind.ends_with("_tool_use")
        .then(|| block.get("id")?.as_str())
        .flatten()
}

/// Returns the call id of a block with the result of a server tool, or `None` for other blocks.
fn result_id(block: &Value) -> Option<&str> {
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

    fn assistant(blocks: &[Value]) -> Message {
        let parts = blocks.iter().map(|it| block("anthropic", it.clone()));
        Message::new(Role::Assistant, parts)
    }

    /// Returns two flags: whether the call with this id and the result with this id are unpaired.
    fn unpaired(messages: Vec<Message>, id: &str) -> (bool, bool) {
        let request = ChatRequest::new(messages);
        let model = model();
        let unpaired = UnpairedBlocks::find_unpaired_blocks(&request, &model);
        (
            unpaired.contains_block(&search(id)),
            unpaired.contains_block(&found(id)),
        )
    }

    #[test]
    fn a_pair_may_span_several_messages() {
        let together = vec![Message::user("?"), assistant(&[search("s"), found("s")])];
        assert_eq!(unpaired(together, "s"), (false, false));
        let results = Message::from_tool_results([ToolResult::text("t", "f", "x")]);
        let apart = vec![
            Message::user("?"),
            assistant(&[search("s")]),
            results,
            assistant(&[found("s")]),
            Message::user("And now?"),
        ];
        assert_eq!(unpaired(apart, "s"), (false, false));
    }

    #[test]
    fn a_call_waits_until_the_next_user_message() {
        let paused = vec![Message::user("?"), assistant(&[search("s")])];
        assert_eq!(unpaired(paused.clone(), "s"), (false, false));
        let over = [paused, vec![Message::user("Never mind.")]].concat();
        assert_eq!(unpaired(over, "s"), (true, false));
    }

    #[test]
    fn a_result_whose_call_was_trimmed_is_unpaired() {
        let trimmed = vec![Message::user("?"), assistant(&[found("s")])];
        assert_eq!(unpaired(trimmed, "s"), (false, true));
        // Blocks of another provider are never unpaired, because they are sent as text.
        let foreign = Message::new(Role::Assistant, [block("acme", found("s"))]);
        assert_eq!(unpaired(vec![foreign], "s"), (false, false));
    }
}
