use super::*;

#[test]
fn answers_belong_to_questions() {
    let answers = ["a.json", "b.json"].map(PathBuf::from);
    let found = read_bfcl_suite(&["q.json".into()], &answers, &Environment::default());
    let error = found.unwrap_err().to_string();
    assert!(
        error.starts_with("2 answer files for 1 question files"),
        "{error}"
    );
}
