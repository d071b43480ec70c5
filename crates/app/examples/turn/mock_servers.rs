//! The MCP server and the scripted model server of the benchmark.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt,
};
use rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    Outcome,
    scripted_conversation::{ARGUMENTS, answer_words, tool_result_text},
};

struct OrderServer {
    records: String,
}

impl ServerHandler for OrderServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let properties = json!({
            "text": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "tags": {"type": "array", "items": {"type": "string"}},
        });
        let schema = JsonObject::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), properties),
            ("required".to_owned(), json!(["text"])),
        ]);
        let about = "Finds orders by words of their text, the newest first.";
        let tool = Tool::new("find", about, Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _params: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = ContentBlock::text(self.records.as_str());
        Ok(CallToolResult::success(vec![text]).into())
    }
}

pub(crate) async fn serve_tools() -> Outcome<()> {
    let records = tool_result_text();
    let transport = (tokio::io::stdin(), tokio::io::stdout());
    let serving = OrderServer { records }.serve(transport).await?;
    serving.waiting().await?;
    Ok(())
}

/// Response bodies of the model server: `call` requests a tool call, and `text` is the final
/// answer. Index 0 of each array is an event stream, and index 1 is one JSON document.
struct PreparedResponses {
    call: [Bytes; 2],
    text: [Bytes; 2],
}

impl PreparedResponses {
    fn new() -> Self {
        let call = |arguments: &str| {
            json!([{
                "index": 0, "id": "call_1", "type": "function",
                "function": {"name": "orders__find", "arguments": arguments},
            }])
        };
        let mut pieces = vec![json!({"role": "assistant", "tool_calls": call("")})];
        for piece in ARGUMENTS.split_inclusive(' ') {
            let function = json!({"arguments": piece});
            pieces.push(json!({"tool_calls": [{"index": 0, "function": function}]}));
        }
        let whole = json!({"role": "assistant", "tool_calls": call(ARGUMENTS)});
        let mut words = vec![json!({"role": "assistant", "content": ""})];
        words.extend(answer_words().iter().map(|word| json!({"content": word})));
        let text = json!({"role": "assistant", "content": answer_words().concat()});
        Self {
            call: build_responses(&pieces, &whole, "tool_calls"),
            text: build_responses(&words, &text, "stop"),
        }
    }
}

/// Returns the same answer as an event stream and as one JSON document.
fn build_responses(deltas: &[Value], message: &Value, finish: &str) -> [Bytes; 2] {
    let usage = json!({"prompt_tokens": 400, "completion_tokens": 91, "total_tokens": 491});
    let response = |object: &str, choices: Value, usage: &Value| {
        json!({
            "id": "chatcmpl-1", "object": object, "created": 1_790_000_000, "model": "m",
            "choices": choices, "usage": usage,
        })
    };
    let chunk = |choices: Value, usage: &Value| {
        format!(
            "data: {}\n\n",
            response("chat.completion.chunk", choices, usage)
        )
    };
    let mut stream = String::new();
    for delta in deltas {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        stream += &chunk(json!([choice]), &Value::Null);
    }
    let last = json!({"index": 0, "delta": {}, "finish_reason": finish});
    stream += &chunk(json!([last]), &Value::Null);
    stream += &chunk(json!([]), &usage);
    stream += "data: [DONE]\n\n";
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    let complete = response("chat.completion", json!([choice]), &usage);
    [stream.into(), complete.to_string().into()]
}

async fn handle_completion(
    State(answers): State<Arc<PreparedResponses>>,
    request: Bytes,
) -> Response {
    let has = |what: &[u8]| request.windows(what.len()).any(|window| window == what);
    let streams = has(br#""stream":true"#);
    // The scripted model requests a tool call if the request contains tools and does not contain a
    // tool result yet.
    let wants = has(br#""tools":[{"#) && !has(br#""role":"tool""#);
    let bodies = if wants { &answers.call } else { &answers.text };
    let (kind, index) = if streams {
        ("text/event-stream", 0)
    } else {
        ("application/json", 1)
    };
    ([(CONTENT_TYPE, kind)], bodies[index].clone()).into_response()
}

/// Starts the model server, prints its port and serves until the process is killed.
pub(crate) async fn serve_model() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    // Without `TCP_NODELAY`, delayed acknowledgements would dominate the measurement.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let routes = Router::new()
        .route("/v1/chat/completions", post(handle_completion))
        .with_state(Arc::new(PreparedResponses::new()));
    Ok(axum::serve(listener, routes).await?)
}
