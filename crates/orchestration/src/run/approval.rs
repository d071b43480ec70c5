//! Approval decisions about waiting calls.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ApprovalScope, SharedObject, ToolDefinition, check_depth,
};

use super::{
    Events, Run, UnexpectedInput,
    state::{RequestedToolCall, ToolCallEnd, ToolCallState},
};
use crate::{
    RunEventKind, ToolFailure,
    policy::approval::{self, ApprovalVerdict, Requester},
};

impl Run {
    /// Applies a decision about the tool call with the tool use id `id`. Returns an error if this
    /// call does not wait for approval.
    ///
    /// [`ApprovalDecision::Later`] leaves the approval request open. A decision after the expiry of
    /// the request counts as [`ApprovalDecision::Expired`]; [`Run::set_current_time`] sets the
    /// current time.
    pub fn apply_decision(
        &mut self,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.find_unfinished_call(id)?;
        let call = &self.state.batch_calls()[position];
        if !matches!(call.state, ToolCallState::Waiting { .. }) {
            let reason = format!("`{id}` is not waiting for approval");
            return Err(UnexpectedInput(reason));
        }
        if decision == ApprovalDecision::Later {
            return Ok(Vec::new());
        }
        let (name, record) = (call.tool_use.name.clone(), call.record);
        let decision = match self.remaining_decision_time(id) {
            Some(Duration::ZERO) => ApprovalDecision::Expired,
            _ => decision,
        };
        let definition = self.find_tool_definition(&name).cloned();
        let is_remembered = self.store_decision(&name, &decision);
        let (failure, refusal) = match self.check_approval_decision(decision, definition.as_ref()) {
            Err(refused) => refused,
            Ok((scope, edited)) => {
                let mut events = Vec::new();
                let is_edited = edited.is_some();
                if let Some(input) = edited {
                    if let Some(entry) = self.state.records.get_mut(record) {
                        entry.input = input.to_value();
                    }
                    events.push(RunEventKind::ToolInputRepaired {
                        id: id.to_owned(),
                        repairs: vec!["the user edited the input".to_owned()],
                        input: input.to_value(),
                    });
                    self.state.batch_calls_mut()[position].input = Some(input);
                }
                events.push(RunEventKind::ToolApproved {
                    id: id.to_owned(),
                    scope,
                    edited: is_edited,
                    remembered: false,
                });
                self.state.batch_calls_mut()[position].state = ToolCallState::Ready;
                if let Some(definition) = definition.filter(|_| is_remembered) {
                    events.extend(self.apply_stored_decision(&definition, scope));
                }
                return Ok(events);
            }
        };
        let mut events = self.deny_call(position, failure, refusal, false);
        if let Some(definition) = definition.filter(|_| is_remembered) {
            events.extend(self.apply_stored_decision(&definition, ApprovalScope::Session));
        }
        events.extend(self.finish_batch_if_complete());
        Ok(events)
    }

    /// Ends a tool call without running it. `position` is the index of the call among the tool
    /// calls of the last model response. The model reads `reason` as the result. `remembered`
    /// states whether an earlier decision of a person denies the call.
    pub(super) fn deny_call(
        &mut self,
        position: usize,
        failure: ToolFailure,
        reason: String,
        remembered: bool,
    ) -> Events {
        let id = self.state.batch_calls()[position].tool_use.id.clone();
        let end = ToolCallEnd::not_executed(failure, &reason);
        let mut events = vec![RunEventKind::ToolDenied {
            id,
            reason,
            remembered,
        }];
        events.extend(self.end_call(position, end));
        events
    }

    /// Stores an approval decision if it also covers later calls of the tool. Returns whether the
    /// decision was stored.
    fn store_decision(&self, tool: &str, decision: &ApprovalDecision) -> bool {
        let Some(definition) = self.find_definition_for_approval(tool) else {
            return false;
        };
        let approval = &self.state.options.approval;
        if approval.always_requires_approval(definition) {
            return false;
        }
        let until = approval.decision_expiry(self.state.now);
        let mut decisions = self.state.decisions.lock_decisions();
        decisions.remember_decision(&self.build_requester(), definition, decision, until)
    }

    pub(super) fn build_requester(&self) -> Requester<'_> {
        Requester {
            principal: &self.state.principal,
            session: self.state.session.as_deref().unwrap_or(&self.state.id),
        }
    }

    /// Applies a decision that was stored for later calls of a tool to the calls of this tool that
    /// already wait for approval.
    fn apply_stored_decision(
        &mut self,
        definition: &ToolDefinition,
        scope: ApprovalScope,
    ) -> Events {
        let mut events = Vec::new();
        for position in 0..self.state.batch_calls().len() {
            let call = &self.state.batch_calls()[position];
            let is_waiting = matches!(call.state, ToolCallState::Waiting { .. });
            if !is_waiting || call.tool_use.name != definition.name {
                continue;
            }
            let id = call.tool_use.id.clone();
            match self.find_approval_verdict(definition).0 {
                ApprovalVerdict::Run => {
                    self.state.batch_calls_mut()[position].state = ToolCallState::Ready;
                    events.push(RunEventKind::ToolApproved {
                        id,
                        scope,
                        edited: false,
                        remembered: true,
                    });
                }
                ApprovalVerdict::Refuse { reason, remembered } => {
                    let failure = ToolFailure::Denied;
                    events.extend(self.deny_call(position, failure, reason, remembered));
                }
                ApprovalVerdict::Ask { .. } => {}
            }
        }
        events
    }

    /// Returns the scope and the edited input of a decision that lets a tool call run. If the
    /// decision denies the call or the edited input is invalid, the error contains the reason for
    /// the model.
    fn check_approval_decision(
        &self,
        decision: ApprovalDecision,
        definition: Option<&Arc<ToolDefinition>>,
    ) -> Result<(ApprovalScope, Option<SharedObject>), (ToolFailure, String)> {
        let (failure, why) = match decision {
            ApprovalDecision::Allow { input: None, scope } => return Ok((scope, None)),
            ApprovalDecision::Allow {
                input: Some(edited),
                scope,
            } => {
                let edited = SharedObject::from(edited);
                let checked = match (check_depth(edited.as_value()), definition) {
                    (Err(too_deep), _) => Err(format!("it is {too_deep}")),
                    (Ok(()), Some(definition)) => {
                        self.caches.validators.validate_input(definition, &edited)
                    }
                    (Ok(()), None) => Err("the tool is no longer available".to_owned()),
                };
                match checked {
                    Ok(()) => return Ok((scope, Some(edited))),
                    Err(faults) => (
                        ToolFailure::InvalidInput,
                        format!("the edited input cannot be used: {faults}"),
                    ),
                }
            }
            ApprovalDecision::Deny { reason, .. } => (
                ToolFailure::Denied,
                approval::format_denial(reason.as_deref()),
            ),
            ApprovalDecision::Expired => (
                ToolFailure::NotApproved,
                "it requires approval, and the approval request expired".to_owned(),
            ),
            ApprovalDecision::NobodyThere | ApprovalDecision::Later => (
                ToolFailure::NotApproved,
                "it requires approval, and no user is available".to_owned(),
            ),
        };
        Err((failure, why))
    }

    /// Returns the approval requests of the waiting calls with an index in `range`. The indices
    /// refer to the calls of the last model response. The driver shows the requests next, so
    /// requests without an expiry get one now.
    pub(super) fn prepare_approval_requests(
        &mut self,
        range: std::ops::Range<usize>,
    ) -> Vec<ApprovalRequest> {
        let approval = &self.state.options.approval;
        let expiry = approval
            .request_expiry(self.state.now)
            .map(|it| it.to_string());
        let deadline = self.caches.monotonic_now.zip(approval.expire_after);
        let deadline = deadline.map(|(now, span)| now.add_duration(span));
        for call in &mut self.state.batch_calls_mut()[range.clone()] {
            if let ToolCallState::Waiting { expires_at, .. } = &mut call.state
                && expires_at.is_none()
            {
                expires_at.clone_from(&expiry);
                call.deadline = deadline;
            }
        }
        let calls = self.state.batch_calls()[range].iter();
        calls
            .filter_map(|call| self.build_approval_request(call))
            .collect()
    }

    /// Builds the approval request of a tool call. Returns `None` if the call does not wait for
    /// approval.
    fn build_approval_request(&self, call: &RequestedToolCall) -> Option<ApprovalRequest> {
        let ToolCallState::Waiting {
            expires_at,
            redefined,
        } = &call.state
        else {
            return None;
        };
        let mut request = ApprovalRequest::new(&self.state.id, call.tool_use.clone());
        request.origin.clone_from(&call.origin);
        request.annotations = call.annotations;
        let definition = self.find_tool_definition(&call.tool_use.name);
        request.description = definition.map(|tool| tool.description.clone());
        request.input.clone_from(&call.input);
        request.fingerprint.clone_from(&call.fingerprint);
        request.redefined = *redefined;
        request.expires_at.clone_from(expires_at);
        Some(request)
    }

    /// Returns the time until the approval request of a tool call expires. Returns `None` if the
    /// request never expires or the call does not wait for approval.
    ///
    /// The process that made the request measures the time on its monotonic clock. Another process
    /// compares the request's time stamp with the run's current time.
    pub(crate) fn remaining_decision_time(&self, id: &str) -> Option<Duration> {
        let mut calls = self.state.batch_calls().iter();
        let call = calls.find(|call| call.tool_use.id == id)?;
        let ToolCallState::Waiting { expires_at, .. } = &call.state else {
            return None;
        };
        let until: Timestamp = expires_at.as_deref()?.parse().ok()?;
        let times = self.caches.monotonic_now.zip(call.deadline);
        let left = times.and_then(|(now, deadline)| now.duration_until(deadline));
        let by_stamp =
            || Duration::try_from(until.duration_since(self.state.now)).unwrap_or_default();
        Some(left.unwrap_or_else(by_stamp))
    }

    /// Returns the approval requests that wait for a decision.
    pub fn pending_approvals(&self) -> Vec<ApprovalRequest> {
        let calls = self.state.batch_calls().iter();
        calls
            .filter_map(|call| self.build_approval_request(call))
            .collect()
    }
}
