//! What is to become of one tool use.

use std::sync::Arc;

use switchboard_domain::{
    ApprovalRequest, ApprovalScope, JsonObject, ToolDefinition, ToolInput, ToolUse,
};

use crate::run::{
    Run, place,
    tool_batch::batch::{CallEnd, CallState, PendingCall},
};
use crate::{
    RecordedResult, RunEventKind, ToolCallRecord, ToolFailure,
    policy::approval::{self, Asker, Call, Verdict},
    tools::arguments::{Checked, InputFault},
    tools::results,
};

impl Run {
    /// What is to become of one tool use.
    pub(in crate::run) fn plan(
        &mut self,
        tool_use: ToolUse,
        withheld: Option<&'static str>,
        events: &mut Vec<RunEventKind>,
    ) -> PendingCall {
        let definition = self.definition(&tool_use.name).cloned();
        if let Some(definition) = &definition
            && !self.tools.iter().any(|tool| tool.name == definition.name)
        {
            // It exists and was not shown. What is decided about it later is held against this, also
            // where the run was stored meanwhile.
            self.tools.push(Arc::clone(definition));
        }
        let origin = definition
            .as_ref()
            .and_then(|definition| definition.origin.clone());
        let annotations = definition
            .as_ref()
            .map(|definition| definition.annotations)
            .unwrap_or_default();
        let (server, tool) = place(origin.as_ref(), &tool_use.name);
        let input = tool_use.input.shown();
        events.push(RunEventKind::ToolPlanned {
            id: tool_use.id.clone(),
            server: server.clone(),
            tool: tool.clone(),
            input: Arc::clone(&input),
        });
        let record = self.records.len();
        self.records.push(ToolCallRecord {
            id: tool_use.id.clone(),
            server,
            tool,
            input,
            is_error: false,
            failure: None,
            cached: false,
            attempts: 0,
            duration_ms: 0,
            result: RecordedResult::default(),
        });
        let planned = match (withheld, definition) {
            (Some(why), _) => Err(CallEnd::failed(
                ToolFailure::Withheld,
                format!("Not executed: {why}."),
            )),
            (None, None) => Err(self.no_such_tool(&tool_use)),
            (None, Some(definition)) => self.plan_known(&tool_use, &definition, record, events),
        };
        let barrier = self
            .definition(&tool_use.name)
            .is_some_and(|definition| definition.sequential)
            || self
                .options
                .guards
                .iter()
                .any(|guard| guard.watches(&tool_use.name));
        let state = planned.unwrap_or_else(|end| {
            let of = (tool_use.id.clone(), tool_use.name.clone());
            let (event, result) = self.record(record, of, end);
            events.push(event);
            CallState::Settled { result }
        });
        let fingerprint = match &state {
            CallState::Waiting { request, .. } => request.fingerprint.clone(),
            _ => None,
        };
        PendingCall {
            tool_use,
            left_out: None,
            origin,
            annotations,
            state,
            record,
            barrier,
            fingerprint,
            deadline: None,
            repeats_at: None,
            repeated_at: Vec::new(),
        }
    }

    /// A call of a tool that exists: its input is checked and mended, then the limits, then what a
    /// person or a rule says.
    fn plan_known(
        &mut self,
        tool_use: &ToolUse,
        definition: &Arc<ToolDefinition>,
        record: usize,
        events: &mut Vec<RunEventKind>,
    ) -> Result<CallState, CallEnd> {
        let Checked { input, repairs } = self
            .validators
            .examine(definition, &tool_use.input)
            .map_err(|fault| unfit(&tool_use.name, &fault))?;
        if !repairs.is_empty() {
            if let Some(entry) = self.records.get_mut(record) {
                entry.input = input.to_value();
            }
            events.push(RunEventKind::ToolInputRepaired {
                id: tool_use.id.clone(),
                repairs: repairs.iter().map(ToString::to_string).collect(),
                input: input.to_value(),
            });
        }
        if let Some(end) = self.answered_here(tool_use, &input) {
            return Err(end);
        }
        if let Some(repeats) = self.repeated(tool_use) {
            return Ok(repeats);
        }
        self.ledger
            .admit_call(&self.options.limits, self.now)
            .map_err(|hit| {
                CallEnd::failed(ToolFailure::LimitReached, format!("Not executed: {hit}."))
            })?;
        self.selection.reveal(&tool_use.name);
        match self.judge(definition) {
            (Verdict::Run, remembered) => {
                if remembered {
                    events.push(RunEventKind::ToolApproved {
                        id: tool_use.id.clone(),
                        scope: ApprovalScope::Session,
                        edited: false,
                        remembered: true,
                    });
                }
                Ok(CallState::Ready { input })
            }
            (Verdict::Ask { redefined }, _) => {
                let mut request = ApprovalRequest::new(&self.id, tool_use.clone());
                request.origin.clone_from(&definition.origin);
                request.annotations = definition.annotations;
                request.description = Some(definition.description.clone());
                request.input = (!repairs.is_empty()).then(|| input.clone());
                let declared = self.declaration(&tool_use.name).unwrap_or(definition);
                request.fingerprint = Some(approval::fingerprint(declared));
                request.redefined = redefined;
                events.push(RunEventKind::ToolAwaitingApproval {
                    id: tool_use.id.clone(),
                });
                Ok(CallState::Waiting {
                    input,
                    request: Box::new(request),
                })
            }
            (Verdict::Refuse { reason }, _) => {
                events.push(RunEventKind::ToolDenied {
                    id: tool_use.id.clone(),
                    reason: reason.clone(),
                });
                Err(CallEnd::failed(
                    ToolFailure::Denied,
                    format!("Not executed: {reason}."),
                ))
            }
        }
    }

    /// Returns the [verdict](Run::verdict) about a new call. Keeps the definition of the tool if the call does
    /// not run unasked: when the definition changes later, the tool is asked for again.
    pub(in crate::run) fn judge(&mut self, definition: &ToolDefinition) -> (Verdict, bool) {
        let (verdict, is_allowed) = self.verdict(definition);
        if verdict != Verdict::Run || is_allowed {
            let declared = self.declaration(&definition.name);
            let fingerprint = approval::fingerprint(declared.map_or(definition, AsRef::as_ref));
            let judged = self.judged.entry(definition.name.clone());
            judged.or_insert(fingerprint);
        }
        (verdict, is_allowed)
    }

    /// What is configured and was answered before about calls of a tool, and whether there was a yes
    /// before to just this definition.
    pub(in crate::run) fn verdict(&self, definition: &ToolDefinition) -> (Verdict, bool) {
        let declared = self
            .declaration(&definition.name)
            .map_or(definition, AsRef::as_ref);
        let judged = self.judged.get(&definition.name);
        let redefined = self.redefined.contains(&definition.name)
            || judged.is_some_and(|judged| *judged != approval::fingerprint(declared));
        let call = Call::of(declared)
            .redefined(redefined)
            .requires_approval(self.capabilities.requires_approval);
        let session = self.session.as_deref().unwrap_or(&self.id);
        let asker = Asker {
            principal: &self.principal,
            session,
        };
        let decisions = self.decisions.lock();
        let approval = &self.options.approval;
        let verdict = approval.verdict(&call, &asker, &decisions, self.now);
        let answer = decisions.answer(&asker, &call, self.now);
        (verdict, answer == Some(approval::Answer::Allow))
    }

    /// Tools of the loop itself, which need nobody else: reading a long result on, searching tools.
    fn answered_here(&mut self, tool_use: &ToolUse, input: &JsonObject) -> Option<CallEnd> {
        let output = if tool_use.name == results::READ_TOOL && !self.kept.is_empty() {
            self.kept.read(input, &self.options.results)
        } else if self.selection.is_search_tool(&tool_use.name) {
            self.selection
                .answer_search(&self.options.search, &mut self.index, input)
                .output
        } else {
            return None;
        };
        Some(CallEnd::answered_here(output))
    }

    fn no_such_tool(&self, tool_use: &ToolUse) -> CallEnd {
        let name = &tool_use.name;
        // Malformed input of an unknown tool: the name is the fault that matters.
        let names: Vec<_> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let text = if names.is_empty() {
            format!("Not executed: there is no tool `{name}`, and no other tool either.")
        } else {
            format!(
                "Not executed: there is no tool `{name}`. There are: {}.",
                names.join(", ")
            )
        };
        match &tool_use.input {
            ToolInput::Malformed { reason, .. } if name.is_empty() => CallEnd::failed(
                ToolFailure::MalformedInput,
                format!("Not executed: the call is malformed: {reason}."),
            ),
            _ => CallEnd::failed(ToolFailure::UnknownTool, text),
        }
    }
}

fn unfit(tool: &str, fault: &InputFault) -> CallEnd {
    match fault {
        InputFault::Malformed { reason } => CallEnd::failed(
            ToolFailure::MalformedInput,
            format!(
                "Not executed: the input of `{tool}` is malformed: {reason}. Call the tool again \
                 with a complete JSON object."
            ),
        ),
        InputFault::Invalid { faults } => CallEnd::failed(
            ToolFailure::InvalidInput,
            format!("Not executed: the input does not fit the schema of `{tool}`: {faults}"),
        ),
    }
}
