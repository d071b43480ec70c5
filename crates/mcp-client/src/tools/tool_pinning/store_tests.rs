use std::thread;

use super::*;

fn known(tools: &[(&str, &str, &str)]) -> KnownTools {
    let mut known = KnownTools::default();
    for (server, tool, fingerprint) in tools {
        let server = known.0.entry((*server).to_owned()).or_default();
        server.insert((*tool).to_owned(), (*fingerprint).to_owned());
    }
    known
}

fn memory(folder: &Path, places: &[(&str, &str)]) -> ToolMemoryFile {
    let places = places
        .iter()
        .map(|(server, place)| ((*server).to_owned(), (*place).to_owned()));
    ToolMemoryFile::new(folder.join("state/known-tools.json"), places.collect())
}

fn nothing() -> KnownTools {
    KnownTools::default()
}

#[test]
fn what_was_first_stays_until_another_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path(), &[("s", "a.yaml"), ("t", "a.yaml")]);
    assert_eq!(memory.load().unwrap(), nothing());
    memory.keep(&nothing(), &nothing()).unwrap();
    assert!(!folder.path().join("state").exists());

    memory.keep(&known(&[("s", "x", "1")]), &nothing()).unwrap();
    let later = known(&[("s", "x", "2"), ("s", "y", "1"), ("t", "x", "1")]);
    memory.keep(&later, &nothing()).unwrap();
    let kept = [("s", "x", "1"), ("s", "y", "1"), ("t", "x", "1")];
    assert_eq!(memory.load().unwrap(), known(&kept));
    memory.keep(&nothing(), &known(&[("s", "x", "2")])).unwrap();
    let kept = [("s", "x", "2"), ("s", "y", "1"), ("t", "x", "1")];
    assert_eq!(memory.load().unwrap(), known(&kept));
}

#[test]
fn servers_of_one_name_in_two_places_are_two() {
    let folder = tempfile::tempdir().unwrap();
    let here = memory(folder.path(), &[("s", "a.yaml")]);
    let there = memory(folder.path(), &[("s", "b.yaml")]);
    // One that is remembered nowhere is not kept, and nobody need try.
    assert!(here.remembers("s") && !here.remembers("bundled"));
    let seen = known(&[("s", "x", "1"), ("bundled", "x", "1")]);
    here.keep(&seen, &seen).unwrap();
    assert_eq!(there.load().unwrap(), nothing());
    there.keep(&known(&[("s", "x", "2")]), &nothing()).unwrap();
    assert_eq!(here.load().unwrap(), known(&[("s", "x", "1")]));
    assert_eq!(there.load().unwrap(), known(&[("s", "x", "2")]));
}

#[test]
fn many_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..8 {
            let folder = folder.path();
            scope.spawn(move || {
                let memory = memory(folder, &[("s", "a.yaml")]);
                for tool in 0..10 {
                    let name = format!("{writer}-{tool}");
                    memory
                        .keep(&known(&[("s", &name, "1")]), &nothing())
                        .unwrap();
                }
            });
        }
    });
    let kept = memory(folder.path(), &[("s", "a.yaml")]).load().unwrap();
    assert_eq!(kept.0["s"].len(), 80);
    let mut left: Vec<_> = fs::read_dir(folder.path().join("state"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["known-tools.json", "known-tools.lock"]);
}

#[test]
fn a_file_of_another_kind_is_told_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path(), &[("s", "a.yaml")]);
    fs::create_dir(folder.path().join("state")).unwrap();
    for text in ["no JSON", "{}", r#"{"version": 2, "places": {}}"#] {
        fs::write(&memory.path, text).unwrap();
        let error = memory.load().unwrap_err();
        assert!(
            matches!(error, ToolMemoryError::Malformed { .. }),
            "{error}"
        );
        let kept = memory.keep(&known(&[("s", "x", "1")]), &nothing());
        assert!(kept.is_err());
        assert_eq!(fs::read_to_string(&memory.path).unwrap(), text);
    }
}

#[test]
fn a_lock_that_is_never_let_go_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path(), &[("s", "a.yaml")]);
    fs::create_dir(folder.path().join("state")).unwrap();
    let held = memory.lock().unwrap();
    let error = memory.keep(&known(&[("s", "x", "1")]), &nothing());
    assert!(
        matches!(error, Err(ToolMemoryError::Busy { .. })),
        "{error:?}"
    );
    drop(held);
    memory.keep(&known(&[("s", "x", "1")]), &nothing()).unwrap();
}

#[cfg(unix)]
#[test]
fn it_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path(), &[("s", "a.yaml")]);
    memory.keep(&known(&[("s", "x", "1")]), &nothing()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&memory.path), 0o600);
    assert_eq!(mode(memory.path.parent().unwrap()), 0o700);
}
