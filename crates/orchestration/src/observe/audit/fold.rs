//! The state that observers need of a run, built from its events.

use std::{collections::HashMap, fmt, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{ModelId, ToolChoice, ToolContent, Usage};

use super::{
    Approval, AuditKind, Decider, Decision, ModelCall, ModelCallEnd, QuestionEntry, QuestionMoment,
    RunEntry, RunMoment, ToolCallEntry, ToolCallMoment,
};
use crate::{CallPurpose, RunError, RunEvent, RunEventKind, RunReport};

/// Returns the cost of a model call in US dollars, or `None` if its price is unknown.
pub type CostFunction = Arc<dyn Fn(&ModelId, &Usage) -> Option<f64> + Send + Sync>;

/// The fold over the events of one run. The audit and the metrics both read its output.
///
/// A run that is resumed in another process has a new fold there. Facts from before the resume,
/// such as the tool of an earlier call, are then `unknown`.
#[derive(Default)]
pub(in crate::observe) struct RunFold {
    cost_function: Option<CostFunction>,
    model: Option<ModelId>,
    open_model_call: Option<OpenModelCall>,
    /// Number of the latest model call.
    step: u32,
    open_tool_calls: HashMap<String, OpenToolCall>,
    /// Servers of the open questions, by question id.
    open_questions: HashMap<String, String>,
    cost: Cost,
}

/// A model call without an end.
#[derive(Debug)]
struct OpenModelCall {
    purpose: CallPurpose,
    step: u32,
    model: ModelId,
    tools: usize,
    tool_choice: ToolChoice,
    started: Timestamp,
}

/// A tool call without a result.
#[derive(Debug)]
struct OpenToolCall {
    server: Option<String>,
    tool: String,
    input: Arc<Value>,
    /// An approver was asked.
    approval_requested: bool,
}

/// The sum of the costs of the model calls.
#[derive(Debug, Default)]
struct Cost {
    usd: f64,
    priced_calls: u32,
    unpriced_calls: u32,
}

impl RunFold {
    /// Returns a fold that also computes costs.
    pub(in crate::observe) fn with_cost(cost_function: Option<CostFunction>) -> Self {
        Self {
            cost_function,
            ..Self::default()
        }
    }

    /// Adds an event and returns the facts that it completes, with unredacted values.
    pub(in crate::observe) fn observe(&mut self, event: &RunEvent) -> Vec<AuditKind> {
        match &event.kind {
            RunEventKind::RunStarted { model, resumed } => {
                self.model = Some(model.clone());
                vec![self.run_entry(if *resumed {
                    RunMoment::Resumed
                } else {
                    RunMoment::Started
                })]
            }
            RunEventKind::RunParked { .. } => vec![self.run_entry(RunMoment::Parked)],
            RunEventKind::RunFinished { report } => self.run_finished(event.time, report),
            RunEventKind::ModelSwitched { to, .. } => {
                self.model = Some(to.clone());
                Vec::new()
            }
            RunEventKind::ModelCallStarted {
                step,
                model,
                tools,
                tool_choice,
            } => {
                self.model = Some(model.clone());
                self.step = *step;
                self.model_call_started(OpenModelCall {
                    purpose: CallPurpose::Answer,
                    step: *step,
                    model: model.clone(),
                    tools: *tools,
                    tool_choice: tool_choice.clone(),
                    started: event.time,
                })
            }
            RunEventKind::HistoryTrimmed {
                summarised: true, ..
            } => self.model_call_started(OpenModelCall {
                purpose: CallPurpose::Summary,
                step: self.step.saturating_add(1),
                model: self.model(),
                tools: 0,
                tool_choice: ToolChoice::default(),
                started: event.time,
            }),
            RunEventKind::ModelCallFinished { .. } | RunEventKind::HistorySummarised { .. } => {
                Vec::from_iter(self.model_call_finished(event).map(AuditKind::ModelCall))
            }
            RunEventKind::ModelCallFailed { error, .. } => {
                let failed = self.model_call_failed(event.time, error);
                Vec::from_iter(failed.map(AuditKind::ModelCall))
            }
            other => Vec::from_iter(self.tool_event(other)),
        }
    }

    fn run_entry(&self, moment: RunMoment) -> AuditKind {
        AuditKind::Run(RunEntry::new(moment, self.model()))
    }

    fn model(&self) -> ModelId {
        let unknown = || ModelId::new("unknown", "unknown");
        self.model.clone().unwrap_or_else(unknown)
    }

    fn run_finished(&mut self, time: Timestamp, report: &RunReport) -> Vec<AuditKind> {
        let cancelled = self.end_model_call(time, ModelCallEnd::Cancelled);
        self.open_tool_calls.clear();
        self.open_questions.clear();
        let mut facts = Vec::from_iter(cancelled.map(AuditKind::ModelCall));
        facts.push(AuditKind::Run(RunEntry {
            outcome: Some(report.outcome),
            steps: Some(report.steps),
            usage: Some(report.usage).filter(Usage::is_known),
            cost_usd: self.cost.total(),
            error: report.error.as_ref().map(|error| json_name(&error.kind)),
            ..RunEntry::new(RunMoment::Finished, report.model.clone())
        }));
        facts
    }

    /// Opens a model call. An open call is cancelled: the run did not wait for it.
    fn model_call_started(&mut self, call: OpenModelCall) -> Vec<AuditKind> {
        let cancelled = self.end_model_call(call.started, ModelCallEnd::Cancelled);
        self.open_model_call = Some(call);
        Vec::from_iter(cancelled.map(AuditKind::ModelCall))
    }

    fn end_model_call(&mut self, now: Timestamp, end: ModelCallEnd) -> Option<ModelCall> {
        let call = self.open_model_call.take()?;
        let duration_ms = now.as_millisecond() - call.started.as_millisecond();
        Some(ModelCall {
            end,
            purpose: call.purpose,
            step: call.step,
            provider: call.model.provider,
            model: call.model.name,
            answered_by: None,
            tools: call.tools,
            finish: None,
            finish_raw: None,
            usage: None,
            cost_usd: None,
            tool_choice_asked: call.tool_choice,
            tool_choice: None,
            duration_ms: u64::try_from(duration_ms).unwrap_or(0),
            error: None,
            status: None,
            request_id: None,
        })
    }

    fn model_call_finished(&mut self, event: &RunEvent) -> Option<ModelCall> {
        match &event.kind {
            RunEventKind::ModelCallFinished {
                model,
                finish_reason,
                finish_raw,
                usage,
                tool_choice,
                ..
            } => Some(ModelCall {
                answered_by: model.clone(),
                finish: Some(finish_reason.clone()),
                finish_raw: finish_raw.clone(),
                tool_choice: Some(tool_choice.clone()),
                ..self.model_call_answered(event.time, usage)?
            }),
            RunEventKind::HistorySummarised {
                error: Some(error), ..
            } => self.model_call_failed(event.time, error),
            RunEventKind::HistorySummarised {
                step,
                answered_by,
                finish_reason,
                usage,
                ..
            } => Some(ModelCall {
                step: *step,
                answered_by: answered_by.clone(),
                finish: finish_reason.clone(),
                ..self.model_call_answered(event.time, usage)?
            }),
            _ => None,
        }
    }

    fn model_call_answered(&mut self, now: Timestamp, usage: &Usage) -> Option<ModelCall> {
        let call = self.end_model_call(now, ModelCallEnd::Answered)?;
        let model = ModelId::new(call.provider.clone(), call.model.clone());
        let cost_usd = self
            .cost_function
            .as_ref()
            .and_then(|cost| cost(&model, usage));
        self.cost.add(cost_usd);
        Some(ModelCall {
            usage: Some(*usage).filter(Usage::is_known),
            cost_usd,
            ..call
        })
    }

    fn model_call_failed(&mut self, now: Timestamp, error: &RunError) -> Option<ModelCall> {
        Some(ModelCall {
            error: Some(json_name(&error.kind)),
            status: error.status,
            request_id: error.request_id.clone(),
            ..self.end_model_call(now, ModelCallEnd::Failed)?
        })
    }

    fn tool_event(&mut self, kind: &RunEventKind) -> Option<AuditKind> {
        match kind {
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let call = OpenToolCall {
                    server: server.clone(),
                    tool: tool.clone(),
                    input: Arc::clone(input),
                    approval_requested: false,
                };
                self.open_tool_calls.insert(id.clone(), call);
                None
            }
            RunEventKind::ToolInputRepaired { id, input, .. } => {
                self.tool_call(id).input = Arc::clone(input);
                None
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                self.tool_call(id).approval_requested = true;
                let approval = self.approval(id, Decision::Asked, Decider::Policy);
                Some(AuditKind::Approval(approval))
            }
            RunEventKind::ToolApproved {
                id,
                scope,
                edited,
                remembered,
            } => {
                let decider = if *remembered {
                    Decider::Remembered
                } else {
                    Decider::Approver
                };
                Some(AuditKind::Approval(Approval {
                    scope: Some(*scope),
                    edited: *edited,
                    ..self.approval(id, Decision::Allowed, decider)
                }))
            }
            RunEventKind::ToolDenied { id, reason } => {
                let decider = if self.tool_call(id).approval_requested {
                    Decider::Approver
                } else {
                    Decider::Policy
                };
                Some(AuditKind::Approval(Approval {
                    reason: Some(reason.clone()),
                    ..self.approval(id, Decision::Denied, decider)
                }))
            }
            RunEventKind::ToolStarted { id } => {
                let entry = self.tool_call_entry(id, ToolCallMoment::Started);
                Some(AuditKind::ToolCall(entry))
            }
            RunEventKind::ToolFinished {
                id,
                is_error,
                failure,
                cached,
                attempts,
                duration_ms,
                content,
                ..
            } => {
                let entry = ToolCallEntry {
                    is_error: Some(*is_error),
                    failure: *failure,
                    attempts: Some(*attempts),
                    cached: Some(*cached),
                    duration_ms: Some(*duration_ms),
                    result_bytes: Some(json_length(content)),
                    ..self.tool_call_entry(id, ToolCallMoment::Finished)
                };
                self.open_tool_calls.remove(id);
                Some(AuditKind::ToolCall(entry))
            }
            RunEventKind::QuestionAsked { id, question } => {
                self.open_questions
                    .insert(id.clone(), question.server.clone());
                Some(AuditKind::Question(QuestionEntry {
                    moment: QuestionMoment::Asked,
                    id: id.clone(),
                    server: Some(question.server.clone()),
                    action: None,
                }))
            }
            RunEventKind::QuestionAnswered { id, action } => {
                Some(AuditKind::Question(QuestionEntry {
                    moment: QuestionMoment::Answered,
                    id: id.clone(),
                    server: self.open_questions.remove(id),
                    action: Some(*action),
                }))
            }
            _ => None,
        }
    }

    fn tool_call_entry(&mut self, id: &str, moment: ToolCallMoment) -> ToolCallEntry {
        let call = self.tool_call(id);
        ToolCallEntry {
            moment,
            id: id.to_owned(),
            server: call.server.clone(),
            tool: call.tool.clone(),
            input: Arc::clone(&call.input),
            is_error: None,
            failure: None,
            attempts: None,
            cached: None,
            duration_ms: None,
            result_bytes: None,
            result: None,
        }
    }

    fn approval(&mut self, id: &str, decision: Decision, by: Decider) -> Approval {
        let call = self.tool_call(id);
        Approval {
            id: id.to_owned(),
            server: call.server.clone(),
            tool: call.tool.clone(),
            decision,
            by,
            reason: None,
            scope: None,
            edited: false,
        }
    }

    /// Returns the open call with this id, or an `unknown` one if another process planned it.
    fn tool_call(&mut self, id: &str) -> &mut OpenToolCall {
        self.open_tool_calls
            .entry(id.to_owned())
            .or_insert_with(|| OpenToolCall {
                server: None,
                tool: "unknown".to_owned(),
                input: Arc::default(),
                approval_requested: false,
            })
    }
}

impl fmt::Debug for RunFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFold")
            .field("model", &self.model)
            .field("step", &self.step)
            .field("open_tool_calls", &self.open_tool_calls.len())
            .finish_non_exhaustive()
    }
}

impl Cost {
    fn add(&mut self, usd: Option<f64>) {
        match usd {
            Some(usd) => {
                self.usd += usd;
                self.priced_calls += 1;
            }
            None => self.unpriced_calls += 1,
        }
    }

    /// Returns the sum, or `None` if the price of a call is unknown.
    fn total(&self) -> Option<f64> {
        (self.priced_calls > 0 && self.unpriced_calls == 0).then_some(self.usd)
    }
}

/// Returns the name of a value that JSON writes as a plain string, or else `other`.
pub(in crate::observe) fn json_name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => "other".to_owned(),
    }
}

fn json_length(content: &[ToolContent]) -> u64 {
    serde_json::to_vec(content).map_or(0, |json| json.len() as u64)
}
