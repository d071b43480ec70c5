//! Whether the calls of a first answer are the right ones, and no more.

use switchboard_orchestration::{Outcome, RunErrorKind, RunReport, ToolCallRecord, ToolFailure};

use super::{
    CallEnd, Cut, JudgedCall, Judgement, Wanted, Worth, end_in, excerpt, in_words, not_known,
};
use crate::suite::{Fit, Turn};

/// What the calls of a first answer are worth; `cut` as in [`super::judge`].
pub(crate) fn judge(
    turn: &Turn,
    calls: &[ToolCallRecord],
    cut: &dyn Fn(&ToolCallRecord) -> Cut,
) -> Judgement {
    let expected = turn.calls.as_deref().unwrap_or_default();
    let wanted: Vec<Wanted<'_>> = expected.iter().map(Wanted::with_null).collect();
    // The first that fits is taken, and not given back for another one: a call that fits two answers may be taken by
    // the one that comes first.
    let mut taken = vec![None; calls.len()];
    for (one, wanted) in wanted.iter().enumerate() {
        let mut free = calls.iter().zip(&mut taken);
        if let Some((_, place)) =
            free.find(|(call, of)| of.is_none() && wanted.fits(call, cut(call)))
        {
            *place = Some(one);
        }
    }
    let mut left: Vec<usize> = (0..wanted.len())
        .filter(|one| !taken.contains(&Some(*one)))
        .collect();
    let mut unknown = vec![None; calls.len()];
    for (at, call) in calls.iter().enumerate() {
        if cut(call) != Cut::Nothing && taken[at].is_none() {
            let may_fit = |one: &usize| wanted[*one].fit(call, cut(call)) == Fit::Unknown;
            let place = left.iter().position(may_fit);
            unknown[at] = place.map(|place| left.remove(place));
        }
    }
    let missing = left.iter().map(|one| in_words(&expected[*one])).collect();
    let mut attempted = 0;
    let judged = calls.iter().zip(taken.iter().zip(&unknown));
    let judged = judged.map(|(call, (taken, unknown))| {
        let mut end = end_in(call, cut(call));
        let (worth, why) = if unknown.is_some() {
            if end == CallEnd::Hallucinated {
                end = CallEnd::NotExecuted;
            }
            (Worth::Unknown, not_known(call))
        } else if taken.is_some() {
            // The schema is stricter than the answers here and there, and the answers decide.
            if end == CallEnd::Hallucinated {
                end = CallEnd::NotExecuted;
            }
            (Worth::Right, None)
        } else if let Some(failure) = call.failure.filter(|it| is_invented(*it)) {
            let why = failure.as_str().replace('_', " ");
            (Worth::Hallucinated, Some(why))
        } else if let Some(place) = left.iter().position(|one| wanted[*one].is_of(call)) {
            attempted += 1;
            let one = left.remove(place);
            (Worth::WrongInput, wanted[one].difference(call, cut(call)))
        } else {
            let why = "no such call is expected".to_owned();
            (Worth::Unnecessary, Some(why))
        };
        JudgedCall {
            server: call.server.clone(),
            tool: call.tool.clone(),
            input: (*call.input).clone(),
            end,
            worth,
            why,
            duration_ms: call.duration_ms,
            result: excerpt(call),
        }
    });
    Judgement {
        calls: judged.collect(),
        missing,
        attempted,
        // The benchmark runs nothing.
        not_executed: Vec::new(),
    }
}

/// Whether there is nothing that could have been right: input that does not fit the schema may be.
fn is_invented(failure: ToolFailure) -> bool {
    failure.is_hallucination() && failure != ToolFailure::InvalidInput
}

/// What is wrong with an answer, one sentence for each thing.
pub(crate) fn faults(turn: &Turn, report: &RunReport, judgement: &Judgement) -> Vec<String> {
    let mut faults: Vec<String> = failure(report).into_iter().collect();
    let missing = judgement.missing.iter();
    faults.extend(missing.map(|call| format!("no such call: {call}")));
    // Where none is expected, an answer that cannot be read has no call.
    let is_unreadable = |call: &JudgedCall| !call.input.is_object();
    let expects_none = turn.calls.as_ref().is_none_or(Vec::is_empty);
    if expects_none && judgement.calls.iter().any(is_unreadable) {
        return faults;
    }
    let wrong = judgement
        .calls
        .iter()
        .filter(|call| !matches!(call.worth, Worth::Right | Worth::Unknown));
    faults.extend(wrong.map(|call| {
        let why = call.why.as_deref().unwrap_or("it is not expected");
        format!("`{}` was called: {why}", call.tool)
    }));
    faults
}

/// Why there is no answer. One that ends at the limit of one step is there, and one without anything in it is one
/// without a call.
fn failure(report: &RunReport) -> Option<String> {
    let error = report.error.as_ref();
    let is_answer = match report.outcome {
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
    let why = error.map_or_else(String::new, |error| format!(": {}", error.message));
    (!is_answer).then(|| format!("the run did not complete{why}"))
}
