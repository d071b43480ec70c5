//! A client of the library rmcp for every transport.

use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, CallToolResult, ClientConfig, JsonObject, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::{IntoTransport, StreamableHttpClientTransport},
};
use serde_json::Value;
use switchboard_mcp_servers::{HttpServer, ServerError, ServerOptions, bind_http, serve_stream};
use tokio::{sync::oneshot, task::JoinHandle};

pub(crate) const NAME: &str = "customer-service";

pub(crate) type Client = RunningService<RoleClient, ClientConfig>;

/// Connects as a client of exactly this protocol version: 2026-07-28 without a handshake, earlier
/// versions with `initialize`.
pub(crate) async fn connect<T, E, A>(transport: T, version: ProtocolVersion) -> Client
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let lifecycle = if version.has_initialize() {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![version.clone()],
        }
    };
    let mut config = ClientConfig::default();
    if version.has_initialize() {
        config = config.with_protocol_version(version);
    }
    config
        .serve_with_lifecycle(transport, lifecycle)
        .await
        .unwrap()
}

/// A client of a server in this process, and the result of the server.
pub(crate) struct Piped {
    pub(crate) client: Client,
    pub(crate) server: JoinHandle<Result<(), ServerError>>,
}

pub(crate) async fn over_pipe(options: ServerOptions, version: ProtocolVersion) -> Piped {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let server = tokio::spawn(async move {
        serve_stream(NAME, options, reader, writer, std::future::pending()).await
    });
    let client = connect(tokio::io::split(near), version).await;
    Piped { client, server }
}

/// Connects a client with the latest version to a new server with data in memory.
pub(crate) async fn fresh() -> Client {
    over_pipe(ServerOptions::new(), ProtocolVersion::LATEST)
        .await
        .client
}

impl Piped {
    /// Closes the connection and checks that the server ends without an error.
    pub(crate) async fn end(self) {
        self.client.cancel().await.unwrap();
        self.server.await.unwrap().unwrap();
    }
}

/// A server over HTTP on a free port of the loopback interface.
pub(crate) struct Listening {
    pub(crate) url: String,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), ServerError>>,
}

pub(crate) async fn bound(options: ServerOptions) -> HttpServer {
    bind_http(NAME, ([127, 0, 0, 1], 0).into(), options)
        .await
        .unwrap()
}

pub(crate) async fn over_http(options: ServerOptions) -> Listening {
    let server = bound(options).await;
    let url = server.url();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(server.serve(async move {
        let _ = stopped.await;
    }));
    Listening { url, stop, server }
}

impl Listening {
    pub(crate) async fn client(&self, version: ProtocolVersion) -> Client {
        let transport = StreamableHttpClientTransport::from_uri(self.url.clone());
        connect(transport, version).await
    }

    /// Shuts the server down and checks that it ends without an error.
    pub(crate) async fn end(self) {
        self.stop.send(()).unwrap();
        self.server.await.unwrap().unwrap();
    }

    /// Requests a shutdown and does not wait for it.
    pub(crate) fn stop(self) -> JoinHandle<Result<(), ServerError>> {
        self.stop.send(()).unwrap();
        self.server
    }
}

pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    client.call_tool(request(tool, arguments)).await.unwrap()
}

pub(crate) fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
    let arguments: JsonObject = serde_json::from_value(arguments).unwrap();
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}

/// Returns the text of a result, which is the only part that most models get.
pub(crate) fn text(result: &CallToolResult) -> &str {
    assert_eq!(result.content.len(), 1);
    &result.content[0].as_text().unwrap().text
}

/// Returns the structured content of a result. Panics for an error.
pub(crate) fn data(result: CallToolResult) -> Value {
    assert_eq!(result.is_error, Some(false), "{}", text(&result));
    result.structured_content.unwrap()
}

/// Parses calls, each a tool with its arguments in JSON. Indented lines continue a call.
pub(crate) fn calls(text: &str) -> Vec<(String, Value)> {
    let text = text.trim().replace("\n    ", " ");
    let calls = text.lines().map(|line| {
        let (tool, arguments) = line.split_once(' ').unwrap();
        (tool.to_owned(), serde_json::from_str(arguments).unwrap())
    });
    calls.collect()
}

/// Executes calls and returns them with the texts of their results.
pub(crate) async fn texts(
    client: &Client,
    calls: Vec<(String, Value)>,
    are_errors: bool,
) -> String {
    let mut texts = Vec::new();
    for (tool, arguments) in calls {
        let mut shown = format!("{tool} {arguments}");
        let result = call(client, &tool, arguments).await;
        assert_eq!(
            result.is_error,
            Some(are_errors),
            "{shown}: {}",
            text(&result)
        );
        assert_eq!(result.structured_content.is_none(), are_errors, "{shown}");
        if shown.len() > 330 {
            shown = format!("{tool} ({} bytes)", shown.len() - tool.len() - 1);
        }
        texts.push(format!("{shown}\n{}\n\n", text(&result)));
    }
    texts.concat()
}

/// Executes calls. Returns them with their structured contents, which match the output schemas.
pub(crate) async fn contents(client: &Client, calls: Vec<(String, Value)>) -> Vec<Value> {
    let tools = client.list_all_tools().await.unwrap();
    let mut contents = Vec::new();
    for (name, arguments) in calls {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let mut schema = tool.output_schema.as_deref().unwrap().clone();
        // With this rule, the validator also finds fields that are not in the schema.
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        let validator = jsonschema::validator_for(&Value::Object(schema)).unwrap();
        let content = data(call(client, &name, arguments.clone()).await);
        if let Err(error) = validator.validate(&content) {
            panic!("{name} {arguments}: {error}");
        }
        contents
            .push(serde_json::json!({"tool": name, "arguments": arguments, "content": content}));
    }
    contents
}
