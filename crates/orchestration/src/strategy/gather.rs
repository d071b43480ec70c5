//! The gather phase: the model calls tools and does not answer yet.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_domain::ToolDefinition;

pub use super::repeats::{CallVerdict, GatherCall};
use super::{GatherFormat, marker, prompt, repeats::RepeatedCalls};

/// Returns the system prompt of the gather phase: `instructions` of the recipe or the user, the
/// rules of the phase, and descriptions of up to [`GatherFormat::described_tools`] tools. The text
/// changes only with the tools, so that prompt caches apply.
pub fn system_prompt(
    settings: &GatherFormat,
    instructions: Option<&str>,
    tools: &[Arc<ToolDefinition>],
) -> String {
    prompt::gather(settings, instructions, tools)
}

/// The state of the gather phase. Part of the stored run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatherState {
    max_steps: u32,
    review: bool,
    steps: u32,
    /// Whether the last model call was a review ([`GatherFormat::review`]).
    reviewing: bool,
    calls: RepeatedCalls,
}

/// The decision after a response of the gather phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherDecision {
    /// One verdict for each call, in order. They apply before `next`, because every call needs a
    /// result.
    pub calls: Vec<CallVerdict>,
    /// The continuation of the run.
    pub next: AfterGather,
}

/// The continuation after the calls of a response have results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterGather {
    /// The model is called again in this phase.
    Think {
        /// The reason after `NEED MORE DATA:`.
        reason: Option<String>,
        /// A user message for the end of the request, if the response had no calls. Otherwise the
        /// conversation would end with a message of the model.
        nudge: Option<String>,
    },
    /// The formatting phase starts.
    Format {
        /// The reason.
        because: GatherEnd,
    },
}

/// The reason for the end of the gather phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GatherEnd {
    /// The model called tools and did not request more data.
    Stopped,
    /// The model called no tool.
    NoCalls,
    /// [`GatherFormat::max_thinking_steps`] was reached.
    StepLimit,
    /// The model repeated a call that it had repeated before.
    Repeated,
}

impl fmt::Display for GatherEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "the model did not ask for more data",
            Self::NoCalls => "the model called no tool",
            Self::StepLimit => "the limit of thinking steps was reached",
            Self::Repeated => "the model kept repeating a call",
        })
    }
}

const NUDGE: &str = "Go on: call the tools that give you the data you still need.";

impl GatherState {
    /// Creates the state at the start of the phase.
    pub fn new(settings: &GatherFormat) -> Self {
        Self {
            max_steps: settings.max_thinking_steps,
            review: settings.review,
            steps: 0,
            reviewing: false,
            calls: RepeatedCalls::default(),
        }
    }

    /// Returns the number of responses.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns the decision after a response with this text (without reasoning) and these calls.
    ///
    /// By default the phase ends after a tool call. It continues if the text requests it with
    /// `NEED MORE DATA:`, up to [`GatherFormat::max_thinking_steps`] responses, and unless the model
    /// repeats a call twice.
    pub fn after_answer(&mut self, text: &str, calls: &[GatherCall<'_>]) -> GatherDecision {
        self.steps = self.steps.saturating_add(1);
        let (verdicts, is_looping) = self.calls.check(calls);
        let next = self.next(marker::reason(text), calls.is_empty(), is_looping);
        self.reviewing = matches!(next, AfterGather::Think { reason: None, .. });
        GatherDecision {
            calls: verdicts,
            next,
        }
    }

    /// Forgets a call that did not run, for example because of a limit. The model may make it again.
    pub fn forget(&mut self, id: &str) {
        self.calls.forget(id);
    }

    fn next(&self, reason: Option<&str>, no_calls: bool, is_looping: bool) -> AfterGather {
        let because = if is_looping {
            GatherEnd::Repeated
        } else if reason.is_none() && no_calls {
            GatherEnd::NoCalls
        } else if reason.is_none() && (!self.review || self.reviewing) {
            GatherEnd::Stopped
        } else if self.steps >= self.max_steps {
            GatherEnd::StepLimit
        } else {
            return AfterGather::Think {
                reason: reason.map(str::to_owned),
                nudge: no_calls.then(|| NUDGE.to_owned()),
            };
        };
        AfterGather::Format { because }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call<'a>(id: &'a str, input: &'a str) -> GatherCall<'a> {
        GatherCall {
            id,
            name: "find",
            input,
        }
    }

    fn format(because: GatherEnd) -> AfterGather {
        AfterGather::Format { because }
    }

    fn think(reason: &str) -> AfterGather {
        AfterGather::Think {
            reason: Some(reason.to_owned()),
            nudge: None,
        }
    }

    fn state() -> GatherState {
        GatherState::new(&GatherFormat::default())
    }

    #[test]
    fn a_request_for_more_data_without_a_call_gets_a_nudge() {
        let decision = state().after_answer("NEED MORE DATA: the id", &[]);
        assert_eq!(
            decision.next,
            AfterGather::Think {
                reason: Some("the id".into()),
                nudge: Some(NUDGE.into()),
            }
        );
    }

    #[test]
    fn a_response_without_calls_ends_the_phase() {
        let decision = state().after_answer("Nothing to gather.", &[]);
        assert_eq!(decision.next, format(GatherEnd::NoCalls));
    }

    #[test]
    fn a_review_calls_the_model_once_more() {
        let mut state = GatherState::new(&GatherFormat {
            review: true,
            ..GatherFormat::default()
        });
        let again = AfterGather::Think {
            reason: None,
            nudge: None,
        };
        assert_eq!(state.after_answer("", &[call("1", "a")]).next, again);
        assert_eq!(
            state.after_answer("", &[call("2", "b")]).next,
            format(GatherEnd::Stopped)
        );
        // A request for more data allows another review.
        let mut state = GatherState {
            steps: 0,
            reviewing: true,
            ..state
        };
        let more = state.after_answer("NEED MORE DATA: x", &[call("3", "c")]);
        assert_eq!(more.next, think("x"));
        assert_eq!(state.after_answer("", &[call("4", "d")]).next, again);
        assert_eq!(
            state.after_answer("That is all.", &[]).next,
            format(GatherEnd::NoCalls)
        );
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
                let decision = state.after_answer(text, &calls);
                prop_assert_eq!(&resumed.after_answer(text, &calls), &decision);
                prop_assert_eq!(decision.calls.len(), calls.len());
                if let AfterGather::Format { .. } = decision.next {
                    break;
                }
            }
            prop_assert!(calls_made <= max_thinking_steps.max(1));
        }
    }
}
