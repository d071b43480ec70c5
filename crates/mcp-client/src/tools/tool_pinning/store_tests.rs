use std::thread;

use super::*;

fn pins(tools: &[(&str, &str, &str)]) -> ToolPins {
    let mut pins = ToolPins::default();
    for (server, tool, fingerprint) in tools {
        let server = pins.0.entry((*server).to_owned()).or_default();
        server.insert((*tool).to_owned(), (*fingerprint).to_owned());
    }
    pins
}

fn store(folder: &Path, sources: &[(&str, &str)]) -> ToolPinFile {
    let sources = sources
        .iter()
        .map(|(server, source)| ((*server).to_owned(), (*source).to_owned()));
    ToolPinFile::new(folder.join("state/tool-pins.json"), sources.collect())
}

fn none() -> ToolPins {
    ToolPins::default()
}

#[test]
fn the_first_pin_stays_until_another_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &[("s", "a.yaml"), ("t", "a.yaml")]);
    assert_eq!(store.load().unwrap(), none());
    store.save(&none(), false).unwrap();
    assert!(!folder.path().join("state").exists());

    store.save(&pins(&[("s", "x", "1")]), false).unwrap();
    let later = pins(&[("s", "x", "2"), ("s", "y", "1"), ("t", "x", "1")]);
    store.save(&later, false).unwrap();
    let stored = [("s", "x", "1"), ("s", "y", "1"), ("t", "x", "1")];
    assert_eq!(store.load().unwrap(), pins(&stored));
    store.save(&pins(&[("s", "x", "2")]), true).unwrap();
    let stored = [("s", "x", "2"), ("s", "y", "1"), ("t", "x", "1")];
    assert_eq!(store.load().unwrap(), pins(&stored));
}

#[test]
fn servers_with_one_name_from_two_sources_are_different() {
    let folder = tempfile::tempdir().unwrap();
    let here = store(folder.path(), &[("s", "a.yaml")]);
    let there = store(folder.path(), &[("s", "b.yaml")]);
    // The file stores no pins of a server without a source.
    let all = pins(&[("s", "x", "1"), ("bundled", "x", "1")]);
    here.save(&all, false).unwrap();
    assert_eq!(there.load().unwrap(), none());
    there.save(&pins(&[("s", "x", "2")]), false).unwrap();
    assert_eq!(here.load().unwrap(), pins(&[("s", "x", "1")]));
    assert_eq!(there.load().unwrap(), pins(&[("s", "x", "2")]));
}

#[test]
fn concurrent_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..8 {
            let folder = folder.path();
            scope.spawn(move || {
                let store = store(folder, &[("s", "a.yaml")]);
                for tool in 0..10 {
                    let name = format!("{writer}-{tool}");
                    store.save(&pins(&[("s", &name, "1")]), false).unwrap();
                }
            });
        }
    });
    let stored = store(folder.path(), &[("s", "a.yaml")]).load().unwrap();
    assert_eq!(stored.0["s"].len(), 80);
    let mut left: Vec<_> = fs::read_dir(folder.path().join("state"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["tool-pins.json", "tool-pins.lock"]);
}

#[test]
fn files_of_another_format_are_reported_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &[("s", "a.yaml")]);
    fs::create_dir(folder.path().join("state")).unwrap();
    for text in [
        "no JSON",
        "{}",
        r#"{"version": 2, "sources": {}}"#,
        r#"{"version": 1, "places": {}}"#,
    ] {
        fs::write(&store.path, text).unwrap();
        let error = store.load().unwrap_err();
        assert!(
            matches!(error, ToolPinStoreError::Malformed { .. }),
            "{error}"
        );
        let stored = store.save(&pins(&[("s", "x", "1")]), false);
        assert!(stored.is_err());
        assert_eq!(fs::read_to_string(&store.path).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &[("s", "a.yaml")]);
    store.save(&pins(&[("s", "x", "1")]), false).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&store.path), 0o600);
    assert_eq!(mode(store.path.parent().unwrap()), 0o700);
}

#[test]
fn the_stored_format_is_stable() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), &[("s", "a.yaml")]);
    store.save(&pins(&[("s", "x", "1")]), false).unwrap();
    let text = fs::read_to_string(&store.path).unwrap();
    let fixture = concat!(
        "{\n",
        "  \"version\": 1,\n",
        "  \"sources\": {\n",
        "    \"a.yaml\": {\n",
        "      \"s\": {\n",
        "        \"x\": \"1\"\n",
        "      }\n",
        "    }\n",
        "  }\n",
        "}",
    );
    assert_eq!(text, fixture);
    fs::write(&store.path, fixture).unwrap();
    assert_eq!(store.load().unwrap(), pins(&[("s", "x", "1")]));
}
