use super::*;

#[test]
fn thirteen_entries_are_too_many() {
    let names = "abcdefghijkl".chars();
    let mut files: Vec<String> = names.map(|name| format!("topic/{name}.rs")).collect();
    // The first file belongs to the entry `a`, and the second is a test file. Neither counts.
    files.push("topic/a/part.rs".to_owned());
    files.push("topic/b_tests.rs".to_owned());
    assert!(find_crowded_folders(files.iter().map(String::as_str)).is_empty());
    files.push("topic/m/mod.rs".to_owned());
    assert_eq!(
        find_crowded_folders(files.iter().map(String::as_str)),
        [("topic/".to_owned(), 13)]
    );
}
