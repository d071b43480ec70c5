//! Loading and saving of files.

use std::{fs, time::SystemTime};

use serde_json::json;

use super::support::Workspace;
use crate::client::text;

const CODE: &str = "fn main() {\n    println!(\"one\");\n    println!(\"two\");\n}\n";

#[tokio::test]
async fn a_file_is_loaded_with_numbers_and_a_hash() {
    let workspace = Workspace::new().await;
    workspace.write("src/main.rs", CODE);
    let whole = workspace
        .call("file_load", json!({"path": "src/main.rs"}))
        .await;
    assert_eq!(
        text(&whole),
        "src/main.rs, lines 1 to 4 of 4 (hash 3439e1316df9292e):\n1\tfn main() {\n2\t    \
         println!(\"one\");\n3\t    println!(\"two\");\n4\t}"
    );
    let part = json!({"path": "src/main.rs", "first_line": 2, "last_line": 3});
    let part = workspace.data("file_load", part).await;
    assert_eq!(
        part,
        json!({
            "path": "src/main.rs",
            "content": "    println!(\"one\");\n    println!(\"two\");\n",
            "first_line": 2, "last_line": 3, "total_lines": 4, "bytes": CODE.len(),
            "hash": "3439e1316df9292e", "line_is_cut": false,
        })
    );
    // An absolute path below the root folder is accepted, because compilers print such paths.
    let absolute = workspace.root().canonicalize().unwrap().join("src/main.rs");
    let absolute = workspace.data("file_load", json!({"path": absolute})).await;
    assert_eq!(absolute["path"], "src/main.rs");
}

#[tokio::test]
async fn a_long_file_is_loaded_in_parts() {
    let workspace = Workspace::new().await;
    let long: Vec<String> = (0..9000).map(|line| format!("line {line} ä\r\n")).collect();
    let long = long.concat();
    workspace.write("long.txt", &long);
    let (mut whole, mut next, mut pieces) = (String::new(), json!(1), 0);
    while !next.is_null() {
        let piece = json!({"path": "long.txt", "first_line": next});
        let piece = workspace.data("file_load", piece).await;
        assert_eq!(piece["first_line"], next);
        assert_eq!(piece["total_lines"], 9000);
        whole.push_str(piece["content"].as_str().unwrap());
        next = piece["next_line"].clone();
        pieces += 1;
    }
    assert_eq!(whole, long);
    assert_eq!(pieces, 5);
    // A requested range has no limit of lines, only of bytes.
    let range = json!({"path": "long.txt", "first_line": 1, "last_line": 9000});
    let range = workspace.data("file_load", range).await;
    assert!(range["content"].as_str().unwrap().len() > 90 * 1024);
    assert_eq!(range["next_line"], range["last_line"].as_u64().unwrap() + 1);

    workspace.write(
        "one-line.js",
        format!("{}ä\nshort\n", "x".repeat(96 * 1024 - 1)),
    );
    let cut = workspace
        .data("file_load", json!({"path": "one-line.js"}))
        .await;
    assert_eq!(cut["content"].as_str().unwrap().len(), 96 * 1024 - 1);
    assert_eq!(
        (&cut["line_is_cut"], &cut["next_line"]),
        (&json!(true), &json!(2))
    );
}

#[tokio::test]
async fn a_file_is_created_with_its_folders() {
    let workspace = Workspace::new().await;
    let new = json!({"path": "a/b/c.txt", "content": "x\ny\n"});
    let saved = workspace.data("file_save", new.clone()).await;
    assert_eq!(saved["action"], "created");
    assert_eq!(
        (&saved["bytes"], &saved["total_lines"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(workspace.read("a/b/c.txt"), "x\ny\n");
    let loaded = workspace
        .data("file_load", json!({"path": "a/b/c.txt"}))
        .await;
    assert_eq!(loaded["hash"], saved["hash"]);
    // Saving equal content changes nothing.
    let expected = "unchanged";
    assert_eq!(workspace.data("file_save", new).await["action"], expected);
    assert_eq!(leftovers(&workspace), 0);
}

#[tokio::test]
async fn replacing_a_file_requires_its_current_hash() {
    let workspace = Workspace::new().await;
    workspace.write("a.txt", "first\n");
    let unseen = json!({"path": "a.txt", "content": "mine\n"});
    let refused = workspace.refused("file_save", unseen).await;
    assert!(
        refused.starts_with("a.txt exists, and replacing it requires expected_hash"),
        "{refused}"
    );

    let hash = workspace.data("file_load", json!({"path": "a.txt"})).await["hash"].clone();
    // Another process changes the file first.
    workspace.write("a.txt", "theirs\n");
    for arguments in [
        json!({"path": "a.txt", "content": "mine\n", "expected_hash": hash}),
        json!({"path": "a.txt", "old_text": "theirs", "new_text": "mine", "expected_hash": hash}),
    ] {
        let refused = workspace.refused("file_save", arguments).await;
        assert!(
            refused.starts_with("a.txt has changed since it was loaded"),
            "{refused}"
        );
    }
    assert_eq!(workspace.read("a.txt"), "theirs\n");

    let hash = workspace.data("file_load", json!({"path": "a.txt"})).await["hash"].clone();
    let mine = json!({"path": "a.txt", "content": "mine\n", "expected_hash": hash});
    assert_eq!(
        workspace.data("file_save", mine.clone()).await["action"],
        "replaced"
    );
    assert_eq!(workspace.read("a.txt"), "mine\n");

    std::fs::remove_file(workspace.root().join("a.txt")).unwrap();
    let refused = workspace.refused("file_save", mine).await;
    assert!(refused.starts_with("a.txt was removed"), "{refused}");
    assert!(!workspace.root().join("a.txt").exists());
    assert_eq!(leftovers(&workspace), 0);
}

#[tokio::test]
async fn a_unique_passage_is_replaced() {
    let workspace = Workspace::new().await;
    workspace.write("src/main.rs", CODE);
    let edit = json!({"path": "src/main.rs", "old_text": "(\"two\")", "new_text": "(\"2\")"});
    let result = workspace.call("file_save", edit.clone()).await;
    insta::assert_snapshot!(text(&result), @r#"
    src/main.rs was changed; it has 4 lines now (hash de3eaea142fa8f88).
    1	fn main() {
    2	    println!("one");
    3	    println!("2");
    4	}
    "#);
    assert_eq!(workspace.read("src/main.rs"), CODE.replace("two", "2"));
    let mut seen = Vec::new();
    for arguments in [
        edit,
        json!({"path": "src/main.rs", "old_text": "println!", "new_text": "print!"}),
        json!({"path": "src/main.rs", "old_text": "main() {\nprintln!", "new_text": "x"}),
        json!({"path": "src/main.rs", "old_text": "main", "new_text": "main"}),
        json!({"path": "src/main.rs", "old_text": "main"}),
        json!({"path": "src/main.rs", "new_text": "main"}),
        json!({"path": "src/main.rs", "old_text": "", "new_text": "main"}),
        json!({"path": "src/main.rs"}),
        json!({"path": "src/main.rs", "content": "x", "old_text": "main", "new_text": "x"}),
        json!({"path": "src/mian.rs", "old_text": "main", "new_text": "x"}),
    ] {
        seen.push(workspace.refused("file_save", arguments).await);
    }
    assert_eq!(workspace.read("src/main.rs"), CODE.replace("two", "2"));
    insta::assert_snapshot!(seen.join("\n"));
}

#[tokio::test]
async fn concurrent_changes_are_all_saved() {
    let workspace = Workspace::new().await;
    let words: Vec<String> = (0..20).map(|number| format!("<{number}>")).collect();
    workspace.write("a.txt", words.join("\n"));
    let edits = words.iter().map(|word| {
        let new = word.replace('<', "[");
        let edit = json!({"path": "a.txt", "old_text": word, "new_text": new});
        workspace.data("file_save", edit)
    });
    let edits = edits.map(Box::pin);
    futures_util::future::join_all(edits).await;
    assert_eq!(workspace.read("a.txt"), words.join("\n").replace('<', "["));

    // If two calls create the same file, only one of them succeeds.
    let make = |content: &'static str| {
        workspace.call("file_save", json!({"path": "new.txt", "content": content}))
    };
    let (one, two) = tokio::join!(make("one"), make("two"));
    let refused = [&one, &two].map(|result| result.is_error == Some(true));
    assert_eq!(refused.iter().filter(|refused| **refused).count(), 1);
    assert_eq!(
        workspace.read("new.txt"),
        if refused[0] { "two" } else { "one" }
    );
    assert_eq!(leftovers(&workspace), 0);
}

#[tokio::test]
async fn binary_and_too_large_files_are_refused() {
    let workspace = Workspace::with(|options| options.max_file_bytes = 100).await;
    workspace.write("picture.png", [0x89, b'P', 0, 0xff]);
    workspace.write("latin.txt", [b'a', 0xe4]);
    workspace.write("nul.txt", "a\0b");
    workspace.write("large.txt", "x".repeat(101));
    workspace.write("full.txt", "x".repeat(100));
    workspace.write("folder/a.txt", "");
    // The sparse file uses no space on the disk. Reading it would need all memory.
    let sparse = std::fs::File::create(workspace.root().join("sparse.bin")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let mut seen = Vec::new();
    for path in [
        "picture.png",
        "latin.txt",
        "nul.txt",
        "large.txt",
        "sparse.bin",
        "folder",
        ".",
        "folder/a.txt/b",
        "fuller.txt",
    ] {
        seen.push(workspace.refused("file_load", json!({"path": path})).await);
    }
    for (path, content) in [
        ("new.txt", "x".repeat(101)),
        ("folder", "x".to_owned()),
        ("folder/a.txt/b", String::new()),
        (".", String::new()),
    ] {
        seen.push(
            workspace
                .refused("file_save", json!({"path": path, "content": content}))
                .await,
        );
    }
    let grow =
        json!({"path": "full.txt", "old_text": "x".repeat(100), "new_text": "y".repeat(101)});
    seen.push(workspace.refused("file_save", grow).await);
    let beyond = json!({"path": "full.txt", "first_line": 2});
    seen.push(workspace.refused("file_load", beyond).await);
    let backwards = json!({"path": "full.txt", "first_line": 1, "last_line": 0});
    seen.push(workspace.refused("file_load", backwards).await);
    insta::assert_snapshot!(seen.join("\n"));
    assert!(!workspace.root().join("new.txt").exists());
    let empty = workspace
        .call("file_load", json!({"path": "folder/a.txt"}))
        .await;
    let expected = "folder/a.txt is empty (hash e3b0c44298fc1c14).";
    assert_eq!(text(&empty), expected);
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_are_kept_and_respected() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let workspace = Workspace::new().await;
    workspace.write("run.sh", "echo one\n");
    workspace.write("fixed.txt", "one\n");
    let mode = |file: &str| {
        let metadata = fs::metadata(workspace.root().join(file)).unwrap();
        metadata.permissions().mode() & 0o7777
    };
    let set = |file: &str, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(workspace.root().join(file), permissions).unwrap();
    };
    set("run.sh", 0o4751);
    set("fixed.txt", 0o444);
    let edit = |file: &str| json!({"path": file, "old_text": "one", "new_text": "two"});
    workspace.data("file_save", edit("run.sh")).await;
    // The permissions are kept, except the set-user-ID, set-group-ID and sticky bits.
    assert_eq!(mode("run.sh"), 0o751);
    let refused = workspace.refused("file_save", edit("fixed.txt")).await;
    assert_eq!(refused, "fixed.txt is write-protected.");
    assert_eq!(workspace.read("fixed.txt"), "one\n");
    assert_eq!(leftovers(&workspace), 0);
}

/// Returns the number of temporary files in all folders.
fn leftovers(workspace: &Workspace) -> usize {
    let mut folders = vec![workspace.parent().to_owned()];
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().contains(".tmp") {
                found += 1;
            }
        }
    }
    found
}

#[tokio::test]
async fn the_end_of_the_newest_log_file_is_read() {
    let workspace = Workspace::with(|options| options.max_file_bytes = 10).await;
    let refused = workspace.refused("debug_logs", json!({})).await;
    assert!(refused.contains("no log file"), "{refused}");
    workspace.write("z.log", "old\n");
    let old = fs::File::options()
        .append(true)
        .open(workspace.root().join("z.log"));
    old.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let line = format!("{}\n", "x".repeat(99));
    workspace.write(
        "logs/a.log",
        line.repeat(1000) + "\u{1b}[31mfailed\u{1b}[0m\nlast",
    );
    let end = workspace.data("debug_logs", json!({"lines": 2})).await;
    assert_eq!(
        end,
        json!({"path": "logs/a.log", "content": "failed\nlast"})
    );
    // The size has a limit, and the first line is whole.
    let end = workspace.data("debug_logs", json!({"lines": 1000})).await;
    let expected = line.repeat(327) + "failed\nlast";
    assert_eq!(end["content"], expected);
    let named = workspace.data("debug_logs", json!({"path": "z.log"})).await;
    assert_eq!(named["content"], "old");
}
