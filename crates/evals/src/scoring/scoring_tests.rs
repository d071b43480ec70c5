use proptest::prelude::*;
use serde_json::json;
use switchboard_orchestration::RecordedResult;

use super::{alignment::aligned, *};
use crate::suite::Matcher;

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

/// A live run has no redaction.
fn unredacted(_: &ToolCallRecord) -> bool {
    false
}

/// Calls of a recording.
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

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn calls_have_the_expected_verdicts() {
    use Verdict::{Forbidden, Hallucinated, Right, Unjudged, Unnecessary, WrongInput, WrongOrder};
    let (a, b, c) = (
        || call("a", json!({"id": 1})),
        || call("b", json!({"id": 2})),
        || call("c", json!({})),
    );
    let ab = json!({"calls": [{"tool": "a", "input": {"id": 1}}, {"tool": "b"}]});
    let table: Vec<(Value, Vec<ToolCallRecord>, Judged)> = vec![
        (ab.clone(), vec![a(), b()], (vec![Right, Right], 0, 0)),
        (ab.clone(), vec![b(), a()], (vec![Right, WrongOrder], 1, 1)),
        (
            json!({"any_order": true, "calls": ab["calls"]}),
            vec![b(), a()],
            (vec![Right, Right], 0, 0),
        ),
        (
            ab.clone(),
            vec![a(), c(), b()],
            (vec![Right, Unnecessary, Right], 0, 0),
        ),
        (
            ab.clone(),
            vec![a(), a(), b()],
            (vec![Right, Unnecessary, Right], 0, 0),
        ),
        (
            ab.clone(),
            vec![call("a", json!({"id": 7})), b()],
            (vec![WrongInput, Right], 1, 1),
        ),
        (
            ab.clone(),
            vec![call("a", json!({"id": 7})), a(), b()],
            (vec![Unnecessary, Right, Right], 0, 0),
        ),
        (ab.clone(), vec![], (vec![], 2, 0)),
        (
            ab.clone(),
            vec![
                failed("a", json!({"id": "x"}), ToolFailure::InvalidInput),
                a(),
                b(),
            ],
            (vec![Hallucinated, Right, Right], 0, 0),
        ),
        // The right call that a person denied, or that failed, was the right one to make.
        (
            ab.clone(),
            vec![a(), failed("b", json!({}), ToolFailure::Denied)],
            (vec![Right, Right], 0, 0),
        ),
        (
            ab,
            vec![a(), failed("b", json!({}), ToolFailure::ToolError)],
            (vec![Right, Right], 0, 0),
        ),
        (json!({"calls": []}), vec![a()], (vec![Unnecessary], 0, 0)),
        (
            // Nothing is said about calls, and so nothing of them is judged.
            json!({}),
            vec![a(), b(), b()],
            (vec![Unjudged, Unjudged, Unjudged], 0, 0),
        ),
        (
            json!({"forbidden": ["shop/a", "c"]}),
            vec![a(), b(), c()],
            (vec![Forbidden, Unjudged, Forbidden], 0, 0),
        ),
        (
            json!({"forbidden": ["*"]}),
            vec![a()],
            (vec![Forbidden], 0, 0),
        ),
        (
            json!({"forbidden": ["s*/?"], "calls": [{"tool": "a"}]}),
            vec![a(), call("create", json!({}))],
            (vec![Forbidden, Unnecessary], 0, 0),
        ),
        (
            json!({"forbidden": ["cr*_ticket"]}),
            vec![call("create_ticket", json!({})), call("create", json!({}))],
            (vec![Forbidden, Unjudged], 0, 0),
        ),
        (
            json!({"calls": [{"tool": "a", "server": "other"}]}),
            vec![a()],
            (vec![Unnecessary], 1, 0),
        ),
        // The optional one does not take the call that is needed.
        (
            json!({"calls": [{"tool": "a", "optional": true}, {"tool": "a", "input": {"id": 1}}]}),
            vec![a()],
            (vec![Right], 0, 0),
        ),
        (
            json!({"any_order": true, "calls": [{"tool": "a", "optional": true}, {"tool": "a", "input": {"id": 1}}]}),
            vec![a()],
            (vec![Right], 0, 0),
        ),
        // The stray is optional, so that the one that is missing is a fault of its own.
        (
            json!({"calls": [{"tool": "a"}, {"tool": "b", "optional": true}, {"tool": "c"}]}),
            vec![b(), a()],
            (vec![WrongOrder, Right], 1, 0),
        ),
        // What failed may be tried again, and once it is there it need not be asked again.
        (
            json!({"calls": [{"tool": "a"}]}),
            vec![
                failed("a", json!({"id": 1}), ToolFailure::Timeout),
                a(),
                a(),
            ],
            (vec![Right, Unjudged, Unnecessary], 0, 0),
        ),
        // Nobody needed the optional call, so that another one is not one with wrong arguments.
        (
            json!({"calls": [{"tool": "a", "input": {"id": 7}, "optional": true}]}),
            vec![a()],
            (vec![Unnecessary], 0, 0),
        ),
        (
            json!({"calls": [{"tool": "a", "input": {"id": 7}, "optional": true}, {"tool": "a", "input": {"id": 8}}]}),
            vec![a()],
            (vec![WrongInput], 1, 1),
        ),
        (
            json!({"calls": [{"tool": "a"}]}),
            vec![failed("a", json!({"id": 1}), ToolFailure::Timeout), a()],
            (vec![Right, Unjudged], 0, 0),
        ),
        (
            json!({"calls": [{"tool": "a", "optional": true}]}),
            vec![],
            (vec![], 0, 0),
        ),
        // One of several is enough, and the others are not needed then.
        (
            json!({"calls": [{"tool": "a", "input": {"id": 1}, "or": [{"tool": "b"}]}]}),
            vec![b()],
            (vec![Right], 0, 0),
        ),
        (
            json!({"calls": [{"tool": "a", "or": [{"tool": "b"}]}]}),
            vec![b(), a()],
            (vec![Right, Unnecessary], 0, 0),
        ),
        (
            json!({"calls": [{"tool": "a", "or": [{"tool": "b"}]}]}),
            vec![c()],
            (vec![Unnecessary], 1, 0),
        ),
        (
            json!({"calls": [{"tool": "c", "or": [{"tool": "b", "input": {"id": 3}}]}]}),
            vec![b()],
            (vec![WrongInput], 1, 1),
        ),
        (
            json!({"calls": [{"tool": "a", "exactly": true}]}),
            vec![a()],
            (vec![WrongInput], 1, 1),
        ),
    ];
    for (value, calls, expected) in table {
        let what = format!(
            "{value} {:?}",
            calls
                .iter()
                .map(|it| (&it.tool, &it.input))
                .collect::<Vec<_>>()
        );
        assert_eq!(verdict(&turn(value), &calls), expected, "{what}");
    }
}

#[test]
fn calls_of_builtin_tools_are_not_judged() {
    let own = ToolCallRecord {
        server: None,
        ..call("search_tools", json!({"query": "x"}))
    };
    assert_eq!(
        verdict(&turn(json!({"calls": []})), &[own]).0,
        [Verdict::Unjudged]
    );
}

#[test]
fn a_repeated_call_with_a_known_result_is_unnecessary() {
    let first = call("a", json!({"id": 1}));
    let judged = score_turn(
        &turn(json!({"calls": []})),
        std::slice::from_ref(&first),
        std::slice::from_ref(&first),
        &unredacted,
    );
    assert_eq!(
        judged.calls[0].reason.as_deref(),
        Some("its result was already known")
    );
    // A failed one had none.
    let before = failed("a", json!({"id": 1}), ToolFailure::Timeout);
    let judged = score_turn(
        &turn(json!({"calls": []})),
        &[first],
        &[before],
        &unredacted,
    );
    assert_eq!(
        judged.calls[0].reason.as_deref(),
        Some("the call is not expected")
    );
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
        // A name is no way to look like two.
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
        assert!(
            found.len() == 1 && found[0].starts_with(&expected),
            "{found:?}"
        );
    }
    // The tool failed: it ran, and the model did what was to be done.
    let nothing: [String; 0] = [];
    assert_eq!(told(one(), &[held(ToolFailure::ToolError)]), nothing);
    // It ran at last, or need not run at all.
    let again = [held(ToolFailure::Skipped), call("a", json!({"id": 1}))];
    assert_eq!(told(one(), &again), nothing);
    let mut optional = one();
    optional["calls"][0]["optional"] = json!(true);
    assert_eq!(told(optional, &[held(ToolFailure::Denied)]), nothing);
    // One that ran stands for one.
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
        score_turn(&turn, &[call("a", input)], &[], &unredacted).calls[0]
            .reason
            .clone()
    };
    assert_eq!(
        why(json!({"id": 3, "name": "x"})).unwrap(),
        r#"`id` is 3, expected {"$one_of":[1,2]}"#
    );
    assert_eq!(
        why(json!({"id": 2})).unwrap(),
        r#"`name` is missing, expected "x""#
    );
    assert_eq!(why(json!({"id": 2, "name": "x", "more": 1})), None);
    // Of several tools, what is expected of this one.
    let several = serde_json::from_value(
        json!({"tool": "b", "input": {"x": 1}, "or": [{"tool": "a", "input": {"id": 4}}]}),
    );
    let either = Turn {
        calls: Some(vec![several.unwrap()]),
        ..turn.clone()
    };
    let judged = score_turn(&either, &[call("a", json!({"id": 5}))], &[], &unredacted);
    assert_eq!(
        judged.calls[0].reason.as_deref(),
        Some("`id` is 5, expected 4")
    );
    assert_eq!(judged.missing, [r#"b {"x":1}, or a {"id":4}"#]);
    assert_eq!(why(json!("text")).unwrap(), "the input is not an object");
}

#[test]
fn matchers_accept_the_documented_values() {
    let table = [
        (json!(42), json!(42.0), true),
        (
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992_u64),
            false,
        ),
        (json!("a"), json!(" a "), true),
        (json!("a"), json!("A"), false),
        (json!(null), Value::Null, true),
        (json!({"$any": true}), json!(0), true),
        (json!({"$any": true}), Value::Null, false),
        (json!({"$absent": true}), Value::Null, true),
        (json!({"$absent": true}), json!(""), false),
        (
            json!({"$one_of": [1, {"$matches": "^b"}]}),
            json!("bee"),
            true,
        ),
        (json!({"$one_of": [1, 2]}), json!(3), false),
        (json!({"$contains": "EE"}), json!("bees"), true),
        (json!({"$contains": 2}), json!([1, 2.0]), true),
        (json!({"$contains": 2}), json!(2), false),
        (
            json!({"$ignoring_case": "New York"}),
            json!("new york "),
            true,
        ),
        (json!({"$between": [1, 5]}), json!(5), true),
        (json!({"$between": [1, 5]}), json!(5.1), false),
        (json!({"$between": [1, 5]}), json!("3"), false),
        (json!({"$optional": 3}), Value::Null, true),
        (json!({"$optional": 3}), json!(4), false),
        (json!({"a": 1}), json!({"a": 1, "b": 2}), true),
        (
            json!({"$exactly": {"a": 1}}),
            json!({"a": 1, "b": 2}),
            false,
        ),
        (json!({"$exactly": {"a": 1}}), json!({"a": 1.0}), true),
        (json!([1, {"$any": true}]), json!([1, 9]), true),
        (json!([1]), json!([1, 1]), false),
        (
            json!({"$unordered": [1, {"$any": true}]}),
            json!([7, 1]),
            true,
        ),
        (json!({"$unordered": [1, 2]}), json!([2, 2]), false),
        (json!({"a": {"$matches": "\\d"}}), json!({"a": "x1"}), true),
    ];
    for (matcher, argument, expected) in table {
        let found = Matcher::read(&matcher)
            .unwrap()
            .matches((!argument.is_null()).then_some(&argument));
        assert_eq!(found, expected, "{matcher} {argument}");
    }
    for (matcher, said) in [
        (json!({"$like": 1}), "unknown matcher `$like`"),
        (
            json!({"$any": true, "b": 1}),
            "`$any` must be the only field",
        ),
        (json!({"$any": 1}), "`$any` needs `true`"),
        (json!({"$between": [1]}), "`$between` needs two numbers"),
        (json!({"$matches": "("}), "`$matches`:"),
        (json!([{"$one_of": 1}]), "`$one_of` needs a list"),
        (
            json!({"$one_of": []}),
            "`$one_of` needs a list that is not empty",
        ),
        (
            json!({"$between": [5, 1]}),
            "`$between` needs two numbers, the smaller one first",
        ),
    ] {
        let error = Matcher::read(&matcher).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
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
        let paired = maximum_matching(grid.len(), 5, |one, other| grid[one][other]);
        let used: Vec<usize> = paired.iter().flatten().copied().collect();
        prop_assert_eq!(used.iter().collect::<HashSet<_>>().len(), used.len());
        for (one, other) in paired.iter().enumerate() {
            if let Some(other) = other {
                prop_assert!(grid[one][*other]);
            }
        }
        prop_assert_eq!(used.len(), most(&grid, 0, 0));
    }

    #[test]
    fn an_alignment_is_in_order(grid in prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 0..5), optional in any::<u8>()) {
        let paired = aligned(grid.len(), 5, |one| optional & (1 << one) != 0, |one, other| grid[one][other]);
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
    let why = score_turn(&exact, &cut, &[], &redacted).calls[0]
        .reason
        .clone();
    assert_eq!(
        why.as_deref(),
        Some("`login` was redacted in the recording")
    );
    // Nothing is struck out of what a model says now.
    assert_eq!(judged(&exact, &cut, false), (vec![WrongInput], 1, 1));
    // What is left of it may be wrong all the same, or all that was asked for.
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
    // One of a list, one of several ways, and part of a text.
    for password in [
        json!({"$one_of": ["hunter2", "hunter3"]}),
        json!({"$matches": "^hunter"}),
        json!({"$optional": "hunter2"}),
    ] {
        let turn = wanted(json!({"user": "ada", "password": password}), json!(3));
        assert_eq!(judged(&turn, &cut, true), (vec![Unknown], 0, 0));
    }
    // Two different secrets look alike then, and one call is one call.
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
    assert_eq!(
        (one.verdict, one.outcome),
        (Verdict::Unknown, CallOutcome::NotExecuted)
    );
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
        // A second attempt is another one.
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
        // What does not exist is no attempt at anything.
        (
            vec![failed("z", json!({}), ToolFailure::UnknownTool), b()],
            (vec![Hallucinated, Right], 1, 0),
        ),
    ] {
        assert_eq!(verdict(&turn, &calls), judged);
    }
}
