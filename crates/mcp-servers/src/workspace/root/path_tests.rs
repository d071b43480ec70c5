use std::path::Path;

use super::*;

const ROOT: &str = if cfg!(windows) { "C:\\work" } else { "/work" };

fn parse(text: &str) -> Result<String, String> {
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
        assert_eq!(parse(text).unwrap(), "src/a.rs", "{text}");
    }
    for text in ["", ".", "./", "././"] {
        assert_eq!(parse(text).unwrap(), ".", "{text:?}");
    }
    assert_eq!(parse(&format!("{ROOT}/src/a.rs")).unwrap(), "src/a.rs");
    assert_eq!(parse(ROOT).unwrap(), ".");
}

#[test]
fn the_length_of_a_path_is_limited_in_bytes() {
    assert!(parse(&"é".repeat(2048)).is_ok());
    let expected = "The path is longer than 4096 bytes.";
    assert_eq!(parse(&"é".repeat(2049)).unwrap_err(), expected);
}

#[test]
fn secrets_are_not_read_and_hidden_files_not_written() {
    let rules = NameRules::new(&[]);
    let allowing = NameRules::new(&[".env.example".to_owned(), ".GitHub".to_owned()]);
    let check = |rules: &NameRules, text: &str| {
        let path = RelativePath::parse(text, Path::new(ROOT)).unwrap();
        (
            rules.check_access(&path, Access::Read).is_ok(),
            rules.check_access(&path, Access::Write).is_ok(),
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
    // An allowed folder name does not allow a secret file in the folder.
    assert_eq!(check(&allowing, ".github/.env"), (false, false));
    assert_eq!(check(&allowing, ".env"), (false, false));
}
