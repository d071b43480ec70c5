use super::*;

fn mentions(text: &str) -> Vec<Found> {
    let today = Date::constant(2026, 10, 21);
    Reading::new(text, today)
        .mentions
        .into_iter()
        .map(|mention| mention.found)
        .collect()
}

fn date(year: i16, month: i8, day: i8) -> Found {
    Found::Date(Date::constant(year, month, day))
}

#[test]
fn dates_are_read_in_many_forms_and_only_if_they_exist() {
    for (text, expected) in [
        ("since 2026-09-15", Some(date(2026, 9, 15))),
        ("on 15 September 2026", Some(date(2026, 9, 15))),
        ("September 15th, 2026", Some(date(2026, 9, 15))),
        ("15.9.2026", Some(date(2026, 9, 15))),
        ("13/10/2026", Some(date(2026, 10, 13))),
        ("yesterday", Some(date(2026, 10, 20))),
        ("three weeks ago", Some(date(2026, 9, 30))),
        ("last month", Some(date(2026, 9, 21))),
        ("this year", Some(date(2026, 1, 1))),
        ("since Monday", Some(date(2026, 10, 19))),
        ("since Wednesday", Some(date(2026, 10, 14))),
        ("24 December", Some(date(2025, 12, 24))),
        ("2026-02-30", None),
        ("10/11/2026", None),
    ] {
        let found = mentions(text)
            .into_iter()
            .find(|found| matches!(found, Found::Date(_)));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn numbers_are_read_in_digits_and_words() {
    for (text, expected) in [
        ("customer 42", vec![42.0]),
        ("customer #7", vec![7.0]),
        ("1,234.5 and 1.234,5", vec![1234.5, 1234.5]),
        ("minus -3 here", vec![-3.0]),
        ("$12.50", vec![12.5]),
        ("seven and twenty-five", vec![7.0, 25.0]),
        ("the first one", vec![]),
        ("mp3 or v2", vec![]),
        ("2-3", vec![2.0]),
    ] {
        let found: Vec<f64> = mentions(text)
            .into_iter()
            .filter_map(|found| match found {
                Found::Number(amount) => amount.number.as_f64(),
                _ => None,
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn what_shows_its_kind_by_its_form_is_found() {
    for (text, expected) in [
        (
            "mail ada@example.org now",
            Found::Email("ada@example.org".to_owned()),
        ),
        (
            "see https://example.org/a?b=1.",
            Found::Url("https://example.org/a?b=1".to_owned()),
        ),
        (
            "read /etc/hosts please",
            Found::Path("/etc/hosts".to_owned()),
        ),
        ("read notes.txt", Found::Path("notes.txt".to_owned())),
        ("ticket TICKET-1001", Found::Code("TICKET-1001".to_owned())),
        ("at 2:30 pm", Found::Time("14:30".to_owned())),
        ("in Europe/Berlin", Found::Zone("Europe/Berlin".to_owned())),
        (
            "say \"it's late\" twice",
            Found::Quoted("it's late".to_owned()),
        ),
        (
            "about Ada Lovelace's order",
            Found::Name("Ada Lovelace".to_owned()),
        ),
    ] {
        assert_eq!(mentions(text), [expected], "{text}");
    }
}

#[test]
fn a_list_is_one_group() {
    let reading = Reading::new("customers 7, 8 and 9 of 12", Date::constant(2026, 1, 1));
    let groups: Vec<usize> = reading
        .mentions
        .iter()
        .map(|mention| mention.group)
        .collect();
    assert!(
        groups[0] == groups[1] && groups[1] == groups[2] && groups[2] != groups[3],
        "{groups:?}"
    );
}
