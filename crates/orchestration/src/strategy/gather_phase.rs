//! The gathering phase of a run: the model calls tools to gather data and does not answer yet.

use serde::{Deserialize, Serialize};

use super::{GatherFormat, more_data_marker, repeated_calls::SeenToolCalls};
pub use super::{prompt::system_prompt, repeated_calls::GatherCall};

/// State of the gathering phase, during which the model only collects data with tools. The state is
/// stored with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatherState {
    max_steps: u32,
    review: bool,
    steps: u32,
    /// Whether the next model call is a review (see [`GatherFormat::review`]). A review is not
    /// followed directly by another review.
    reviewing: bool,
    calls: SeenToolCalls,
    /// Reason for the end of the phase, if it ends after the last response.
    #[serde(default)]
    end: GatheringEnd,
}

/// The reason why the gathering phase of a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GatheringEnd {
    /// The model requested no further data.
    #[default]
    Stopped,
    /// The model repeated a tool call for the second time.
    RepeatedCalls,
    /// The phase reached [`GatherFormat::max_thinking_steps`].
    ThinkingSteps,
    /// The run reached its limit of model calls or of tool calls.
    Limit,
}

/// Result of [`GatherState::decide_after_response`] for one model response: which of its tool calls
/// are repetitions, and how the run continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherDecision {
    /// For each tool call of the response, in order: the id of the earlier equal call, or `None`
    /// for a new call.
    pub repeats: Vec<Option<String>>,
    /// Next action of the run, after the tool calls of the response have results.
    pub next: GatherContinuation,
}

/// The next action of a run in the gathering phase, after the tool calls of a response have
/// results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatherContinuation {
    /// The model is called again, and the gathering phase continues.
    Think {
        /// User message at the end of the next request, which would otherwise end with an assistant
        /// message. `None` if the response had tool calls, because their results are at the end.
        nudge: Option<String>,
    },
    /// The gathering phase ends, and the formatting phase starts.
    Format,
}

const NUDGE: &str = "Continue: call the tools for the missing data.";

impl GatherState {
    /// Creates the state of a gathering phase that has not started.
    pub fn new(settings: &GatherFormat) -> Self {
        Self {
            max_steps: settings.max_thinking_steps,
            review: settings.review,
            steps: 0,
            reviewing: false,
            calls: SeenToolCalls::default(),
            end: GatheringEnd::Stopped,
        }
    }

    /// Returns the reason for the end of the phase. It is valid if the last decision was
    /// [`GatherContinuation::Format`].
    pub fn end_reason(&self) -> GatheringEnd {
        self.end
    }

    /// Decides how the run continues after a response. `text` is the text of the response without
    /// reasoning, and `calls` are its tool calls.
    ///
    /// By default, the gathering phase ends after this response. It continues if a line of `text`
    /// starts with `NEED MORE DATA:`, or if [`GatherFormat::review`] requires a review. It always
    /// ends after [`GatherFormat::max_thinking_steps`] responses, or when the model repeats a call
    /// for the second time.
    pub fn decide_after_response(
        &mut self,
        text: &str,
        calls: &[GatherCall<'_>],
    ) -> GatherDecision {
        self.steps = self.steps.saturating_add(1);
        let (repeats, is_looping) = self.calls.find_repeated_calls(calls);
        let wants_more = more_data_marker::requests_more_data(text);
        let may_review = self.review && !self.reviewing && !calls.is_empty();
        self.end = match (is_looping, wants_more || may_review) {
            (true, _) => GatheringEnd::RepeatedCalls,
            (false, true) => GatheringEnd::ThinkingSteps,
            (false, false) => GatheringEnd::Stopped,
        };
        let continues = self.end == GatheringEnd::ThinkingSteps && self.steps < self.max_steps;
        self.reviewing = continues && !wants_more;
        let next = if continues {
            let nudge = calls.is_empty().then(|| NUDGE.to_owned());
            GatherContinuation::Think { nudge }
        } else {
            GatherContinuation::Format
        };
        GatherDecision { repeats, next }
    }

    /// Forgets a tool call that did not run, for example because of a limit. The next equal call
    /// counts as new.
    pub fn forget_unexecuted_call(&mut self, id: &str) {
        self.calls.forget_unexecuted_call(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call<'a>(id: &'a str, input: &'a str) -> GatherCall<'a> {
        let key = input.to_owned();
        GatherCall { id, key }
    }

    const THINK: GatherContinuation = GatherContinuation::Think { nudge: None };

    #[test]
    fn a_request_for_more_data_without_a_call_gets_a_nudge() {
        let mut state = GatherState::new(&GatherFormat::default());
        let nudge = Some(NUDGE.into());
        assert_eq!(
            state
                .decide_after_response("NEED MORE DATA: the id", &[])
                .next,
            GatherContinuation::Think { nudge }
        );
        assert_eq!(
            state.decide_after_response("Nothing to gather.", &[]).next,
            GatherContinuation::Format
        );
    }

    #[test]
    fn a_review_calls_the_model_once_more() {
        let mut state = GatherState::new(&GatherFormat {
            review: true,
            ..GatherFormat::default()
        });
        for (text, id, next) in [
            ("", Some("1"), THINK),
            // A request for more data allows another review.
            ("NEED MORE DATA: x", Some("2"), THINK),
            ("", Some("3"), THINK),
            ("", Some("4"), GatherContinuation::Format),
            ("That is all.", None, GatherContinuation::Format),
        ] {
            let calls: Vec<_> = id.into_iter().map(|id| call(id, id)).collect();
            assert_eq!(
                state.decide_after_response(text, &calls).next,
                next,
                "{id:?}"
            );
        }
    }

    proptest! {
        /// The phase ends within its steps for any responses, also through storage.
        #[test]
        fn the_phase_ends_within_its_steps(
            answers in proptest::collection::vec(
                (any::<bool>(), proptest::collection::vec(0..4u8, 0..3)), 12),
            max_thinking_steps in 0..7u32,
            review in any::<bool>(),
        ) {
            let settings = GatherFormat { max_thinking_steps, review, ..GatherFormat::default() };
            let mut state = GatherState::new(&settings);
            let mut calls_made = 0;
            for (more, inputs) in &answers {
                calls_made += 1;
                let text = if *more { "NEED MORE DATA: x" } else { "" };
                let inputs: Vec<_> = inputs.iter().map(ToString::to_string).collect();
                let calls: Vec<_> = inputs.iter().map(|input| call("id", input)).collect();
                let stored = serde_json::to_string(&state).unwrap();
                let mut resumed: GatherState = serde_json::from_str(&stored).unwrap();
                let decision = state.decide_after_response(text, &calls);
                prop_assert_eq!(&resumed.decide_after_response(text, &calls), &decision);
                prop_assert_eq!(decision.repeats.len(), calls.len());
                if decision.next == GatherContinuation::Format {
                    break;
                }
            }
            prop_assert!(calls_made <= max_thinking_steps.max(1));
        }
    }
}
