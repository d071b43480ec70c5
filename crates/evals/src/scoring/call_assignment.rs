//! Assigns the tool calls of a turn to the calls that the scenario expects.

use std::collections::{HashMap, HashSet};

use super::{CallMatcher, CallOutcome, CallToScore};
use crate::suite::{ExpectedCall, MatchResult, Turn, find_maximum_matching};

/// Assignment of the model's calls in a turn to the expected calls of the turn. The index of a call
/// is its position in the list of all calls that the model made in the turn. The index of an
/// expected call is its position in the list of all expected calls.
pub(super) struct CallAssignment {
    /// Calls at the right position: maps the index of the call to the index of the expected call
    /// that it matches.
    pub(super) assigned: HashMap<usize, usize>,
    /// Indexes of the calls that match an expected call, but at a wrong position.
    pub(super) misplaced: HashSet<usize>,
    /// Indexes of the expected calls, required or optional, that no call matches at the right
    /// position.
    pub(super) missing: Vec<usize>,
    /// Indexes of the required calls in `missing` that no call matches at a wrong position either.
    pub(super) unmet: Vec<usize>,
    /// Number of the required calls in `missing` that a call matches at a wrong position.
    pub(super) attempted: usize,
}

pub(super) fn assign_calls(
    turn: &Turn,
    matchers: &[CallMatcher<'_>],
    calls: &[CallToScore<'_>],
) -> CallAssignment {
    let expected = turn.calls.as_deref().unwrap_or_default();
    let is_match = |one: usize, call: usize| {
        let call = &calls[call];
        call.outcome != CallOutcome::Hallucinated
            && matchers[one].match_call(call.record, call.is_redacted) == MatchResult::Yes
    };
    let all: Vec<usize> = (0..matchers.len()).collect();
    let in_order = if turn.any_order {
        match_calls_in_any_order(&all, expected, calls.len(), is_match)
    } else {
        let is_optional = |one: usize| expected[one].optional;
        match_calls_in_order(matchers.len(), calls.len(), is_optional, is_match)
    };
    let missing: Vec<usize> = (0..matchers.len())
        .filter(|one| in_order[*one].is_none())
        .collect();
    let pairs = in_order.iter().enumerate();
    let assigned: HashMap<usize, usize> = pairs
        .filter_map(|(one, call)| Some(((*call)?, one)))
        .collect();
    let out_of_order = match_calls_in_any_order(&missing, expected, calls.len(), |one, call| {
        !assigned.contains_key(&call) && is_match(one, call)
    });
    let misplaced = out_of_order.iter().flatten().copied().collect();
    let required = missing.iter().zip(&out_of_order);
    let required = required.filter(|(one, _)| !expected[**one].optional);
    let (attempted, unmet): (Vec<_>, Vec<_>) = required.partition(|(_, call)| call.is_some());
    CallAssignment {
        assigned,
        misplaced,
        attempted: attempted.len(),
        unmet: unmet.into_iter().map(|(one, _)| *one).collect(),
        missing,
    }
}

/// Matches as many expected calls as possible with calls in any order, and prefers required calls.
/// `ones` are the indexes of the expected calls, and `calls` is the number of calls. Returns the
/// index of the matching call for each expected call in `ones`, or `None` if no call matches.
fn match_calls_in_any_order(
    ones: &[usize],
    expected: &[ExpectedCall],
    calls: usize,
    matches: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..ones.len()).collect();
    order.sort_by_key(|at| expected[ones[*at]].optional);
    let found = find_maximum_matching(ones.len(), calls, |at, call| matches(ones[order[at]], call));
    let mut paired = vec![None; ones.len()];
    for (at, call) in order.into_iter().zip(found) {
        paired[at] = call;
    }
    paired
}

/// Matches expected calls with calls in the same order: as many required calls as possible, and
/// then as many optional calls as possible. Returns the index of the matching call for each
/// expected call, or `None` if no call matches.
pub(super) fn match_calls_in_order(
    ones: usize,
    calls: usize,
    is_optional: impl Fn(usize) -> bool,
    matches: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    // Dynamic programming: `best[one][call]` is the best result for the expected calls from index
    // `one` on and the calls from index `call` on. The result is a pair: the number of matched
    // required calls, and the number of all matched calls.
    let mut best = vec![vec![(0_usize, 0_usize); calls + 1]; ones + 1];
    let with =
        |one: usize, rest: (usize, usize)| (rest.0 + usize::from(!is_optional(one)), rest.1 + 1);
    for one in (0..ones).rev() {
        for call in (0..calls).rev() {
            let mut found = best[one + 1][call].max(best[one][call + 1]);
            if matches(one, call) {
                found = found.max(with(one, best[one + 1][call + 1]));
            }
            best[one][call] = found;
        }
    }
    let mut aligned = vec![None; ones];
    let (mut one, mut call) = (0, 0);
    while one < ones && call < calls {
        if matches(one, call) && best[one][call] == with(one, best[one + 1][call + 1]) {
            aligned[one] = Some(call);
            one += 1;
            call += 1;
        } else if best[one][call] == best[one + 1][call] {
            one += 1;
        } else {
            call += 1;
        }
    }
    aligned
}
