//! Planning of tool uses: validation, limits and approval rules decide whether a call may run.

use std::sync::Arc;

use switchboard_domain::{ApprovalScope, JsonObject, SharedObject, ToolDefinition, ToolUse};

use super::{
    AgentLoopState, Run, server_and_tool_name,
    state::{RequestedToolCall, ToolCallEnd, ToolCallState},
};
use crate::{
    RunError, RunEventKind, ToolCallRecord, ToolFailure,
    policy::{
        approval::{self, ApprovalVerdict, DecisionStatus, ToolCallToCheck},
        limits::tool_call_limit_error,
    },
    tools::{
        arguments::{InputFault, ValidatedToolInput},
        results,
    },
};

impl Run {
    /// Plans the call of one tool use, and adds it to the calls of the current model response. If
    /// no call of this response may run, `withheld` is the reason, for the error result of the
    /// call.
    pub(super) fn plan_tool_call(
        &mut self,
        tool_use: ToolUse,
        withheld: Option<&'static str>,
        events: &mut Vec<RunEventKind>,
    ) {
        let definition = self.find_tool_definition(&tool_use.name).cloned();
        let tools = &mut self.state.turn.tools;
        if let Some(definition) = &definition
            && !tools.iter().any(|tool| tool.name == definition.name)
        {
            // The model called a tool that exists but was not offered. A later approval decision
            // needs the definition of the tool.
            tools.push(Arc::clone(definition));
        }
        let origin = definition.as_ref().and_then(|tool| tool.origin.clone());
        let (server, tool) = server_and_tool_name(origin.as_ref(), &tool_use.name);
        events.push(RunEventKind::ToolPlanned {
            id: tool_use.id.clone(),
            server: server.clone(),
            tool: tool.clone(),
            input: tool_use.input.to_display_value(),
        });
        let record = self.state.records.len();
        self.state.records.push(ToolCallRecord {
            id: tool_use.id.clone(),
            server,
            tool,
            // The conversation contains the input, so the record omits it.
            ..ToolCallRecord::default()
        });
        let planned = match (withheld, &definition) {
            (Some(why), _) => Err(ToolCallEnd::not_executed(ToolFailure::Withheld, why)),
            (None, None) => Err(self.unknown_tool_failure(&tool_use.name)),
            (None, Some(definition)) => {
                self.plan_known_tool_call(&tool_use, definition, record, events)
            }
        };
        let mut guards = self.state.options.guards.iter();
        let is_guarded = guards.any(|guard| guard.applies_to_tool(&tool_use.name));
        let mut call = RequestedToolCall::new(tool_use, record);
        call.origin = origin;
        if let Some(definition) = &definition {
            call.annotations = definition.annotations;
            call.barrier = definition.sequential;
        }
        call.barrier |= is_guarded;
        let end = match planned {
            Ok((state, input)) => {
                if let (ToolCallState::Waiting { .. }, Some(definition)) = (&state, &definition) {
                    let declared = self.find_definition_for_approval(&definition.name);
                    let declared = declared.unwrap_or(definition);
                    call.fingerprint = Some(approval::tool_fingerprint(declared));
                }
                (call.state, call.input) = (state, input);
                None
            }
            Err(end) => Some(end),
        };
        let position = self.state.batch_calls().len();
        if let AgentLoopState::Batch(calls) = &mut self.state.phase {
            calls.push(call);
        }
        events.extend(end.map(|end| self.store_call_result(position, end)));
    }

    /// Returns an error if the run has made the maximum number of calls of this tool. `record` is
    /// the index of the new call in the records.
    fn check_tool_limit(&self, tool: &str, record: usize) -> Result<(), RunError> {
        let Some(max) = self.state.options.limits.limits_of_tool(tool).max_calls else {
            return Ok(());
        };
        let records = &self.state.records;
        let new = records.get(record);
        let is_counted = |other: &&ToolCallRecord| {
            new.is_some_and(|new| new.server == other.server && new.tool == other.tool)
                && !other.failure.is_some_and(ToolFailure::did_not_run)
        };
        let calls = records.iter().take(record).filter(is_counted).count();
        if u32::try_from(calls).is_ok_and(|calls| calls < max) {
            return Ok(());
        }
        let part = format!(" of `{tool}`");
        Err(tool_call_limit_error(max, &part, "tools"))
    }

    /// Plans the call of an existing tool: validates and repairs its input, then applies limits and
    /// approval rules.
    ///
    /// Returns the state of the call and, after a repair, its input. Returns `Err` with the outcome
    /// of a call that the driver must not execute: a rejection, or the output of a built-in tool,
    /// which the run executes itself.
    fn plan_known_tool_call(
        &mut self,
        tool_use: &ToolUse,
        definition: &Arc<ToolDefinition>,
        record: usize,
        events: &mut Vec<RunEventKind>,
    ) -> Result<(ToolCallState, Option<SharedObject>), ToolCallEnd> {
        let checked = self
            .caches
            .validators
            .validate_or_repair(definition, &tool_use.input);
        let ValidatedToolInput { input, repairs } =
            checked.map_err(|fault| invalid_input_failure(&tool_use.name, &fault))?;
        let repaired = (!repairs.is_empty()).then(|| input.clone());
        if repaired.is_some() {
            if let Some(entry) = self.state.records.get_mut(record) {
                entry.input = input.to_value();
            }
            events.push(RunEventKind::ToolInputRepaired {
                id: tool_use.id.clone(),
                repairs,
                input: input.to_value(),
            });
        }
        if let Some(end) = self.call_builtin_tool(tool_use, &input) {
            return Err(end);
        }
        if let Some(of) = self.find_repeated_call(tool_use) {
            return Ok((ToolCallState::Repeats { of }, repaired));
        }
        let admitted = self
            .check_tool_limit(&tool_use.name, record)
            .and_then(|()| {
                let state = &mut self.state;
                state
                    .ledger
                    .count_tool_call(&state.options.limits, state.now)
            });
        admitted.map_err(|error| {
            ToolCallEnd::not_executed(ToolFailure::LimitReached, &error.message)
        })?;
        self.state.turn.selection.offer_tool(&tool_use.name);
        match self.check_new_call_approval(definition) {
            (ApprovalVerdict::Run, is_remembered) => {
                if is_remembered {
                    events.push(RunEventKind::ToolApproved {
                        id: tool_use.id.clone(),
                        scope: ApprovalScope::Session,
                        edited: false,
                        remembered: true,
                    });
                }
                Ok((ToolCallState::Ready, repaired))
            }
            (ApprovalVerdict::Ask { redefined }, _) => {
                events.push(RunEventKind::ToolAwaitingApproval {
                    id: tool_use.id.clone(),
                });
                let waiting = ToolCallState::Waiting {
                    expires_at: None,
                    redefined,
                };
                Ok((waiting, repaired))
            }
            (ApprovalVerdict::Refuse { reason, remembered }, _) => {
                let end = ToolCallEnd::not_executed(ToolFailure::Denied, &reason);
                events.push(RunEventKind::ToolDenied {
                    id: tool_use.id.clone(),
                    reason,
                    remembered,
                });
                Err(end)
            }
        }
    }

    /// Returns the result of [`Run::find_approval_verdict`] for a new call. If the approval rules
    /// alone do not allow the call, also stores a fingerprint (SHA-256) of the tool's definition at
    /// the first check. A later change of the definition is detected by this fingerprint.
    pub(super) fn check_new_call_approval(
        &mut self,
        definition: &ToolDefinition,
    ) -> (ApprovalVerdict, bool) {
        let (verdict, is_allowed) = self.find_approval_verdict(definition);
        if verdict != ApprovalVerdict::Run || is_allowed {
            let declared = self.find_definition_for_approval(&definition.name);
            let fingerprint =
                approval::tool_fingerprint(declared.map_or(definition, AsRef::as_ref));
            let reviewed = self.state.reviewed.entry(definition.name.clone());
            reviewed.or_insert(fingerprint);
        }
        (verdict, is_allowed)
    }

    /// Returns whether the approval rules and earlier decisions allow a call of the tool. Also
    /// returns whether a person has already allowed the tool with its current definition.
    pub(super) fn find_approval_verdict(
        &self,
        definition: &ToolDefinition,
    ) -> (ApprovalVerdict, bool) {
        let name = &definition.name;
        let declared = self
            .find_definition_for_approval(name)
            .map_or(definition, AsRef::as_ref);
        let reviewed = self.state.reviewed.get(name);
        let is_redefined = self.state.redefined.contains(name)
            || reviewed.is_some_and(|reviewed| *reviewed != approval::tool_fingerprint(declared));
        let call = ToolCallToCheck::from_tool(declared)
            .with_redefined_tool(is_redefined)
            .with_required_approval(self.state.capabilities.requires_approval);
        let (requester, now) = (self.build_requester(), self.state.now);
        let decisions = self.state.decisions.lock_decisions();
        let verdict = self
            .state
            .options
            .approval
            .verdict_for_call(&call, &requester, &decisions, now);
        let is_allowed =
            decisions.decision_about_call(&requester, &call, now) == Some(DecisionStatus::Allow);
        (verdict, is_allowed)
    }

    /// Executes a call of one of the run's own tools, which read a truncated result or search
    /// tools. Returns `None` for other tools.
    fn call_builtin_tool(&mut self, tool_use: &ToolUse, input: &JsonObject) -> Option<ToolCallEnd> {
        let options = &self.state.options;
        let complete_results = &self.state.complete_results;
        let selection = &mut self.state.turn.selection;
        let output = if tool_use.name == results::READ_TOOL && !complete_results.is_empty() {
            complete_results.execute_result_read(input, &options.results)
        } else if selection.is_search_tool(&tool_use.name) {
            selection.execute_search(&options.search, &self.caches.index, input)
        } else {
            return None;
        };
        Some(ToolCallEnd {
            failure: output.is_error.then_some(ToolFailure::ToolError),
            output,
            attempts: 1,
            ..ToolCallEnd::default()
        })
    }

    fn unknown_tool_failure(&self, name: &str) -> ToolCallEnd {
        let tools = self.state.turn.tools.iter();
        let names: Vec<_> = tools.map(|tool| tool.name.as_str()).collect();
        let reason = if names.is_empty() {
            format!("unknown tool `{name}`, and no tools are available")
        } else {
            let names = names.join(", ");
            format!("unknown tool `{name}`. Available tools: {names}")
        };
        ToolCallEnd::not_executed(ToolFailure::UnknownTool, &reason)
    }
}

fn invalid_input_failure(tool: &str, fault: &InputFault) -> ToolCallEnd {
    match fault {
        InputFault::Malformed { reason } => ToolCallEnd::from_failure(
            ToolFailure::MalformedInput,
            format!(
                "Not executed: the input of `{tool}` is malformed: {reason}. Call the tool again \
                 with a complete JSON object."
            ),
        ),
        InputFault::Invalid { faults } => ToolCallEnd::from_failure(
            ToolFailure::InvalidInput,
            format!("Not executed: the input does not match the schema of `{tool}`: {faults}"),
        ),
    }
}
