//! Sends concurrent requests to a server and measures their response times.

use std::{fs, time::Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::{
    Outcome,
    cpu::{choose_cpus, pin_thread_to_cpu},
    server_process::ServerProcess,
};

/// Number of requests in one round of the benchmark.
const REQUESTS: u32 = 512;
/// Number of requests that are in progress at the same time.
const CONCURRENCY: usize = 64;
const QUESTION: &str = "What is the state of order 4711, and when will it be here?";
/// A word of the expected answer, and the minimum number of its occurrences in a complete answer.
/// With fewer occurrences, the answer was truncated.
const EXPECTED: (&str, usize) = ("Thursday", 7);

/// Kinds of requests that the benchmark measures. Each entry has a name and three flags:
///
/// 1. `true` for requests to `POST /chat`, which stores the run. `false` for requests to
///    `POST /v1/chat/completions`, which stores nothing.
/// 2. `true` if the answers are streamed.
/// 3. `true` if the model calls a tool.
const KINDS: [(&str, bool, bool, bool); 4] = [
    ("chat-whole", false, false, false),
    ("chat-stream", false, true, false),
    ("chat-stream-tool", false, true, true),
    ("stored-whole", true, false, false),
];

/// A measured server and the HTTP client that calls it.
struct TargetServer<'a> {
    client: reqwest::Client,
    address: &'a str,
    stored: bool,
    streamed: bool,
}

impl<'a> TargetServer<'a> {
    fn new(address: &'a str, stored: bool, streamed: bool) -> Outcome<Self> {
        Ok(Self {
            client: reqwest::Client::builder().no_proxy().build()?,
            address,
            stored,
            streamed,
        })
    }

    async fn post_json(&self, path: &str, body: &Value) -> Outcome<String> {
        let request = self.client.post(format!("{}{path}", self.address));
        let request = request.header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await?;
        Ok(response.error_for_status()?.text().await?)
    }

    /// Sends one request and checks that the answer is complete.
    async fn send_question(&self) -> Outcome<()> {
        let answer = if self.stored {
            self.post_json("/chat", &json!({"message": QUESTION}))
                .await?
        } else {
            let messages = json!([{"role": "user", "content": QUESTION}]);
            let body = json!({"model": "default", "messages": messages, "stream": self.streamed});
            self.post_json("/v1/chat/completions", &body).await?
        };
        let (word, count) = EXPECTED;
        if answer.matches(word).count() >= count {
            return Ok(());
        }
        let start: String = answer.chars().take(500).collect();
        Err(format!("incomplete answer from {}: {start}", self.address).into())
    }

    /// Runs one round of the benchmark. Returns requests per second, and the median and the 99th
    /// percentile of the response times in microseconds.
    async fn run_benchmark_round(&self) -> Outcome<[f64; 3]> {
        let start = Instant::now();
        let requests = stream::iter(0..REQUESTS).map(|_| async {
            let start = Instant::now();
            self.send_question().await?;
            Outcome::Ok(start.elapsed().as_secs_f64() * 1e6)
        });
        let mut times: Vec<f64> = requests.buffer_unordered(CONCURRENCY).try_collect().await?;
        let elapsed = start.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        let quantile = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        Ok([f64::from(REQUESTS) / elapsed, quantile(50), quantile(99)])
    }
}

pub(crate) async fn measure_load(program: &str, turn: &str, rounds: u32) -> Outcome<()> {
    let [client_cpu, server_cpu] = choose_cpus()?;
    let turn = fs::canonicalize(turn)?;
    let tools = turn.to_str().ok_or("the path of `turn` is not text")?;
    pin_thread_to_cpu(client_cpu)?;
    let folder = tempfile::tempdir()?;
    let model = ServerProcess::start_model_server(&turn, folder.path()).await?;
    for (name, stored, streamed, with_tool) in KINDS {
        let folder = tempfile::tempdir()?;
        let configuration = json!({
            "model": "bench/m",
            "providers": {"bench": {"base_url": format!("{}/v1", model.address)}},
            "mcp_servers": {"orders": {"command": tools, "args": ["serve-tools"]}},
        });
        let arguments: &[&str] = if with_tool { &[] } else { &["--no-tools"] };
        pin_thread_to_cpu(server_cpu)?;
        let server =
            ServerProcess::start_switchboard(program, folder.path(), &configuration, arguments);
        let server = server.await?;
        pin_thread_to_cpu(client_cpu)?;
        let direct = TargetServer::new(&model.address, false, streamed)?;
        let through = TargetServer::new(&server.address, stored, streamed)?;
        // The first request warms up the server and is not measured.
        through.send_question().await?;
        for _ in 0..rounds {
            let [rate, p50, p99] = direct.run_benchmark_round().await?;
            let cpu_before = server.read_resource_usage()?.cpu;
            let [our_rate, our_p50, our_p99] = through.run_benchmark_round().await?;
            let usage = server.read_resource_usage()?;
            let cpu = (usage.cpu - cpu_before) / f64::from(REQUESTS);
            println!(
                "{name} {rate:.1} {p50:.0} {p99:.0} {our_rate:.1} {our_p50:.0} {our_p99:.0} \
                 {cpu:.1} {:.0}",
                usage.peak
            );
        }
        server.stop_process().await?;
    }
    model.stop_process().await
}
