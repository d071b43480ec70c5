//! Detection of repeated tool calls: calls of the same tool with the same input.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use switchboard_domain::{ToolContent, ToolResult};

/// A tool call of a model response, reduced to the data that identifies repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherCall<'a> {
    /// Id of the tool use, unique within the run.
    pub id: &'a str,
    /// Text that is equal for calls of the same tool with the same input.
    pub key: String,
}

/// The distinct tool calls of a run, each with the number of its repetitions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenToolCalls {
    seen: HashMap<String, SeenCall>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SeenCall {
    id: String,
    /// Number of later model responses that contain an equal call.
    repeats: u32,
}

impl SeenToolCalls {
    /// Returns the id of the earlier equal call for each of `calls`, or `None` for a new call. Also
    /// returns whether any call was repeated for the second time. The result of the earlier call is
    /// used again, see [`copy_earlier_result`].
    ///
    /// If one response contains equal calls, the first call is new, and the others do not count as
    /// repetitions.
    pub fn find_repeated_calls(&mut self, calls: &[GatherCall<'_>]) -> (Vec<Option<String>>, bool) {
        let mut counted: HashSet<&str> = HashSet::new();
        let mut is_looping = false;
        let mut earlier = Vec::with_capacity(calls.len());
        for GatherCall { id, key } in calls {
            let is_first_in_response = counted.insert(key);
            let Some(seen) = self.seen.get_mut(key) else {
                let id = (*id).to_owned();
                self.seen.insert(key.clone(), SeenCall { id, repeats: 0 });
                earlier.push(None);
                continue;
            };
            if is_first_in_response {
                seen.repeats = seen.repeats.saturating_add(1);
                is_looping |= seen.repeats > 1;
            }
            earlier.push(Some(seen.id.clone()));
        }
        (earlier, is_looping)
    }

    /// Forgets the tool call with this id, because it did not run. The next equal call counts as
    /// new.
    pub fn forget_unexecuted_call(&mut self, id: &str) {
        self.seen.retain(|_, seen| seen.id != id);
    }
}

/// Note that the model reads above the copied result of a repeated call.
pub const NOTE: &str = "This call was made before with the same input, so it was not run again; \
    the earlier result follows. Use it, or make a different call.";

/// Copies the result of an earlier call for the tool use `id`, with [`NOTE`] above the content.
#[must_use]
pub fn copy_earlier_result(earlier: &ToolResult, id: &str) -> ToolResult {
    let note = ToolContent::text(NOTE);
    // If the earlier result is a copy too, its note is removed, so that only one note remains.
    let content = earlier.content.iter().filter(|content| **content != note);
    let content = std::iter::once(&note).chain(content).cloned();
    ToolResult {
        tool_use_id: id.to_owned(),
        name: earlier.name.clone(),
        content: content.collect(),
        structured: earlier.structured.clone(),
        is_error: earlier.is_error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_earlier_result_comes_with_one_note() {
        let mut earlier = ToolResult::from_error_message("1", "find", "no such id");
        earlier.structured = Some(serde_json::json!({"found": false}).into());
        let again = copy_earlier_result(&earlier, "2");
        assert_eq!(again.tool_use_id, "2");
        assert!(again.is_error && again.structured == earlier.structured);
        assert_eq!(again.as_text(), format!("{NOTE}\nno such id"));
        assert_eq!(copy_earlier_result(&again, "3").content, again.content);
    }

    proptest! {
        /// No call runs twice, also through storage.
        #[test]
        fn no_call_runs_twice(answers in proptest::collection::vec(
            proptest::collection::vec((0..3u8, 0..3u8), 0..4), 0..8)) {
            let mut calls = SeenToolCalls::default();
            let mut ran = Vec::new();
            let mut next_id = 0;
            for answer in answers {
                let texts: Vec<_> = answer
                    .iter()
                    .map(|(name, input)| {
                        next_id += 1;
                        (next_id.to_string(), name.to_string(), input.to_string())
                    })
                    .collect();
                let given: Vec<_> = texts
                    .iter()
                    .map(|(id, name, input)| GatherCall { id, key: format!("{name}/{input}") })
                    .collect();
                let (earlier, _) = calls.find_repeated_calls(&given);
                prop_assert_eq!(earlier.len(), given.len());
                for (call, of) in given.iter().zip(earlier) {
                    match of {
                        None => {
                            prop_assert!(!ran.iter().any(|(_, made)| *made == call.key));
                            ran.push((call.id.to_owned(), call.key.clone()));
                        }
                        Some(of) => prop_assert!(ran.contains(&(of, call.key.clone()))),
                    }
                }
                let stored = serde_json::to_string(&calls).unwrap();
                prop_assert_eq!(serde_json::from_str::<SeenToolCalls>(&stored).unwrap(), calls.clone());
            }
        }
    }
}
