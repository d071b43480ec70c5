use super::*;

fn lines(problems: impl IntoIterator<Item = Problem>) -> Vec<usize> {
    problems.into_iter().map(|problem| problem.line).collect()
}

#[test]
fn a_file_may_have_as_many_lines_as_two_screens_of_review() {
    assert_eq!(check_file_length(&"x\n".repeat(MAX_LINES)), None);
    assert_eq!(
        lines(check_file_length(&"x\n".repeat(MAX_LINES + 1))),
        [MAX_LINES + 1]
    );
}

#[test]
fn names_that_say_nothing_are_found_as_files_and_folders() {
    for file in [
        "crates/a/src/utils.rs",
        "crates/a/tests/common/mod.rs",
        "helpers.rs",
    ] {
        assert!(check_file_name(file).is_some(), "{file}");
    }
    for file in [
        "crates/providers-common/src/lib.rs",
        "src/tool_utils.rs",
        "src/mod.rs",
    ] {
        assert_eq!(check_file_name(file), None, "{file}");
    }
}

#[test]
fn unfinished_work_is_found_as_a_word() {
    let text = format!("// {}: later\nlet {}S = 1;\n", UNFINISHED[0], UNFINISHED[0]);
    assert_eq!(lines(find_unfinished_marks(&text)), [1]);
}

#[test]
fn waiting_is_found_in_tests_only() {
    let call = format!("    tokio::time::{SLEEP}wait).await;");
    let inline = format!("fn a() {{\n{call}\n}}\n\n#[cfg(test)]\nmod tests {{\n{call}\n}}\n");
    assert_eq!(
        lines(find_sleeps_in_tests("crates/a/src/b.rs", &inline)),
        [7]
    );
    assert_eq!(
        lines(find_sleeps_in_tests("crates/a/tests/b.rs", &call)),
        [1]
    );
    assert_eq!(
        lines(find_sleeps_in_tests("crates/a/src/b_tests.rs", &call)),
        [1]
    );
    let elsewhere = format!("#[cfg(test)]\nmod b_tests;\n{call}\n");
    assert!(lines(find_sleeps_in_tests("crates/a/src/b.rs", &elsewhere)).is_empty());
}

#[test]
fn waiting_with_a_reason_and_other_words_pass() {
    let file = "crates/a/tests/b.rs";
    for text in [
        format!("{SLEEP}x); // sleep: the clock is paused"),
        format!("// sleep: the clock is paused\n{SLEEP}x);"),
        format!("no_{SLEEP}x);"),
        format!("fn {SLEEP}x: u8) {{}}"),
        format!("// never {SLEEP}x)"),
    ] {
        assert!(
            lines(find_sleeps_in_tests(file, &text)).is_empty(),
            "{text}"
        );
    }
    let too_far = format!("// sleep: reason\nlet a = 1;\n{SLEEP}x);");
    assert_eq!(lines(find_sleeps_in_tests(file, &too_far)), [3]);
}

#[test]
fn traces_of_a_machine_are_found() {
    let [work, root] = MACHINE_PATHS;
    let host = REGISTRY_HOSTS[2];
    let text = format!("a\ncd {work}main\n\"{root}x\"\nfrom https://{host}/a\n");
    assert_eq!(lines(find_machine_specific_text(&text)), [2, 3, 4]);
    let fine = format!("my{work}x ./a{root}b ~{work}c crates/work-load/ homework/");
    assert!(lines(find_machine_specific_text(&fine)).is_empty());
}

#[test]
fn a_crate_takes_the_lints_of_the_workspace() {
    assert_eq!(check_workspace_lints("[lints]\nworkspace = true\n"), None);
    assert_eq!(
        check_workspace_lints("lints.workspace = true\n[package]\n"),
        None
    );
    assert!(check_workspace_lints("[dependencies]\nworkspace = true\n").is_some());
    assert!(check_workspace_lints("[lints]\n[package]\nworkspace = true\n").is_some());
}

#[test]
fn a_library_denies_missing_documentation() {
    assert_eq!(
        check_missing_docs_lint("//! Doc.\n#![deny(missing_docs)]\n"),
        None
    );
    assert!(check_missing_docs_lint("//! Doc.\n#![warn(missing_docs)]\n").is_some());
}

#[test]
fn every_dependency_has_a_reason_above_its_group() {
    let text = "\
[workspace.dependencies]
switchboard-domain = { path = \"crates/domain\" }
naked = \"1\"

# Reason.
one = \"1\"
two = { version = \"1\", features = [
    \"x\",
] }

three = \"1\"

[profile.release]
lto = \"thin\"
";
    assert_eq!(lines(find_dependencies_without_reason(text)), [3, 11]);
}

#[test]
fn the_rules_apply_by_place() {
    let messages = |file: &str| check_file(file, "").len();
    assert_eq!(messages("crates/a/src/lib.rs"), 1);
    assert_eq!(messages("crates/a/Cargo.toml"), 1);
    assert_eq!(messages("crates/a/src/b.rs"), 0);
    assert_eq!(messages("docs/guide.md"), 0);
}
