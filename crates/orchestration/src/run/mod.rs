//! The loop as a value.

mod batch;
mod transitions;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_domain::{
    ApprovalRequest, ChatRequest, FinishReason, JsonObject, Message, ModelId, Role,
    ToolAnnotations, ToolCallError, ToolChoice, ToolDefinition, ToolOrigin, ToolOutput, Usage,
    Warning,
};

use crate::{
    AnswerItem, Outcome, RunError, RunErrorKind, RunOptions, RunReport, ToolCallRecord,
    validate::Validators,
};
use batch::{CallState, PendingCall};

/// The tool loop as a serializable state machine without I/O, clock or randomness.
///
/// Ask [`Run::next_step`] what to do, do it, and hand the result to the method that the [`Step`]
/// names. Between any two of these a run can be stored and go on in another process. What happened
/// comes back from each method as event kinds, which the driver numbers and publishes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    id: String,
    model: ModelId,
    options: RunOptions,
    messages: Vec<Arc<Message>>,
    /// How many of the messages the run was given; the rest are its own.
    given: usize,
    /// The tools of the current step: a call is checked against what the model was shown.
    tools: Vec<Arc<ToolDefinition>>,
    phase: Phase,
    steps: u32,
    usage: Usage,
    finish: Option<FinishReason>,
    warnings: Vec<Warning>,
    records: Vec<ToolCallRecord>,
    error: Option<RunError>,
    /// Text of an answer that broke off and therefore is no message of the history.
    partial_answer: Option<String>,
    /// The number of the next event.
    pub(crate) next_event: u64,
    #[serde(skip)]
    validators: Validators,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// The model is to be asked.
    Model,
    /// The model was asked and has not answered.
    Asked,
    /// Tool uses of the last answer are being dealt with.
    Batch(Vec<PendingCall>),
    Done(Outcome),
}

/// What the driver must do next.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Ask the model: [`Run::begin_model_call`], then [`Run::model_answered`] or
    /// [`Run::model_failed`].
    CallModel,
    /// Ask somebody about each of these: [`Run::decided`].
    AskApproval(Vec<ApprovalRequest>),
    /// Run these tools, concurrently if wished: [`Run::tool_started`] before and
    /// [`Run::tool_finished`] after each, in any order.
    CallTools(Vec<PlannedCall>),
    /// Nothing: [`Run::report`] says how it ended.
    Done,
}

/// A tool call that may start.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall {
    /// The tool use it belongs to.
    pub id: String,
    /// The tool's name as declared.
    pub name: String,
    /// The input, checked against the tool's schema.
    pub input: JsonObject,
    /// What the tool says about itself.
    pub annotations: ToolAnnotations,
    /// The same for every attempt at this call, also in another process.
    pub idempotency_key: String,
}

/// What became of a tool call.
#[derive(Debug)]
pub struct ToolAnswer {
    /// The tool's answer, or why there is none.
    pub result: Result<ToolOutput, ToolCallError>,
    /// How often it was tried.
    pub attempts: u32,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// The run did not ask for this now: a fault of the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{method}` does not fit the run's state: {reason}")]
pub struct UnexpectedInput {
    /// The method.
    pub method: &'static str,
    /// Why not.
    pub reason: String,
}

impl Run {
    /// A run that answers the last of `messages` with `model`.
    pub fn new(
        id: impl Into<String>,
        model: ModelId,
        messages: Vec<Arc<Message>>,
        options: RunOptions,
    ) -> Self {
        Self {
            id: id.into(),
            model,
            options,
            given: messages.len(),
            messages,
            tools: Vec::new(),
            phase: Phase::Model,
            steps: 0,
            usage: Usage::default(),
            finish: None,
            warnings: Vec::new(),
            records: Vec::new(),
            error: None,
            partial_answer: None,
            next_event: 1,
            validators: Validators::default(),
        }
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The model it was made for.
    pub fn model(&self) -> &ModelId {
        &self.model
    }

    /// Its settings.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Calls of the model so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The whole conversation. After each batch of tools and at the end every tool use in it has
    /// its result, so it can be sent to any provider as it is.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The messages that the run itself added.
    pub fn new_messages(&self) -> &[Arc<Message>] {
        &self.messages[self.given.min(self.messages.len())..]
    }

    /// How the run ended; `None` while it goes on.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What to do next.
    pub fn next_step(&mut self) -> Step {
        match &self.phase {
            Phase::Model | Phase::Asked => {
                if self.steps >= self.options.limits.max_steps {
                    let times = match self.options.limits.max_steps {
                        1 => "once".to_owned(),
                        limit => format!("{limit} times"),
                    };
                    self.end_with(RunError::new(
                        RunErrorKind::StepLimit,
                        format!(
                            "the model was asked {times} without coming to an answer; \
                             raise the limit with --max-steps or `max_steps`"
                        ),
                    ));
                    return Step::Done;
                }
                Step::CallModel
            }
            Phase::Batch(calls) => {
                let waiting: Vec<_> = calls
                    .iter()
                    .filter(|call| matches!(call.state, CallState::Waiting { .. }))
                    .map(|call| call.approval_request(&self.id))
                    .collect();
                if !waiting.is_empty() {
                    return Step::AskApproval(waiting);
                }
                let ready = calls
                    .iter()
                    .filter_map(|call| call.planned(&self.id, self.steps));
                Step::CallTools(ready.collect())
            }
            Phase::Done(_) => Step::Done,
        }
    }

    /// Begins the next call of the model with the tools there are now, and gives the request.
    pub fn begin_model_call(&mut self, tools: Vec<Arc<ToolDefinition>>) -> ChatRequest {
        self.phase = Phase::Asked;
        self.tools = tools;
        self.steps += 1;
        let tool_choice = if self.steps == 1 && !self.tools.is_empty() {
            self.options.tool_choice.clone()
        } else {
            ToolChoice::Auto
        };
        ChatRequest {
            messages: self.messages.clone(),
            tools: self.tools.clone(),
            tool_choice,
            parallel_tool_use: self.options.parallel_tool_use,
            sampling: self.options.sampling.clone(),
            max_output_tokens: self.options.max_output_tokens,
            reasoning: self.options.reasoning,
            ..ChatRequest::default()
        }
    }

    /// How it ended; `None` while it goes on.
    pub fn report(&self) -> Option<RunReport> {
        let outcome = self.outcome()?;
        let answer = self.answer();
        Some(RunReport {
            run_id: self.id.clone(),
            session_id: None,
            model: self.model.clone(),
            content: if answer.is_empty() {
                Vec::new()
            } else {
                vec![AnswerItem::Text {
                    text: answer.clone(),
                }]
            },
            answer,
            outcome,
            finish_reason: self.finish.clone(),
            steps: self.steps,
            usage: self.usage,
            tool_calls: self.records.clone(),
            warnings: self.warnings.clone(),
            error: self.error.clone(),
        })
    }

    /// The text of the last answer. Words said beside a tool call are an answer only when nothing
    /// better came.
    fn answer(&self) -> String {
        if let Some(partial) = &self.partial_answer {
            return partial.clone();
        }
        let messages = self.new_messages();
        let says_something =
            |message: &Arc<Message>| message.role == Role::Assistant && !message.text().is_empty();
        let Some(last) = messages.iter().rposition(says_something) else {
            return String::new();
        };
        // An answer that the provider paused goes on in the next message.
        let first = messages[..last]
            .iter()
            .rposition(|message| message.role != Role::Assistant)
            .map_or(0, |before| before + 1);
        messages[first..=last]
            .iter()
            .map(|message| message.text())
            .collect()
    }

    fn definition(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    fn end_with(&mut self, error: RunError) {
        self.phase = Phase::Done(error.kind.outcome());
        self.error = Some(error);
    }
}

/// The server and the tool's own name, as people know them.
fn place(origin: Option<&ToolOrigin>, name: &str) -> (Option<String>, String) {
    match origin {
        Some(origin) => (Some(origin.server.clone()), origin.tool.clone()),
        None => (None, name.to_owned()),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
