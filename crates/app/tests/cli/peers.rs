//! Third-party MCP servers, installed by `cargo xtask test --peers`.

use serde_json::{Value, json};

use crate::support::{Place, calls};

/// Returns a working folder with the reference server in `mcp.json`.
fn with_everything() -> Place {
    let peers = std::env::var("SWITCHBOARD_PEERS").expect("SWITCHBOARD_PEERS names the folder");
    let program = std::path::Path::new(&peers)
        .join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let config = json!({"mcpServers": {"everything": {
        "command": "node", "args": [program, "stdio"],
    }}});
    // Node needs a while to start on a busy machine.
    Place::new()
        .with_file("switchboard.yaml", "startup_wait: 60")
        .with_file("mcp.json", &config.to_string())
}

async fn ask(question: &str) -> Value {
    let place = with_everything();
    let args = ["ask", "-o", "json", "--mcp-config", "mcp.json", question];
    place.run(args).await.json()
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_adds_two_numbers() {
    let report = ask("What is the sum of 19 and 23?").await;
    assert_eq!(
        calls(&report),
        [(
            "everything".into(),
            "get-sum".into(),
            json!({"a": 19, "b": 23}),
            false
        )],
        "{report:#}"
    );
    assert!(
        report["answer"].as_str().unwrap().contains("42"),
        "{report:#}"
    );
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_echoes() {
    let report = ask("Echo \"hello from afar\"").await;
    assert_eq!(calls(&report)[0].1, "echo", "{report:#}");
    assert_eq!(calls(&report)[0].2, json!({"message": "hello from afar"}));
    assert!(
        report["answer"]
            .as_str()
            .unwrap()
            .contains("hello from afar")
    );
}
