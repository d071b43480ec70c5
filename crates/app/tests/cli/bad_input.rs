//! Error messages with remedies, and exit codes.

use std::path::Path;

use crate::support::{Done, Place};

/// Replaces the parts of a message that differ between machines.
fn shown(done: &Done, place: &Path) -> String {
    let place = place.display().to_string();
    let text = format!("exit code {}\n{}", done.code, done.stderr.trim_end());
    text.replace(&place, "[PLACE]")
}

async fn failure(place: Place, args: &[&str]) -> String {
    let done = place.run(args).await;
    assert!(done.stdout.is_empty(), "something was printed: {done}");
    shown(&done, place.path())
}

#[tokio::test]
async fn usage_and_configuration() {
    let ask = |model: &'static str| ["ask", "--no-tools", "-m", model, "Hi"];
    let config = |text: &str| Place::new().with_file("switchboard.yaml", text);
    let messages = [
        ("an unknown provider", failure(Place::new(), &ask("antropic/claude-sonnet-5-5")).await),
        ("no provider at all", failure(Place::new(), &ask("claude-sonnet-5-5")).await),
        ("a mistyped provider alone", failure(Place::new(), &ask("antropic")).await),
        ("an unknown model of ours", failure(Place::new(), &ask("offline/gpt")).await),
        ("no key", failure(Place::new(), &ask("anthropic/claude-sonnet-5-5")).await),
        ("no key", failure(Place::new(), &ask("openai/gpt-6.1-sol")).await),
        (
            "the key of a named server",
            failure(
                config("providers: {litellm: {base_url: 'http://127.0.0.1:9/v1', api_key_env: LITELLM_KEY}}"),
                &ask("litellm/large"),
            )
            .await,
        ),
        (
            "a provider without a default",
            failure(
                config("providers: {litellm: {base_url: 'http://127.0.0.1:9/v1'}}"),
                &ask("litellm"),
            )
            .await,
        ),
        ("a wrong key", failure(config("modle: openai/x"), &["ask", "Hi"]).await),
        ("a wrong key of a server", failure(config("mcp_servers: {crm: {comand: x}}"), &["ask", "Hi"]).await),
        ("an unset variable", failure(config("model: ${NOT_SET}"), &["ask", "Hi"]).await),
        ("no such file", failure(Place::new(), &["ask", "--config", "none.yaml", "Hi"]).await),
        ("no such file", failure(Place::new(), &["ask", "--mcp-config", "none.json", "Hi"]).await),
        ("an empty question", failure(Place::new(), &["ask", " "]).await),
        ("an unknown bundled server", failure(Place::new(), &["mcp-server", "costumer-service"]).await),
        ("an unknown server", failure(Place::new(), &["tools", "call", "costumer-service", "x"]).await),
        (
            "an unknown tool",
            failure(Place::new(), &["tools", "call", "customer-service", "calculate_account_valeu"]).await,
        ),
        ("no JSON", failure(Place::new(), &["tools", "call", "customer-service", "x", "{a"]).await),
        ("no object", failure(Place::new(), &["tools", "call", "customer-service", "x", "42"]).await),
        ("an unknown provider", failure(Place::new(), &["models", "--provider", "opanai"]).await),
    ];
    let text: Vec<String> = messages
        .into_iter()
        .map(|(what, message)| format!("# {what}\n{message}"))
        .collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

#[tokio::test]
async fn invalid_tool_arguments_are_reported_by_the_server() {
    let wrong = [
        (r#"{"customer_id": 4711}"#, "4711"),
        (r#"{"customer_id": "forty-two"}"#, "customer_id"),
        ("{}", "customer_id"),
    ];
    for (input, named) in wrong {
        let args = [
            "tools",
            "call",
            "customer-service",
            "calculate_account_value",
            input,
        ];
        let done = Place::new().run(args).await.exits(1);
        assert!(
            done.stdout.is_empty() && done.stderr.contains(named),
            "{done}"
        );
    }
}

#[tokio::test]
async fn a_failed_server_is_reported_and_the_others_continue() {
    let servers = format!(
        r#"{{"mcpServers": {{
            "gone": {{"command": "no-such-program-anywhere"}},
            "crm": {{"command": {program}, "args": ["mcp-server", "customer-service"]}}
        }}}}"#,
        program = serde_json::Value::from(crate::support::program().display().to_string())
    );
    let place = Place::new().with_file("mcp.json", &servers);
    let done = place
        .run([
            "ask",
            "--mcp-config",
            "mcp.json",
            "What is the account value of customer 42?",
        ])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stderr.contains("no-such-program-anywhere"), "{done}");
    assert!(done.stderr.contains("calculate_account_value"), "{done}");
}

#[tokio::test]
async fn a_failed_required_server_ends_the_command() {
    let place = Place::new().with_file(
        "switchboard.yaml",
        "mcp_servers: {gone: {command: no-such-program-anywhere, required: true}}",
    );
    let done = place.run(["ask", "-o", "json", "Hi"]).await.exits(1);
    // Scripts expect the JSON object.
    let report = done.json();
    assert_eq!(report["outcome"], "failed");
    assert_eq!(report["error"]["kind"], "server_unavailable");
    assert!(done.stderr.contains("gone"), "{done}");
    assert!(done.stderr.contains("no-such-program-anywhere"), "{done}");
}

#[tokio::test]
async fn the_standard_error_of_a_dead_server_is_quoted() {
    // A program that exists on every machine and is not an MCP server.
    let servers = serde_json::json!({"mcpServers": {"broken": {
        "command": crate::support::program(), "args": ["--no-such-flag"],
    }}});
    let place = Place::new().with_file("mcp.json", &servers.to_string());
    let done = place.run(["servers", "--mcp-config", "mcp.json"]).await;
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.contains("failed"), "{done}");
    assert!(done.stdout.contains("--no-such-flag"), "{done}");
}

#[tokio::test]
async fn a_silent_server_does_not_delay_the_question() {
    // The system accepts connections, and the server never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = serde_json::json!({
        "startup_wait": 0.1,
        "mcp_servers": {
            // Longer than the time limit of this test.
            "silent": {"url": format!("http://{}/mcp", silent.local_addr().unwrap()), "connect_timeout": 600},
            "crm": {"command": crate::support::program(), "args": ["mcp-server", "customer-service"], "required": true},
        },
    });
    let place = Place::new().with_file("switchboard.json", &config.to_string());
    let done = place
        .run(["ask", "What is the account value of customer 42?"])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.contains("530.19"), "{done}");
    assert!(done.stderr.contains("silent: still starting"), "{done}");
}
