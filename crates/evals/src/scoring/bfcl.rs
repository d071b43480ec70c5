//! Scores by the rules of the Berkeley Function Calling Leaderboard (BFCL): the tool calls of the
//! first response must be exactly the expected calls.

use switchboard_orchestration::{Outcome, RunErrorKind, RunReport, ToolCallRecord, ToolFailure};

use super::{
    CallMatcher, CallOutcome, ScoredCall, TurnScore, Verdict, describe_expected_call,
    describe_failure, describe_redacted_arguments, redacted_call_outcome,
};
use crate::suite::{MatchResult, Turn};

/// Compares the tool calls of the first model response with the expected calls, by the rules of the
/// Berkeley Function Calling Leaderboard. `is_redacted` returns whether a call comes from a
/// recording in which secrets of its input were redacted.
pub(crate) fn score_turn(
    turn: &Turn,
    calls: &[ToolCallRecord],
    is_redacted: &dyn Fn(&ToolCallRecord) -> bool,
) -> TurnScore {
    let expected = turn.calls.as_deref().unwrap_or_default();
    let matchers: Vec<CallMatcher<'_>> = expected.iter().map(CallMatcher::for_bfcl_rules).collect();
    let result = |one: usize, call| matchers[one].match_call(call, is_redacted(call));
    // Each expected call gets the first free call that matches it, as in the benchmark.
    let mut assigned = vec![None; calls.len()];
    for one in 0..matchers.len() {
        let mut free = calls.iter().zip(&mut assigned);
        let matching =
            free.find(|(call, taken)| taken.is_none() && result(one, call) == MatchResult::Yes);
        if let Some((_, place)) = matching {
            *place = Some(one);
        }
    }
    let mut left: Vec<usize> = (0..matchers.len())
        .filter(|one| !assigned.contains(&Some(*one)))
        .collect();
    let mut is_unknown = vec![false; calls.len()];
    for (position, call) in calls.iter().enumerate() {
        if is_redacted(call) && assigned[position].is_none() {
            let mut ones = left.iter();
            let possible = ones.position(|one| result(*one, call) == MatchResult::Unknown);
            is_unknown[position] = possible.map(|place| left.remove(place)).is_some();
        }
    }
    let missing = left.iter();
    let missing = missing.map(|one| describe_expected_call(&expected[*one]));
    let missing = missing.collect();
    let mut attempted = 0;
    let scored = calls.iter().enumerate().map(|(position, call)| {
        let outcome = redacted_call_outcome(call, is_redacted(call));
        // A call that is right by the benchmark's rules may violate the tool's JSON Schema. Such a
        // call counts as not executed and not as hallucinated.
        let accepted = match outcome {
            CallOutcome::Hallucinated => CallOutcome::NotExecuted,
            outcome => outcome,
        };
        if is_unknown[position] {
            let reason = describe_redacted_arguments(call);
            return ScoredCall::new(call, accepted, Verdict::Unknown, reason);
        }
        if assigned[position].is_some() {
            return ScoredCall::new(call, accepted, Verdict::Right, None);
        }
        let (verdict, reason) =
            if let Some(failure) = call.failure.filter(|it| is_certainly_wrong_call(*it)) {
                (Verdict::Hallucinated, Some(describe_failure(failure)))
            } else if let Some(place) = left
                .iter()
                .position(|one| matchers[*one].matches_any_tool(call))
            {
                attempted += 1;
                let one = left.remove(place);
                let reason = matchers[one].describe_difference(call, is_redacted(call));
                (Verdict::WrongInput, reason)
            } else {
                let reason = "the call is not expected".to_owned();
                (Verdict::Unnecessary, Some(reason))
            };
        ScoredCall::new(call, outcome, verdict, reason)
    });
    TurnScore {
        calls: scored.collect(),
        missing,
        attempted,
        // The benchmark does not execute calls, so no call is reported as not executed.
        not_executed: Vec::new(),
    }
}

/// Returns whether a call with this failure is wrong whatever its arguments are: the tool does not
/// exist, or the input is not a JSON object. Input that violates the tool's JSON Schema may still
/// be right by the benchmark's rules.
fn is_certainly_wrong_call(failure: ToolFailure) -> bool {
    failure.is_hallucination() && failure != ToolFailure::InvalidInput
}

/// Returns one sentence for each fault of the turn: the run has no model response, an expected call
/// is missing, or a call is wrong.
pub(crate) fn describe_faults(turn: &Turn, report: &RunReport, score: &TurnScore) -> Vec<String> {
    let mut faults: Vec<String> = describe_missing_response(report).into_iter().collect();
    let missing = score.missing.iter();
    faults.extend(missing.map(|call| format!("missing call: {call}")));
    // In the benchmark, a response with malformed tool input counts as a response without calls.
    // Such a response is right if no call is expected.
    let expects_none = turn.calls.as_ref().is_none_or(Vec::is_empty);
    if expects_none && score.calls.iter().any(|call| !call.input.is_object()) {
        return faults;
    }
    let is_fine = |call: &ScoredCall| matches!(call.verdict, Verdict::Right | Verdict::Unknown);
    let wrong = score.calls.iter().filter(|call| !is_fine(call));
    faults.extend(wrong.map(|call| {
        let reason = call.reason.as_deref().unwrap_or("the call is not expected");
        format!("`{}` was called: {reason}", call.tool)
    }));
    faults
}

/// Returns an error message if a run failed or was cancelled without a model response. A run that
/// reached its limit of one step has a response. A response that is empty, refused or filtered
/// counts as a response without calls.
fn describe_missing_response(report: &RunReport) -> Option<String> {
    let error = report.error.as_ref();
    let has_response = match report.outcome {
        Outcome::Completed | Outcome::Limited => true,
        Outcome::Failed => error.is_some_and(|error| {
            matches!(
                error.kind,
                RunErrorKind::EmptyAnswer
                    | RunErrorKind::Refusal
                    | RunErrorKind::ContentFilter
                    | RunErrorKind::MalformedToolCall
            )
        }),
        Outcome::Cancelled => false,
    };
    let message = error.map_or_else(String::new, |error| format!(": {}", error.message));
    (!has_response).then(|| format!("the run did not complete{message}"))
}
