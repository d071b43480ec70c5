use std::slice;

use proptest::prelude::*;
use serde_json::json;
use switchboard_orchestration::RecordedResult;

use super::{call_assignment::match_calls_in_order, *};
use crate::{suite::Matcher, test_table::rows};

fn call(tool: &str, input: Value) -> ToolCallRecord {
    ToolCallRecord {
        id: String::new(),
        server: Some("shop".to_owned()),
        tool: tool.to_owned(),
        input: input.into(),
        is_error: false,
        failure: None,
        cached: false,
        attempts: 1,
        duration_ms: 3,
        result: RecordedResult::default(),
    }
}

fn failed(tool: &str, input: Value, failure: ToolFailure) -> ToolCallRecord {
    ToolCallRecord {
        failure: Some(failure),
        is_error: true,
        attempts: 0,
        ..call(tool, input)
    }
}

/// A live run has no redacted calls.
fn unredacted(_: &ToolCallRecord) -> bool {
    false
}

/// Returns whether the input of a recorded call is redacted.
fn redacted(call: &ToolCallRecord) -> bool {
    is_redacted(&call.input)
}

fn turn(value: impl Into<Value>) -> Turn {
    let value = value.into();
    let mut turn = json!({"say": "x"});
    turn.as_object_mut()
        .unwrap()
        .extend(value.as_object().unwrap().clone());
    serde_json::from_value(turn).unwrap()
}

fn verdict(turn: &Turn, calls: &[ToolCallRecord]) -> Judged {
    let judged = score_turn(turn, calls, &[], &unredacted);
    (
        judged.calls.iter().map(|it| it.verdict).collect(),
        judged.missing.len(),
        judged.attempted,
    )
}

type Judged = (Vec<Verdict>, usize, usize);

/// Rows with the expectations of a turn, its calls, their verdicts, the number of missing calls,
/// and the number of attempted ones. A call is written as `a`, `a=7` with an id, or `a!denied` with
/// a failure.
const VERDICTS: &str = r#"
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a b | right right | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | b a | right wrong_order | 1 | 1
{"any_order": true, "calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | b a |
    right right | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a c b |
    right unnecessary right | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a a b |
    right unnecessary right | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a=7 b | wrong_input right | 1 | 1
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a=7 a b |
    unnecessary right right | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} |  |  | 2 | 0
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a=7!invalid_input a b |
    hallucinated right right | 0 | 0
# A right call may be denied or fail.
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a b!denied | right right | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]} | a b!tool_error | right right |
    0 | 0
{"calls": []} | a | unnecessary | 0 | 0
# A turn without expectations.
{} | a b b | unjudged unjudged unjudged | 0 | 0
{"forbidden": ["shop/a", "c"]} | a b c | forbidden unjudged forbidden | 0 | 0
{"forbidden": ["*"]} | a | forbidden | 0 | 0
{"forbidden": ["s*/?"], "calls": [{"tool": "a"}]} | a create | forbidden unnecessary | 0 | 0
{"forbidden": ["cr*_ticket"]} | create_ticket create | forbidden unjudged | 0 | 0
{"calls": [{"tool": "a", "server": "other"}]} | a | unnecessary | 1 | 0
# An optional call does not take the call of a required one.
{"calls": [{"tool": "a", "optional": true}, {"tool": "a", "input": {"id": 1}}]} | a | right |
    0 | 0
{"any_order": true, "calls": [{"tool": "a", "optional": true}, {"tool": "a",
    "input": {"id": 1}}]} | a | right | 0 | 0
{"calls": [{"tool": "a"}, {"tool": "b", "optional": true}, {"tool": "c"}]} | b a |
    wrong_order right | 1 | 0
# A failed call may be repeated, and a successful one need not be.
{"calls": [{"tool": "a"}]} | a!timeout a a | right unjudged unnecessary | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 7}, "optional": true}]} | a | unnecessary | 0 | 0
{"calls": [{"tool": "a", "input": {"id": 7}, "optional": true}, {"tool": "a",
    "input": {"id": 8}}]} | a | wrong_input | 1 | 1
{"calls": [{"tool": "a"}]} | a!timeout a | right unjudged | 0 | 0
{"calls": [{"tool": "a", "optional": true}]} |  |  | 0 | 0
# Alternatives.
{"calls": [{"tool": "a", "input": {"id": 1}, "or": [{"tool": "b"}]}]} | b | right | 0 | 0
{"calls": [{"tool": "a", "or": [{"tool": "b"}]}]} | b a | right unnecessary | 0 | 0
{"calls": [{"tool": "a", "or": [{"tool": "b"}]}]} | c | unnecessary | 1 | 0
{"calls": [{"tool": "c", "or": [{"tool": "b", "input": {"id": 3}}]}]} | b | wrong_input | 1 | 1
{"calls": [{"tool": "a", "exactly": true}]} | a | wrong_input | 1 | 1
"#;

fn short_call(text: &str) -> ToolCallRecord {
    let (text, failure) = text.split_once('!').unwrap_or((text, ""));
    let (tool, id) = text.split_once('=').unwrap_or((
        text,
        match text {
            "a" => "1",
            "b" => "2",
            _ => "",
        },
    ));
    let input = match id.parse::<u32>() {
        Ok(id) => json!({"id": id}),
        Err(_) => json!({}),
    };
    match serde_json::from_value(json!(failure)) {
        Ok(failure) => failed(tool, input, failure),
        Err(_) => call(tool, input),
    }
}

#[test]
fn calls_have_the_expected_verdicts() {
    for [expectations, calls, verdicts, missing, attempted] in rows(VERDICTS) {
        let turn = turn(serde_json::from_str::<Value>(&expectations).unwrap());
        let made: Vec<_> = calls.split_whitespace().map(short_call).collect();
        let verdicts: Vec<&str> = verdicts.split_whitespace().collect();
        let verdicts = serde_json::from_value(json!(verdicts)).unwrap();
        let expected = (
            verdicts,
            missing.parse().unwrap(),
            attempted.parse().unwrap(),
        );
        assert_eq!(verdict(&turn, &made), expected, "{expectations} {calls}");
    }
}

#[test]
fn calls_of_builtin_tools_are_not_judged() {
    let mut own = call("search_tools", json!({"query": "x"}));
    own.server = None;
    let found = verdict(&turn(json!({"calls": []})), &[own]);
    assert_eq!(found.0, [Verdict::Unjudged]);
}

#[test]
fn a_repeated_call_with_a_known_result_is_unnecessary() {
    let first = call("a", json!({"id": 1}));
    // A repetition of a failed call has no known result.
    let failed = failed("a", json!({"id": 1}), ToolFailure::Timeout);
    for (before, reason) in [
        (&first, "its result was already known"),
        (&failed, "the call is not expected"),
    ] {
        let (calls, before) = (slice::from_ref(&first), slice::from_ref(before));
        let judged = score_turn(&turn(json!({"calls": []})), calls, before, &unredacted);
        assert_eq!(judged.calls[0].reason.as_deref(), Some(reason));
    }
}

#[test]
fn equal_input_is_recognized_in_other_spellings() {
    let why = |first: Value, second: Value| {
        let judged = score_turn(
            &turn(json!({"calls": []})),
            &[call("a", first), call("a", second)],
            &[],
            &unredacted,
        );
        judged.calls[1].reason.clone().unwrap()
    };
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    for (first, second) in [
        (r#"{"id": 1, "b": 2}"#, r#"{"b": 2, "id": 1}"#),
        (
            r#"{"a": [{"x": 1, "y": -0.0}]}"#,
            r#"{"a": [{"y": 0, "x": 1.0}]}"#,
        ),
        ("null", "{}"),
    ] {
        let why = why(parsed(first), parsed(second));
        assert_eq!(why, "its result was already known", "{first} {second}");
    }
    for (first, second) in [
        (r#"{"id": 1}"#, r#"{"id": "1"}"#),
        (r#"{"id": 1.5}"#, r#"{"id": 1}"#),
        (r#"{"a": 1, "b": 2}"#, r#"{"a": 2, "b": 1}"#),
        (r#"{"a": [1, 2]}"#, r#"{"a": [2, 1]}"#),
        (r#"{"a": [12]}"#, r#"{"a": [1, 2]}"#),
        (r#"{"id": 9007199254740993}"#, r#"{"id": 9007199254740992}"#),
        // A name with special characters does not make two different inputs equal.
        (r#"{"a\":1,\"b": 1}"#, r#"{"a": 1, "b": 1}"#),
    ] {
        let why = why(parsed(first), parsed(second));
        assert_eq!(why, "the call is not expected", "{first} {second}");
    }
}

#[test]
fn right_calls_that_were_not_executed_are_listed() {
    let told = |value: Value, calls: &[ToolCallRecord]| {
        let judged = score_turn(&turn(value), calls, &[], &unredacted);
        assert_eq!(judged.calls[0].verdict, Verdict::Right);
        judged.not_executed
    };
    let one = || json!({"calls": [{"tool": "a", "input": {"id": 1}}]});
    let held = |failure| failed("a", json!({"id": 1}), failure);
    for (failure, why) in [
        (ToolFailure::NotApproved, "not approved; `--approve` allows"),
        (ToolFailure::Denied, "denied; `--approve` allows"),
        (ToolFailure::Skipped, "skipped"),
        (ToolFailure::LimitReached, "limit reached"),
        (ToolFailure::Withheld, "withheld"),
        (ToolFailure::Cancelled, "cancelled"),
    ] {
        let found = told(one(), &[held(failure)]);
        let expected = format!(r#"a {{"id":1}} ({why}"#);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&expected), "{found:?}");
    }
    // A call whose tool failed was executed, so it is not reported.
    let nothing: [String; 0] = [];
    assert_eq!(told(one(), &[held(ToolFailure::ToolError)]), nothing);
    // A skipped call is not reported if an equal call was executed later, or if the call is
    // optional.
    let again = [held(ToolFailure::Skipped), call("a", json!({"id": 1}))];
    assert_eq!(told(one(), &again), nothing);
    let mut optional = one();
    optional["calls"][0]["optional"] = json!(true);
    assert_eq!(told(optional, &[held(ToolFailure::Denied)]), nothing);
    // An executed call replaces only one of two skipped calls.
    let two = json!({"any_order": true, "calls": [one()["calls"][0], one()["calls"][0]]});
    let calls = [
        held(ToolFailure::Skipped),
        held(ToolFailure::Skipped),
        call("a", json!({"id": 1})),
    ];
    assert_eq!(told(two, &calls).len(), 1);
}

#[test]
fn the_reason_names_the_wrong_argument() {
    let turn =
        turn(json!({"calls": [{"tool": "a", "input": {"id": {"$one_of": [1, 2]}, "name": "x"}}]}));
    let why = |input: Value| {
        let judged = score_turn(&turn, &[call("a", input)], &[], &unredacted);
        judged.calls[0].reason.clone()
    };
    let expected = r#"`id` is 3, expected {"$one_of":[1,2]}"#;
    assert_eq!(why(json!({"id": 3, "name": "x"})).unwrap(), expected);
    let expected = r#"`name` is missing, expected "x""#;
    assert_eq!(why(json!({"id": 2})).unwrap(), expected);
    assert_eq!(why(json!({"id": 2, "name": "x", "more": 1})), None);
    // The description of the difference refers to the alternative with the called tool.
    let several = serde_json::from_value(
        json!({"tool": "b", "input": {"x": 1}, "or": [{"tool": "a", "input": {"id": 4}}]}),
    );
    let either = Turn {
        calls: Some(vec![several.unwrap()]),
        ..turn.clone()
    };
    let judged = score_turn(&either, &[call("a", json!({"id": 5}))], &[], &unredacted);
    let reason = judged.calls[0].reason.as_deref();
    assert_eq!(reason, Some("`id` is 5, expected 4"));
    assert_eq!(judged.missing, [r#"b {"x":1}, or a {"id":4}"#]);
    assert_eq!(why(json!("text")).unwrap(), "the input is not an object");
}

/// A matcher, an argument, and whether it is accepted. A matcher may check an absent argument.
const MATCHERS: &str = r#"
42 | 42.0 | true
9007199254740993 | 9007199254740992 | false
"a" | " a " | true
"a" | "A" | false
null | null | true
{"$any": true} | 0 | true
{"$any": true} | null | false
{"$absent": true} | null | true
{"$absent": true} | "" | false
{"$one_of": [1, {"$matches": "^b"}]} | "bee" | true
{"$one_of": [1, 2]} | 3 | false
{"$contains": "EE"} | "bees" | true
{"$contains": 2} | [1, 2.0] | true
{"$contains": 2} | 2 | false
{"$ignoring_case": "New York"} | "new york " | true
{"$between": [1, 5]} | 5 | true
{"$between": [1, 5]} | 5.1 | false
{"$between": [1, 5]} | "3" | false
{"$optional": 3} | null | true
{"$optional": 3} | 4 | false
{"a": 1} | {"a": 1, "b": 2} | true
{"$exactly": {"a": 1}} | {"a": 1, "b": 2} | false
{"$exactly": {"a": 1}} | {"a": 1.0} | true
[1, {"$any": true}] | [1, 9] | true
[1] | [1, 1] | false
{"$unordered": [1, {"$any": true}]} | [7, 1] | true
{"$unordered": [1, 2]} | [2, 2] | false
{"a": {"$matches": "\\d"}} | {"a": "x1"} | true
"#;

const INVALID_MATCHERS: &str = r#"
{"$like": 1} | unknown matcher `$like`
{"$any": true, "b": 1} | `$any` must be the only field
{"$any": 1} | `$any` needs `true`
{"$between": [1]} | `$between` needs two numbers
{"$matches": "("} | `$matches`:
[{"$one_of": 1}] | `$one_of` needs a list
{"$one_of": []} | `$one_of` needs a non-empty list
{"$between": [5, 1]} | `$between` needs two numbers, the smaller one first
"#;

#[test]
fn matchers_accept_the_documented_values() {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for [matcher, argument, expected] in rows(MATCHERS) {
        let read = Matcher::parse_matcher(&parsed(&matcher)).unwrap();
        let value = parsed(&argument);
        let found = read.matches((!value.is_null()).then_some(&value));
        assert_eq!(found.to_string(), expected, "{matcher} {argument}");
    }
    for [matcher, message] in rows(INVALID_MATCHERS) {
        let error = Matcher::parse_matcher(&parsed(&matcher)).unwrap_err();
        assert!(error.starts_with(&message), "{error}");
    }
}

/// Returns the size of a maximum matching by exhaustive search.
fn most(grid: &[Vec<bool>], one: usize, used: u32) -> usize {
    let Some(row) = grid.get(one) else { return 0 };
    let without = most(grid, one + 1, used);
    (0..row.len())
        .filter(|other| row[*other] && used & (1 << other) == 0)
        .map(|other| 1 + most(grid, one + 1, used | (1 << other)))
        .fold(without, usize::max)
}

proptest! {
    #[test]
    fn a_matching_is_maximal(grid in prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 0..5)) {
        let paired = find_maximum_matching(grid.len(), 5, |one, other| grid[one][other]);
        let used: Vec<usize> = paired.iter().flatten().copied().collect();
        prop_assert_eq!(used.iter().collect::<std::collections::HashSet<_>>().len(), used.len());
        for (one, other) in paired.iter().enumerate() {
            if let Some(other) = other {
                prop_assert!(grid[one][*other]);
            }
        }
        prop_assert_eq!(used.len(), most(&grid, 0, 0));
    }

    #[test]
    fn an_alignment_is_in_order(grid in prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 0..5), optional in any::<u8>()) {
        let paired = match_calls_in_order(grid.len(), 5, |one| optional & (1 << one) != 0, |one, other| grid[one][other]);
        let used: Vec<usize> = paired.iter().flatten().copied().collect();
        prop_assert!(used.windows(2).all(|two| two[0] < two[1]));
        prop_assert!(paired.iter().enumerate().all(|(one, other)| other.is_none_or(|other| grid[one][other])));
    }
}

#[test]
fn calls_with_redacted_arguments_are_unknown_if_the_rest_is_right() {
    use Verdict::{Right, Unknown, WrongInput};
    let log_in = |user: &str, password: &str| {
        let login = json!({"user": user, "password": password});
        call("log_in", json!({"login": login, "tries": 3}))
    };
    let wanted = |login: Value, tries: Value| {
        turn(json!({"calls": [{"tool": "log_in", "input": {"login": login, "tries": tries}}]}))
    };
    let exact = wanted(json!({"user": "ada", "password": "hunter2"}), json!(3));
    let judged = |turn: &Turn, calls: &[ToolCallRecord], is_replay: bool| {
        let cut = if is_replay { redacted } else { unredacted };
        let judged = score_turn(turn, calls, &[], &cut);
        let verdict: Vec<Verdict> = judged.calls.iter().map(|it| it.verdict).collect();
        (verdict, judged.missing.len(), judged.attempted)
    };
    let cut = [log_in("ada", "[redacted]")];
    assert_eq!(judged(&exact, &cut, true), (vec![Unknown], 0, 0));
    let scored = &score_turn(&exact, &cut, &[], &redacted).calls[0];
    let expected = Some("`login` was redacted in the recording");
    assert_eq!(scored.reason.as_deref(), expected);
    // A live run is not redacted, so `[redacted]` in its input is a wrong value.
    assert_eq!(judged(&exact, &cut, false), (vec![WrongInput], 1, 1));
    // A redacted call is wrong if one of its other arguments is wrong. It is right if the redacted
    // argument is not checked.
    let other_user = [log_in("bob", "[redacted]")];
    assert_eq!(judged(&exact, &other_user, true), (vec![WrongInput], 1, 1));
    let other_tries = wanted(json!({"user": "ada", "password": "hunter2"}), json!(4));
    assert_eq!(judged(&other_tries, &cut, true), (vec![WrongInput], 1, 1));
    let absent = wanted(
        json!({"user": "ada", "password": {"$absent": true}}),
        json!(3),
    );
    assert_eq!(judged(&absent, &cut, true), (vec![WrongInput], 1, 1));
    for login in [
        json!({"user": "ada", "password": {"$any": true}}),
        json!({"user": "ada"}),
    ] {
        assert_eq!(
            judged(&wanted(login, json!(3)), &cut, true),
            (vec![Right], 0, 0)
        );
    }
    // Matchers with a list, a regular expression and an optional value cannot be decided for a
    // redacted argument.
    for password in [
        json!({"$one_of": ["hunter2", "hunter3"]}),
        json!({"$matches": "^hunter"}),
        json!({"$optional": "hunter2"}),
    ] {
        let turn = wanted(json!({"user": "ada", "password": password}), json!(3));
        assert_eq!(judged(&turn, &cut, true), (vec![Unknown], 0, 0));
    }
    // Two redacted calls may match two expected calls, but one redacted call may match only one.
    let twice = turn(json!({"calls": [
        {"tool": "log_in", "input": {"login": {"password": "hunter2"}}},
        {"tool": "log_in", "input": {"login": {"password": "hunter3"}}},
    ]}));
    let two = [log_in("ada", "[redacted]"), log_in("ada", "[redacted]")];
    assert_eq!(judged(&twice, &two, true), (vec![Unknown, Unknown], 0, 0));
    assert_eq!(judged(&twice, &cut, true), (vec![Unknown], 1, 0));
}

#[test]
fn redacted_arguments_match_except_for_the_secret() {
    use Verdict::{Right, Unknown, WrongInput};
    for (found, expected, verdict) in [
        (json!("key: [redacted]!"), json!("key: tulip!"), Unknown),
        (json!("key: [redacted]!"), json!("Berlin"), WrongInput),
        (json!("[redacted]"), json!({"$exactly": [5]}), Unknown),
        (json!("[redacted]"), json!({"$between": [1, 5]}), Unknown),
        (json!(["[redacted]", "b"]), json!(["a", "b"]), Unknown),
        (json!(["[redacted]", "b"]), json!(["a", "c"]), WrongInput),
        (json!("[redacted]"), json!({"$any": true}), Right),
        (json!("[redacted]"), json!({"$absent": true}), WrongInput),
    ] {
        let turn = turn(json!({"calls": [{"tool": "a", "input": {"note": expected}}]}));
        let calls = [call("a", json!({"note": found}))];
        let scored = &score_turn(&turn, &calls, &[], &redacted).calls[0];
        assert_eq!(scored.verdict, verdict, "{found} {expected}");
    }
}

#[test]
fn redacted_input_that_violates_the_schema_is_unknown() {
    let turn = turn(json!({"calls": [{"tool": "pay", "input": {"pin": 1234, "sum": 5}}]}));
    let input = json!({"pin": "[redacted]", "sum": 5});
    let refused = [failed("pay", input, ToolFailure::InvalidInput)];
    let judged = score_turn(&turn, &refused, &[], &redacted);
    let one = &judged.calls[0];
    assert_eq!(one.verdict, Verdict::Unknown);
    assert_eq!(one.outcome, CallOutcome::NotExecuted);
    assert!(judged.missing.is_empty() && judged.not_executed.is_empty());
    let judged = score_turn(&turn, &refused, &[], &unredacted);
    assert_eq!(judged.calls[0].verdict, Verdict::Hallucinated);
}

#[test]
fn a_rejected_call_counts_once() {
    use Verdict::{Hallucinated, Right, WrongInput};
    let turn = turn(json!({"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]}));
    let refused = || failed("a", json!({"id": "x"}), ToolFailure::InvalidInput);
    let b = || call("b", json!({}));
    for (calls, judged) in [
        (vec![refused(), b()], (vec![Hallucinated, Right], 1, 1)),
        // A second attempt with invalid input gets a separate verdict.
        (
            vec![refused(), refused(), b()],
            (vec![Hallucinated, Hallucinated, Right], 1, 1),
        ),
        (
            vec![refused(), call("a", json!({"id": 2})), b()],
            (vec![Hallucinated, WrongInput, Right], 1, 1),
        ),
        (
            vec![refused(), call("a", json!({"id": 1})), b()],
            (vec![Hallucinated, Right, Right], 0, 0),
        ),
        // A call of an unknown tool does not count as an attempt.
        (
            vec![failed("z", json!({}), ToolFailure::UnknownTool), b()],
            (vec![Hallucinated, Right], 1, 0),
        ),
    ] {
        assert_eq!(verdict(&turn, &calls), judged);
    }
}
