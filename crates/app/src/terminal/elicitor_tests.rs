use anstream::adapter::strip_str;
use serde_json::json;

use super::*;

fn form() -> Value {
    json!({
        "type": "object",
        "required": ["name", "size"],
        "properties": {
            "name": {"type": "string", "title": "Project", "description": "What it is called.", "minLength": 2, "maxLength": 8},
            "size": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
            "ratio": {"type": "number"},
            "public": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "parts": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta"}]}},
        },
    })
}

#[test]
fn a_line_becomes_a_value_of_the_field_or_says_what_is_wrong() {
    let form = form();
    let fields = FormField::fields_from_schema(&form);
    let read = |name: &str, text: &str| {
        let field = fields.iter().find(|field| field.name == name).unwrap();
        field.parse_answer(text)
    };
    let given = |value: Value| Ok(Some(value));
    assert_eq!(read("name", "boat"), given(json!("boat")));
    assert_eq!(read("name", ""), Err("an answer is required".into()));
    assert!(read("name", "b").unwrap_err().contains("shorter than 2"));
    let long = read("name", "boats and ships").unwrap_err();
    assert!(long.contains("longer than 8"), "{long}");
    assert_eq!(read("size", ""), given(json!(3)));
    assert_eq!(read("size", "7"), given(json!(7)));
    assert!(read("size", "11").unwrap_err().contains("maximum of 10"));
    assert!(read("size", "7.5").unwrap_err().contains("whole number"));
    assert_eq!(read("ratio", "0.5"), given(json!(0.5)));
    assert!(read("ratio", "NaN").unwrap_err().contains("a number"));
    assert_eq!(read("ratio", ""), Ok(None));
    assert_eq!(read("public", "Yes"), given(json!(true)));
    assert!(read("public", "maybe").unwrap_err().contains("yes or no"));
    for text in ["g", "Green", "green", "2"] {
        assert_eq!(read("colour", text), given(json!("g")), "{text}");
    }
    assert!(
        read("colour", "3")
            .unwrap_err()
            .contains("not one of the choices")
    );
    assert!(
        read("colour", "0")
            .unwrap_err()
            .contains("not one of the choices")
    );
    assert_eq!(read("parts", "1, beta"), given(json!(["a", "b"])));
}

#[test]
fn a_question_contains_no_control_characters() {
    let nasty = json!({"properties": {"a\u{1b}[2J": {"description": "b\u{9b}31m\u{202e}"}}});
    let question = FormField::fields_from_schema(&nasty)[0].format_question();
    assert_eq!(
        strip_str(&question).to_string(),
        "  a[2J – b31m (string; optional):"
    );
    let elicitation = Elicitation {
        server: "files".into(),
        message: "May I?\u{1b}[2J".into(),
        call: None,
        candidates: switchboard_domain::CandidateToolCalls::default(),
        form: ElicitationForm::Fields { schema: json!({}) },
    };
    assert_eq!(
        strip_str(&format_elicitation_heading(&elicitation)).to_string(),
        "? files asks: May I?[2J"
    );
}
