use proptest::prelude::*;

use super::*;

#[test]
fn one_place_is_replaced() {
    let edited = replace_passage("one\ntwo\nthree\n", "two\n", "2\nzwei\n").unwrap();
    assert_eq!(edited.text, "one\n2\nzwei\nthree\n");
    assert_eq!((edited.first_line, edited.last_line), (2, 3));
    assert!(!edited.line_breaks_changed);
    // An empty replacement deletes the passage.
    assert_eq!(replace_passage("a b c", " b", "").unwrap().text, "a c");
}

#[test]
fn a_passage_that_is_there_more_than_once_is_refused() {
    let many = "x\n".repeat(30);
    for (text, old, lines) in [
        ("x\ny\nx\n", "x", "1, 3"),
        // Overlapping occurrences count separately.
        ("aaa", "aa", "1, 1"),
        ("äää", "ää", "1, 1"),
        ("x\r\ny\r\nx\r\ny", "x\ny", "1, 3"),
        (&many, "x", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"),
    ] {
        let error = replace_passage(text, old, "z").unwrap_err();
        assert!(error.contains(&format!("on the lines {lines}.")), "{error}");
    }
}

#[test]
fn the_line_breaks_of_the_file_are_kept() {
    let edited = replace_passage("a\r\nb\r\nc\r\n", "a\nb\n", "1\n2\n").unwrap();
    assert_eq!(edited.text, "1\r\n2\r\nc\r\n");
    assert!(edited.line_breaks_changed);
    // In a file with both kinds of line breaks, only the exact bytes match.
    let mixed = replace_passage("a\r\nb\nc", "a\nb", "x").unwrap_err();
    assert!(mixed.contains("does not contain"), "{mixed}");
}

proptest! {
    /// Checks that an edit changes only its one occurrence, and that it is refused for no or
    /// several occurrences.
    #[test]
    fn an_edit_changes_the_one_place_and_nothing_else(
        text in "[ab\n\rä]{0,30}", old in "[ab\n\rä]{1,4}", new in "[ab\n\rä]{0,4}",
    ) {
        let places = (0..text.len())
            .filter(|&at| text.is_char_boundary(at) && text[at..].starts_with(&old))
            .count();
        match replace_passage(&text, &old, &new) {
            Ok(edited) if !edited.line_breaks_changed => {
                prop_assert_eq!(places, 1);
                prop_assert_eq!(edited.text, text.replacen(&old, &new, 1));
            }
            Ok(edited) => {
                prop_assert_eq!(places, 0);
                prop_assert!(edited.text.len() + 2 * old.len() >= text.len());
            }
            // A passage with `\n` may match several occurrences with CR LF.
            Err(error) if error.contains("several times") => prop_assert!(places != 1),
            Err(error) if error.contains("does not contain") => prop_assert_eq!(places, 0),
            Err(_) => prop_assert_eq!(old, new),
        }
    }
}
