//! Compares the tool calls of a model with the expected calls.

pub(crate) mod bfcl;
mod call_assignment;
mod call_matcher;
pub(crate) mod first_response;
pub(crate) mod made_up_values;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_domain::ToolContent;
use switchboard_orchestration::{ToolCallRecord, ToolFailure};

use crate::{
    recording::is_redacted,
    suite::{ExpectedCall, MatchResult, ToolPattern, Turn, find_maximum_matching, values_match},
};
use call_assignment::{CallAssignment, assign_calls};
use call_matcher::CallMatcher;
pub(crate) use call_matcher::describe_expected_call;

/// How a tool call ended, regardless of the calls that the scenario expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallOutcome {
    /// The tool returned a result without an error.
    Successful,
    /// The tool or its MCP server failed, or did not respond in time.
    Failed,
    /// The model called a tool that does not exist, or used invalid arguments.
    Hallucinated,
    /// The call was not executed: for example, it was denied, skipped, cancelled, or exceeded the
    /// run's limit of tool calls.
    NotExecuted,
}

impl CallOutcome {
    pub(crate) fn is_executed(self) -> bool {
        matches!(self, Self::Successful | Self::Failed)
    }
}

/// Verdict on a tool call, from its comparison with the calls that the scenario expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The call has an expected tool with the expected arguments, in the expected order. A call
    /// that was not executed, for example because it was denied, can be right too.
    Right,
    /// The call has the right tool and arguments, but at the wrong position among the calls.
    WrongOrder,
    /// The call has an expected tool, but with wrong arguments.
    WrongInput,
    /// The call has a tool that does not exist, or invalid arguments.
    Hallucinated,
    /// The call has a tool that the scenario forbids.
    Forbidden,
    /// The scenario does not expect the call. This includes a repetition of a successful call with
    /// the same tool and input, whose result the model already has.
    Unnecessary,
    /// The call may match an expected call. This is unknown in a replay if secrets in the call's
    /// arguments were redacted in the recording. The call counts as neither right nor wrong.
    Unknown,
    /// The call counts as neither right nor wrong: the turn lists no expected calls, or the call is
    /// for a built-in tool, or it is an unexpected retry of a failed call.
    Unjudged,
}

/// A tool call of the model with its outcome and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoredCall {
    /// Name of the MCP server that provides the tool. `None` for a built-in tool and for a tool
    /// that does not exist.
    pub server: Option<String>,
    /// Name of the tool on its server, without the server name.
    pub tool: String,
    /// Input of the call after repairs, such as a number instead of a text with digits. With
    /// [`ScoringRules::Bfcl`](crate::suite::ScoringRules::Bfcl), the input as the model wrote it,
    /// without repairs.
    pub input: Value,
    /// Outcome of the tool call, such as successful or failed.
    pub outcome: CallOutcome,
    /// Verdict on the tool call, such as right or unnecessary.
    pub verdict: Verdict,
    /// Reason for the verdict as text. `None` for right calls and for [`Verdict::Unjudged`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Duration of the tool call in milliseconds.
    pub duration_ms: u64,
    /// Text of the tool's result. A text longer than 2,000 bytes is cut and ends with `…`.
    pub result: String,
}

impl ScoredCall {
    fn new(
        call: &ToolCallRecord,
        outcome: CallOutcome,
        verdict: Verdict,
        reason: Option<String>,
    ) -> Self {
        Self {
            server: call.server.clone(),
            tool: call.tool.clone(),
            input: (*call.input).clone(),
            outcome,
            verdict,
            reason,
            duration_ms: call.duration_ms,
            result: result_excerpt(call),
        }
    }
}

/// The tool calls of one turn with their scores, and the expected calls that are missing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TurnScore {
    /// Tool calls of the turn, in the order of the model's requests.
    pub calls: Vec<ScoredCall>,
    /// Required calls that the model did not make correctly, each as text with tool and arguments.
    pub missing: Vec<String>,
    /// Number of the calls in `missing` that the model attempted with wrong or invalid arguments or
    /// at the wrong position. Summaries count such an attempt as one wrong call, and not also as a
    /// missing call.
    #[serde(default)]
    pub attempted: usize,
    /// Right calls that were not executed, each as text with tool, arguments and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_executed: Vec<String>,
}

/// Maximum size in bytes of a tool result in a report. Longer results are cut.
const MAX_RESULT_BYTES: usize = 2_000;

/// Compares the tool calls of a turn with the calls that the turn expects. `calls` must have the
/// order in which the model requested them.
///
/// `earlier` are the calls of earlier turns. The model already has their results, so a repetition
/// of such a call is unnecessary. `is_redacted` returns whether a call comes from a recording in
/// which secrets of its input were redacted.
pub fn score_turn(
    turn: &Turn,
    calls: &[ToolCallRecord],
    earlier: &[ToolCallRecord],
    is_redacted: &dyn Fn(&ToolCallRecord) -> bool,
) -> TurnScore {
    let expected = turn.calls.as_deref().unwrap_or_default();
    let matchers: Vec<CallMatcher<'_>> = expected.iter().map(CallMatcher::new).collect();
    let calls: Vec<CallToScore<'_>> = calls
        .iter()
        .map(|record| {
            let is_redacted = is_redacted(record);
            CallToScore {
                record,
                is_redacted,
                outcome: redacted_call_outcome(record, is_redacted),
            }
        })
        .collect();
    let CallAssignment {
        assigned,
        misplaced,
        missing,
        mut unmet,
        mut attempted,
    } = assign_calls(turn, &matchers, &calls);
    let open: Vec<usize> = (0..calls.len())
        .filter(|call| {
            let is_assigned = assigned.contains_key(call) || misplaced.contains(call);
            let info = &calls[*call];
            info.is_redacted && info.outcome != CallOutcome::Hallucinated && !is_assigned
        })
        .collect();
    let optional = missing.iter().filter(|one| expected[**one].optional);
    // Indexes of the expected calls that a redacted call may match. Required calls come first, so
    // that they are matched before optional calls.
    let candidates: Vec<usize> = unmet.iter().chain(optional).copied().collect();
    let unknown = match_redacted_calls(&candidates, &open, |one, call| {
        let call = &calls[call];
        matchers[one].match_call(call.record, call.is_redacted) == MatchResult::Unknown
    });
    unmet.retain(|one| !unknown.values().any(|it| it == one));
    let not_executed = describe_unexecuted_calls(expected, &matchers, &assigned, &calls);
    let forbidden = turn.forbidden.iter().map(|it| ToolPattern::new(it));
    let forbidden: Vec<ToolPattern> = forbidden.collect();
    let earlier = earlier.iter().filter(|call| !call.is_error);
    let mut known: Vec<&ToolCallRecord> = earlier.collect();
    let mut failed: Vec<&ToolCallRecord> = Vec::new();
    let mut scored = Vec::with_capacity(calls.len());
    let because = |verdict, reason: &str| (verdict, Some(reason.to_owned()));
    for (position, info) in calls.iter().enumerate() {
        let call = info.record;
        // A redacted call never counts as a repetition, because inputs with different secrets look
        // equal after redaction.
        let is_repeated = !info.is_redacted
            && (known.iter().any(|it| is_same_call(it, call))
                || call.failure == Some(ToolFailure::Repeated));
        // A retry of a failed call is useful, so it is not an unnecessary repetition.
        let is_retry = failed.iter().any(|it| is_same_call(it, call));
        if call.is_error {
            failed.push(call);
        } else {
            known.push(call);
        }
        let is_forbidden = |it: &ToolPattern| it.matches(call.server.as_deref(), &call.tool);
        // Built-in tools, such as tool search, have no server. Scenarios have no expectations about
        // them.
        let is_unjudged = turn.calls.is_none() || call.server.is_none() || is_retry;
        let (verdict, reason) = if forbidden.iter().any(is_forbidden) {
            because(Verdict::Forbidden, "the tool is forbidden in this turn")
        } else if info.outcome == CallOutcome::Hallucinated {
            (Verdict::Hallucinated, call.failure.map(describe_failure))
        } else if assigned.contains_key(&position) {
            (Verdict::Right, None)
        } else if misplaced.contains(&position) {
            because(Verdict::WrongOrder, "it is expected at another position")
        } else if unknown.contains_key(&position) {
            (Verdict::Unknown, describe_redacted_arguments(call))
        } else if let Some(place) = unmet
            .iter()
            .position(|one| matchers[*one].matches_any_tool(call))
        {
            let one = unmet.remove(place);
            attempted += 1;
            let reason = matchers[one].describe_difference(call, info.is_redacted);
            (Verdict::WrongInput, reason)
        } else if turn.calls.is_some() && is_repeated {
            because(Verdict::Unnecessary, "its result was already known")
        } else if is_unjudged {
            (Verdict::Unjudged, None)
        } else {
            because(Verdict::Unnecessary, "the call is not expected")
        };
        scored.push(ScoredCall::new(call, info.outcome, verdict, reason));
    }
    attempted += count_rejected_attempts(&unmet, &calls, &matchers);
    TurnScore {
        calls: scored,
        missing: describe_missing_calls(&missing, expected, &unknown),
        attempted,
        not_executed,
    }
}

/// Returns whether two calls use the same tool with the same input.
fn is_same_call(a: &ToolCallRecord, b: &ToolCallRecord) -> bool {
    let is_empty = |input: &Value| input.as_object().is_some_and(Map::is_empty);
    let has_same_input = values_match(Some(&a.input), &b.input)
        || (a.input.is_null() && is_empty(&b.input))
        || (b.input.is_null() && is_empty(&a.input));
    (&a.server, &a.tool) == (&b.server, &b.tool) && has_same_input
}

/// A tool call of the turn with its outcome, as input for scoring.
struct CallToScore<'a> {
    record: &'a ToolCallRecord,
    is_redacted: bool,
    outcome: CallOutcome,
}

/// Describes the required calls whose indexes are in `missing`. Omits the expected calls in the
/// values of `unknown`: the model may have made them with an input that is redacted in the
/// recording.
fn describe_missing_calls(
    missing: &[usize],
    expected: &[ExpectedCall],
    unknown: &HashMap<usize, usize>,
) -> Vec<String> {
    let missing = missing.iter().filter(|one| {
        let may_be_made = unknown.values().any(|it| it == *one);
        !expected[**one].optional && !may_be_made
    });
    let texts = missing.map(|one| describe_expected_call(&expected[*one]));
    texts.collect()
}

/// Returns the outcome of a call whose input may be redacted. A redacted input that is invalid
/// gives `NotExecuted` and not `Hallucinated`, because the original input may have been valid.
pub(crate) fn redacted_call_outcome(call: &ToolCallRecord, is_redacted: bool) -> CallOutcome {
    if is_redacted && has_invalid_input(call) {
        CallOutcome::NotExecuted
    } else {
        call_outcome(call)
    }
}

fn has_invalid_input(call: &ToolCallRecord) -> bool {
    matches!(
        call.failure,
        Some(ToolFailure::InvalidInput | ToolFailure::MalformedInput)
    )
}

/// Returns the number of expected calls in `unmet` for which the model called the right tool with
/// invalid input. Such an attempt already counts as hallucinated, so the expected call must not
/// also count as missing.
fn count_rejected_attempts(
    unmet: &[usize],
    calls: &[CallToScore<'_>],
    matchers: &[CallMatcher<'_>],
) -> usize {
    let rejected = calls.iter();
    let rejected: Vec<_> = rejected
        .filter(|call| call.outcome == CallOutcome::Hallucinated)
        .collect();
    let found = find_maximum_matching(unmet.len(), rejected.len(), |one, call| {
        matchers[unmet[one]].matches_any_tool(rejected[call].record)
    });
    found.iter().flatten().count()
}

/// Maps the index of a call with redacted input to the index of an expected call that it may match.
/// Assigns each expected call at most once.
fn match_redacted_calls(
    candidates: &[usize],
    calls: &[usize],
    may_match: impl Fn(usize, usize) -> bool,
) -> HashMap<usize, usize> {
    let mut found: HashMap<usize, usize> = HashMap::new();
    for &call in calls {
        let mut free = candidates
            .iter()
            .filter(|one| !found.values().any(|it| it == *one));
        let one = free.find(|one| may_match(**one, call)).copied();
        found.extend(one.map(|one| (call, one)));
    }
    found
}

/// Returns a text for each required call that the model made but that was not executed, with the
/// reason. Omits a required call if another call that matches it was executed.
fn describe_unexecuted_calls(
    expected: &[ExpectedCall],
    matchers: &[CallMatcher<'_>],
    assigned: &HashMap<usize, usize>,
    calls: &[CallToScore<'_>],
) -> Vec<String> {
    let mut others: Vec<usize> = (0..calls.len())
        .filter(|call| calls[*call].outcome.is_executed() && !assigned.contains_key(call))
        .collect();
    let mut found = Vec::new();
    for (position, info) in calls.iter().enumerate() {
        let required = assigned
            .get(&position)
            .filter(|one| !expected[**one].optional);
        let (Some(&one), CallOutcome::NotExecuted) = (required, info.outcome) else {
            continue;
        };
        // Only redacted input can be invalid here, because other calls with invalid input are never
        // assigned. Redaction may have made the input invalid, so the recorded run may have
        // executed the call.
        if has_invalid_input(info.record) {
            continue;
        }
        let is_equal = |other: &usize| {
            let other = &calls[*other];
            matchers[one].match_call(other.record, other.is_redacted) == MatchResult::Yes
        };
        if let Some(place) = others.iter().position(is_equal) {
            others.remove(place);
            continue;
        }
        let failure = info.record.failure;
        let reason = failure.map_or_else(|| "it was never started".to_owned(), describe_failure);
        let hint = match failure {
            Some(ToolFailure::NotApproved | ToolFailure::Denied) => {
                "; `--approve` allows calls without approval"
            }
            _ => "",
        };
        let call = describe_expected_call(&expected[one]);
        found.push(format!("{call} ({reason}{hint})"));
    }
    found
}

fn describe_failure(failure: ToolFailure) -> String {
    failure.as_str().replace('_', " ")
}

/// Returns the outcome of a tool call, derived from the fields `failure`, `is_error` and `attempts`
/// of its record.
pub(crate) fn call_outcome(call: &ToolCallRecord) -> CallOutcome {
    match call.failure {
        Some(failure) if failure.is_hallucination() => CallOutcome::Hallucinated,
        Some(ToolFailure::Repeated) if !call.is_error => CallOutcome::Successful,
        Some(
            ToolFailure::Denied
            | ToolFailure::NotApproved
            | ToolFailure::Skipped
            | ToolFailure::LimitReached
            | ToolFailure::Repeated
            | ToolFailure::Withheld,
        ) => CallOutcome::NotExecuted,
        Some(ToolFailure::Cancelled) if call.attempts == 0 => CallOutcome::NotExecuted,
        Some(_) => CallOutcome::Failed,
        None if call.is_error => CallOutcome::Failed,
        None => CallOutcome::Successful,
    }
}

fn result_excerpt(call: &ToolCallRecord) -> String {
    let texts = call.result.content.iter().map(ToolContent::as_text);
    let mut text = texts.collect::<Vec<_>>().join("\n");
    if text.len() > MAX_RESULT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_RESULT_BYTES));
        text.push('…');
    }
    text
}

/// Returns the reason for [`Verdict::Unknown`]: a text that lists the call's redacted arguments.
/// Returns `None` if the input is not an object.
fn describe_redacted_arguments(call: &ToolCallRecord) -> Option<String> {
    let fields = call.input.as_object()?.iter();
    let names = fields.filter(|(_, value)| is_redacted(value));
    let names: Vec<String> = names.map(|(name, _)| format!("`{name}`")).collect();
    let verb = if names.len() == 1 { "was" } else { "were" };
    let names = names.join(" and ");
    Some(format!("{names} {verb} redacted in the recording"))
}

/// Returns a text with tool and arguments for each call that a turn requires. Omits optional calls.
pub(crate) fn describe_required_calls(turn: &Turn) -> impl Iterator<Item = String> {
    let calls = turn.calls.iter().flatten();
    calls
        .filter(|call| !call.optional)
        .map(describe_expected_call)
}

#[cfg(test)]
#[path = "scoring/scoring_tests.rs"]
mod tests;
