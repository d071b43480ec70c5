//! What a call through this crate costs beside a call through bare rmcp: `cargo xtask bench overhead`.
//!
//! One process holds both connections, each to a server of its own over stdio, and calls the same tool in
//! batches, in turns. What is measured is the CPU time of this process, user and system, so neither the
//! servers nor what else the machine does counts. A line for each turn: microseconds of CPU a call bare,
//! and through `McpHost`.
//!
//! `overhead [TURNS [CALLS]]`; `overhead serve` is the server; `overhead TURNS CALLS bare` and `… host` do
//! one side only, for a profiler.

#![allow(
    clippy::print_stdout,
    reason = "the measurements are what this program is for"
)]

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One thread, so that no time goes into waking others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("serve") => runtime.block_on(bench::serve()),
        turns => {
            let turns = turns.map_or(Ok(20), str::parse)?;
            let calls = arguments.next().map_or(Ok(2000), |calls| calls.parse())?;
            let side = arguments.next();
            runtime.block_on(bench::measure(turns, calls, side.as_deref()))
        }
    }
}

#[cfg(not(unix))]
fn main() {
    println!("the CPU time of a process is measured on Unix only");
}

#[cfg(unix)]
mod bench {
    use std::{env, error::Error, process::Stdio, sync::Arc};

    use rmcp::{
        RoleClient, RoleServer, ServerHandler, ServiceExt,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
            ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
            ServerConfig as About, Tool,
        },
        service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService},
        transport::async_rw::AsyncRwTransport,
    };
    use rustix::time::{ClockId, clock_gettime};
    use serde_json::json;
    use switchboard_domain::{JsonObject, ToolCall, ToolContent, ToolHost};
    use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
    use tokio::process::{Child, Command};

    type Outcome<T> = Result<T, Box<dyn Error>>;

    /// What the tool answers: some two thousand characters, as a short page or a handful of records have.
    fn answer() -> String {
        "Order 4711 of customer 42 is late: it left the warehouse on Monday.\n".repeat(30)
    }

    /// Answers with the same text, whatever it is asked.
    struct Orders {
        text: String,
    }

    impl ServerHandler for Orders {
        fn get_info(&self) -> About {
            About::new(ServerCapabilities::builder().enable_tools().build())
        }

        async fn list_tools(
            &self,
            _request: Option<PaginatedRequestParams>,
            _context: RequestContext<RoleServer>,
        ) -> Result<ListToolsResult, ErrorData> {
            let schema = JsonObject::from_iter([("type".to_owned(), json!("object"))]);
            let tool = Tool::new("find", "Finds orders.", Arc::new(schema));
            Ok(ListToolsResult::with_all_items(vec![tool]))
        }

        async fn call_tool(
            &self,
            _params: CallToolRequestParams,
            _context: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            let text = ContentBlock::text(self.text.as_str());
            Ok(CallToolResult::success(vec![text]).into())
        }
    }

    pub(super) async fn serve() -> Outcome<()> {
        let orders = Orders { text: answer() };
        let transport = (tokio::io::stdin(), tokio::io::stdout());
        let serving = orders.serve(transport).await?;
        serving.waiting().await?;
        Ok(())
    }

    fn input() -> JsonObject {
        JsonObject::from_iter([
            ("text".to_owned(), json!("What is the state of order 4711?")),
            ("limit".to_owned(), json!(10)),
            ("tags".to_owned(), json!(["open", "late"])),
        ])
    }

    type Bare = RunningService<RoleClient, ()>;

    async fn bare() -> Outcome<(Child, Bare)> {
        let mut server = Command::new(env::current_exe()?)
            .arg("serve")
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
        Ok((server, ().serve_with_lifecycle(transport, mode).await?))
    }

    async fn call_bare(client: &Bare) -> Outcome<()> {
        let params = CallToolRequestParams::new("find").with_arguments(input());
        let result = client.call_tool(params).await?;
        match result.content.as_slice() {
            [ContentBlock::Text(text)] if text.text.starts_with("Order") => Ok(()),
            other => Err(format!("odd answer: {other:?}").into()),
        }
    }

    async fn call_host(host: &McpHost) -> Outcome<()> {
        let call = ToolCall {
            name: "s__find".to_owned(),
            input: input().into(),
            ..ToolCall::default()
        };
        let output = host.call(call).await?;
        match output.content.as_slice() {
            [ToolContent::Text { text }] if text.starts_with("Order") => Ok(()),
            other => Err(format!("odd answer: {other:?}").into()),
        }
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

    /// Microseconds of CPU that one of so many calls took.
    async fn microseconds(calls: u32, mut call: impl AsyncFnMut() -> Outcome<()>) -> Outcome<f64> {
        let before = cpu();
        for _ in 0..calls {
            call().await?;
        }
        Ok((cpu() - before) / 1e3 / f64::from(calls))
    }

    /// From here on everything runs on one CPU, what is started from here included: to wake a process on
    /// another one costs as much as half a call, and which of the two sides meets that would be chance.
    #[cfg(target_os = "linux")]
    fn stay_on_one_cpu() -> Outcome<()> {
        use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

        let mut only = CpuSet::new();
        only.set(sched_getcpu());
        Ok(sched_setaffinity(None, &only)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn stay_on_one_cpu() -> Outcome<()> {
        Ok(())
    }

    pub(super) async fn measure(turns: u32, calls: u32, side: Option<&str>) -> Outcome<()> {
        stay_on_one_cpu()?;
        let (_server, client) = bare().await?;
        let itself = env::current_exe()?;
        let config = ServerConfig::stdio("s", itself.to_string_lossy(), ["serve"]);
        let host = McpHost::start(vec![config], HostOptions::default())?;
        host.settled().await;
        let status = host.servers().remove(0);
        let spoken = client
            .peer_info()
            .map(|about| about.protocol_version.to_string());
        if spoken.is_none() || spoken != status.protocol_version {
            return Err(format!("not the same protocol: {spoken:?} and {status:?}").into());
        }
        // Once without counting.
        microseconds(calls, async || call_bare(&client).await).await?;
        microseconds(calls, async || call_host(&host).await).await?;
        for turn in 0..turns {
            match side {
                Some("bare") => {
                    microseconds(calls, async || call_bare(&client).await).await?;
                    continue;
                }
                Some(_) => {
                    microseconds(calls, async || call_host(&host).await).await?;
                    continue;
                }
                None => {}
            }
            let (of_bare, of_host);
            // Neither always comes first.
            if turn % 2 == 0 {
                of_bare = microseconds(calls, async || call_bare(&client).await).await?;
                of_host = microseconds(calls, async || call_host(&host).await).await?;
            } else {
                of_host = microseconds(calls, async || call_host(&host).await).await?;
                of_bare = microseconds(calls, async || call_bare(&client).await).await?;
            }
            println!("{of_bare} {of_host}");
        }
        host.close().await;
        client.cancel().await?;
        Ok(())
    }
}
