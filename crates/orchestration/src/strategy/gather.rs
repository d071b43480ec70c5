//! The gather phase: the model picks tools freely and does not answer yet.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_domain::ToolDefinition;

pub use super::repeats::{CallVerdict, GatherCall};
use super::{GatherFormat, marker, prompt, repeats::RepeatedCalls};

/// The system prompt of the gather phase: `instructions` (a recipe's or the user's own) first, then
/// the rules of the phase and the tools, described up to [`GatherFormat::described_tools`]. The text
/// is the same at each step as long as the tools are, which prompt caches need.
pub fn system_prompt(
    settings: &GatherFormat,
    instructions: Option<&str>,
    tools: &[Arc<ToolDefinition>],
) -> String {
    prompt::gather(settings, instructions, tools)
}

/// Where the gather phase is. Part of the run, and stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatherState {
    max_steps: u32,
    review: bool,
    steps: u32,
    /// The model is being asked once more though it did not say that it needs more.
    reviewing: bool,
    calls: RepeatedCalls,
}

/// What to do after an answer of the gather phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherDecision {
    /// One verdict for each call, in order. These are dealt with first, whatever comes next: every
    /// call needs its result.
    pub calls: Vec<CallVerdict>,
    /// What comes then.
    pub next: AfterGather,
}

/// What comes after the calls of an answer have their results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterGather {
    /// The model is asked again.
    Think {
        /// Why it wants to go on, in its own words.
        reason: Option<String>,
        /// A message of the user to put at the end: the answer had no calls, so that without it the
        /// conversation would end with the model's own words.
        nudge: Option<String>,
    },
    /// The answer is written.
    Format {
        /// Why.
        because: GatherEnd,
    },
}

/// Why the gather phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GatherEnd {
    /// The model called tools and did not say that it needs more.
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
            Self::Repeated => "the model went on repeating a call",
        })
    }
}

const NUDGE: &str = "Go on: call the tools that give you the data you still need.";

impl GatherState {
    /// A phase that begins.
    pub fn new(settings: &GatherFormat) -> Self {
        Self {
            max_steps: settings.max_thinking_steps,
            review: settings.review,
            steps: 0,
            reviewing: false,
            calls: RepeatedCalls::default(),
        }
    }

    /// Answers so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Takes in an answer: its text (reasoning is not text) and its calls, in order.
    ///
    /// The phase ends after a tool call by default. It goes on only if the text asks for it with
    /// `NEED MORE DATA:`, at most [`GatherFormat::max_thinking_steps`] answers in all, and not if the
    /// model turns in circles.
    pub fn after_answer(&mut self, text: &str, calls: &[GatherCall<'_>]) -> GatherDecision {
        self.steps = self.steps.saturating_add(1);
        let (verdicts, circles) = self.calls.check(calls);
        let next = self.next(marker::reason(text), calls.is_empty(), circles);
        self.reviewing = matches!(next, AfterGather::Think { reason: None, .. });
        GatherDecision {
            calls: verdicts,
            next,
        }
    }

    /// A call did not run though it might have, such as one beyond a limit: the same call may be made
    /// again.
    pub fn forget(&mut self, id: &str) {
        self.calls.forget(id);
    }

    fn next(&self, wanted: Option<&str>, no_calls: bool, circles: bool) -> AfterGather {
        let because = if circles {
            GatherEnd::Repeated
        } else if wanted.is_none() && no_calls {
            GatherEnd::NoCalls
        } else if wanted.is_none() && (!self.review || self.reviewing) {
            GatherEnd::Stopped
        } else if self.steps >= self.max_steps {
            GatherEnd::StepLimit
        } else {
            return AfterGather::Think {
                reason: wanted.map(str::to_owned),
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
    fn it_stops_after_a_tool_call_by_default() {
        let decision = state().after_answer("I look it up.", &[call("1", "a")]);
        assert_eq!(decision.calls, [CallVerdict::Run]);
        assert_eq!(decision.next, format(GatherEnd::Stopped));
    }

    #[test]
    fn it_goes_on_where_the_model_says_that_it_needs_more_data() {
        let mut state = state();
        let text = "I look up the customer.\n**NEED MORE DATA:** then the value of its account";
        let first = state.after_answer(text, &[call("1", "a")]);
        assert_eq!(first.next, think("then the value of its account"));
        let second = state.after_answer("", &[call("2", "b")]);
        assert_eq!(second.next, format(GatherEnd::Stopped));
        assert_eq!(state.steps(), 2);
    }

    #[test]
    fn asking_for_more_without_a_call_is_answered() {
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
    fn an_answer_without_a_call_ends_the_phase() {
        let decision = state().after_answer("Nothing to gather.", &[]);
        assert_eq!(decision.next, format(GatherEnd::NoCalls));
    }

    #[test]
    fn five_steps_are_all() {
        let mut state = state();
        for n in 1..5 {
            let id = n.to_string();
            let decision = state.after_answer("NEED MORE DATA: x", &[call(&id, &id)]);
            assert_eq!(decision.next, think("x"), "step {n}");
        }
        let last = state.after_answer("NEED MORE DATA: x", &[call("5", "5")]);
        // The calls of the last step still run.
        assert_eq!(last.calls, [CallVerdict::Run]);
        assert_eq!(last.next, format(GatherEnd::StepLimit));
    }

    #[test]
    fn a_repeated_call_gets_the_earlier_result_and_a_repeat_of_it_ends_the_phase() {
        let mut state = state();
        let more = "NEED MORE DATA: x";
        state.after_answer(more, &[call("1", "a")]);
        let repeat = CallVerdict::Repeat { of: "1".into() };
        let second = state.after_answer(more, &[call("2", "a")]);
        assert_eq!(second.calls, std::slice::from_ref(&repeat));
        assert_eq!(second.next, think("x"));
        let third = state.after_answer(more, &[call("3", "a"), call("4", "b")]);
        // What is new beside it still runs.
        assert_eq!(third.calls, [repeat, CallVerdict::Run]);
        assert_eq!(third.next, format(GatherEnd::Repeated));
    }

    #[test]
    fn a_review_asks_once_more_and_no_oftener() {
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
        // Asking for more gives it another one.
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
        /// Whatever a model says, the phase ends within its steps, and storing it changes nothing.
        #[test]
        fn it_ends_within_its_steps(
            answers in proptest::collection::vec(
                (any::<bool>(), proptest::collection::vec(0..4u8, 0..3)), 12),
            max_thinking_steps in 0..7u32,
            review in any::<bool>(),
        ) {
            let settings = GatherFormat { max_thinking_steps, review, ..GatherFormat::default() };
            let mut state = GatherState::new(&settings);
            let mut asked = 0;
            for (more, inputs) in &answers {
                asked += 1;
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
            prop_assert!(asked <= max_thinking_steps.max(1));
        }
    }
}
