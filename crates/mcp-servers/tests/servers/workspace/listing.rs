//! Instructions and definitions of the server.

use std::fmt::Write as _;

use serde_json::{Value, json};
use switchboard_mcp_servers::{ServerError, ServerOptions, WorkspaceOptions, serve_stream};

use super::support::{Workspace, folder};
use crate::client::text;

fn commands(options: &mut WorkspaceOptions) {
    let commands = [
        "compile: sh check.sh",
        "sh test.sh {args}",
        "test: sh slow.sh",
    ];
    options.commands = commands.map(str::to_owned).to_vec();
}

#[tokio::test]
async fn the_list_of_tools() {
    let workspace = Workspace::with(commands).await;
    let tools = workspace.client.list_all_tools().await.unwrap();
    insta::assert_json_snapshot!(tools);
    let info = workspace.client.peer_info().unwrap();
    insta::assert_snapshot!(info.instructions.as_deref().unwrap());
}

#[tokio::test]
async fn read_only_servers_have_only_reading_tools() {
    let workspace = Workspace::with(|options| options.read_only = true).await;
    let tools = workspace.client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(
        names,
        [
            "file_load",
            "file_list",
            "data_list",
            "data_read",
            "data_query",
            "debug_logs"
        ]
    );
    for tool in &tools {
        let annotations = tool.annotations.as_ref().unwrap();
        assert_eq!(annotations.read_only_hint, Some(true), "{}", tool.name);
    }
    // Without configured commands, the server has no tools that run commands.
    let workspace = Workspace::new().await;
    let tools = workspace.client.list_all_tools().await.unwrap();
    let writing = tools.iter().filter(|tool| {
        let annotations = tool.annotations.as_ref().unwrap();
        annotations.read_only_hint == Some(false) && annotations.destructive_hint == Some(true)
    });
    let writing: Vec<&str> = writing.map(|tool| tool.name.as_ref()).collect();
    assert_eq!(writing, ["file_save"]);
}

#[tokio::test]
async fn invalid_settings_are_refused_at_the_start() {
    let parent = folder();
    let root = parent.path().join("root");
    let file = parent.path().join("outside.txt");
    let options = |set: fn(&mut WorkspaceOptions)| {
        let mut options = WorkspaceOptions::new(&root);
        set(&mut options);
        ServerOptions::new().with_workspace(options)
    };
    let mut seen = String::new();
    for options in [
        ServerOptions::new(),
        options(|_| {}).with_data_file("data.db"),
        ServerOptions::new().with_workspace(WorkspaceOptions::new(parent.path().join("nowhere"))),
        ServerOptions::new().with_workspace(WorkspaceOptions::new(&file)),
        options(|it| it.commands.push("no-such-program-here --flag".to_owned())),
        options(|it| it.commands.push("sh 'x".to_owned())),
        options(|it| it.commands.push("sh {args} x".to_owned())),
        options(|it| {
            it.commands.push("sh x.sh".to_owned());
            it.commands.push("sh  x.sh {args}".to_owned());
        }),
        options(|it| {
            it.commands.push("sh x.sh".to_owned());
            it.read_only = true;
        }),
        options(|it| it.environment.push("=x".to_owned())),
    ] {
        let (_near, far) = tokio::io::duplex(64);
        let (reader, writer) = tokio::io::split(far);
        let served = serve_stream("workspace", options, reader, writer, std::future::pending());
        let error = served.await.unwrap_err();
        assert!(matches!(
            error,
            ServerError::Setting {
                server: "workspace",
                ..
            }
        ));
        assert!(error.is_usage_error());
        let error = error
            .to_string()
            .replace(&parent.path().display().to_string(), "PARENT");
        seen.push_str(&error);
        seen.push('\n');
    }
    insta::assert_snapshot!(seen);
}

#[tokio::test]
async fn files_are_listed() {
    let workspace = Workspace::new().await;
    for file in [
        "README.md",
        "src/main.rs",
        "src/deep/er.rs",
        ".hidden/x.rs",
        ".env",
        ".git/config",
        "node_modules/a/b.js",
    ] {
        workspace.write(file, "12345");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("README.md", workspace.root().join("link.md")).unwrap();
    let mut seen = String::new();
    for arguments in [
        json!({}),
        json!({"path": "src"}),
        json!({"recursive": true}),
        json!({"recursive": true, "match": "*.rs"}),
        json!({"recursive": true, "match": "*.rs", "hidden": true}),
        json!({"hidden": true}),
        json!({"path": "src", "match": "*.py"}),
    ] {
        let result = workspace.call("file_list", arguments.clone()).await;
        write!(seen, "{arguments}\n{}\n\n", text(&result)).unwrap();
    }
    insta::assert_snapshot!(seen);
    for path in [".git", "src/main.rs", "nowhere", "scr"] {
        workspace.refused("file_list", json!({"path": path})).await;
    }
}

#[tokio::test]
async fn long_lists_are_truncated() {
    let workspace = Workspace::new().await;
    for number in 0..501 {
        workspace.write(&format!("f/{number:03}.csv"), "a\n1\n");
    }
    let list = workspace.data("file_list", json!({"path": "f"})).await;
    assert_eq!(list["entries"].as_array().map(Vec::len), Some(500));
    assert_eq!(list["truncated"], true);
    let fits = json!({"path": "f", "match": "?00.csv"});
    let fits = workspace.data("file_list", fits).await;
    let paths: Vec<&Value> = fits["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["path"])
        .collect();
    assert_eq!(
        paths,
        [
            "f/000.csv",
            "f/100.csv",
            "f/200.csv",
            "f/300.csv",
            "f/400.csv",
            "f/500.csv"
        ]
    );
    assert_eq!(fits["truncated"], false);
    let data = workspace
        .data("data_list", json!({"recursive": true}))
        .await;
    assert_eq!(data["files"].as_array().map(Vec::len), Some(200));
    assert_eq!(data["truncated"], true);
}
