use proptest::prelude::*;

use super::*;

fn form() -> Form {
    Form {
        tools: vec!["get_weather".into(), "list_cities".into()],
        may_answer: true,
    }
}

/// Reads an answer in these pieces and joins consecutive pieces of one kind.
fn read<'p>(pieces: impl IntoIterator<Item = &'p str>) -> (Vec<Said>, bool) {
    let mut reader = FormReader::new(form());
    let mut said = Vec::new();
    for piece in pieces {
        reader.push(piece, &mut said);
    }
    reader.end(&mut said);
    let mut joined: Vec<Said> = Vec::new();
    for piece in said {
        match (joined.last_mut(), piece) {
            (Some(Said::Input(before)), Said::Input(more))
            | (Some(Said::Text(before)), Said::Text(more)) => before.push_str(&more),
            (_, piece) => joined.push(piece),
        }
    }
    (joined, reader.strayed())
}

fn call(name: &str, input: &str) -> Vec<Said> {
    let mut said = vec![Said::Call(name.into())];
    if !input.is_empty() {
        said.push(Said::Input(input.into()));
    }
    said.push(Said::CallDone);
    said
}

/// Answers inside and outside the constraint.
const ANSWERS: [&str; 20] = [
    r#"{"name":"get_weather","parameters":{"city":"Kiel"}}"#,
    "\r\n { \"name\" : \"list_cities\" ,\t\"parameters\" : { } } \n",
    r#"{"parameters":{"a":[{"b":"}\"]"}]},"name":"get_weather"}"#,
    r#"{"name":"get_weather","parameters":{"city":"Größe \\\" 🌊 }"}}"#,
    r#"{"name":"get_weather","arguments":{"city":"Kiel"}}"#,
    r#"{"name":"get_weather"}"#,
    r#"{"name":"get_weather","parameters":null}"#,
    r#"{"name":"get_weather","parameters":12}"#,
    r#"{"name":"get_weather","parameters":}"#,
    r#"{"name":"get_weather","why":[1,{"x":"}"}],"parameters":{"a":1},"more":true} and so on"#,
    r#"{"response":{"degrees":12}}"#,
    r#"{"response": "twelve", "name": "get_weather"}"#,
    r#"{"response": 12 }"#,
    r#"{"name":"other","parameters":{}}"#,
    r#"{"name":{"a":1},"parameters":{}}"#,
    r#"{"nam\u0065":"get_weather","parameters":{}}"#,
    "no",
    "{",
    r#"{"name":"get_weather","parameters":{"city":"Ki"#,
    "",
];

#[test]
fn a_call_is_read_in_any_spelling() {
    for (answer, name, input) in [
        (0, "get_weather", r#"{"city":"Kiel"}"#),
        (1, "list_cities", "{ }"),
        (2, "get_weather", r#"{"a":[{"b":"}\"]"}]}"#),
        (3, "get_weather", r#"{"city":"Größe \\\" 🌊 }"}"#),
        (4, "get_weather", r#"{"city":"Kiel"}"#),
        (5, "get_weather", ""),
        (6, "get_weather", "null"),
        (7, "get_weather", "12"),
        (15, "get_weather", "{}"),
    ] {
        let answer = ANSWERS[answer];
        assert_eq!(read([answer]), (call(name, input), false), "{answer}");
    }
}

#[test]
fn a_field_without_a_value_is_not_an_empty_input() {
    // The call is not completed, so its input is malformed.
    let (said, _) = read([ANSWERS[8]]);
    assert_eq!(said, [Said::Call("get_weather".into())]);
}

#[test]
fn fields_next_to_a_call_are_ignored_and_text_after_it_is_shown() {
    let mut expected = call("get_weather", r#"{"a":1}"#);
    expected.push(Said::Text("and so on".into()));
    assert_eq!(read([ANSWERS[9]]), (expected, true));
}

#[test]
fn an_answer_is_its_value() {
    for (answer, text) in [(10, r#"{"degrees":12}"#), (11, "\"twelve\""), (12, "12")] {
        let answer = ANSWERS[answer];
        assert_eq!(
            read([answer]),
            (vec![Said::Text(text.into())], false),
            "{answer}"
        );
    }
}

#[test]
fn an_answer_outside_the_constraint_is_returned_completely() {
    for answer in [13, 14, 16, 17].map(|at| ANSWERS[at]) {
        assert_eq!(
            read([answer]),
            (vec![Said::Text(answer.into())], true),
            "{answer}"
        );
    }
    assert_eq!(read([" \n"]), (Vec::new(), true));
}

#[test]
fn a_prefix_without_an_end_is_buffered_up_to_a_limit() {
    let mut reader = FormReader::new(form());
    let mut said = Vec::new();
    reader.push("{\"parameters\": \"", &mut said);
    for _ in 0..5 {
        assert!(said.is_empty());
        reader.push(&"x".repeat(1024 * 1024), &mut said);
        if !said.is_empty() {
            break;
        }
    }
    assert!(matches!(said.as_slice(), [Said::Text(text)] if text.len() > MAX_HELD));
    reader.push("y", &mut said);
    assert_eq!(said.last(), Some(&Said::Text("y".into())));
}

#[test]
fn an_answer_is_the_same_cut_at_every_byte() {
    for answer in ANSWERS {
        let whole = read([answer]);
        let characters: Vec<String> = answer.chars().map(String::from).collect();
        let one_by_one = read(characters.iter().map(String::as_str));
        assert_eq!(one_by_one, whole, "{answer}");
        for (at, _) in answer.char_indices() {
            let (before, after) = answer.split_at(at);
            assert_eq!(read([before, after]), whole, "{before}|{after}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_is_lost_and_nothing_panics(pieces in prop::collection::vec("[{}\":,a \\\\\\[\\]n]{0,6}", 0..12)) {
        let (said, strayed) = read(pieces.iter().map(String::as_str));
        let whole = pieces.concat();
        let is_call = said.iter().any(|it| matches!(it, Said::Call(_)));
        prop_assert!(!is_call, "no tool was named");
        if !whole.trim_matches(BLANK).is_empty() {
            prop_assert!(strayed);
            prop_assert_eq!(said, vec![Said::Text(whole)]);
        }
    }

    #[test]
    fn any_input_of_a_call_is_unchanged(input in any_json(), cut in 0..200_usize) {
        let answer = format!("{{\"name\": \"get_weather\", \"parameters\": {input}}}");
        let mut cut = cut.min(answer.len());
        while !answer.is_char_boundary(cut) {
            cut -= 1;
        }
        let (before, after) = answer.split_at(cut);
        let (said, strayed) = read([before, after]);
        prop_assert!(!strayed);
        prop_assert_eq!(said, call("get_weather", &input.to_string()));
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        ".{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(".{0,3}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}
