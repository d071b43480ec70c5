use super::*;

fn environment() -> Environment {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Environment(vec![("PATH".into(), path)])
}

fn parse(entry: &str) -> Result<Command, String> {
    Command::parse(entry, Path::new("/"), &environment())
}

#[test]
fn entries_are_split_into_words_without_a_shell() {
    assert_eq!(split_words("  a  b\tc ").unwrap(), ["a", "b", "c"]);
    let expected = ["a", "b c", "d 'e", "", "fgh"];
    assert_eq!(split_words("a 'b c' \"d 'e\" '' f'g'h").unwrap(), expected);
    let expected = ["a;", "b", "&&", "$(c)", "`d`", ">", "e"];
    assert_eq!(split_words("a; b && $(c) `d` > e").unwrap(), expected);
    assert_eq!(split_words("a 'b"), Err("has an unclosed quote"));
}

#[test]
fn the_purpose_is_told_or_guessed() {
    let purpose = |entry: &str| parse(entry).unwrap().purpose;
    assert_eq!(purpose("cargo check"), CommandPurpose::Compile);
    assert_eq!(purpose("cargo test"), CommandPurpose::Test);
    assert_eq!(purpose("cargo nextest run"), CommandPurpose::Test);
    assert_eq!(purpose("test: cargo check"), CommandPurpose::Test);
    let expected = CommandPurpose::Compile;
    assert_eq!(purpose("compile:cargo test --no-run"), expected);
}

#[test]
fn an_entry_that_cannot_work_is_refused_at_once() {
    let error = |entry: &str| parse(entry).unwrap_err();
    assert_eq!(
        error("no-such-program-anywhere x"),
        "program `no-such-program-anywhere` of `no-such-program-anywhere x` was not found"
    );
    assert_eq!(error("  "), "`  ` has no program");
    assert_eq!(error("test:"), "`test:` has no program");
    assert_eq!(error("{args}"), "`{args}` has no program");
    assert_eq!(
        error("cargo {args} test"),
        "`cargo {args} test` contains {args} before the end; it must be the last word"
    );
    let open = parse("cargo test {args}").unwrap();
    assert!(open.open);
    assert_eq!(
        (open.name.as_str(), &open.arguments[..]),
        ("cargo test", &["test".to_owned()][..])
    );
    assert!(open.program.is_absolute());
}

#[test]
fn programs_are_not_taken_from_relative_entries_of_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("planted");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let relative = Environment(vec![("PATH".into(), ".".into())]);
    let absolute = Environment(vec![("PATH".into(), folder.path().into())]);
    assert!(Command::parse("planted", folder.path(), &relative).is_err());
    assert_eq!(
        Command::parse("planted", folder.path(), &absolute)
            .unwrap()
            .program,
        program
    );
    // With `./`, the program is searched in the workspace.
    assert!(Command::parse("./planted", folder.path(), &relative).is_ok());
}

#[test]
fn commands_see_no_keys() {
    let ours = [
        ("PATH", "/bin"),
        ("HOME", "/home/a"),
        ("LC_ALL", "C"),
        ("ANTHROPIC_API_KEY", "sk"),
        ("GITHUB_TOKEN", "t"),
        ("HTTPS_PROXY", "http://a:b@c"),
        ("LD_PRELOAD", "x"),
        ("TERM", "xterm"),
        ("DATABASE_URL", "x"),
    ]
    .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let configured = ["DATABASE_URL", "CI=true", "HOME=/tmp", "NOT_SET"].map(str::to_owned);
    let environment = Environment::new(ours, &configured).unwrap();
    let environment: Vec<_> = environment
        .0
        .iter()
        .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
        .collect();
    assert_eq!(
        environment,
        [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("TERM", "dumb"),
            ("NO_COLOR", "1"),
            ("DATABASE_URL", "x"),
            ("CI", "true"),
            ("HOME", "/tmp"),
        ]
    );
    assert!(Environment::new([], &["=x".to_owned()]).is_err());
}
