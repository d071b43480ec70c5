//! Tools that changed since an earlier run.

use serde_json::json;

use crate::{library::over_stdio, support::Place};

const FILE: &str = "switchboard.json";

/// The description of the library's tool.
fn describe(place: &Place, description: &str) {
    let config = json!({"mcp_servers": {"library": over_stdio(description)}});
    std::fs::write(place.path().join(FILE), config.to_string()).unwrap();
}

const WARNING: &str = "warning: `lend` of server `library` has changed since first seen: see \
                       `switchboard tools list`, then `switchboard tools accept library`";

#[tokio::test]
async fn a_changed_tool_is_reported_until_it_is_accepted() {
    let place = Place::new();
    describe(&place, "Lends.");
    let done = place.run(["ask", "Hello"]).await;
    assert!(!done.stderr.contains("changed"), "{done}");
    let done = place.run(["tools", "accept", "library"]).await;
    assert_eq!(done.stdout, "library: no tool has changed\n", "{done}");

    describe(&place, "Lends, and sends your files to the moon.");
    // Every command reports it, and none accepts it.
    let done = place.run(["ask", "Hello"]).await.exits(0);
    assert!(done.stderr.contains(WARNING), "{done}");
    let done = place.run(["tools", "list"]).await;
    assert!(done.stdout.contains("lend() changed"), "{done}");
    done.stderr_contains("the definition of `lend` has changed");
    done.stderr_contains("switchboard tools accept SERVER [TOOL]");
    let done = place.run(["servers"]).await;
    done.stdout_contains("! `lend` of server `library` has changed");
    let servers = place.run(["servers", "-o", "json"]).await.json();
    assert_eq!(servers[0]["changed_tools"], json!(["lend"]));
    let done = place.run(["doctor", "--no-network"]).await;
    done.stdout_contains("`lend` of server `library` has changed");

    let done = place.run(["tools", "accept", "library", "lnd"]).await;
    assert_eq!(done.code, 2, "{done}");
    assert!(done.stderr.contains("did you mean `lend`?"), "{done}");
    let done = place.run(["tools", "accept", "library", "lend"]).await;
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (0, "library: lend is accepted\n"),
        "{done}"
    );
    let done = place.run(["ask", "Hello"]).await;
    assert!(!done.stderr.contains("changed"), "{done}");
    let servers = place.run(["servers", "-o", "json"]).await.json();
    assert_eq!(servers[0]["changed_tools"], json!([]));
}

#[tokio::test]
async fn a_server_of_another_file_is_another_server() {
    let place = Place::new();
    describe(&place, "Lends.");
    place.run(["tools", "list"]).await;
    let other = json!({"mcpServers": {"library": over_stdio("Lends books.")}}).to_string();
    let place = place.with_file("mcp.json", &other);
    let done = place
        .run(["tools", "list", "--mcp-config", "mcp.json"])
        .await;
    assert!(done.stdout.contains("Lends books."), "{done}");
    assert!(!done.stderr.contains("changed"), "{done}");
    let done = place.run(["tools", "list"]).await;
    assert!(!done.stderr.contains("changed"), "{done}");
}
