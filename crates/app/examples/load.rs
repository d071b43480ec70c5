//! Many streaming sessions at once through `switchboard serve`, beside the same streams without it:
//! `cargo xtask bench load`.
//!
//! A model server on loopback writes slowly, as models do: each word is the time at which it was written. Clients
//! read it once directly and once through the server, each in a session of its own whose events are stored before
//! anybody sees them. What is measured: how much later a word comes than it would without the server, and what a
//! session costs of the server's memory and CPU time. Model, server and clients share the machine.
//!
//! `load SWITCHBOARD [SESSIONS]` prints `name value` lines; times are in microseconds, memory in bytes. Any stream that
//! is not whole fails it.

#![allow(
    clippy::print_stdout,
    reason = "the measurements are what this program is for"
)]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut arguments = std::env::args().skip(1);
    let first = arguments
        .next()
        .ok_or("the program to measure is the first argument")?;
    if first == "serve-model" {
        return runtime.block_on(model::serve());
    }
    let sessions = arguments.next().map_or(Ok(500), |count| count.parse())?;
    runtime.block_on(load::measure(&first, sessions))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("what a process uses is read from /proc, on Linux only");
}

#[cfg(target_os = "linux")]
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What everybody knows.
#[cfg(target_os = "linux")]
mod script {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    /// Words of an answer.
    pub(super) const WORDS: u64 = 40;
    /// From one word to the next.
    pub(super) const PAUSE: Duration = Duration::from_millis(250);
    /// Answers begin so far apart that the words of all are spread evenly.
    pub(super) const STEP: Duration = Duration::from_micros(500);

    /// Nanoseconds; the machine has one clock.
    pub(super) fn now() -> u128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_nanos()
    }

    /// How late a word is, in microseconds.
    #[allow(clippy::cast_precision_loss, reason = "some seconds at most")]
    pub(super) fn lateness(word: &str) -> Option<f64> {
        let written: u128 = word.trim().parse().ok()?;
        Some(now().saturating_sub(written) as f64 / 1e3)
    }
}

#[cfg(target_os = "linux")]
mod model {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use axum::{
        Router,
        body::{Body, Bytes},
        extract::State,
        http::header::CONTENT_TYPE,
        response::{IntoResponse, Response},
        routing::post,
        serve::ListenerExt,
    };
    use futures_util::{StreamExt, stream};
    use serde_json::{Value, json};
    use tokio::{
        net::TcpListener,
        time::{Instant, sleep_until},
    };

    use super::{
        Outcome,
        script::{PAUSE, STEP, WORDS, now},
    };

    fn chunk(delta: &Value, finish: Option<&str>) -> Bytes {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "slow",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        format!("data: {chunk}\n\n").into()
    }

    async fn answer(State(count): State<Arc<AtomicU32>>, _request: Bytes) -> Response {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let shift = STEP * number;
        // Within one pause of each other.
        let shift = std::time::Duration::from_nanos(
            u64::try_from(shift.as_nanos() % PAUSE.as_nanos()).unwrap_or_default(),
        );
        let begin = Instant::now() + shift;
        let words = stream::iter(0..WORDS).then(move |word| async move {
            let at = begin + PAUSE * u32::try_from(word).unwrap_or_default();
            // sleep: this is how slowly the model writes.
            sleep_until(at).await;
            chunk(&json!({"content": format!("{} ", now())}), None)
        });
        let end = stream::iter([
            chunk(&json!({}), Some("stop")),
            Bytes::from_static(b"data: [DONE]\n\n"),
        ]);
        let body = Body::from_stream(words.chain(end).map(Ok::<_, Infallible>));
        ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
    }

    /// Says its port, then serves until it is killed.
    pub(super) async fn serve() -> Outcome<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?.port());
        let listener = listener.tap_io(|connection| {
            let _ = connection.set_nodelay(true);
        });
        let routes = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::default());
        Ok(axum::serve(listener, routes).await?)
    }
}

#[cfg(target_os = "linux")]
mod load {
    use std::{env, fs, path::Path, process::Stdio, sync::Arc, time::Instant};

    use futures_util::{StreamExt, TryStreamExt, stream};
    use serde_json::{Value, json};
    use tokio::{
        io::{AsyncBufReadExt, AsyncRead, BufReader},
        process::{Child, Command},
    };

    use super::{
        Outcome,
        script::{WORDS, lateness},
    };

    /// A process of the test, which ends with it.
    struct Process {
        child: Child,
        id: u32,
    }

    /// What a process has used until now.
    #[derive(Clone, Copy)]
    struct Use {
        /// Bytes that are in memory.
        resident: f64,
        /// The most that ever were.
        peak: f64,
        /// Microseconds of the CPU.
        cpu: f64,
    }

    impl Process {
        fn new(child: Child) -> Outcome<Self> {
            let id = child.id().ok_or("the process is gone")?;
            Ok(Self { child, id })
        }

        fn used(&self) -> Outcome<Use> {
            let of = Path::new("/proc").join(self.id.to_string());
            let status = fs::read_to_string(of.join("status"))?;
            let bytes = |name: &str| {
                let mut lines = status.lines();
                let kibibytes =
                    lines.find_map(|line| line.strip_prefix(name)?.strip_suffix(" kB"))?;
                Some(kibibytes.trim().parse::<f64>().ok()? * 1024.0)
            };
            let stat = fs::read_to_string(of.join("stat"))?;
            // After the name, which may hold anything: user and system time are the 12th and the 13th field.
            let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
            let ticks: f64 = fields
                .split(' ')
                .skip(11)
                .take(2)
                .filter_map(|ticks| ticks.parse::<f64>().ok())
                .sum();
            Ok(Use {
                resident: bytes("VmRSS:").ok_or("no VmRSS")?,
                peak: bytes("VmHWM:").ok_or("no VmHWM")?,
                // A tick is a hundredth of a second, whatever the kernel counts with.
                cpu: ticks * 10_000.0,
            })
        }
    }

    /// The first line that begins so, without that.
    async fn said(stream: impl AsyncRead + Unpin + Send + 'static, begin: &str) -> Outcome<String> {
        let mut lines = BufReader::new(stream).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(rest) = line.strip_prefix(begin) {
                let rest = rest.trim().to_owned();
                // What it says later must go somewhere.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(rest);
            }
        }
        Err(format!("the process ended before it said `{begin}`").into())
    }

    async fn model() -> Outcome<(Process, u16)> {
        let mut child = Command::new(env::current_exe()?)
            .arg("serve-model")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the pipe is missing")?;
        let port = said(stdout, "").await?.parse()?;
        Ok((Process::new(child)?, port))
    }

    async fn server(
        program: &str,
        folder: &Path,
        model: u16,
        sessions: usize,
    ) -> Outcome<(Process, String)> {
        let config = json!({
            "model": "slow/slow",
            "providers": {"slow": {"base_url": format!("http://127.0.0.1:{model}/v1")}},
            "serve": {"max_runs": sessions + 10, "max_runs_each": sessions + 10, "max_connections": sessions * 2 + 100,
                      "max_requests": sessions * 2 + 100, "max_requests_each": sessions * 2 + 100},
        });
        let file = folder.join("switchboard.json");
        fs::write(&file, config.to_string())?;
        // Started in a folder of its own.
        let mut child = Command::new(fs::canonicalize(program)?)
            .args(["serve", "--bind", "127.0.0.1:0", "--no-tools", "--config"])
            .arg(&file)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stderr = child.stderr.take().ok_or("the pipe is missing")?;
        let address = said(stderr, "listening on ").await?;
        Ok((Process::new(child)?, address))
    }

    /// Reads a stream of server-sent events and gives the lateness of its words, as `word` finds them in the data.
    async fn read(
        response: reqwest::Response,
        word: impl Fn(&Value) -> Option<&str>,
    ) -> Outcome<Vec<f64>> {
        let mut late = Vec::new();
        let mut text = String::new();
        let mut body = response.error_for_status()?.bytes_stream();
        while let Some(piece) = body.next().await {
            text.push_str(std::str::from_utf8(&piece?)?);
            while let Some((frame, rest)) = text.split_once("\n\n") {
                for data in frame.lines().filter_map(|line| line.strip_prefix("data:")) {
                    if let Ok(data) = serde_json::from_str::<Value>(data) {
                        late.extend(
                            word(&data)
                                .iter()
                                .flat_map(|words| words.split_whitespace())
                                .filter_map(lateness),
                        );
                    }
                }
                text = rest.to_owned();
            }
        }
        if u64::try_from(late.len())? == WORDS {
            Ok(late)
        } else {
            Err(format!("a stream has {} of {WORDS} words", late.len()).into())
        }
    }

    async fn directly(client: reqwest::Client, model: u16) -> Outcome<Vec<f64>> {
        let request = json!({"model": "slow", "stream": true, "messages": [{"role": "user", "content": "Go."}]});
        let url = format!("http://127.0.0.1:{model}/v1/chat/completions");
        let post = client.post(url).header("content-type", "application/json");
        let response = post.body(request.to_string()).send().await?;
        read(response, |chunk| {
            chunk["choices"][0]["delta"]["content"].as_str()
        })
        .await
    }

    async fn through(client: reqwest::Client, address: Arc<str>) -> Outcome<Vec<f64>> {
        let request = json!({"message": "Go.", "background": true});
        let post = client
            .post(format!("{address}/chat"))
            .header("content-type", "application/json");
        let response = post.body(request.to_string()).send().await?;
        let response = response.error_for_status()?;
        let started: Value = serde_json::from_slice(&response.bytes().await?)?;
        let run = started["run_id"].as_str().ok_or("no run_id")?;
        let url = format!("{address}/runs/{run}/events");
        let response = client.get(url).send().await?;
        read(response, |event| {
            let is_text = event["type"] == "text_delta";
            is_text.then(|| event["text"].as_str()).flatten()
        })
        .await
    }

    /// What so many clients at once measure.
    async fn all<F>(sessions: usize, one: impl Fn() -> F) -> Outcome<Vec<f64>>
    where
        F: Future<Output = Outcome<Vec<f64>>>,
    {
        let clients = stream::iter((0..sessions).map(|_| one()));
        let late: Vec<Vec<f64>> = clients.buffer_unordered(sessions).try_collect().await?;
        let mut late = late.concat();
        late.sort_by(f64::total_cmp);
        Ok(late)
    }

    fn quantile(sorted: &[f64], percent: usize) -> f64 {
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }

    fn say(name: &str, sorted: &[f64]) {
        for percent in [50, 90, 99] {
            println!("{name}-p{percent} {:.0}", quantile(sorted, percent));
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "some thousand")]
    pub(super) async fn measure(program: &str, sessions: usize) -> Outcome<()> {
        let (_model, port) = model().await?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let direct = all(sessions, || directly(client.clone(), port)).await?;
        say("direct", &direct);

        let folder = tempfile::tempdir()?;
        let (mut server, address) = server(program, folder.path(), port, sessions).await?;
        let address: Arc<str> = address.into();
        // One before, so that what is made once is there.
        through(client.clone(), Arc::clone(&address)).await?;
        let before = server.used()?;
        let begun = Instant::now();
        let late = all(sessions, || through(client.clone(), Arc::clone(&address))).await?;
        let passed = begun.elapsed();
        let after = server.used()?;
        say("through", &late);
        println!(
            "added-p50 {:.0}",
            quantile(&late, 50) - quantile(&direct, 50)
        );
        println!(
            "added-p99 {:.0}",
            quantile(&late, 99) - quantile(&direct, 99)
        );
        let all = sessions as f64;
        println!("memory-before {:.0}", before.resident);
        println!("memory-session {:.0}", (after.peak - before.resident) / all);
        println!(
            "cpu-word {:.1}",
            (after.cpu - before.cpu) / (all * WORDS as f64)
        );
        println!("passed {:.0}", passed.as_secs_f64() * 1e6);
        server.child.kill().await?;
        Ok(())
    }
}
