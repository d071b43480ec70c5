//! Baseline of the benchmark: a turn written by hand with reqwest, `serde_json` and rmcp.

use std::{collections::BTreeMap, env, process::Stdio};

use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, ContentBlock, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::async_rw::AsyncRwTransport,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::{Outcome, scripted_conversation::QUESTION};

pub(crate) struct BaselineAgent {
    http: reqwest::Client,
    url: String,
    tools: Value,
    client: RunningService<RoleClient, ()>,
    _server: Child,
}

#[derive(Serialize)]
struct CompletionRequest<'a> {
    model: &'a str,
    messages: &'a [Value],
    tools: &'a Value,
    stream: bool,
}

#[derive(Default)]
struct ModelAnswer {
    text: String,
    calls: BTreeMap<usize, CollectedToolCall>,
}

#[derive(Default)]
struct CollectedToolCall {
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct ResponseChunk {
    choices: Vec<ChunkChoice>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    #[serde(alias = "message")]
    delta: MessageDelta,
}

#[derive(Deserialize)]
struct MessageDelta {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCallDelta>,
}

#[derive(Deserialize)]
struct ToolCallDelta {
    index: usize,
    id: Option<String>,
    function: FunctionDelta,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

impl ModelAnswer {
    fn add_chunk(&mut self, chunk: ResponseChunk) {
        for ChunkChoice { delta } in chunk.choices {
            if let Some(content) = delta.content {
                self.text.push_str(&content);
            }
            for piece in delta.tool_calls {
                let call = self.calls.entry(piece.index).or_default();
                call.id.extend(piece.id);
                call.name.extend(piece.function.name);
                call.arguments.extend(piece.function.arguments);
            }
        }
    }
}

impl BaselineAgent {
    pub(crate) async fn new(port: u16) -> Outcome<Self> {
        let mut server = Command::new(env::current_exe()?)
            .arg("serve-tools")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let pipes = server.stdout.take().zip(server.stdin.take());
        let (stdout, stdin) = pipes.ok_or("the pipes are missing")?;
        // `McpHost` also negotiates this protocol version. The baseline uses it too, so that the
        // comparison is fair.
        let mode = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::LATEST],
        };
        let transport = AsyncRwTransport::new_client(stdout, stdin);
        let client = ().serve_with_lifecycle(transport, mode).await?;
        let tools = client.list_all_tools().await?;
        let tools = tools.into_iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": format!("orders__{}", tool.name), "description": tool.description,
                "parameters": *tool.input_schema,
            }})
        });
        Ok(Self {
            http: reqwest::Client::builder().no_proxy().build()?,
            url: format!("http://127.0.0.1:{port}/v1/chat/completions"),
            tools: tools.collect(),
            client,
            _server: server,
        })
    }

    async fn request_answer(
        &self,
        messages: &[Value],
        tools: &Value,
        stream: bool,
    ) -> Outcome<ModelAnswer> {
        let model = "m";
        let request = CompletionRequest {
            model,
            messages,
            tools,
            stream,
        };
        let mut response = self
            .http
            .post(&self.url)
            .bearer_auth("sk-bench")
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&request)?)
            .send()
            .await?
            .error_for_status()?;
        let mut answer = ModelAnswer::default();
        if !stream {
            answer.add_chunk(serde_json::from_slice(&response.bytes().await?)?);
            return Ok(answer);
        }
        let mut buffer = Vec::new();
        while let Some(bytes) = response.chunk().await? {
            buffer.extend_from_slice(&bytes);
            let mut begin = 0;
            while let Some(end) = buffer[begin..].iter().position(|byte| *byte == b'\n') {
                let line = &buffer[begin..begin + end];
                if let Some(data) = line.strip_prefix(b"data: ")
                    && data != b"[DONE]"
                {
                    answer.add_chunk(serde_json::from_slice(data)?);
                }
                begin += end + 1;
            }
            buffer.drain(..begin);
        }
        Ok(answer)
    }

    pub(crate) async fn run_turn(&self, stream: bool) -> Outcome<String> {
        let mut messages = vec![json!({"role": "user", "content": QUESTION})];
        loop {
            let answer = self.request_answer(&messages, &self.tools, stream).await?;
            if answer.calls.is_empty() {
                return Ok(answer.text);
            }
            let calls = answer.calls.values().map(|call| {
                json!({"id": call.id, "type": "function", "function": {
                    "name": call.name, "arguments": call.arguments,
                }})
            });
            let calls: Value = calls.collect();
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
            for call in answer.calls.into_values() {
                let name = call.name.trim_start_matches("orders__").to_owned();
                let input = serde_json::from_str(&call.arguments)?;
                let params = CallToolRequestParams::new(name).with_arguments(input);
                let result = self.client.call_tool(params).await?;
                let texts = result.content.into_iter().filter_map(|block| match block {
                    ContentBlock::Text(text) => Some(text.text),
                    _ => None,
                });
                let text: String = texts.collect();
                messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": text}));
            }
        }
    }
}
