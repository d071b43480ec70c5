//! From a run's events to audit records.

use std::{collections::HashMap, fmt, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{ModelId, Principal, ToolChoice, Usage};

use super::{
    Approval, AuditKind, AuditRecord, Decider, Decision, ModelCall, ModelCallEnd, QuestionEntry,
    QuestionMoment, Redactor, RunEntry, RunMoment, ToolCallEntry, ToolCallMoment,
};
use crate::{CallPurpose, RunError, RunEvent, RunEventKind, RunReport};

/// What a call of a model cost in US dollars; `None` if its price is not known.
pub type CostOf = Arc<dyn Fn(&ModelId, &Usage) -> Option<f64> + Send + Sync>;

/// What the records of a run hold beyond its events.
#[derive(Clone, Default)]
pub struct AuditOptions {
    /// The session the run belongs to.
    pub session_id: Option<String>,
    /// On whose behalf it runs.
    pub principal: Option<Principal>,
    /// What is left out of inputs, results and reasons.
    pub redactor: Redactor,
    /// Also keep what tools gave. Off by default.
    pub results: bool,
    /// What calls of models cost.
    pub cost: Option<CostOf>,
}

impl fmt::Debug for AuditOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditOptions")
            .field("session_id", &self.session_id)
            .field("principal", &self.principal)
            .field("redactor", &self.redactor)
            .field("results", &self.results)
            .finish_non_exhaustive()
    }
}

/// Makes audit records of the events of one run, in order. A run that goes on in another process has
/// another projection there; what it cannot know of the first part, such as the tool of a call that
/// was planned before, is told as `unknown`.
#[derive(Debug)]
pub struct AuditProjection {
    options: AuditOptions,
    model: Option<ModelId>,
    asked: Option<AskedModel>,
    /// The last call of the model.
    step: u32,
    calls: HashMap<String, OpenCall>,
    /// The servers of the questions that are open.
    questions: HashMap<String, String>,
    cost: Cost,
}

/// A model call that has no end yet.
#[derive(Debug)]
struct AskedModel {
    purpose: CallPurpose,
    step: u32,
    model: ModelId,
    tools: usize,
    tool_choice: ToolChoice,
    since: Timestamp,
}

/// A tool call that has no result yet. The input is already fit to be kept.
#[derive(Debug)]
struct OpenCall {
    server: Option<String>,
    tool: String,
    input: Value,
    /// Somebody is being asked.
    asked: bool,
}

#[derive(Debug, Default)]
struct Cost {
    usd: f64,
    /// A call whose price is not known.
    unknown: bool,
    any: bool,
}

impl AuditProjection {
    /// For one run that has not begun yet.
    pub fn new(options: AuditOptions) -> Self {
        Self {
            options,
            model: None,
            asked: None,
            step: 0,
            calls: HashMap::new(),
            questions: HashMap::new(),
            cost: Cost::default(),
        }
    }

    /// What is to be kept of an event: nothing, or one or more records.
    pub fn observe(&mut self, event: &RunEvent) -> Vec<AuditRecord> {
        let kinds = match &event.kind {
            // The many small ones first.
            RunEventKind::TextDelta { .. }
            | RunEventKind::ReasoningDelta { .. }
            | RunEventKind::ToolInputDelta { .. } => Vec::new(),
            RunEventKind::RunStarted { model, resumed } => {
                self.model = Some(model.clone());
                vec![self.moment(if *resumed {
                    RunMoment::Resumed
                } else {
                    RunMoment::Started
                })]
            }
            RunEventKind::RunParked { .. } => vec![self.moment(RunMoment::Parked)],
            RunEventKind::RunFinished { report } => self.finished(event.time, report),
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
                let lost = self.model_call_ended(event.time, ModelCallEnd::Cancelled);
                self.model = Some(model.clone());
                self.asked = Some(AskedModel {
                    purpose: CallPurpose::Answer,
                    step: *step,
                    model: model.clone(),
                    tools: *tools,
                    tool_choice: tool_choice.clone(),
                    since: event.time,
                });
                self.step = *step;
                Vec::from_iter(lost.map(AuditKind::ModelCall))
            }
            RunEventKind::HistoryTrimmed {
                summarised: true, ..
            } => {
                let lost = self.model_call_ended(event.time, ModelCallEnd::Cancelled);
                self.asked = Some(AskedModel {
                    purpose: CallPurpose::Summary,
                    step: self.step.saturating_add(1),
                    model: self.model(),
                    tools: 0,
                    tool_choice: ToolChoice::default(),
                    since: event.time,
                });
                Vec::from_iter(lost.map(AuditKind::ModelCall))
            }
            RunEventKind::HistorySummarised { .. } => {
                Vec::from_iter(self.summarised(event).map(AuditKind::ModelCall))
            }
            RunEventKind::ModelCallFinished { .. } => {
                Vec::from_iter(self.answered(event).map(AuditKind::ModelCall))
            }
            RunEventKind::ModelCallFailed { error, .. } => {
                let failed = self.model_call_ended(event.time, ModelCallEnd::Failed);
                Vec::from_iter(failed.map(|call| AuditKind::ModelCall(self.failed(call, error))))
            }
            other => self.tool_event(other),
        };
        let record = |kind| AuditRecord {
            time: event.time,
            run_id: event.run_id.to_string(),
            seq: event.seq,
            session_id: self.options.session_id.clone(),
            principal: self.options.principal.clone(),
            kind,
        };
        kinds.into_iter().map(record).collect()
    }

    fn moment(&self, moment: RunMoment) -> AuditKind {
        AuditKind::Run(RunEntry {
            moment,
            model: self.model(),
            outcome: None,
            steps: None,
            usage: None,
            cost_usd: None,
            error: None,
        })
    }

    /// The model; of a run whose beginning was not seen, nobody knows.
    fn model(&self) -> ModelId {
        let unknown = || ModelId::new("unknown", "unknown");
        self.model.clone().unwrap_or_else(unknown)
    }

    fn finished(&mut self, time: Timestamp, report: &RunReport) -> Vec<AuditKind> {
        let cancelled = self.model_call_ended(time, ModelCallEnd::Cancelled);
        let mut kinds = Vec::from_iter(cancelled.map(AuditKind::ModelCall));
        kinds.push(AuditKind::Run(RunEntry {
            moment: RunMoment::Finished,
            model: report.model.clone(),
            outcome: Some(report.outcome),
            steps: Some(report.steps),
            usage: Some(report.usage).filter(Usage::is_known),
            cost_usd: self.cost.known(),
            error: report.error.as_ref().map(|error| word(&error.kind)),
        }));
        self.calls.clear();
        self.questions.clear();
        kinds
    }

    fn model_call_ended(&mut self, now: Timestamp, end: ModelCallEnd) -> Option<ModelCall> {
        let asked = self.asked.take()?;
        Some(ModelCall {
            end,
            purpose: asked.purpose,
            step: asked.step,
            provider: asked.model.provider,
            model: asked.model.name,
            answered_by: None,
            tools: asked.tools,
            finish: None,
            finish_raw: None,
            usage: None,
            cost_usd: None,
            tool_choice_asked: asked.tool_choice,
            tool_choice: None,
            duration_ms: milliseconds_between(asked.since, now),
            error: None,
            status: None,
            request_id: None,
        })
    }

    fn answered(&mut self, event: &RunEvent) -> Option<ModelCall> {
        let RunEventKind::ModelCallFinished {
            model,
            finish_reason,
            finish_raw,
            usage,
            tool_choice,
            ..
        } = &event.kind
        else {
            return None;
        };
        let id = self.asked.as_ref().map(|asked| asked.model.clone())?;
        let call = self.model_call_ended(event.time, ModelCallEnd::Answered)?;
        let cost_usd = self.options.cost.as_ref().and_then(|cost| cost(&id, usage));
        self.cost.add(cost_usd);
        Some(ModelCall {
            answered_by: model.clone(),
            finish: Some(finish_reason.clone()),
            finish_raw: finish_raw.clone(),
            usage: Some(**usage).filter(Usage::is_known),
            cost_usd,
            tool_choice: Some(tool_choice.clone()),
            ..call
        })
    }

    fn summarised(&mut self, event: &RunEvent) -> Option<ModelCall> {
        let RunEventKind::HistorySummarised {
            step,
            model,
            answered_by,
            finish_reason,
            usage,
            error,
        } = &event.kind
        else {
            return None;
        };
        if let Some(error) = error {
            let call = self.model_call_ended(event.time, ModelCallEnd::Failed)?;
            return Some(self.failed(call, error));
        }
        let call = self.model_call_ended(event.time, ModelCallEnd::Answered)?;
        let cost_usd = self
            .options
            .cost
            .as_ref()
            .and_then(|cost| cost(model, usage));
        self.cost.add(cost_usd);
        Some(ModelCall {
            step: *step,
            answered_by: answered_by.clone(),
            finish: finish_reason.clone(),
            usage: Some(**usage).filter(Usage::is_known),
            cost_usd,
            ..call
        })
    }

    fn failed(&self, call: ModelCall, error: &RunError) -> ModelCall {
        ModelCall {
            error: Some(word(&error.kind)),
            status: error.status,
            request_id: error
                .request_id
                .as_deref()
                .map(|id| self.options.redactor.text(id)),
            ..call
        }
    }

    fn tool_event(&mut self, kind: &RunEventKind) -> Vec<AuditKind> {
        match kind {
            RunEventKind::ToolPlanned {
                id,
                server,
                tool,
                input,
            } => {
                let call = OpenCall {
                    server: server.clone(),
                    tool: self.options.redactor.text(tool),
                    input: self.options.redactor.value(input),
                    asked: false,
                };
                self.calls.insert(id.clone(), call);
                Vec::new()
            }
            RunEventKind::ToolInputRepaired { id, input, .. } => {
                let input = self.options.redactor.value(input);
                self.call(id).input = input;
                Vec::new()
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                self.call(id).asked = true;
                vec![self.approval(id, Decision::Asked, Decider::Policy)]
            }
            RunEventKind::ToolApproved {
                id,
                scope,
                edited,
                remembered,
            } => {
                let by = if *remembered {
                    Decider::Remembered
                } else {
                    Decider::Approver
                };
                let mut allowed = self.approval(id, Decision::Allowed, by);
                if let AuditKind::Approval(approval) = &mut allowed {
                    approval.scope = Some(*scope);
                    approval.edited = *edited;
                }
                vec![allowed]
            }
            RunEventKind::ToolDenied { id, reason } => {
                let by = if self.call(id).asked {
                    Decider::Approver
                } else {
                    Decider::Policy
                };
                let mut denied = self.approval(id, Decision::Denied, by);
                if let AuditKind::Approval(approval) = &mut denied {
                    approval.reason = Some(self.options.redactor.text(reason));
                }
                vec![denied]
            }
            RunEventKind::ToolStarted { id } => {
                vec![AuditKind::ToolCall(self.entry(id, ToolCallMoment::Started))]
            }
            RunEventKind::ToolFinished { id, .. } => {
                let finished = self.tool_finished(id, kind);
                self.calls.remove(id);
                Vec::from_iter(finished.map(AuditKind::ToolCall))
            }
            RunEventKind::QuestionAsked { id, question } => {
                let server = self.options.redactor.text(&question.server);
                self.questions.insert(id.clone(), server.clone());
                vec![AuditKind::Question(QuestionEntry {
                    moment: QuestionMoment::Asked,
                    id: id.clone(),
                    server: Some(server),
                    action: None,
                })]
            }
            RunEventKind::QuestionAnswered { id, action } => {
                vec![AuditKind::Question(QuestionEntry {
                    moment: QuestionMoment::Answered,
                    id: id.clone(),
                    server: self.questions.remove(id),
                    action: Some(*action),
                })]
            }
            _ => Vec::new(),
        }
    }

    fn tool_finished(&mut self, id: &str, kind: &RunEventKind) -> Option<ToolCallEntry> {
        let RunEventKind::ToolFinished {
            is_error,
            failure,
            cached,
            attempts,
            duration_ms,
            content,
            structured,
            ..
        } = kind
        else {
            return None;
        };
        let result = self.options.results.then(|| match structured {
            Some(structured) => self.options.redactor.value(structured),
            None => self.options.redactor.content(content),
        });
        Some(ToolCallEntry {
            is_error: Some(*is_error),
            failure: *failure,
            attempts: Some(*attempts),
            cached: Some(*cached),
            duration_ms: Some(*duration_ms),
            result_bytes: Some(json_bytes(content)),
            result,
            ..self.entry(id, ToolCallMoment::Finished)
        })
    }

    fn entry(&mut self, id: &str, moment: ToolCallMoment) -> ToolCallEntry {
        let call = self.call(id);
        ToolCallEntry {
            moment,
            id: id.to_owned(),
            server: call.server.clone(),
            tool: call.tool.clone(),
            input: call.input.clone(),
            is_error: None,
            failure: None,
            attempts: None,
            cached: None,
            duration_ms: None,
            result_bytes: None,
            result: None,
        }
    }

    fn approval(&mut self, id: &str, decision: Decision, by: Decider) -> AuditKind {
        let call = self.call(id);
        AuditKind::Approval(Approval {
            id: id.to_owned(),
            server: call.server.clone(),
            tool: call.tool.clone(),
            decision,
            by,
            reason: None,
            scope: None,
            edited: false,
        })
    }

    /// The call of this id; an unknown one if it was planned where nobody of us saw it.
    fn call(&mut self, id: &str) -> &mut OpenCall {
        self.calls.entry(id.to_owned()).or_insert_with(|| OpenCall {
            server: None,
            tool: "unknown".to_owned(),
            input: Value::Null,
            asked: false,
        })
    }
}

impl Cost {
    fn add(&mut self, usd: Option<f64>) {
        match usd {
            Some(usd) => {
                self.usd += usd;
                self.any = true;
            }
            None => self.unknown = true,
        }
    }

    fn known(&self) -> Option<f64> {
        (self.any && !self.unknown).then_some(self.usd)
    }
}

/// The name of a value that is a plain string in JSON.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => "other".to_owned(),
    }
}

fn milliseconds_between(since: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.as_millisecond() - since.as_millisecond()).unwrap_or(0)
}

/// How long a value is as JSON, without making it.
fn json_bytes(value: &impl Serialize) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that cannot be written was counted as far as it goes.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
#[path = "projection_tests.rs"]
mod tests;
