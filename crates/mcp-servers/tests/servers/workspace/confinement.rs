//! Checks that the tools access nothing outside of the root folder, for any path and while other
//! processes change the files.

use std::{collections::BTreeMap, fs, path::Path};

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use super::support::{SECRET, Workspace};
use crate::client::text;

/// Returns the contents of all files below a folder, except those in the root folder of the
/// workspace.
fn outside(parent: &Path) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    let mut folders = vec![parent.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let shown = path.strip_prefix(parent).unwrap().display().to_string();
            if shown == "root" {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                seen.insert(shown, "folder".to_owned());
                folders.push(path);
            } else {
                seen.insert(shown, fs::read_to_string(&path).unwrap());
            }
        }
    }
    seen
}

/// Returns a call of each tool with this path.
fn uses(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("file_load", json!({"path": path})),
        ("file_list", json!({"path": path, "hidden": true})),
        ("file_save", json!({"path": path, "content": "mine"})),
        (
            "file_save",
            json!({"path": path, "content": "mine", "expected_hash": "0"}),
        ),
        (
            "file_save",
            json!({"path": path, "old_text": SECRET, "new_text": "mine"}),
        ),
        ("data_list", json!({"path": path, "recursive": true})),
        ("data_read", json!({"path": path})),
        ("debug_logs", json!({"path": path})),
        ("data_query", json!({"path": path})),
        (
            "data_query",
            json!({"sql": "SELECT * FROM secret", "files": [path]}),
        ),
    ]
}

async fn all_uses_are_refused(workspace: &Workspace, path: &str) -> Vec<String> {
    let before = outside(workspace.parent());
    let mut seen = Vec::new();
    for (tool, arguments) in uses(path) {
        let refused = workspace.refused(tool, arguments).await;
        assert!(!refused.contains(SECRET), "{tool} {path}: {refused}");
        seen.push(refused);
    }
    assert_eq!(outside(workspace.parent()), before, "{path}");
    seen
}

#[tokio::test]
async fn paths_outside_of_the_root_are_refused() {
    let workspace = Workspace::new().await;
    workspace.write("a/b.csv", "x\n1\n");
    let outside = workspace
        .parent()
        .join("outside/secret.csv")
        .display()
        .to_string();
    let root = workspace.root().canonicalize().unwrap();
    let by_root = root.join("../outside/secret.csv").display().to_string();
    // The name of the folder begins with the name of the root folder.
    let sibling = format!("{}-2/secret.csv", root.display());
    for path in [
        "..",
        "../outside/secret.csv",
        "a/../../outside/secret.csv",
        "./../outside/secret.csv",
        "a/..",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        &outside,
        &by_root,
        &sibling,
        "/proc/self/root/etc/passwd",
        "/proc/self/environ",
        "/dev/stdin",
        "a\0/../../outside.txt",
        "a/b.csv\0.csv",
    ] {
        all_uses_are_refused(&workspace, path).await;
    }
    let refused = workspace
        .refused("file_load", json!({"path": "../outside.txt"}))
        .await;
    insta::assert_snapshot!(refused, @r#""../outside.txt" contains `..`. Write the path relative to the root folder, without `..`."#);
    let refused = workspace
        .refused("file_load", json!({"path": "/etc/passwd"}))
        .await;
    insta::assert_snapshot!(refused, @r#""/etc/passwd" is an absolute path outside of the root folder. Write the path relative to the root folder, such as src/main.rs."#);
}

#[tokio::test]
async fn names_with_secrets_are_refused() {
    let workspace = Workspace::with(|options| {
        options.allowed_names.push(".github".to_owned());
        options.allowed_names.push(".env.example".to_owned());
    })
    .await;
    for file in [
        ".env",
        ".ENV.local",
        ".git/config",
        "sub/.env/x.csv",
        ".ssh/id_rsa",
        "id_ed25519",
        ".npmrc",
    ] {
        workspace.write(file, SECRET);
        let seen = all_uses_are_refused(&workspace, file).await;
        assert!(
            seen.iter()
                .any(|text| text.contains("usually contains secrets")),
            "{file}: {seen:?}"
        );
        assert_eq!(workspace.read(file), SECRET);
    }
    // Hidden files can be read but not written.
    workspace.write(".config/settings.json", "{}");
    workspace
        .data("file_load", json!({"path": ".config/settings.json"}))
        .await;
    for path in [
        ".config/settings.json",
        ".config/new.json",
        ".bashrc",
        "sub/.hidden/x",
    ] {
        let save = json!({"path": path, "content": "mine"});
        let refused = workspace.refused("file_save", save).await;
        assert!(refused.contains("is hidden"), "{refused}");
    }
    assert!(!workspace.root().join(".bashrc").exists());
    for path in [".github/workflows/ci.yml", ".env.example"] {
        let save = json!({"path": path, "content": "mine"});
        assert_eq!(workspace.data("file_save", save).await["action"], "created");
        workspace.data("file_load", json!({"path": path})).await;
    }
    // The error for a missing file does not suggest a secret file.
    let near = workspace
        .refused("file_load", json!({"path": "id_ed25518"}))
        .await;
    assert!(!near.contains("id_ed25519"), "{near}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1, ..ProptestConfig::default() })]
    /// Checks generated paths in a root folder with many links.
    #[test]
    fn no_path_escapes(_once in Just(())) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let workspace = runtime.block_on(Workspace::new());
        workspace.write("a/b.csv", "x\n1\n");
        #[cfg(unix)]
        links(&workspace);
        let before = outside(workspace.parent());
        let parts = prop::sample::select(vec![
            "..", ".", "", "a", "b.csv", "out", "up", "back", "self", "file", "outside", "secret.csv",
            "outside.txt", "root", "etc", "passwd", "~", "\\", "..\\..", "%2e%2e", "new",
        ]);
        let paths = (prop::collection::vec(parts, 0..7), any::<bool>()).prop_map(|(parts, absolute)| {
            format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
        });
        TestRunner::new(ProptestConfig::with_cases(256)).run(&paths, |path| {
            for (tool, arguments) in uses(&path) {
                let result = runtime.block_on(workspace.call(tool, arguments));
                prop_assert!(!text(&result).contains(SECRET), "{} {}", tool, path);
            }
            prop_assert_eq!(&outside(workspace.parent()), &before, "{}", path);
            Ok(())
        }).unwrap();
    }
}

#[cfg(unix)]
fn links(workspace: &Workspace) {
    use std::os::unix::fs::symlink;
    let root = workspace.root();
    symlink(workspace.parent().join("outside"), root.join("out")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink(".", root.join("self")).unwrap();
    symlink("../../outside", root.join("a/back")).unwrap();
    symlink("../outside.txt", root.join("file")).unwrap();
    symlink("../outside/secret.csv", root.join("secret.csv")).unwrap();
    symlink("../outside/new.txt", root.join("new")).unwrap();
}

#[cfg(unix)]
mod unix {
    use std::{
        os::unix::{fs::symlink, net::UnixListener},
        path::PathBuf,
        process::Command,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread::JoinHandle,
    };

    use switchboard_mcp_servers::WorkspaceOptions;

    use super::*;
    use crate::workspace::support::serve;

    #[tokio::test]
    async fn links_are_not_followed() {
        let workspace = Workspace::new().await;
        workspace.write("a/inner.txt", "inner");
        links(&workspace);
        symlink("inner.txt", workspace.root().join("a/link.txt")).unwrap();
        symlink("nowhere", workspace.root().join("dangling")).unwrap();
        symlink("/dev/zero", workspace.root().join("zero.csv")).unwrap();
        for path in [
            "out",
            "out/secret.csv",
            "out/new.csv",
            "up",
            "up/outside.txt",
            "up/root/a/inner.txt",
            "self/a/inner.txt",
            "self/self/file",
            "a/back/secret.csv",
            "file",
            "secret.csv",
            "new",
            "dangling",
            "zero.csv",
            "a/link.txt",
        ] {
            let seen = all_uses_are_refused(&workspace, path).await;
            let told = |text: &&String| text.contains("is a link, and links are not followed.");
            assert!(seen.iter().filter(told).count() >= 5, "{path}: {seen:?}");
        }
        // Recursive lists do not follow links.
        let list = json!({"recursive": true, "hidden": true});
        let list = workspace.call("file_list", list).await;
        assert!(!text(&list).contains("secret.txt"), "{}", text(&list));
        assert!(text(&list).contains("out (a link, not followed)"));
        let data = workspace
            .call("data_list", json!({"recursive": true}))
            .await;
        assert_eq!(text(&data), ". has no data files.");
        assert_eq!(workspace.read("a/inner.txt"), "inner");
    }

    #[tokio::test]
    async fn a_link_that_replaces_a_file_between_two_calls_is_not_followed() {
        let workspace = Workspace::new().await;
        workspace.write("a/b.txt", "mine");
        let hash = workspace
            .data("file_load", json!({"path": "a/b.txt"}))
            .await["hash"]
            .clone();
        let save = json!({"path": "a/b.txt", "content": "changed", "expected_hash": hash});
        let before = outside(workspace.parent());

        // The file is replaced by a link.
        fs::remove_file(workspace.root().join("a/b.txt")).unwrap();
        symlink("../../outside.txt", workspace.root().join("a/b.txt")).unwrap();
        workspace
            .refused("file_load", json!({"path": "a/b.txt"}))
            .await;
        workspace.refused("file_save", save.clone()).await;
        // The folder of the file is replaced by a link.
        fs::remove_dir_all(workspace.root().join("a")).unwrap();
        fs::write(workspace.parent().join("outside/b.txt"), "mine").unwrap();
        let before_folder = outside(workspace.parent());
        symlink("../outside", workspace.root().join("a")).unwrap();
        workspace
            .refused("file_load", json!({"path": "a/b.txt"}))
            .await;
        workspace.refused("file_save", save).await;
        let new = json!({"path": "a/new.txt", "content": "new"});
        workspace.refused("file_save", new).await;
        assert_eq!(outside(workspace.parent()), before_folder);
        fs::remove_file(workspace.parent().join("outside/b.txt")).unwrap();
        assert_eq!(outside(workspace.parent()), before);
    }

    #[tokio::test]
    async fn a_renamed_root_stays_the_root() {
        let workspace = Workspace::with(|it| it.commands.push("sh check.sh".to_owned())).await;
        workspace.write("a.txt", "mine");
        workspace.write("check.sh", "echo inside");
        let moved = workspace.parent().join("moved");
        fs::rename(workspace.root(), &moved).unwrap();
        symlink("outside", workspace.root()).unwrap();
        fs::write(
            workspace.parent().join("outside/check.sh"),
            format!("echo {SECRET}"),
        )
        .unwrap();
        let loaded = workspace.data("file_load", json!({"path": "a.txt"})).await;
        assert_eq!(loaded["content"], "mine");
        let refused = workspace
            .refused("file_load", json!({"path": "secret.txt"}))
            .await;
        assert_eq!(refused, "secret.txt does not exist.");
        // Commands are refused, because they would run in the other folder.
        let refused = workspace.refused("compile", json!({})).await;
        assert!(
            refused.starts_with("The root folder was moved"),
            "{refused}"
        );
    }

    /// Checks the tools while another thread replaces a folder by a link, and the link by the
    /// folder, again and again.
    #[tokio::test]
    async fn a_folder_that_alternates_with_a_link_is_safe() {
        let workspace = Workspace::new().await;
        let root = workspace.root();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/secret.txt"), "mine").unwrap();
        let before = outside(workspace.parent());
        let racer = Racer::start(root);
        let (mut refused, mut loaded) = (0, 0);
        for round in 0..400 {
            let path = "folder/secret.txt";
            let result = workspace.call("file_load", json!({"path": path})).await;
            assert!(!text(&result).contains(SECRET));
            if result.is_error == Some(true) {
                refused += 1;
            } else {
                loaded += 1;
            }
            let new = format!("folder/new-{round}.txt");
            let new = json!({"path": new, "content": "mine"});
            workspace.call("file_save", new).await;
            let list = workspace.call("file_list", json!({"path": "folder"})).await;
            assert!(!text(&list).contains("secret.csv"));
        }
        drop(racer);
        assert!(refused > 0, "the race did not take place ({loaded} loaded)");
        assert_eq!(outside(workspace.parent()), before);
    }

    /// A thread that replaces `folder` by a link out of the root folder, and the link by the
    /// folder, until this value is dropped.
    struct Racer {
        stop: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Racer {
        fn start(root: PathBuf) -> Self {
            let stop = Arc::new(AtomicBool::new(false));
            let told = Arc::clone(&stop);
            let thread = std::thread::spawn(move || {
                let (real, folder) = (root.join("real"), root.join("folder"));
                while !told.load(Ordering::Relaxed) {
                    // Each step may fail, because a tool may save a file to a new folder with this
                    // name.
                    let _ = fs::rename(&real, &folder);
                    let _ = fs::rename(&folder, &real);
                    let _ = symlink("../outside", &folder);
                    if fs::remove_file(&folder).is_err() {
                        let _ = fs::remove_dir_all(&folder);
                    }
                }
            });
            let thread = Some(thread);
            Self { stop, thread }
        }
    }

    impl Drop for Racer {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            let ended = self.thread.take().unwrap().join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }

    #[tokio::test]
    async fn pipes_sockets_and_devices_are_refused() {
        let workspace = Workspace::new().await;
        for pipe in ["pipe", "pipe.csv"] {
            let made = Command::new("mkfifo")
                .arg(workspace.root().join(pipe))
                .status();
            assert!(made.unwrap().success());
        }
        let _socket = UnixListener::bind(workspace.root().join("socket")).unwrap();
        for path in ["pipe", "pipe.csv", "socket"] {
            for (tool, arguments) in uses(path) {
                workspace.refused(tool, arguments).await;
            }
            let refused = workspace.refused("file_load", json!({"path": path})).await;
            assert_eq!(refused, format!("{path} is neither a file nor a folder."));
        }
        let list = workspace.call("file_list", json!({})).await;
        assert!(text(&list).contains("pipe (neither file nor folder)"));

        let mut options = WorkspaceOptions::new("/dev");
        options.read_only = true;
        let (client, _server) = serve(options).await;
        for device in ["null", "zero", "tty"] {
            let load = json!({"path": device});
            let result = crate::client::call(&client, "file_load", load).await;
            let expected = format!("{device} is neither a file nor a folder.");
            assert_eq!(text(&result), expected);
        }
    }

    #[tokio::test]
    async fn saving_a_hard_link_does_not_change_its_other_name() {
        let workspace = Workspace::new().await;
        let before = outside(workspace.parent());
        let inside = workspace.root().join("twin.txt");
        fs::hard_link(workspace.parent().join("outside.txt"), inside).unwrap();
        let edit = json!({"path": "twin.txt", "old_text": SECRET, "new_text": "mine"});
        workspace.data("file_save", edit).await;
        assert_eq!(workspace.read("twin.txt"), "mine\n1\n");
        assert_eq!(outside(workspace.parent()), before);
    }
}
