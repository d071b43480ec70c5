use std::path::Path;

use proptest::prelude::*;

use super::*;

const ROOT: &str = if cfg!(windows) { "C:\\work" } else { "/work" };

fn parse(text: &str) -> Result<String, PathFault> {
    RelativePath::parse(text, Path::new(ROOT)).map(|path| path.to_string())
}

#[test]
fn spellings_of_one_path_are_one() {
    for text in [
        "src/a.rs",
        "./src/a.rs",
        "src//a.rs",
        "src/./a.rs",
        "src/a.rs/",
    ] {
        assert_eq!(parse(text).as_deref(), Ok("src/a.rs"), "{text}");
    }
    for text in ["", ".", "./", "././"] {
        assert_eq!(parse(text).as_deref(), Ok("."), "{text:?}");
    }
    assert_eq!(
        parse(&format!("{ROOT}/src/a.rs")).as_deref(),
        Ok("src/a.rs")
    );
    assert_eq!(parse(ROOT).as_deref(), Ok("."));
}

#[test]
fn what_leaves_the_root_is_refused() {
    for text in ["..", "../x", "a/../b", "a/..", "./..", "a/../../b"] {
        assert_eq!(parse(text), Err(PathFault::Parent(text.to_owned())));
    }
    for text in ["/etc/passwd", "/", "/workshop/a", "//work2"] {
        assert_eq!(parse(text), Err(PathFault::Absolute(text.to_owned())));
    }
    let escaping = format!("{ROOT}/../etc/passwd");
    assert_eq!(parse(&escaping), Err(PathFault::Parent(escaping.clone())));
    for text in ["a\0b", "a\nb", "\u{1b}[2J"] {
        assert_eq!(parse(text), Err(PathFault::Characters(text.to_owned())));
    }
    assert_eq!(parse(&"a/".repeat(3000)), Err(PathFault::Long));
}

#[test]
fn secrets_are_not_read_and_hidden_files_not_written() {
    let rules = NameRules::new(&[]);
    let allowing = NameRules::new(&[".env.example".to_owned(), ".GitHub".to_owned()]);
    let check = |rules: &NameRules, text: &str| {
        let path = RelativePath::parse(text, Path::new(ROOT)).unwrap();
        (
            rules.check(&path, Access::Read).is_ok(),
            rules.check(&path, Access::Write).is_ok(),
        )
    };
    for (text, read, write) in [
        ("src/main.rs", true, true),
        ("environment.md", true, true),
        (".env", false, false),
        (".ENV", false, false),
        (".e\u{200d}nv", false, false),
        (".env.local", false, false),
        (".envrc", false, false),
        ("deep/down/.env/x", false, false),
        (".git/config", false, false),
        (".Git/hooks/post-commit", false, false),
        ("home/.ssh/id_ed25519", false, false),
        ("id_rsa", false, false),
        (".github/workflows/ci.yml", true, false),
        (".gitignore", true, false),
        ("src/.hidden/a", true, false),
        (".env.example", false, false),
    ] {
        assert_eq!(check(&rules, text), (read, write), "{text}");
    }
    assert_eq!(check(&allowing, ".env.example"), (true, true));
    assert_eq!(check(&allowing, ".github/workflows/ci.yml"), (true, true));
    // One name that is allowed does not allow another one.
    assert_eq!(check(&allowing, ".github/.env"), (false, false));
    assert_eq!(check(&allowing, ".env"), (false, false));
}

proptest! {
    /// Whatever is written, what comes out are names, and joined to the root they stay below it.
    #[test]
    fn a_path_has_only_names(
        parts in prop::collection::vec(
            prop_oneof![
                Just("..".to_owned()), Just(".".to_owned()), Just(String::new()),
                Just("~".to_owned()), Just("work".to_owned()), Just("a\\..\\b".to_owned()),
                "[a-z.\\\\ :~-]{0,6}", "\\PC{0,4}",
            ],
            0..8,
        ),
        absolute in any::<bool>(),
    ) {
        let mut text = parts.join("/");
        if absolute {
            text.insert(0, '/');
        }
        if let Ok(path) = RelativePath::parse(&text, Path::new(ROOT)) {
            for name in path.names() {
                let components: Vec<_> = Path::new(name).components().collect();
                let plain = matches!(components[..], [std::path::Component::Normal(only)] if only == name.as_str());
                prop_assert!(plain, "{text:?} gave {name:?}");
            }
            prop_assert_eq!(RelativePath::parse(&path.to_string(), Path::new(ROOT)), Ok(path));
        }
    }
}
