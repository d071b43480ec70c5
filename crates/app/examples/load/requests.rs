//! How many short requests are answered in a second, how soon, and what they cost, beside the floor of `floor.rs`.
//!
//! The model and the tool are those of the example `turn`: they answer at once, and the answer has 91 pieces. What is measured is on
//! one CPU, and its tools with it; clients and model are on another. Server and floor get the same number of requests in turns, of which
//! so many are under way at once. Both are started anew for each row, so that its memory is its own.
//!
//! A round prints `KIND AT_ONCE round`, then for the floor and the server the requests in a second and the median and the 99th
//! percentile of the time to the end of an answer. A row ends with `KIND AT_ONCE used` and, for each, CPU time of a request and what was
//! in memory after the first request, at most, and at the end. Times are in microseconds, memory in bytes.

use std::{env, fs, time::Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::{
    Outcome,
    process::{Process, Use, cpus, stay_on},
    quantile,
    sessions::begin_and_follow,
};

/// Requests that are under way at once.
const AT_ONCE: [usize; 3] = [1, 8, 64];
/// A word of the answer, and how often it is in there: an answer that is cut off has fewer.
const SAID: (&str, usize) = ("Thursday", 7);
/// What the tool says, or the tool's name: one of them is in what the server tells of a run that called it.
const CALLED: [&str; 2] = ["left the warehouse on Monday.", "find"];
/// Characters of an odd answer that are shown.
const SHOWN: usize = 500;

/// What a client wants.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    interface: Interface,
    with_tool: bool,
    streams: bool,
}

#[derive(Clone, Copy)]
enum Interface {
    /// OpenAI's Chat Completions: nothing is kept.
    Chat,
    /// The server's own: each run is one of a new session, and both are stored.
    Own,
}

const fn kind(name: &'static str, interface: Interface, with_tool: bool, streams: bool) -> Kind {
    Kind {
        name,
        interface,
        with_tool,
        streams,
    }
}

const KINDS: [Kind; 8] = [
    kind("chat-whole", Interface::Chat, false, false),
    kind("chat-stream", Interface::Chat, false, true),
    kind("chat-whole-tool", Interface::Chat, true, false),
    kind("chat-stream-tool", Interface::Chat, true, true),
    kind("own-whole", Interface::Own, false, false),
    kind("own-stream", Interface::Own, false, true),
    kind("own-whole-tool", Interface::Own, true, false),
    kind("own-stream-tool", Interface::Own, true, true),
];

/// Whom the clients ask.
struct Side {
    process: Process,
    client: reqwest::Client,
    kind: Kind,
    is_floor: bool,
}

impl Interface {
    /// Requests in one round. What is stored takes its time.
    fn requests(self) -> u32 {
        match self {
            Self::Chat => 512,
            Self::Own => 256,
        }
    }
}

impl Side {
    fn new(process: Process, kind: Kind, is_floor: bool) -> Outcome<Self> {
        Ok(Self {
            process,
            // Connections of its own, which are kept.
            client: reqwest::Client::builder().no_proxy().build()?,
            kind,
            is_floor,
        })
    }

    /// Asks once and reads the answer to its end.
    async fn ask(&self) -> Outcome<()> {
        const QUESTION: &str = "What is the state of order 4711, and when will it be here?";
        let (address, streams) = (&self.process.address, self.kind.streams);
        let own = |background| json!({"message": QUESTION, "background": background});
        let response = match self.kind.interface {
            Interface::Own if !self.is_floor && streams => {
                begin_and_follow(&self.client, address, &own(true)).await?
            }
            Interface::Own if !self.is_floor => self.post("/chat", &own(false)).await?,
            Interface::Own | Interface::Chat => {
                let messages = json!([{"role": "user", "content": QUESTION}]);
                let request = json!({"model": "default", "messages": messages, "stream": streams});
                self.post("/v1/chat/completions", &request).await?
            }
        };
        let status = response.status();
        let answer = response.text().await?;
        let (word, times) = SAID;
        let has_called = CALLED.iter().any(|sign| answer.contains(sign));
        let is_right = self.is_floor || has_called == self.kind.with_tool;
        // The server's own events end with a report, which has the answer once more.
        if status.is_success() && is_right && answer.matches(word).count() >= times {
            return Ok(());
        }
        let shown: String = answer.chars().take(SHOWN).collect();
        let address = &self.process.address;
        Err(format!(
            "{}: odd answer from {address}, {status}: {shown}",
            self.kind.name
        )
        .into())
    }

    async fn post(&self, path: &str, request: &Value) -> Outcome<reqwest::Response> {
        let post = self.client.post(format!("{}{path}", self.process.address));
        let post = post.header("content-type", "application/json");
        Ok(post.body(request.to_string()).send().await?)
    }

    /// Requests in a second, and the median and the 99th percentile of their times.
    async fn round(&self, at_once: usize) -> Outcome<[f64; 3]> {
        let count = self.kind.interface.requests();
        let begun = Instant::now();
        let requests = stream::iter(0..count).map(|_| async {
            let begun = Instant::now();
            self.ask().await?;
            Outcome::Ok(begun.elapsed().as_secs_f64() * 1e6)
        });
        let mut times: Vec<f64> = requests.buffer_unordered(at_once).try_collect().await?;
        let passed = begun.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        let rate = f64::from(count) / passed;
        Ok([rate, quantile(&times, 50), quantile(&times, 99)])
    }

    /// What it used since then, for each request.
    fn used(&self, before: Use, rounds: u32) -> Outcome<String> {
        let after = self.process.used()?;
        let requests = f64::from(rounds * self.kind.interface.requests());
        let cpu = (after.cpu - before.cpu) / requests;
        Ok(format!(
            "{cpu:.1} {:.0} {:.0} {:.0}",
            before.resident, after.peak, after.resident
        ))
    }
}

async fn row(floor: &Side, server: &Side, at_once: usize, rounds: u32) -> Outcome<()> {
    let name = format!("{} {at_once}", server.kind.name);
    // One before, so that what is made once is there.
    floor.ask().await?;
    server.ask().await?;
    let (of_floor, of_server) = (floor.process.used()?, server.process.used()?);
    for round in 0..rounds {
        let (floors, servers);
        // Neither always comes first.
        if round % 2 == 0 {
            floors = floor.round(at_once).await?;
            servers = server.round(at_once).await?;
        } else {
            servers = server.round(at_once).await?;
            floors = floor.round(at_once).await?;
        }
        let [rate, p50, p99] = floors;
        let [our_rate, our_p50, our_p99] = servers;
        println!(
            "{name} round {rate:.1} {p50:.0} {p99:.0} {our_rate:.1} {our_p50:.0} {our_p99:.0}"
        );
    }
    let (floors, servers) = (
        floor.used(of_floor, rounds)?,
        server.used(of_server, rounds)?,
    );
    println!("{name} used {floors} {servers}");
    Ok(())
}

pub(super) async fn measure(program: &str, turn: &str, rounds: u32) -> Outcome<()> {
    let [of_all_else, of_the_measured] = cpus()?;
    stay_on(of_all_else)?;
    // Servers are started in folders of their own.
    let path = fs::canonicalize(turn)?;
    let turn = path.to_str().ok_or("the path of `turn` is no text")?;
    let of_model = tempfile::tempdir()?;
    let model = Process::example(&path, of_model.path(), &["serve-model"]).await?;
    for kind in KINDS {
        for at_once in AT_ONCE {
            let folder = tempfile::tempdir()?;
            let configuration = json!({
                "model": "bench/m",
                "providers": {"bench": {"base_url": format!("{}/v1", model.address)}},
                "mcp_servers": {"orders": {"command": turn, "args": ["serve-tools"]}},
            });
            let without: &[&str] = if kind.with_tool { &[] } else { &["--no-tools"] };
            stay_on(of_the_measured)?;
            let server = Process::switchboard(program, folder.path(), &configuration, without);
            let server = Side::new(server.await?, kind, false)?;
            let mut arguments = vec!["serve-floor", &model.address];
            arguments.extend(kind.with_tool.then_some(turn));
            let of_floor = tempfile::tempdir()?;
            let own = env::current_exe()?;
            let floor = Process::example(&own, of_floor.path(), &arguments).await?;
            let floor = Side::new(floor, kind, true)?;
            stay_on(of_all_else)?;
            row(&floor, &server, at_once, rounds).await?;
            server.process.end().await?;
            floor.process.end().await?;
        }
    }
    Ok(())
}
