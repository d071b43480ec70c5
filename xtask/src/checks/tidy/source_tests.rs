use super::*;

const FILE: &str = r#"
//! Module doc.

/// Item doc.
fn first() {
    // Reason.
    println!("a message of four words", name = "another message of words");
    let text = "not a // comment in here";
}

#[cfg(test)]
mod tests {
    // A comment of a test { with a brace.
    const TEXT: &str = "a message in a test";
}

#[cfg(test)]
mod more_tests;

// Last comment.
"#;

fn texts(prose: Vec<Prose>) -> Vec<String> {
    prose.into_iter().map(|prose| prose.text).collect()
}

#[test]
fn comments_of_tests_do_not_count() {
    assert_eq!(
        texts(extract_comments(FILE, &syn::parse_file(FILE).unwrap())),
        [
            "//! Module doc.",
            "/// Item doc.",
            "// Reason.",
            "// Last comment."
        ]
    );
}

#[test]
fn strings_in_macros_count_and_strings_of_tests_do_not() {
    let file = syn::parse_file(FILE).unwrap();
    assert_eq!(
        texts(extract_strings(&file)),
        [
            "a message of four words",
            "another message of words",
            "not a // comment in here"
        ]
    );
    assert_eq!(extract_strings(&file)[2].line, 8);
}

#[test]
fn files_of_tests_are_recognized_by_their_path() {
    for file in [
        "crates/a/tests/b.rs",
        "crates/a/src/b_tests.rs",
        "crates/a/benches/c.rs",
    ] {
        assert!(is_test_file(file), "{file}");
    }
    assert!(!is_test_file("crates/a/src/latest.rs"));
}
