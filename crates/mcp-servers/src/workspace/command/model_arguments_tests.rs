use std::fs;

use super::*;
use crate::workspace::root::path::NameRules;

/// Returns a folder with files and links. Some links lead out of the folder, others do not.
fn folder() -> (tempfile::TempDir, Root) {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("root");
    fs::create_dir_all(inner.join("src")).unwrap();
    for file in ["src/a.rs", ".env", "id_rsa", ".env.example"] {
        fs::write(inner.join(file), "").unwrap();
    }
    fs::write(outer.path().join("secret"), "").unwrap();
    #[cfg(unix)]
    for (target, link) in [("..", "out"), ("../secret", "leak"), ("src", "lib")] {
        std::os::unix::fs::symlink(target, inner.join(link)).unwrap();
    }
    let rules = NameRules::new(&[".env.example".to_owned()]);
    let root = Root::open(&inner, rules, 1).unwrap();
    (outer, root)
}

fn refusal(argument: &str, root: &Root) -> Option<String> {
    check_model_arguments(&[argument.to_owned()], root).err()
}

#[test]
fn names_and_paths_below_the_folder_are_possible() {
    let (_folder, root) = folder();
    for argument in [
        "parser",
        "module::tests::a_test",
        "tests/a.py::test_x[1]",
        "test:unit",
        "src/*.rs",
        "src/a.rs:3",
        "src,tests",
        "pages/[id].tsx",
        "./a",
        ".github/workflows",
        ".env.example",
        "src/a.rs/none",
        "ä",
    ] {
        assert_eq!(refusal(argument, &root), None, "{argument}");
    }
    let many = |count| vec!["a".to_owned(); count];
    assert!(check_model_arguments(&many(MAX_ARGUMENTS), &root).is_ok());
    assert!(check_model_arguments(&many(MAX_ARGUMENTS + 1), &root).is_err());
}

#[test]
fn everything_else_is_refused_with_the_reason() {
    let (_folder, root) = folder();
    let absolute = root
        .working_directory()
        .unwrap()
        .join("src")
        .display()
        .to_string();
    let url = "it is a URL";
    let outside = "absolute path";
    let parent = "`..`";
    let secret = "usually contains secrets";
    let other = "options are not";
    let mut table = vec![
        // These arguments are URLs.
        ("file:///etc/passwd", url),
        ("FILE:a", url),
        ("https://example.test/a.js", url),
        ("http:example.test", url),
        ("jar:file:/a", url),
        ("x:/abs/path", url),
        ("data:a", url),
        // These arguments are or contain absolute paths, also of the root folder.
        ("/etc/passwd", outside),
        (absolute.as_str(), outside),
        ("a,/etc/passwd", outside),
        ("a[/etc/passwd]", outside),
        // These arguments contain paths with `..`.
        ("..", parent),
        ("../x", parent),
        ("a/../../x", parent),
        ("x::..", parent),
        ("a:../x", parent),
        ("a,..", parent),
        // These arguments name secret files.
        (".env", secret),
        ("./.ENV", secret),
        ("src/.env.local", secret),
        ("a:.env", secret),
        ("src,id_rsa", secret),
        (".ssh/config", secret),
        (".git/config", secret),
        (".en*", "pattern for hidden files"),
        (".en[v]", "pattern for hidden files"),
        // These arguments are options, or have another special meaning to programs.
        ("", other),
        ("-v", other),
        ("--", other),
        ("--config=x", other),
        ("--config=/etc/passwd", other),
        ("CC=evil", other),
        ("@file", other),
        ("$(id)", other),
        ("a b", other),
        ("a;b", other),
        ("a|b", other),
        ("`id`", other),
        ("a\nb", other),
        ("a\0b", other),
        ("~/x", other),
        ("%2e%2e/x", other),
        ("..\\x", other),
        ("\u{1b}[0m", other),
    ];
    if cfg!(unix) {
        let link = "links are not followed";
        table.extend([
            ("leak", link),
            ("out", link),
            ("out/secret", link),
            ("./out/root/src", link),
            ("a:leak", link),
            ("src/a.rs,out/secret", link),
            ("lib/a.rs", link),
        ]);
    }
    for (argument, reason) in table {
        let said = refusal(argument, &root).unwrap_or_else(|| panic!("{argument:?} passes"));
        assert!(said.contains(reason), "{argument:?}: {said}");
    }
    assert!(refusal(&"a".repeat(MAX_BYTES + 1), &root).is_some());
}
