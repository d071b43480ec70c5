//! The other commands: tools, servers, doctor, models, mcp-server.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{Place, program, texts};

#[tokio::test]
async fn tools_are_listed_as_text_and_json() {
    let place = Place::new();
    let done = place.run(["tools", "list"]).await.exits(0);
    insta::assert_snapshot!(done.stdout);
    let tools = place.run(["tools", "list", "-o", "json"]).await.json();
    let names = texts(&tools, "/origin/tool");
    assert_eq!(
        names,
        [
            "get_recent_customers",
            "create_support_ticket",
            "calculate_account_value"
        ]
    );
    assert_eq!(tools[2]["input_schema"]["type"], "object");
}

#[tokio::test]
async fn a_tool_is_called_from_the_command_line() {
    let place = Place::new();
    let args = [
        "tools",
        "call",
        "customer-service",
        "calculate_account_value",
    ];
    let text = place
        .run(args.into_iter().chain([r#"{"customer_id":42}"#]))
        .await;
    assert_eq!(text.code, 0, "{text}");
    assert!(text.stdout.contains("42"), "{text}");
    let read = place
        .run_with_input(
            args.into_iter().chain(["-", "-o", "json"]),
            r#"{"customer_id":42}"#,
        )
        .await;
    assert_eq!(read.json()["structured"]["customer_id"], 42);
    assert_eq!(read.json()["is_error"], false);
}

#[tokio::test]
async fn the_state_of_servers_is_listed() {
    let place = Place::new();
    let statuses = place.run(["servers", "-o", "json"]).await.json();
    assert_eq!(statuses[0]["name"], "customer-service");
    assert_eq!(statuses[0]["state"], "ready");
    assert_eq!(statuses[0]["tools"], 3);
    let done = place.run(["servers"]).await;
    done.stdout_contains("customer-service  ready  3 tools");
    let none = Place::new().with_file("switchboard.yaml", "mcp_servers: {}");
    assert_eq!(none.run(["servers", "-o", "json"]).await.json(), json!([]));
}

#[tokio::test]
async fn the_doctor_reports_findings_and_remedies() {
    let place = Place::new().with_variable("SWITCHBOARD_MODLE", "openai/x");
    let done = place.run(["doctor"]).await.exits(0);
    for expected in [
        "SWITCHBOARD_MODLE is set but is not a known variable (did you mean \
         `SWITCHBOARD_MODEL`?)",
        "no configuration file",
        "offline/planner (a demo model",
        "set ANTHROPIC_API_KEY to use it",
        "customer-service: 3 tools",
    ] {
        assert!(
            done.stdout.contains(expected),
            "{expected:?} is not in {done}"
        );
    }
    let place = Place::new()
        .with_variable("SWITCHBOARD_AUDIT", "off")
        .with_variable("SWITCHBOARD_LOG_FILE", "log")
        .with_variable("SWITCHBOARD_LOG", "info")
        .with_variable("SWITCHBOARD_BTE_URL", "http://127.0.0.1:9")
        .with_variable("SWITCHBOARD_NAME_RESOLVER_URL", "http://127.0.0.1:9")
        .with_variable("SWITCHBOARD_STRATEGY", "loop");
    let done = place.run(["doctor", "--no-network"]).await;
    assert!(!done.stdout.contains("not a known variable"), "{done}");
    let named = "recipe: general-chat\nmodel: offline/planner\nfallback_models: [offline]\n";
    let place = Place::new().with_file("switchboard.yaml", named);
    let done = place.run(["doctor", "--no-network"]).await.exits(0);
    for expected in [
        "recipe        general-chat",
        "offline/planner (configured)",
        "offline/planner (fallback)",
    ] {
        assert!(done.stdout.contains(expected), "{expected:?}: {done}");
    }
    let place = Place::new().with_file("switchboard.yaml", "recipe: general-chta\n");
    let done = place.run(["doctor", "--no-network"]).await.exits(1);
    done.stdout_contains("did you mean `general-chat`?");
    let place = Place::new().with_file("mcp.json", r#"{"mcpServers": {}}"#);
    let done = place.run(["doctor", "--no-network"]).await.exits(0);
    done.stdout_contains("add `--mcp-config mcp.json`");
    let loaded = ["doctor", "--no-network", "--mcp-config", "./mcp.json"];
    let done = place.run(loaded).await.exits(0);
    assert!(!done.stdout.contains("not loaded"), "{done}");
    let broken = Place::new().with_file("switchboard.yaml", "modle: x");
    let done = broken.run(["doctor", "-o", "json"]).await.exits(2);
    let findings = done.json();
    let bad = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["state"] == "bad")
        .unwrap();
    assert!(bad["what"].as_str().unwrap().contains("modle"));
}

#[tokio::test]
async fn serve_reports_each_server() {
    let config = json!({"mcp_servers": {
        "shop": {"command": program(), "args": ["mcp-server", "customer-service"]},
        "absent": {"command": "no-such-program-here"},
    }});
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let mut child = place.start(["serve", "--bind", "127.0.0.1:0"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut missing = vec![
        "note: server `shop` is connected with 3 tools (",
        "warning: server `absent` is not available (failed): ",
    ];
    while !missing.is_empty() {
        // The stream ends if the server does, and then the test fails.
        let line = lines.next_line().await.unwrap().unwrap();
        missing.retain(|start| !line.starts_with(start));
    }
    child.kill().await.unwrap();
}

#[tokio::test]
async fn a_closed_pipe_is_not_an_error() {
    let place = Place::new();
    for args in [
        &["tools", "list"][..],
        &["servers"],
        &["models", "--all"],
        &["doctor"],
    ] {
        let mut child = place.start(args);
        drop(child.stdout.take());
        let output = child.wait_with_output().await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("pipe"), "{args:?}: {stderr}");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
    }
}

#[tokio::test]
async fn an_empty_variable_counts_as_unset() {
    let mut place = Place::new();
    for name in [
        "SWITCHBOARD_MODEL",
        "SWITCHBOARD_CONFIG",
        "SWITCHBOARD_MCP_CONFIG",
        "SWITCHBOARD_OUTPUT",
        "SWITCHBOARD_APPROVE",
        "SWITCHBOARD_MAX_STEPS",
        "ANTHROPIC_API_KEY",
    ] {
        place = place.with_variable(name, "");
    }
    place.run(["ask", "--no-tools", "Hello"]).await.exits(0);
    let place = place.with_variable("ANTHROPIC_API_KEY", "  ");
    place.run(["ask", "--no-tools", "Hello"]).await.exits(0);
}

#[tokio::test]
async fn models_are_listed_with_their_readiness() {
    let place = Place::new().with_variable("OPENAI_API_KEY", "sk-secret");
    let models = place.run(["models", "-o", "json"]).await.json();
    let ready = |name: &str| -> Value {
        let models = models.as_array().unwrap();
        let row = models.iter().find(|row| row["model"] == name).unwrap();
        row["ready"].clone()
    };
    assert_eq!(ready("offline/planner"), true);
    assert_eq!(ready("openai/gpt-6.1-sol"), true);
    assert_eq!(ready("anthropic/claude-sonnet-5-5"), false);
    let done = place.run(["models"]).await;
    assert!(done.stdout.contains("needs ANTHROPIC_API_KEY"), "{done}");
    assert!(!done.stdout.contains("sk-secret"), "{done}");
}

#[tokio::test]
async fn a_public_bundled_server_needs_a_token() {
    let everywhere = ["mcp-server", "customer-service", "--http", "0.0.0.0:0"];
    let done = Place::new().run(everywhere).await.exits(2);
    let expected = "0.0.0.0:0 is reachable from other machines, but no access token is \
                    configured: bind to 127.0.0.1, or set the variable `SWITCHBOARD_TOKEN`";
    assert!(done.stderr.contains(expected), "{done}");

    let short = Place::new().with_variable("SWITCHBOARD_TOKEN", "secret-1");
    let done = short.run(everywhere).await.exits(2);
    let expected = "`SWITCHBOARD_TOKEN` must have at least 16 letters";
    assert!(done.stderr.contains(expected), "{done}");
    assert!(!done.stderr.contains("secret-1"), "{done}");

    let token = "0123456789abcdef0123456789abcdef";
    let place = Place::new().with_variable("SWITCHBOARD_TOKEN", token);
    let mut server = place.start(everywhere);
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let url = line.rsplit(' ').next().unwrap();
    let with_token = json!({"url": url, "headers": {"Authorization": format!("Bearer {token}")}});
    let config = json!({"mcp_servers": {"with": with_token, "without": {"url": url}}});
    let place = place.with_file("servers.json", &config.to_string());
    let input = r#"{"customer_id": 42}"#;
    let call = |server| {
        let tool = "calculate_account_value";
        place.run([
            "tools",
            "call",
            "--mcp-config",
            "servers.json",
            server,
            tool,
            input,
        ])
    };
    call("with").await.exits(0).stdout_contains("530.19");
    let done = call("without").await;
    assert_ne!(done.code, 0, "{done}");
    assert!(!done.stdout.contains("530.19"), "{done}");
    server.kill().await.unwrap();
}

#[tokio::test]
async fn unknown_options_of_a_bundled_server_are_refused() {
    let place = Place::new().with_variable("SWITCHBOARD_BTE_URL", "http://127.0.0.1:9");
    let done = place
        .run(["mcp-server", "graph", "--url", "http://127.0.0.1:9"])
        .await;
    assert_eq!(done.code, 2, "{done}");
    assert!(done.stderr.contains("--url"), "{done}");
    let place = Place::new();
    let done = place.run(["mcp-server", "bte", "--add-to-graph"]).await;
    assert_eq!(done.code, 2, "{done}");
    assert!(done.stderr.contains("--data"), "{done}");
    // Servers ignore variables of other servers. Standard input ends immediately, and so does the
    // server.
    let place = place.with_variable("SWITCHBOARD_BTE_URL", "http://127.0.0.1:9");
    for name in ["graph", "bte"] {
        assert_eq!(place.run(["mcp-server", name]).await.code, 0, "{name}");
    }
}

#[tokio::test]
async fn an_invalid_variable_is_named() {
    let place = Place::new().with_variable("SWITCHBOARD_APPROVE", "maybe");
    let done = place.run(["ask", "Hi"]).await.exits(2);
    done.stderr_contains("SWITCHBOARD_APPROVE must be");
}

#[tokio::test]
async fn known_prices_are_explained() {
    let place = Place::new();
    let done = place.run(["models"]).await;
    assert!(done.stdout.contains("Prices: US dollars"), "{done}");
    let done = place.run(["models", "--provider", "offline"]).await;
    assert_eq!(done.stdout.lines().count(), 1, "{done}");
}
