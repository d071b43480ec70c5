//! What a complete turn costs beside a floor that is written by hand: `cargo xtask bench turn`.
//!
//! A turn is what a person waits for: the model wants a tool, the tool of an MCP server over stdio runs, and
//! the model answers. The floor is the least that does this: reqwest, `serde_json` with types for what is
//! needed, and rmcp. It checks nothing, bounds nothing, tells nobody and asks nobody. Ours is the agent with the
//! model and the host that everybody gets. Both speak with one model server on loopback, in a process of its
//! own, and each with its own MCP server. The servers are on one CPU and this process is on another, as a model is
//! on another machine: on the same one (`TURN_ONE_CPU=1`) each exchange throws what this process does out of the
//! CPU's caches, and that is most of what is measured then. What is measured is the CPU time of this process
//! alone, user and system, and the time that passes.
//!
//! In `stream` the answer is read as it comes; in `whole` both ask for one JSON document. The number behind is how
//! many turns are under way at once. `history` is one step without a tool, after so many messages.
//!
//! `turn [BATCHES [NAME [SIDE]]]` prints a line for each batch: its name, then per turn, in microseconds, the CPU
//! time of floor and ours, and the time that passed of floor and ours. With a side (`floor` or `ours`) nothing
//! else runs, for a profiler. `turn serve-tools` and `turn serve-model` are the servers.

#![allow(
    clippy::print_stdout,
    reason = "the measurements are what this program is for"
)]

/// As in the program, and for both sides.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One thread, so that no time goes into waking others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("serve-tools") => runtime.block_on(servers::tools()),
        Some("serve-model") => runtime.block_on(servers::model()),
        batches => {
            let batches = batches.map_or(Ok(10), str::parse)?;
            let name = arguments.next();
            let side = arguments.next();
            runtime.block_on(bench::measure(batches, name.as_deref(), side.as_deref()))
        }
    }
}

#[cfg(not(unix))]
fn main() {
    println!("the CPU time of a process is measured on Unix only");
}

/// What is said on both sides.
#[cfg(unix)]
mod script {
    pub(super) const QUESTION: &str = "What is the state of order 4711, and when will it be here?";
    pub(super) const ARGUMENTS: &str =
        r#"{"text": "state of order 4711", "limit": 10, "tags": ["open", "late"]}"#;

    /// What the tool answers: some two thousand characters.
    pub(super) fn records() -> String {
        "Order 4711 of customer 42 is late: it left the warehouse on Monday.\n".repeat(30)
    }

    /// What the model answers in the end, a word at a time.
    pub(super) fn words() -> Vec<&'static str> {
        let sentence = "The order left the warehouse on Monday and will be there on Thursday. ";
        sentence.split_inclusive(' ').cycle().take(91).collect()
    }
}

#[cfg(unix)]
mod servers {
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

    use super::{Outcome, script};

    struct Orders {
        records: String,
    }

    impl ServerHandler for Orders {
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

    pub(super) async fn tools() -> Outcome<()> {
        let records = script::records();
        let transport = (tokio::io::stdin(), tokio::io::stdout());
        let serving = Orders { records }.serve(transport).await?;
        serving.waiting().await?;
        Ok(())
    }

    /// The answers, made once: the bytes of the call and of the text, each streamed and whole.
    struct Answers {
        call: [Bytes; 2],
        text: [Bytes; 2],
    }

    impl Answers {
        fn new() -> Self {
            let call = |arguments: &str| {
                json!([{
                    "index": 0, "id": "call_1", "type": "function",
                    "function": {"name": "orders__find", "arguments": arguments},
                }])
            };
            let mut pieces = vec![json!({"role": "assistant", "tool_calls": call("")})];
            for piece in script::ARGUMENTS.split_inclusive(' ') {
                let function = json!({"arguments": piece});
                pieces.push(json!({"tool_calls": [{"index": 0, "function": function}]}));
            }
            let whole = json!({"role": "assistant", "tool_calls": call(script::ARGUMENTS)});
            let mut words = vec![json!({"role": "assistant", "content": ""})];
            words.extend(
                script::words()
                    .into_iter()
                    .map(|word| json!({"content": word})),
            );
            let text = json!({"role": "assistant", "content": script::words().concat()});
            Self {
                call: [
                    streamed(&pieces, "tool_calls"),
                    self::whole(&whole, "tool_calls"),
                ],
                text: [streamed(&words, "stop"), self::whole(&text, "stop")],
            }
        }
    }

    fn usage() -> Value {
        json!({"prompt_tokens": 400, "completion_tokens": 91, "total_tokens": 491})
    }

    fn whole(message: &Value, finish: &str) -> Bytes {
        let answer = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage(),
        });
        answer.to_string().into()
    }

    fn streamed(deltas: &[Value], finish: &str) -> Bytes {
        let chunk = |choices: Value, usage: Value| {
            let chunk = json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000,
                "model": "m", "choices": choices, "usage": usage,
            });
            format!("data: {chunk}\n\n")
        };
        let mut stream = String::new();
        for delta in deltas {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
            stream += &chunk(json!([choice]), Value::Null);
        }
        let last = json!({"index": 0, "delta": {}, "finish_reason": finish});
        stream += &chunk(json!([last]), Value::Null);
        stream += &chunk(json!([]), usage());
        stream += "data: [DONE]\n\n";
        stream.into()
    }

    async fn answer(State(answers): State<Arc<Answers>>, request: Bytes) -> Response {
        let has = |what: &[u8]| request.windows(what.len()).any(|window| window == what);
        let streams = has(br#""stream":true"#);
        // A tool is wanted where there is one that has not answered yet.
        let wants = has(br#""tools":[{"#) && !has(br#""role":"tool""#);
        let bodies = if wants { &answers.call } else { &answers.text };
        let kind = if streams {
            "text/event-stream"
        } else {
            "application/json"
        };
        let body = bodies[usize::from(!streams)].clone();
        ([(CONTENT_TYPE, kind)], body).into_response()
    }

    /// Says its port, then serves until it is killed.
    pub(super) async fn model() -> Outcome<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?.port());
        // Without it both sides wait for delayed acknowledgements.
        let listener = listener.tap_io(|connection| {
            let _ = connection.set_nodelay(true);
        });
        let routes = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::new(Answers::new()));
        Ok(axum::serve(listener, routes).await?)
    }
}

/// The least that does it.
#[cfg(unix)]
mod floor {
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

    use super::{Outcome, script};

    pub(super) struct Floor {
        http: reqwest::Client,
        url: String,
        tools: Value,
        client: RunningService<RoleClient, ()>,
        _server: Child,
    }

    #[derive(Serialize)]
    struct Request<'a> {
        model: &'a str,
        messages: &'a [Value],
        #[serde(skip_serializing_if = "Value::is_null")]
        tools: &'a Value,
        stream: bool,
    }

    #[derive(Default)]
    struct Answer {
        text: String,
        calls: BTreeMap<usize, Call>,
    }

    #[derive(Default)]
    struct Call {
        id: String,
        name: String,
        arguments: String,
    }

    #[derive(Deserialize)]
    struct Chunk {
        choices: Vec<Choice>,
    }

    #[derive(Deserialize)]
    struct Choice {
        #[serde(alias = "message")]
        delta: Delta,
    }

    #[derive(Deserialize)]
    struct Delta {
        content: Option<String>,
        #[serde(default)]
        tool_calls: Vec<CallDelta>,
    }

    #[derive(Deserialize)]
    struct CallDelta {
        index: usize,
        id: Option<String>,
        function: FunctionDelta,
    }

    #[derive(Deserialize)]
    struct FunctionDelta {
        name: Option<String>,
        arguments: Option<String>,
    }

    impl Answer {
        fn take(&mut self, chunk: Chunk) {
            for Choice { delta } in chunk.choices {
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

    impl Floor {
        pub(super) async fn new(port: u16) -> Outcome<Self> {
            let mut server = Command::new(env::current_exe()?)
                .arg("serve-tools")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            let pipes = server.stdout.take().zip(server.stdin.take());
            let (stdout, stdin) = pipes.ok_or("the pipes are missing")?;
            // What the host comes to by itself with this server.
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

        async fn ask(&self, messages: &[Value], tools: &Value, stream: bool) -> Outcome<Answer> {
            let model = "m";
            let request = Request {
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
            let mut answer = Answer::default();
            if !stream {
                answer.take(serde_json::from_slice(&response.bytes().await?)?);
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
                        answer.take(serde_json::from_slice(data)?);
                    }
                    begin += end + 1;
                }
                buffer.drain(..begin);
            }
            Ok(answer)
        }

        pub(super) async fn turn(&self, stream: bool) -> Outcome<String> {
            let mut messages = vec![json!({"role": "user", "content": script::QUESTION})];
            loop {
                let answer = self.ask(&messages, &self.tools, stream).await?;
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
                    messages
                        .push(json!({"role": "tool", "tool_call_id": call.id, "content": text}));
                }
            }
        }

        /// One step without tools.
        pub(super) async fn step(&self, history: &[Value]) -> Outcome<String> {
            Ok(self.ask(history, &Value::Null, true).await?.text)
        }
    }
}

#[cfg(unix)]
mod bench {
    use std::{env, process::Stdio, sync::Arc, time::Instant};

    use futures_util::{StreamExt, TryStreamExt, stream};
    use rustix::time::{ClockId, clock_gettime};
    use serde_json::{Value, json};
    use switchboard_domain::{Delivery, Message};
    use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
    use switchboard_orchestration::{Agent, RunEventKind, RunOptions, RunStream};
    use switchboard_providers_openai::{OpenAiChatModel, OpenAiConfig};
    use tokio::{
        io::{AsyncBufReadExt, BufReader},
        process::{Child, Command},
    };

    use super::{Outcome, floor::Floor, script};

    /// Turns in one batch; steps after a history of the length in a tenth of a batch.
    const BATCH: usize = 256;

    /// What is measured.
    #[derive(Clone, Copy)]
    enum Kind {
        Turn { streamed: bool, at_once: usize },
        Step { after: usize },
    }

    const KINDS: [(&str, Kind); 7] = [
        (
            "stream-1",
            Kind::Turn {
                streamed: true,
                at_once: 1,
            },
        ),
        (
            "stream-64",
            Kind::Turn {
                streamed: true,
                at_once: 64,
            },
        ),
        (
            "whole-1",
            Kind::Turn {
                streamed: false,
                at_once: 1,
            },
        ),
        (
            "whole-64",
            Kind::Turn {
                streamed: false,
                at_once: 64,
            },
        ),
        ("history-10", Kind::Step { after: 10 }),
        ("history-100", Kind::Step { after: 100 }),
        ("history-1000", Kind::Step { after: 1000 }),
    ];

    struct Ours {
        host: Arc<McpHost>,
        agent: Agent,
        whole: Agent,
        without_tools: Agent,
    }

    impl Ours {
        async fn new(port: u16) -> Outcome<Self> {
            let itself = env::current_exe()?;
            let server = ServerConfig::stdio("orders", itself.to_string_lossy(), ["serve-tools"]);
            let host = Arc::new(McpHost::start(vec![server], HostOptions::default())?);
            host.require_ready().await?;
            let config = OpenAiConfig {
                base_url: format!("http://127.0.0.1:{port}/v1"),
                ..OpenAiConfig::new("sk-bench")
            };
            let without_tools = Agent::new(Arc::new(OpenAiChatModel::new(config, "m")?));
            let agent = without_tools.clone().with_tools(host.clone());
            let whole = RunOptions {
                delivery: Delivery::Whole,
                ..RunOptions::default()
            };
            Ok(Self {
                whole: agent.clone().with_options(whole),
                agent,
                host,
                without_tools,
            })
        }
    }

    /// The text after the last call of the model, as somebody who shows it puts it together.
    async fn text_of(mut run: RunStream) -> String {
        let mut text = String::new();
        while let Some(event) = run.next().await {
            match event.kind {
                RunEventKind::ModelCallStarted { .. } => text.clear(),
                RunEventKind::TextDelta { text: piece } => text.push_str(&piece),
                _ => {}
            }
        }
        text
    }

    struct Bench {
        floor: Floor,
        ours: Ours,
        answer: String,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Side {
        Floor,
        Ours,
    }

    impl Bench {
        /// CPU time and time passed of one turn, in microseconds.
        async fn batch(&self, kind: Kind, side: Side) -> Outcome<(f64, f64)> {
            let (times, at_once) = match kind {
                Kind::Turn { at_once, .. } => (BATCH, at_once),
                Kind::Step { after } => (BATCH * 10 / after.max(10), 1),
            };
            let (theirs, own) = history(kind);
            let (cpu_before, before) = (cpu(), Instant::now());
            let turns = stream::iter(0..times).map(|_| async {
                let text = match (side, kind) {
                    (Side::Floor, Kind::Turn { streamed, .. }) => self.floor.turn(streamed).await?,
                    (Side::Floor, Kind::Step { .. }) => self.floor.step(&theirs).await?,
                    (Side::Ours, Kind::Turn { streamed, .. }) => {
                        let Ours { agent, whole, .. } = &self.ours;
                        let agent = if streamed { agent } else { whole };
                        text_of(agent.ask(script::QUESTION)).await
                    }
                    (Side::Ours, Kind::Step { .. }) => {
                        text_of(self.ours.without_tools.run(own.clone())).await
                    }
                };
                if text == self.answer {
                    Ok(())
                } else {
                    Err(format!("odd answer: {text}").into())
                }
            });
            let done: Outcome<()> = turns.buffer_unordered(at_once).try_collect().await;
            done?;
            let (cpu_time, passed) = (cpu() - cpu_before, before.elapsed());
            #[allow(clippy::cast_precision_loss, reason = "some hundred")]
            let times = times as f64;
            Ok((cpu_time / 1e3 / times, passed.as_secs_f64() * 1e6 / times))
        }
    }

    /// A conversation of so many messages of some hundred characters, in the words of both sides.
    fn history(kind: Kind) -> (Vec<Value>, Vec<Arc<Message>>) {
        let Kind::Step { after } = kind else {
            return (Vec::new(), Vec::new());
        };
        let text = |at: usize| {
            format!(
                "Message {at} of a long talk about orders. {}",
                "It goes on. ".repeat(10)
            )
        };
        // The last one is a question, and so is the first.
        let turns = (0..=after).map(|at| (text(at), (after - at) % 2 == 0));
        turns
            .map(|(text, asks)| {
                let role = if asks { "user" } else { "assistant" };
                let message = if asks {
                    Message::user(text.as_str())
                } else {
                    Message::assistant(text.as_str())
                };
                (json!({"role": role, "content": text}), Arc::new(message))
            })
            .unzip()
    }

    /// CPU time of this process so far, in nanoseconds.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a float has nanoseconds of months"
    )]
    fn cpu() -> f64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    }

    /// Two CPUs: one for the servers, one for what is measured. The same one twice where there are no two, or
    /// where that is asked for.
    #[cfg(target_os = "linux")]
    fn cpus() -> Outcome<[usize; 2]> {
        use rustix::thread::{CpuSet, sched_getaffinity};

        let allowed = sched_getaffinity(None)?;
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let first = cpus.next().ok_or("no CPU to run on")?;
        let second = cpus
            .next()
            .filter(|_| env::var_os("TURN_ONE_CPU").is_none());
        Ok([first, second.unwrap_or(first)])
    }

    /// From here on this process, and what it starts, runs on one CPU: where the system would put them, and
    /// which of the two sides meets a move, would be chance.
    #[cfg(target_os = "linux")]
    fn stay_on(cpu: usize) -> Outcome<()> {
        use rustix::thread::{CpuSet, sched_setaffinity};

        let mut only = CpuSet::new();
        only.set(cpu);
        Ok(sched_setaffinity(None, &only)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn cpus() -> Outcome<[usize; 2]> {
        Ok([0, 0])
    }

    #[cfg(not(target_os = "linux"))]
    fn stay_on(_: usize) -> Outcome<()> {
        Ok(())
    }

    /// The model server, and its port.
    async fn model_server() -> Outcome<(Child, u16)> {
        let mut server = Command::new(env::current_exe()?)
            .arg("serve-model")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = server.stdout.take().ok_or("the pipe is missing")?;
        let mut port = String::new();
        BufReader::new(stdout).read_line(&mut port).await?;
        Ok((server, port.trim().parse()?))
    }

    pub(super) async fn measure(
        batches: u32,
        name: Option<&str>,
        side: Option<&str>,
    ) -> Outcome<()> {
        let [of_the_servers, own] = cpus()?;
        stay_on(of_the_servers)?;
        let (_server, port) = model_server().await?;
        let bench = Bench {
            floor: Floor::new(port).await?,
            ours: Ours::new(port).await?,
            answer: script::words().concat(),
        };
        stay_on(own)?;
        let kinds = KINDS
            .iter()
            .filter(|(known, _)| name.is_none_or(|name| name == *known));
        let alone = side.map(|side| match side {
            "floor" => Side::Floor,
            _ => Side::Ours,
        });
        if let Some(side) = alone {
            for (_, kind) in kinds {
                for _ in 0..batches {
                    bench.batch(*kind, side).await?;
                }
            }
            bench.ours.host.close().await;
            return Ok(());
        }
        // Once without counting.
        for (_, kind) in kinds.clone() {
            bench.batch(*kind, Side::Floor).await?;
            bench.batch(*kind, Side::Ours).await?;
        }
        // All kinds in each round: what else the machine does for some seconds meets each of them, and none in most of its
        // batches.
        for round in 0..batches {
            for (known, kind) in kinds.clone() {
                let (floor, ours);
                // Neither always comes first.
                if round % 2 == 0 {
                    floor = bench.batch(*kind, Side::Floor).await?;
                    ours = bench.batch(*kind, Side::Ours).await?;
                } else {
                    ours = bench.batch(*kind, Side::Ours).await?;
                    floor = bench.batch(*kind, Side::Floor).await?;
                }
                println!("{known} {} {} {} {}", floor.0, ours.0, floor.1, ours.1);
            }
        }
        bench.ours.host.close().await;
        Ok(())
    }
}

#[cfg(unix)]
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
