use super::*;

fn prose(text: &str) -> Prose {
    Prose {
        line: 1,
        text: text.to_owned(),
    }
}

#[test]
fn idioms_are_found_as_whole_words() {
    let idioms = IdiomFinder::new().unwrap();
    let found = [
        prose("// Whoever asks is told of it."),
        prose("// The caller gets it."),
    ];
    assert_eq!(idioms.count_in_comments(&found), 2);
}

#[test]
fn short_literals_are_not_messages() {
    let idioms = IdiomFinder::new().unwrap();
    let strings = [
        prose("nobody"),
        prose("nobody has answered this question"),
        prose("no server has answered yet"),
    ];
    assert_eq!(idioms.count_in_messages(&strings), (2, 1));
}

#[test]
fn replaced_names_are_found_in_types_values_and_constants() {
    let code = "struct Scrubber; fn f(tape: u8) { g(MOST_BYTES, \"tape\") } // tape";
    let found = find_replaced_names(code.parse().unwrap());
    let names: Vec<&str> = found.iter().map(|name| name.text.as_str()).collect();
    assert_eq!(
        names,
        [
            "`Scrubber`: use `redactor`",
            "`tape`: use `recording`",
            "`MOST_BYTES`: use `MAX_`"
        ]
    );
    assert!(find_replaced_names("fn holder(untape: u8) {}".parse().unwrap()).is_empty());
}

#[test]
fn wide_lines_are_found_unless_they_cannot_be_wrapped() {
    let words = "word ".repeat(21);
    assert_eq!(find_wide_lines("a.md", &format!("short\n{words}\n")), [2]);
    assert_eq!(
        find_wide_lines("a.rs", &format!("// {words}\n//! | {words} |\n")),
        [1, 2]
    );
    assert!(find_wide_lines("a.md", &format!("| {words} |\n")).is_empty());
    assert!(find_wide_lines("a.md", &"x".repeat(101)).is_empty());
}
