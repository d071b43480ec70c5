use proptest::prelude::*;

use super::*;

fn form() -> AnswerForm {
    AnswerForm {
        tools: vec!["get_weather".into(), "list_cities".into()],
        may_answer: true,
    }
}

fn call<'t>(name: &str, value: &'t str) -> ConstrainedAnswer<'t> {
    ConstrainedAnswer {
        tool: Some(name.to_owned()),
        value,
        is_complete: true,
        rest: "",
    }
}

#[test]
fn a_call_is_read_in_any_spelling() {
    for (answer, name, input) in [
        (
            r#"{"name":"get_weather","parameters":{"city":"Größe \\\" 🌊 }"}}"#,
            "get_weather",
            r#"{"city":"Größe \\\" 🌊 }"}"#,
        ),
        (
            "\r\n { \"name\" : \"list_cities\" ,\t\"parameters\" : { } } \n",
            "list_cities",
            "{ }",
        ),
        (
            r#"{"parameters":{"a":[{"b":"}\"]"}]},"name":"get_weather"}"#,
            "get_weather",
            r#"{"a":[{"b":"}\"]"}]}"#,
        ),
        (
            r#"{"name":"get_weather","arguments":{}}"#,
            "get_weather",
            "{}",
        ),
        (r#"{"name":"get_weather"}"#, "get_weather", ""),
        (
            r#"{"name":"get_weather","parameters":null}"#,
            "get_weather",
            "null",
        ),
        (
            r#"{"name":"get_weather","parameters":12}"#,
            "get_weather",
            "12",
        ),
        (
            r#"{"nam\u0065":"get_weather","parameters":{}}"#,
            "get_weather",
            "{}",
        ),
    ] {
        assert_eq!(
            parse_answer(&form(), answer),
            Some(call(name, input)),
            "{answer}"
        );
    }
}

#[test]
fn an_incomplete_call_keeps_its_input() {
    for (answer, value) in [
        // A field `parameters` without a value is an incomplete input.
        (r#"{"name":"get_weather","parameters":}"#, ""),
        (
            r#"{"name":"get_weather","parameters":{"city":"Ki"#,
            r#"{"city":"Ki"#,
        ),
        (r#"{"name":"get_weather","#, ""),
    ] {
        let expected = ConstrainedAnswer {
            is_complete: false,
            ..call("get_weather", value)
        };
        assert_eq!(parse_answer(&form(), answer), Some(expected), "{answer}");
    }
}

#[test]
fn fields_next_to_a_call_are_ignored_and_text_after_it_is_kept() {
    let answer =
        r#"{"name":"get_weather","why":[1,{"x":"}"}],"parameters":{"a":1},"more":true} and"#;
    let expected = ConstrainedAnswer {
        rest: "and",
        ..call("get_weather", r#"{"a":1}"#)
    };
    assert_eq!(parse_answer(&form(), answer), Some(expected));
}

#[test]
fn an_answer_is_its_value() {
    for (answer, value, is_complete) in [
        (r#"{"response":{"degrees":12}}"#, r#"{"degrees":12}"#, true),
        (r#"{"response": 12 }"#, "12", true),
        (r#"{"response": {"degr"#, r#"{"degr"#, false),
    ] {
        let expected = ConstrainedAnswer {
            value,
            is_complete,
            ..ConstrainedAnswer::default()
        };
        assert_eq!(parse_answer(&form(), answer), Some(expected), "{answer}");
    }
}

proptest! {
    #[test]
    fn no_text_without_a_name_is_a_call(text in "[{}\":,a \\\\\\[\\]n]{0,60}") {
        prop_assert_eq!(parse_answer(&form(), &text), None);
    }
}
