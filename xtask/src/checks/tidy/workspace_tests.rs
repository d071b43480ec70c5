use super::*;
use crate::files;

fn problems_of(files: &[(&str, &str)]) -> Vec<String> {
    let mut workspace = Workspace::default();
    let idioms = IdiomFinder::new().unwrap();
    for (file, text) in files {
        if files::is_markdown(file) {
            workspace.add_markdown(file, text);
        } else if files::is_rust(file) {
            workspace.add_rust(file, text, &idioms).unwrap();
        } else {
            workspace.add_other(file, text, &idioms);
        }
    }
    let problems = workspace.finish().into_iter();
    problems.map(|(_, problem)| problem.message).collect()
}

#[test]
fn each_planted_fault_is_a_problem() {
    let wide = format!("//{}\n", " word".repeat(30));
    let words = "word\n".repeat(MAX_DOCS_WORDS + 1);
    let entries: Vec<String> = ('a'..='m')
        .map(|name| format!("crates/a/src/{name}.rs"))
        .collect();
    let crowded: Vec<(&str, &str)> = entries.iter().map(|file| (file.as_str(), "")).collect();
    let lib = |text| vec![("crates/a/src/lib.rs", text)];
    let cycle = || {
        vec![
            ("crates/a/src/lib.rs", "mod x; mod y;"),
            ("crates/a/src/x/mod.rs", "use crate::y::Y; pub struct X;"),
            ("crates/a/src/y/mod.rs", "use crate::x::X; pub struct Y;"),
        ]
    };
    let cases: [(&str, Vec<(&str, &str)>); 10] = [
        ("idioms in", lib("// Whoever asks.\n")),
        (
            "messages have an idiom",
            lib("const A: &str = \"nobody knows this thing\";"),
        ),
        ("wider", lib(&wide)),
        ("wider", vec![("docs/a.md", &wide)]),
        ("use `redactor`", lib("struct Scrubber;")),
        ("13 entries", crowded),
        ("cycle of files", cycle()),
        ("cycle of folders", cycle()),
        ("24001 words", vec![("docs/a.md", &words)]),
        (
            "lines have an idiom",
            vec![("crates/a/web/b.js", "say(\"Nobody is there\");")],
        ),
    ];
    for (what, files) in cases {
        let problems = problems_of(&files);
        let is_named = |problem: &String| problem.contains(what);
        assert!(problems.iter().any(is_named), "{what}: {problems:?}");
    }
}

#[test]
fn tests_and_the_strings_of_test_data_are_exempt() {
    let text = "// Whoever asks.\nstruct Scrubber;";
    assert!(problems_of(&[("crates/a/tests/b.rs", text)]).is_empty());
    let string = "const A: &str = \"nobody knows this thing\";";
    assert!(problems_of(&[("crates/testkit/src/b.rs", string)]).is_empty());
    for file in ["crates/a/web/vendor/b.js", "crates/a/evals/b.yaml"] {
        assert!(
            problems_of(&[(file, "# Whoever asks.")]).is_empty(),
            "{file}"
        );
    }
}

#[test]
fn two_idioms_in_a_hundred_comment_lines_are_allowed() {
    let comments = |idioms| {
        let plain = "// The caller gets it.\n".repeat(100 - idioms);
        plain + &"// Whoever asks.\n".repeat(idioms)
    };
    assert!(problems_of(&[("crates/a/src/lib.rs", &comments(2))]).is_empty());
    assert_eq!(
        problems_of(&[("crates/a/src/lib.rs", &comments(3))]).len(),
        1
    );
}
