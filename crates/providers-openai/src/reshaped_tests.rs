use super::*;

fn reshaped() -> Reshaped {
    let reshaped = Reshaped::all_of("t");
    assert!(!reshaped.is_empty() && Reshaped::default().is_empty());
    reshaped
}

#[test]
fn what_is_written_for_another_schema_waits_until_it_is_whole() {
    for mut held in [reshaped().hold_input("t"), reshaped().hold_answer()] {
        assert!(held.is_some());
        for more in ["", " ", "{\"a\"", ":null", "}"] {
            assert_eq!(pass(&mut held, more), None, "{more}");
        }
        assert_eq!(rest(&mut held).as_deref(), Some("{}"));
        assert_eq!(rest(&mut held), None);
    }
    assert!(reshaped().hold_input("other").is_none());
}

#[test]
fn what_is_nothing_of_the_kind_does_not_wait() {
    let mut held = reshaped().hold_answer();
    assert_eq!(pass(&mut held, "\n"), None);
    assert_eq!(pass(&mut held, "I look").as_deref(), Some("\nI look"));
    assert_eq!(pass(&mut held, " it up.").as_deref(), Some(" it up."));
    assert_eq!(rest(&mut held), None);
    assert_eq!(pass(&mut None, ""), None);
}

#[test]
fn what_broke_off_is_given_as_it_came() {
    let mut held = reshaped().hold_input("t");
    assert_eq!(pass(&mut held, "{\"a\":null}"), None);
    assert_eq!(broken(&mut held).as_deref(), Some("{\"a\":null}"));
    let mut held = reshaped().hold_answer();
    assert_eq!(pass(&mut held, "{\"a\":nu"), None);
    assert_eq!(rest(&mut held).as_deref(), Some("{\"a\":nu"), "no JSON");
}

#[test]
fn nothing_is_held_back_beyond_what_an_input_may_have() {
    let mut held = reshaped().hold_input("t");
    let most = format!("{{{}", " ".repeat(DEFAULT_MAX_TOOL_INPUT_BYTES - 1));
    assert_eq!(pass(&mut held, &most), None);
    let released = pass(&mut held, "}").unwrap();
    assert_eq!(released.len(), DEFAULT_MAX_TOOL_INPUT_BYTES + 1);
    assert!(held.is_none());
}
