use super::*;

const SOURCE: &str = "
#[test]
fn one_is_one() {}
    pub(crate) async fn two_are_two() {}
// fn three_are_three() {}
";

fn missing(document: &str) -> Vec<(usize, String)> {
    let mut tests = NamedTests::default();
    tests.add_table_names("docs/a.md", document);
    tests.add_defined_names("crates/a/tests/all_of_these/main.rs", SOURCE);
    let missing = tests.missing_tests().into_iter();
    missing
        .map(|(file, Problem { line, message })| {
            assert_eq!(file, "docs/a.md");
            (line, message)
        })
        .collect()
}

#[test]
fn a_missing_test_in_a_table_is_found() {
    let document = "
| line | test |
|---|---|
| A | `one_is_one`, `three_are_three` (domain) |
| B | `a_file.rs`: one each; `all_of_these`: `one_is_one`; `two_are_two` and `nothing_is_four` |
";
    let found = missing(document);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5], "{found:?}");
    assert!(found[0].1.contains("`three_are_three`"), "{found:?}");
    assert!(found[1].1.contains("`nothing_is_four`"), "{found:?}");
}

#[test]
fn names_in_other_columns_tables_and_lines_are_ignored() {
    let document = "
`max_steps` is an option.

| option | default |
|---|---|
| `max_steps` | `no_limit` |

| test | shows |
|---|---|
| `one` | `max_steps` |

| what | test |
|---|---|
| `max_steps` | `one_is_one` |
";
    assert_eq!(missing(document), []);
}
