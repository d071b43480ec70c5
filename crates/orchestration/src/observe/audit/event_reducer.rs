//! Reducer that converts run events to the audit facts that the audit, the metrics and the log use.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{ModelId, Usage};

use super::{
    ApprovalStage, AuditKind, AuditedApproval, AuditedModelCall, AuditedQuestion, AuditedRun,
    AuditedToolCall, DecisionSource, ModelCallResult, QuestionStage, RunStage, ToolCallStage,
};
use crate::{ModelCallPurpose, RunEvent, RunEventKind};

/// Function that computes the cost of a model call in US dollars, or `None` if the price of the
/// model is unknown.
pub type CostFunction = Arc<dyn Fn(&ModelId, &Usage) -> Option<f64> + Send + Sync>;

/// Converter of the events of one run to audit facts ([`AuditKind`]), which the audit, the
/// metrics and the log use.
///
/// A run that is resumed in another process gets a new converter there, which lacks the data from
/// before the resumption. For example, the tool name of an earlier call is then `unknown`.
#[derive(Debug, Default)]
pub(in crate::observe) struct RunEventReducer {
    model: Option<ModelId>,
    /// Start time and audit data of the unfinished model call. Its `end` is `Cancelled` until the
    /// call ends.
    open_model_call: Option<(Timestamp, AuditedModelCall)>,
    /// Number of the latest model call in the run.
    step: u32,
    open_tool_calls: HashMap<String, UnfinishedToolCall>,
    /// Names of the servers whose questions have no answer yet, by question id.
    open_questions: HashMap<String, String>,
    /// Cost of each answered model call in US dollars. `None` if the price is unknown.
    costs: Vec<Option<f64>>,
}

/// A tool call of the run that has no result yet.
#[derive(Debug)]
struct UnfinishedToolCall {
    /// Audit data about the call, collected from the events so far.
    entry: AuditedToolCall,
    /// Whether the run requested a person's approval for the call.
    approval_requested: bool,
}

impl RunEventReducer {
    /// Processes one event. Returns the audit facts that this event completes, such as the data of
    /// an ended model call. Their values are not redacted.
    ///
    /// `cost` computes the costs of model calls.
    pub(in crate::observe) fn reduce_event(
        &mut self,
        event: &RunEvent,
        cost: Option<&CostFunction>,
    ) -> Vec<AuditKind> {
        let time = event.time;
        let ended_call = self.end_model_call(time, &event.kind, cost);
        let fact = match &event.kind {
            RunEventKind::RunStarted { model, resumed } => {
                self.model = Some(model.clone());
                let moment = if *resumed {
                    RunStage::Resumed
                } else {
                    RunStage::Started
                };
                let entry = AuditedRun::new(moment, self.current_model());
                Some(AuditKind::Run(entry))
            }
            RunEventKind::RunParked { .. } => {
                let entry = AuditedRun::new(RunStage::Parked, self.current_model());
                Some(AuditKind::Run(entry))
            }
            RunEventKind::RunFinished { report } => {
                self.open_tool_calls.clear();
                self.open_questions.clear();
                let costs = Some(&self.costs).filter(|costs| !costs.is_empty());
                Some(AuditKind::Run(AuditedRun {
                    outcome: Some(report.outcome),
                    steps: Some(report.steps),
                    usage: Some(report.usage).filter(Usage::is_known),
                    cost_usd: costs.and_then(|costs| costs.iter().copied().sum()),
                    error: report
                        .error
                        .as_ref()
                        .map(|error| serialized_name(&error.kind)),
                    ..AuditedRun::new(RunStage::Finished, report.model.clone())
                }))
            }
            RunEventKind::ModelSwitched { to, .. } => {
                self.model = Some(to.clone());
                None
            }
            RunEventKind::ModelCallStarted {
                step,
                model,
                tools,
                tool_choice,
            } => {
                self.model = Some(model.clone());
                self.step = *step;
                let call = AuditedModelCall {
                    tools: *tools,
                    tool_choice_asked: tool_choice.clone(),
                    ..self.new_model_call(*step)
                };
                self.open_model_call = Some((time, call));
                None
            }
            RunEventKind::HistoryTrimmed {
                summarised: true, ..
            } => {
                let call = AuditedModelCall {
                    purpose: ModelCallPurpose::Summary,
                    ..self.new_model_call(self.step.saturating_add(1))
                };
                self.open_model_call = Some((time, call));
                None
            }
            kind => self.reduce_tool_event(kind),
        };
        let ended_call = ended_call.map(AuditKind::ModelCall);
        ended_call.into_iter().chain(fact).collect()
    }

    fn current_model(&self) -> ModelId {
        let unknown = || ModelId::new("unknown", "unknown");
        self.model.clone().unwrap_or_else(unknown)
    }

    fn new_model_call(&self, step: u32) -> AuditedModelCall {
        let model = self.current_model();
        AuditedModelCall {
            step,
            provider: model.provider,
            model: model.name,
            ..AuditedModelCall::default()
        }
    }

    /// Returns the audit data of the unfinished model call if the event ends it. A new model call
    /// or the end of the run also ends the unfinished call, as cancelled.
    fn end_model_call(
        &mut self,
        now: Timestamp,
        kind: &RunEventKind,
        cost: Option<&CostFunction>,
    ) -> Option<AuditedModelCall> {
        let ends_call = matches!(
            kind,
            RunEventKind::RunFinished { .. }
                | RunEventKind::ModelCallStarted { .. }
                | RunEventKind::ModelCallFinished { .. }
                | RunEventKind::ModelCallFailed { .. }
                | RunEventKind::HistorySummarised { .. }
                | RunEventKind::HistoryTrimmed {
                    summarised: true,
                    ..
                }
        );
        let (started, mut call) = self.open_model_call.take_if(|_| ends_call)?;
        let duration_ms = now.as_millisecond() - started.as_millisecond();
        call.duration_ms = u64::try_from(duration_ms).unwrap_or(0);
        match kind {
            RunEventKind::ModelCallFinished {
                model,
                finish_reason,
                finish_raw,
                usage,
                tool_choice,
                ..
            } => {
                call.answered_by.clone_from(model);
                call.finish = Some(finish_reason.clone());
                call.finish_raw.clone_from(finish_raw);
                call.tool_choice = Some(tool_choice.clone());
                self.add_usage(&mut call, usage, cost);
            }
            RunEventKind::ModelCallFailed { error, .. }
            | RunEventKind::HistorySummarised {
                error: Some(error), ..
            } => {
                call.end = ModelCallResult::Failed;
                call.error = Some(serialized_name(&error.kind));
                call.status = error.status;
                call.request_id.clone_from(&error.request_id);
            }
            RunEventKind::HistorySummarised {
                step,
                answered_by,
                finish_reason,
                usage,
                ..
            } => {
                call.step = *step;
                call.answered_by.clone_from(answered_by);
                call.finish.clone_from(finish_reason);
                self.add_usage(&mut call, usage, cost);
            }
            _ => {}
        }
        Some(call)
    }

    fn add_usage(
        &mut self,
        call: &mut AuditedModelCall,
        usage: &Usage,
        cost: Option<&CostFunction>,
    ) {
        let model = ModelId::new(call.provider.clone(), call.model.clone());
        call.end = ModelCallResult::Answered;
        call.usage = Some(*usage).filter(Usage::is_known);
        call.cost_usd = cost.and_then(|cost| cost(&model, usage));
        self.costs.push(call.cost_usd);
    }

    fn reduce_tool_event(&mut self, kind: &RunEventKind) -> Option<AuditKind> {
        Some(match kind {
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let entry = &mut self.find_or_add_tool_call(id).entry;
                entry.server.clone_from(server);
                entry.tool.clone_from(tool);
                entry.input = Arc::clone(input);
                return None;
            }
            RunEventKind::ToolInputRepaired { id, input, .. } => {
                self.find_or_add_tool_call(id).entry.input = Arc::clone(input);
                return None;
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                self.find_or_add_tool_call(id).approval_requested = true;
                let by = DecisionSource::Policy;
                AuditKind::Approval(self.new_approval_entry(id, ApprovalStage::Asked, by))
            }
            RunEventKind::ToolApproved {
                id,
                scope,
                edited,
                remembered,
            } => {
                let decider = if *remembered {
                    DecisionSource::Remembered
                } else {
                    DecisionSource::Approver
                };
                AuditKind::Approval(AuditedApproval {
                    scope: Some(*scope),
                    edited: *edited,
                    ..self.new_approval_entry(id, ApprovalStage::Allowed, decider)
                })
            }
            RunEventKind::ToolDenied {
                id,
                reason,
                remembered,
            } => {
                let decider = match self.find_or_add_tool_call(id).approval_requested {
                    _ if *remembered => DecisionSource::Remembered,
                    true => DecisionSource::Approver,
                    false => DecisionSource::Policy,
                };
                AuditKind::Approval(AuditedApproval {
                    reason: Some(reason.clone()),
                    ..self.new_approval_entry(id, ApprovalStage::Denied, decider)
                })
            }
            RunEventKind::ToolStarted { id } => {
                AuditKind::ToolCall(self.find_or_add_tool_call(id).entry.clone())
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
                let entry = self.find_or_add_tool_call(id).entry.clone();
                self.open_tool_calls.remove(id);
                let json = serde_json::to_vec(content).unwrap_or_default();
                AuditKind::ToolCall(AuditedToolCall {
                    moment: ToolCallStage::Finished,
                    is_error: Some(*is_error),
                    failure: *failure,
                    attempts: Some(*attempts),
                    cached: Some(*cached),
                    duration_ms: Some(*duration_ms),
                    result_bytes: Some(json.len() as u64),
                    ..entry
                })
            }
            RunEventKind::QuestionAsked { id, question } => {
                let server = question.server.clone();
                self.open_questions.insert(id.clone(), server.clone());
                AuditKind::Question(AuditedQuestion {
                    moment: QuestionStage::Asked,
                    id: id.clone(),
                    server: Some(server),
                    action: None,
                })
            }
            RunEventKind::QuestionAnswered { id, action } => AuditKind::Question(AuditedQuestion {
                moment: QuestionStage::Answered,
                id: id.clone(),
                server: self.open_questions.remove(id),
                action: Some(*action),
            }),
            _ => return None,
        })
    }

    fn new_approval_entry(
        &mut self,
        id: &str,
        decision: ApprovalStage,
        by: DecisionSource,
    ) -> AuditedApproval {
        let entry = &self.find_or_add_tool_call(id).entry;
        AuditedApproval {
            id: id.to_owned(),
            server: entry.server.clone(),
            tool: entry.tool.clone(),
            decision,
            by,
            reason: None,
            scope: None,
            edited: false,
        }
    }

    /// Returns the unfinished tool call with this id. A call that another process planned gets the
    /// tool name `unknown`.
    fn find_or_add_tool_call(&mut self, id: &str) -> &mut UnfinishedToolCall {
        self.open_tool_calls
            .entry(id.to_owned())
            .or_insert_with(|| UnfinishedToolCall {
                entry: AuditedToolCall {
                    id: id.to_owned(),
                    tool: "unknown".to_owned(),
                    ..AuditedToolCall::default()
                },
                approval_requested: false,
            })
    }
}

/// Returns the string that the value serializes to, or `other` if it does not serialize to a
/// string.
pub(crate) fn serialized_name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => "other".to_owned(),
    }
}
