//! Test client for the MCP conformance suites (`cargo xtask conformance`). It runs an `McpHost`
//! with handlers that answer immediately.
//!
//! For each scenario, the suite starts an MCP server and this program, with the server's URL as the
//! last argument. `MCP_CONFORMANCE_SCENARIO` contains the name of the scenario, and
//! `MCP_CONFORMANCE_CONTEXT` contains its data (such as client credentials) as JSON.

#![allow(
    clippy::print_stderr,
    reason = "the suite shows the error output of a failed client"
)]

use std::{env, error::Error, process::ExitCode, sync::Arc};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use switchboard_domain::{
    Elicitation, ElicitationAnswer, Elicitor, JsonObject, ToolCall, ToolDefinition, ToolHost,
};
use switchboard_mcp_client::{
    ClientHandlers, HostOptions, McpHost, ServerConfig,
    auth::{AuthConfig, AuthOptions, GrantType},
    root_from_path,
};

const SERVER: &str = "server";
/// URL of the client's metadata document. The program uses the URL as its OAuth client id if an
/// authorization server of the conformance suite supports Client ID Metadata Documents.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main]
async fn main() -> ExitCode {
    match run_scenario().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run_scenario() -> Result<(), Box<dyn Error>> {
    let url = env::args().next_back().unwrap_or_default();
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context: Value = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    let client_handlers = ClientHandlers {
        elicitor: Some(Arc::new(AcceptAllElicitor)),
        ..ClientHandlers::default()
    };
    let options = HostOptions {
        client_handlers,
        auth: AuthOptions {
            on_url: Some(Arc::new(visit_url)),
            client_metadata_url: Some(CLIENT_METADATA.to_owned()),
            ..AuthOptions::default()
        },
        ..HostOptions::default()
    };
    let mut server = ServerConfig::http(SERVER, url.as_str());
    server.roots = root_from_path(&env::current_dir()?).map(|root| vec![root]);
    server.authorization = build_auth_config(&scenario, &context);
    if server.authorization.client_secret.is_some() {
        server.authorization.issuer = authorization_server(&url).await;
    }
    let host = McpHost::start(vec![server], options)?;
    host.wait_for_startup().await;
    let result = call_expected_tools(&host, &scenario, &context).await;
    host.close().await;
    result
}

/// Returns the OAuth settings for a scenario. `context` is the JSON data of the scenario, which may
/// contain client credentials.
fn build_auth_config(scenario: &str, context: &Value) -> AuthConfig {
    let given = |key: &str| context.get(key).and_then(Value::as_str);
    let grant = if scenario.starts_with("auth/client-credentials") {
        GrantType::ClientCredentials
    } else {
        GrantType::AuthorizationCode
    };
    AuthConfig {
        grant,
        client_id: given("client_id").map(str::to_owned),
        client_secret: given("client_secret").map(Into::into),
        private_key: given("private_key_pem").map(Into::into),
        ..AuthConfig::default()
    }
}

/// Returns the URL of the first authorization server in the protected-resource metadata of the MCP
/// server at `url`. Returns `None` if these metadata cannot be read. Outside of tests, a person
/// configures this URL as `issuer`, because a `client_secret` requires it.
async fn authorization_server(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    let metadata = format!("/.well-known/oauth-protected-resource{}", url.path());
    let answer = reqwest::get(url.join(&metadata).ok()?).await.ok()?;
    let metadata: Value = answer.json().await.ok()?;
    Some(metadata["authorization_servers"][0].as_str()?.to_owned())
}

/// Sends a GET request to an authorization page, as a browser would. The suite's authorization
/// server redirects immediately, without a login form.
fn visit_url(url: &str) {
    let url = url.to_owned();
    tokio::spawn(async move {
        if let Err(error) = reqwest::get(url).await {
            eprintln!("the authorization page: {error}");
        }
    });
}

/// Elicitation handler that accepts every elicitation with empty content. `McpHost` then sends the
/// defaults of the form's fields to the server.
struct AcceptAllElicitor;

#[async_trait]
impl Elicitor for AcceptAllElicitor {
    async fn elicit(&self, _elicitation: &Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Accept {
            content: JsonObject::new(),
        }
    }
}

/// Sends the tool calls that a scenario expects. Returns an error if the server accepts no calls or
/// if a call fails.
async fn call_expected_tools(
    host: &McpHost,
    scenario: &str,
    context: &Value,
) -> Result<(), Box<dyn Error>> {
    for server in host.server_statuses() {
        if !server.state.takes_calls() {
            return Err(format!("{}: {:?}", server.state.as_str(), server.reason).into());
        }
        for warning in &server.warnings {
            eprintln!("warning: {warning}");
        }
    }
    let tools = host.list_tools().await.tools;
    let mut failed = Vec::new();
    for (tool, input) in expected_calls(scenario, context, &tools)? {
        let output = host
            .call_tool(ToolCall {
                name: format!("{SERVER}__{tool}"),
                input: input.into(),
                ..ToolCall::default()
            })
            .await;
        if let Err(error) = output {
            failed.push(error.to_string());
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n").into())
    }
}

/// Returns the tool calls that a scenario expects. Each consists of the tool's name on the server
/// and the arguments.
fn expected_calls(
    scenario: &str,
    context: &Value,
    tools: &[Arc<ToolDefinition>],
) -> Result<Vec<(String, JsonObject)>, Box<dyn Error>> {
    if let Some(calls) = context.get("toolCalls").and_then(Value::as_array) {
        return Ok(calls.iter().filter_map(parse_call).collect());
    }
    match scenario {
        // The MCP server of this scenario does not support `tools/call`, so no call is sent.
        "json-schema-ref-no-deref" => Ok(Vec::new()),
        // The client calls `json_schema_echo` with the input schema of another tool as an argument.
        // The suite checks that the client has not changed this schema.
        "json-schema-2020-12-preservation" => {
            let focal = tools
                .iter()
                .find(|tool| original_name(tool) == "json_schema_2020_12_tool")
                .ok_or("the tool with the schema is not there")?;
            let input = Map::from_iter([("schema".to_owned(), focal.input_schema.clone())]);
            Ok(vec![("json_schema_echo".to_owned(), input)])
        }
        _ => Ok(tools
            .iter()
            .map(|tool| {
                (
                    original_name(tool).to_owned(),
                    build_sample_arguments(&tool.input_schema),
                )
            })
            .collect()),
    }
}

/// Parses an element of `toolCalls` in the scenario's context and returns the tool name with the
/// arguments. Returns `None` if the element has no name.
fn parse_call(call: &Value) -> Option<(String, JsonObject)> {
    let name = call.get("name")?.as_str()?.to_owned();
    let input = call.get("arguments").and_then(Value::as_object);
    Some((name, input.cloned().unwrap_or_default()))
}

fn original_name(tool: &ToolDefinition) -> &str {
    tool.origin
        .as_ref()
        .map_or(&tool.name, |origin| &origin.tool)
}

/// Returns sample arguments with a value for every property of the tool's input schema.
fn build_sample_arguments(schema: &Value) -> JsonObject {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let value = match property.get("type").and_then(Value::as_str) {
                Some("number" | "integer") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => json!("test"),
            };
            (name.clone(), value)
        })
        .collect()
}
