use serde_json::json;

use super::*;

fn refused(value: Value) -> String {
    Suite::read(value).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_place() {
    let one = |turn: Value| json!({"scenarios": [{"name": "a", "turns": [turn]}]});
    let table = [
        (json!({"scenarios": []}), "scenarios: there is none"),
        (
            json!({"scenarios": [{"name": " ", "turns": []}]}),
            "scenarios[0].name: is empty",
        ),
        (
            json!({"scenarios": [{"name": "a", "turns": []}]}),
            "scenarios[0].turns: there is none",
        ),
        (
            json!({"repetitions": 0, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "repetitions: must be",
        ),
        (
            json!({"thresholds": {"passed": 90}, "scenarios": [{"name": "a", "turns": [{"say": "x"}]}]}),
            "thresholds.passed: is a share",
        ),
        (
            json!({"scenarios": [{"name": "a", "turns": [{"say": "x"}]}, {"name": "a", "turns": [{"say": "x"}]}]}),
            "scenarios[1].name: another scenario",
        ),
        (
            one(json!({"say": ""})),
            "scenarios[0].turns[0].say: is empty",
        ),
        (
            one(json!({"say": "x", "calls": [{"tool": "t", "input": {"id": {"$like": 1}}}]})),
            "scenarios[0].turns[0].calls[0].input.id: `$like` is no matcher",
        ),
        (
            one(json!({"say": "x", "answer": {"matches": "("}})),
            "scenarios[0].turns[0].answer.matches:",
        ),
        (
            one(json!({"say": "x", "answer": {"lacks": [""]}})),
            "scenarios[0].turns[0].answer.lacks: an empty text",
        ),
        (one(json!({"say": "x", "call": []})), "unknown field `call`"),
        (
            json!({"models": ["gpt"], "scenarios": []}),
            "`gpt` is not a model",
        ),
    ];
    for (value, said) in table {
        let error = refused(value);
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn an_answer_is_told_what_is_wrong_with_it() {
    let check = AnswerCheck {
        contains: vec!["42".to_owned(), "Euro".to_owned()],
        contains_any: vec!["a".to_owned(), "b".to_owned()],
        lacks: vec!["sorry".to_owned()],
        matches: Some(r"\d{3}".to_owned()),
        artifact: Some("table".to_owned()),
    };
    assert_eq!(
        check.faults("It has 420 EURO", &["table".to_owned()]),
        Vec::<String>::new()
    );
    assert_eq!(
        check.faults("Sorry.", &[]),
        [
            "`42` is not in the answer",
            "`Euro` is not in the answer",
            "none of `a`, `b` is in the answer",
            "`sorry` is in the answer",
            r"`\d{3}` finds nothing in the answer",
            "the answer has no artifact of type `table`",
        ]
    );
}
