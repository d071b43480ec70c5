//! The state that observers need of a run, built from its events.

use std::{collections::HashMap, fmt, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{ModelId, ToolContent, Usage};

use super::{
    Approval, AuditKind, Decider, Decision, ModelCall, ModelCallEnd, QuestionEntry, QuestionMoment,
    RunEntry, RunMoment, ToolCallEntry, ToolCallMoment,
};
use crate::{CallPurpose, RunEvent, RunEventKind};

/// Returns the cost of a model call in US dollars, or `None` if its price is unknown.
pub type CostFunction = Arc<dyn Fn(&ModelId, &Usage) -> Option<f64> + Send + Sync>;

/// The fold over the events of one run. The audit, the metrics and the log read its output.
///
/// A run that is resumed in another process has a new fold there. Facts from before the resume,
/// such as the tool of an earlier call, are then `unknown`.
#[derive(Default)]
pub(in crate::observe) struct RunFold {
    cost_function: Option<CostFunction>,
    model: Option<ModelId>,
    /// The model call without an end, and its start. Its end is `Cancelled` until it has another.
    open_model_call: Option<(Timestamp, ModelCall)>,
    /// Number of the latest model call.
    step: u32,
    open_tool_calls: HashMap<String, OpenToolCall>,
    /// Servers of the open questions, by question id.
    open_questions: HashMap<String, String>,
    /// Sum of the costs of the answered model calls. `None` if a price is unknown.
    cost_usd: Option<f64>,
    /// Whether a model call was answered.
    is_answered: bool,
}

/// A tool call without a result.
#[derive(Debug)]
struct OpenToolCall {
    /// The record of its start.
    entry: ToolCallEntry,
    /// An approver was asked.
    approval_requested: bool,
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
        let mut facts = Vec::new();
        match &event.kind {
            RunEventKind::RunStarted { model, resumed } => {
                self.model = Some(model.clone());
                facts.push(self.run_entry(if *resumed {
                    RunMoment::Resumed
                } else {
                    RunMoment::Started
                }));
            }
            RunEventKind::RunParked { .. } => facts.push(self.run_entry(RunMoment::Parked)),
            RunEventKind::RunFinished { report } => {
                facts.extend(self.end_model_call(event.time).map(AuditKind::ModelCall));
                self.open_tool_calls.clear();
                self.open_questions.clear();
                facts.push(AuditKind::Run(RunEntry {
                    outcome: Some(report.outcome),
                    steps: Some(report.steps),
                    usage: Some(report.usage).filter(Usage::is_known),
                    cost_usd: self.cost_usd,
                    error: report.error.as_ref().map(|error| json_name(&error.kind)),
                    ..RunEntry::new(RunMoment::Finished, report.model.clone())
                }));
            }
            RunEventKind::ModelSwitched { to, .. } => self.model = Some(to.clone()),
            RunEventKind::ModelCallStarted {
                step,
                model,
                tools,
                tool_choice,
            } => {
                facts.extend(self.end_model_call(event.time).map(AuditKind::ModelCall));
                self.model = Some(model.clone());
                self.step = *step;
                let call = ModelCall {
                    tools: *tools,
                    tool_choice_asked: tool_choice.clone(),
                    ..ModelCall::new(*step, model)
                };
                self.open_model_call = Some((event.time, call));
            }
            RunEventKind::HistoryTrimmed {
                summarised: true, ..
            } => {
                facts.extend(self.end_model_call(event.time).map(AuditKind::ModelCall));
                let call = ModelCall {
                    purpose: CallPurpose::Summary,
                    ..ModelCall::new(self.step.saturating_add(1), &self.model())
                };
                self.open_model_call = Some((event.time, call));
            }
            kind => {
                let call = self.ended_model_call(event.time, kind);
                facts.extend(call.map(AuditKind::ModelCall));
                facts.extend(self.tool_event(kind));
            }
        }
        facts
    }

    fn run_entry(&self, moment: RunMoment) -> AuditKind {
        AuditKind::Run(RunEntry::new(moment, self.model()))
    }

    fn model(&self) -> ModelId {
        let unknown = || ModelId::new("unknown", "unknown");
        self.model.clone().unwrap_or_else(unknown)
    }

    fn end_model_call(&mut self, now: Timestamp) -> Option<ModelCall> {
        let (started, call) = self.open_model_call.take()?;
        let duration_ms = now.as_millisecond() - started.as_millisecond();
        Some(ModelCall {
            duration_ms: u64::try_from(duration_ms).unwrap_or(0),
            ..call
        })
    }

    /// Returns the model call that an event ends.
    fn ended_model_call(&mut self, now: Timestamp, kind: &RunEventKind) -> Option<ModelCall> {
        match kind {
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
                ..self.answered_model_call(now, usage)?
            }),
            RunEventKind::ModelCallFailed { error, .. }
            | RunEventKind::HistorySummarised {
                error: Some(error), ..
            } => Some(ModelCall {
                end: ModelCallEnd::Failed,
                error: Some(json_name(&error.kind)),
                status: error.status,
                request_id: error.request_id.clone(),
                ..self.end_model_call(now)?
            }),
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
                ..self.answered_model_call(now, usage)?
            }),
            _ => None,
        }
    }

    fn answered_model_call(&mut self, now: Timestamp, usage: &Usage) -> Option<ModelCall> {
        let call = self.end_model_call(now)?;
        let model = ModelId::new(call.provider.clone(), call.model.clone());
        let cost_function = self.cost_function.as_ref();
        let cost_usd = cost_function.and_then(|cost| cost(&model, usage));
        let earlier = if self.is_answered {
            self.cost_usd
        } else {
            Some(0.0)
        };
        self.cost_usd = earlier.zip(cost_usd).map(|(earlier, cost)| earlier + cost);
        self.is_answered = true;
        Some(ModelCall {
            end: ModelCallEnd::Answered,
            usage: Some(*usage).filter(Usage::is_known),
            cost_usd,
            ..call
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
                let call = self.tool_call(id);
                call.entry.server.clone_from(server);
                call.entry.tool.clone_from(tool);
                call.entry.input = Arc::clone(input);
                None
            }
            RunEventKind::ToolInputRepaired { id, input, .. } => {
                self.tool_call(id).entry.input = Arc::clone(input);
                None
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                self.tool_call(id).approval_requested = true;
                Some(self.approval(id, Decision::Asked, Decider::Policy, |_| {}))
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
                Some(self.approval(id, Decision::Allowed, decider, |approval| {
                    approval.scope = Some(*scope);
                    approval.edited = *edited;
                }))
            }
            RunEventKind::ToolDenied { id, reason } => {
                let decider = if self.tool_call(id).approval_requested {
                    Decider::Approver
                } else {
                    Decider::Policy
                };
                Some(self.approval(id, Decision::Denied, decider, |approval| {
                    approval.reason = Some(reason.clone());
                }))
            }
            RunEventKind::ToolStarted { id } => {
                Some(AuditKind::ToolCall(self.tool_call(id).entry.clone()))
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
                let call = self.open_tool_calls.remove(id);
                let entry = call.map_or_else(|| ToolCallEntry::unknown(id), |call| call.entry);
                Some(AuditKind::ToolCall(ToolCallEntry {
                    moment: ToolCallMoment::Finished,
                    is_error: Some(*is_error),
                    failure: *failure,
                    attempts: Some(*attempts),
                    cached: Some(*cached),
                    duration_ms: Some(*duration_ms),
                    result_bytes: Some(json_length(content)),
                    ..entry
                }))
            }
            RunEventKind::QuestionAsked { id, question } => {
                let server = question.server.clone();
                self.open_questions.insert(id.clone(), server.clone());
                Some(AuditKind::Question(QuestionEntry {
                    moment: QuestionMoment::Asked,
                    id: id.clone(),
                    server: Some(server),
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

    fn approval(
        &mut self,
        id: &str,
        decision: Decision,
        by: Decider,
        complete: impl FnOnce(&mut Approval),
    ) -> AuditKind {
        let entry = &self.tool_call(id).entry;
        let mut approval = Approval {
            id: id.to_owned(),
            server: entry.server.clone(),
            tool: entry.tool.clone(),
            decision,
            by,
            reason: None,
            scope: None,
            edited: false,
        };
        complete(&mut approval);
        AuditKind::Approval(approval)
    }

    /// Returns the open call with this id, or an `unknown` one if another process planned it.
    fn tool_call(&mut self, id: &str) -> &mut OpenToolCall {
        self.open_tool_calls
            .entry(id.to_owned())
            .or_insert_with(|| OpenToolCall {
                entry: ToolCallEntry::unknown(id),
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
