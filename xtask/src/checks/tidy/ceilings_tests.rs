use super::*;
use crate::files;

fn measured(files: &[(&str, &str)]) -> Ceilings {
    let mut measurement = Measurement::default();
    let idioms = Idioms::new().unwrap();
    for (file, text) in files {
        if files::is_markdown(file) {
            measurement.add_markdown(file, text);
        } else {
            measurement.add_rust(file, text, &idioms).unwrap();
        }
    }
    measurement.finish().0
}

fn ceilings_with(counts: Counts) -> Ceilings {
    Ceilings {
        docs_words: 0,
        wide_markdown_lines: 0,
        crates: BTreeMap::from([("a".to_owned(), counts)]),
    }
}

#[test]
fn each_planted_fault_is_a_problem() {
    let wide = format!("//{}\n", " word".repeat(30));
    let words = "word "
        .repeat(TARGET_DOCS_WORDS + 1)
        .replace("word word", "word\nword");
    let entries: Vec<String> = ('a'..='m')
        .map(|name| format!("crates/a/src/{name}.rs"))
        .collect();
    let crowded: Vec<(&str, &str)> = entries.iter().map(|file| (file.as_str(), "")).collect();
    let cases: [(&str, Vec<(&str, &str)>); 8] = [
        (
            "idioms",
            vec![("crates/a/src/lib.rs", "// Whoever asks.\n")],
        ),
        (
            "messages",
            vec![(
                "crates/a/src/lib.rs",
                "const A: &str = \"nobody knows this thing\";",
            )],
        ),
        ("wide", vec![("crates/a/src/lib.rs", wide.as_str())]),
        (
            "replaced",
            vec![("crates/a/src/lib.rs", "struct Scrubber;")],
        ),
        ("entries", crowded),
        (
            "cycles",
            vec![
                ("crates/a/src/lib.rs", "mod x; mod y;"),
                ("crates/a/src/x/mod.rs", "use crate::y::Y; pub struct X;"),
                ("crates/a/src/y/mod.rs", "use crate::x::X; pub struct Y;"),
            ],
        ),
        (
            "folders in import",
            vec![
                ("crates/a/src/lib.rs", "mod x; mod y;"),
                ("crates/a/src/x/mod.rs", "use crate::y::Y; pub struct X;"),
                ("crates/a/src/y/mod.rs", "use crate::x::X; pub struct Y;"),
            ],
        ),
        ("docs/", vec![("docs/a.md", words.as_str())]),
    ];
    for (what, files) in cases {
        let problems = above(&measured(&files), &Ceilings::default());
        assert!(!problems.is_empty(), "{what}");
        let is_named = |problem: &String| problem.contains(what);
        assert!(problems.iter().any(is_named), "{what}: {problems:?}");
    }
}

#[test]
fn a_count_at_its_ceiling_passes_and_one_above_does_not() {
    let counts = measured(&[("crates/a/src/lib.rs", "struct Scrubber; struct Tape;")]);
    let ceiling = |names| ceilings_with(Counts::from([(REPLACED_NAMES.to_owned(), names)]));
    assert!(above(&counts, &ceiling(2)).is_empty());
    assert_eq!(above(&counts, &ceiling(1)).len(), 1);
}

#[test]
fn ceilings_only_fall_and_vanish_at_the_targets() {
    let counts = |names| ceilings_with(Counts::from([(REPLACED_NAMES.to_owned(), names)]));
    assert_eq!(lowered(&counts(3), &counts(5)), counts(3));
    assert_eq!(lowered(&counts(5), &counts(3)), counts(3));
    assert!(lowered(&counts(0), &counts(3)).crates.is_empty());
}

#[test]
fn tests_count_by_width_only() {
    let text = "// Whoever asks.\nstruct Scrubber;";
    let counts = measured(&[("crates/a/tests/b.rs", text)]);
    assert_eq!(counts.crates["a"], Counts::default());
}
