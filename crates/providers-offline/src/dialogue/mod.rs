//! One conversation, and what to do next in it.
//!
//! Nothing is kept between requests. What the last question means is worked out from the messages
//! each time, in the same way at every step of its turn, so that the steps add up: first the calls
//! whose results are needed, then the calls themselves, then the answer.

mod files;
mod goal;
mod known;
mod supply;

use std::sync::Arc;

use jiff::civil::Date;
use serde_json::Value;
use switchboard_domain::{ChatRequest, JsonObject, ToolChoice};
use unicode_segmentation::UnicodeSegmentation;

use crate::{
    answer,
    catalog::Tool,
    extract::Reading,
    history::{Call, History},
    plan::{Ask, Plan, PlannedCall},
    rank::Index,
    schema::Param,
    validate::fits,
    wording::{self, Opening},
};
use goal::{Goal, Target};
use supply::Supply;

/// Calls for one question. More is a sign that something goes round in a circle.
const MAX_CALLS: usize = 16;
/// Values of one parameter that are looked at.
const MAX_VALUES: usize = 1000;

/// Words of one message that are read, and its bytes.
///
/// Everything in a message is held against every tool, so a long one takes long. What is longer is
/// declined: of a message that was read to a part, arguments would be cut off.
const MAX_WORDS: usize = 5000;
const MAX_BYTES: usize = 64 * 1024;

/// A conversation with its tools.
pub(crate) struct Dialogue {
    /// Its tools, read and indexed.
    index: Arc<Index>,
    /// Tools that the choice leaves, by their place.
    allowed: Vec<usize>,
    /// Tools may be called at all.
    may_call: bool,
    /// A tool must be called, whichever fits best.
    must_call: bool,
    one_at_a_time: bool,
    messages: usize,
    history: History,
    today: Date,
}

/// The place in the conversation for which a decision is made: after `asked`, with the messages up
/// to but without `until`.
#[derive(Debug, Clone, Copy)]
struct Moment {
    asked: usize,
    until: usize,
    /// Questions of the planner that were understood to come here.
    depth: usize,
}

/// A decision with what is needed to take it up again.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Call(Vec<(String, JsonObject)>),
    Ask(Pending, String),
    Answer(String),
    Decline(String),
}

/// What the planner asked for.
#[derive(Debug, Clone, PartialEq)]
struct Pending {
    /// The tool that waits, by its place.
    tool: usize,
    /// What is known of its input.
    input: JsonObject,
    /// The parameters it waits for.
    params: Vec<String>,
    /// What the person said to come here.
    said: String,
}

impl Dialogue {
    /// Reads a request on a day. The index is that of its tools.
    pub(crate) fn new(request: &ChatRequest, index: Arc<Index>, today: Date) -> Self {
        let tools = &index.tools;
        let allowed = (0..tools.len()).filter(|&i| match &request.tool_choice {
            ToolChoice::Only(names) => tools
                .get(i)
                .is_some_and(|tool| names.iter().any(|name| name == tool.id())),
            _ => true,
        });
        Self {
            allowed: allowed.collect(),
            may_call: request.tool_choice != ToolChoice::None,
            must_call: matches!(
                request.tool_choice,
                ToolChoice::Required | ToolChoice::Only(_)
            ),
            one_at_a_time: request.parallel_tool_use == Some(false),
            messages: request.messages.len(),
            history: History::new(&request.messages),
            index,
            today,
        }
    }

    /// What to do next.
    pub(crate) fn plan(&self) -> Plan {
        match self.step(self.messages, 0) {
            Step::Call(calls) => Plan::Call(self.with_ids(calls)),
            Step::Ask(pending, text) => Plan::Ask(Ask {
                text,
                tool: self
                    .index
                    .tools
                    .get(pending.tool)
                    .map(|tool| tool.id().to_owned())
                    .unwrap_or_default(),
                missing: pending.params,
            }),
            Step::Answer(text) => Plan::Answer { text },
            Step::Decline(text) => Plan::Decline { text },
        }
    }

    fn with_ids(&self, calls: Vec<(String, JsonObject)>) -> Vec<PlannedCall> {
        let mut number = self.history.ids.len();
        calls
            .into_iter()
            .map(|(name, input)| {
                let mut fresh = || {
                    number += 1;
                    format!("call_{number}")
                };
                let mut id = fresh();
                while self.history.ids.contains(&id) {
                    id = fresh();
                }
                PlannedCall { id, name, input }
            })
            .collect()
    }

    /// The decision after the messages before `until`.
    fn step(&self, until: usize, depth: usize) -> Step {
        let Some((asked, text)) = self.history.asked.iter().rev().find(|(at, _)| *at < until)
        else {
            let order: Vec<usize> = (0..self.index.tools.len()).collect();
            return Step::Decline(wording::introduction(
                &self.index.tools,
                &order,
                Opening::Help,
            ));
        };
        let moment = Moment {
            asked: *asked,
            until,
            depth,
        };
        if is_too_long(text) {
            return Step::Decline(wording::too_long(MAX_WORDS, MAX_BYTES));
        }
        let reading = Reading::new(text, self.today);
        let index = &*self.index;
        match self.goal(&reading, index, moment) {
            Goal::Use(targets) => self.pursue(&targets, moment),
            Goal::Known(text) => Step::Answer(text),
            Goal::Cancelled => Step::Answer("All right, nothing was called.".to_owned()),
            Goal::SpokenOf(tool) => Step::Decline(wording::spoken_of(self.index.tools.get(tool))),
            Goal::Nothing { order, opening } => {
                Step::Decline(wording::introduction(&self.index.tools, &order, opening))
            }
        }
    }

    /// The calls of the turn so far.
    fn turn(&self, moment: Moment) -> Vec<&Call> {
        self.history.calls_between(moment.asked, moment.until)
    }

    /// All that a question wants: calls if any can be made, else what must be asked, else answers.
    fn pursue(&self, targets: &[Target], moment: Moment) -> Step {
        let mut calls: Vec<(String, JsonObject)> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        let mut pending = None;
        let mut declined = false;
        for target in targets {
            // What is not said may be in the results of what comes first.
            if !calls.is_empty() && !target.filling.missing.is_empty() {
                break;
            }
            match self.advance(target, moment) {
                Step::Call(more) => {
                    for call in more {
                        if !calls.contains(&call) {
                            calls.push(call);
                        }
                    }
                }
                Step::Ask(asked, text) => {
                    texts.push(text);
                    pending.get_or_insert(asked);
                }
                Step::Answer(text) => texts.push(text),
                Step::Decline(text) => {
                    declined = true;
                    texts.push(text);
                }
            }
        }
        calls.truncate(if self.one_at_a_time { 1 } else { MAX_CALLS });
        let text = texts.join("\n");
        match pending {
            _ if !calls.is_empty() => Step::Call(calls),
            Some(pending) => Step::Ask(pending, text),
            None if declined => Step::Decline(text),
            None => Step::Answer(text),
        }
    }

    /// The next step for one thing that is wanted.
    fn advance(&self, target: &Target, moment: Moment) -> Step {
        let Some(tool) = self.index.tools.get(target.tool) else {
            return Step::Decline(wording::introduction(
                &self.index.tools,
                &[],
                Opening::NothingFits,
            ));
        };
        if let Some(refusal) = target.filling.refused.first() {
            let waits: Vec<String> = target
                .filling
                .refused
                .iter()
                .map(|refusal| refusal.param.clone())
                .chain(target.filling.missing.iter().cloned())
                .collect();
            return match tool.param(&refusal.param) {
                Some(param) => Self::ask(target, waits, wording::ask_again(tool, param, refusal)),
                None => Step::Decline(wording::cannot_fill(tool)),
            };
        }
        if !target.filling.left_over.is_empty() {
            return Step::Decline(wording::left_over(tool, &target.filling.left_over));
        }
        let mut inputs = target.filling.inputs();
        let mut missing: Vec<&Param> = Vec::new();
        let wanted = target
            .filling
            .missing
            .iter()
            .filter_map(|name| tool.param(name));
        for param in wanted {
            match self.supply(target, tool, param, moment) {
                Supply::Values(values) => inputs = expand(&inputs, &param.name, &values),
                Supply::Call(name, input) if self.may_call => {
                    return Step::Call(vec![(name, input)]);
                }
                Supply::Call(..) => return Step::Decline(wording::not_allowed(tool)),
                Supply::Ask(text) => return Self::ask(target, vec![param.name.clone()], text),
                Supply::Failed(text) => return Step::Answer(text),
                Supply::Nothing => missing.push(param),
            }
        }
        if !missing.is_empty() {
            let names = missing.iter().map(|param| param.name.clone()).collect();
            let text = wording::ask_for(tool, &missing, target.again);
            return Self::ask(target, names, text);
        }
        let inputs: Vec<JsonObject> = inputs
            .iter()
            .map(|input| goal::in_order(tool, input))
            .collect();
        self.call_or_answer(target, tool, &inputs, moment)
    }

    fn call_or_answer(
        &self,
        target: &Target,
        tool: &Tool,
        inputs: &[JsonObject],
        moment: Moment,
    ) -> Step {
        let schema = &tool.definition.input_schema;
        if !inputs
            .iter()
            .all(|input| fits(&Value::Object(input.clone()), schema, schema))
        {
            return Step::Decline(wording::cannot_fill(tool));
        }
        let turn = self.turn(moment);
        let is_call =
            |call: &Call, input: &JsonObject| call.name == tool.id() && call.input == *input;
        let mut open: Vec<&JsonObject> = Vec::new();
        for input in inputs.iter().take(MAX_CALLS) {
            if !open.contains(&input) && !turn.iter().any(|call| is_call(call, input)) {
                open.push(input);
            }
        }
        if !open.is_empty() && turn.len() < 2 * MAX_CALLS {
            let calls = open
                .into_iter()
                .map(|input| (tool.id().to_owned(), input.clone()));
            return if self.may_call {
                Step::Call(calls.collect())
            } else {
                Step::Decline(wording::not_allowed(tool))
            };
        }
        let made: Vec<&Call> = turn
            .iter()
            .copied()
            .filter(|call| inputs.iter().any(|input| is_call(call, input)))
            .collect();
        let said = Reading::new(&target.said, self.today);
        let mut text = answer::write(
            &said,
            tool,
            &made,
            &self.history.calls_between(0, moment.until),
        );
        let failed = |call: &&Call| call.result.as_ref().is_none_or(|result| result.is_error);
        if target.quotes && !made.iter().any(failed) {
            text.insert_str(0, wording::QUOTED);
        }
        if inputs.len() > made.len() {
            text.push_str(&wording::too_many(
                inputs.len() - made.len(),
                text.is_empty(),
            ));
        }
        Step::Answer(text)
    }

    fn ask(target: &Target, params: Vec<String>, text: String) -> Step {
        let pending = Pending {
            tool: target.tool,
            input: target.filling.input.clone(),
            params,
            said: target.said.clone(),
        };
        Step::Ask(pending, text)
    }
}

/// Whether a message is more than is read.
fn is_too_long(text: &str) -> bool {
    text.len() > MAX_BYTES || text.unicode_words().nth(MAX_WORDS).is_some()
}

/// Each input with each value.
fn expand(inputs: &[JsonObject], name: &str, values: &[Value]) -> Vec<JsonObject> {
    let with = |input: &JsonObject, value: &Value| {
        let mut input = input.clone();
        input.insert(name.to_owned(), value.clone());
        input
    };
    inputs
        .iter()
        .flat_map(|input| values.iter().map(move |value| with(input, value)))
        .take(MAX_VALUES)
        .collect()
}
