//! Runs both sides and prints the measurements.

use std::{env, process::Stdio, sync::Arc, time::Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use rustix::time::{ClockId, clock_gettime};
use switchboard_domain::Delivery;
use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
use switchboard_orchestration::{Agent, RunEventKind, RunOptions, RunStream};
use switchboard_providers_openai::{OpenAiChatModel, OpenAiConfig};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::{
    Outcome,
    cpu::{cpus, pin_to},
    floor::Floor,
    script,
};

/// Turns in one batch.
const BATCH: usize = 256;

/// One kind of measurement.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    streamed: bool,
    concurrency: usize,
}

const fn kind(name: &'static str, streamed: bool, concurrency: usize) -> Kind {
    Kind {
        name,
        streamed,
        concurrency,
    }
}

const KINDS: [Kind; 4] = [
    kind("stream-1", true, 1),
    kind("stream-64", true, 64),
    kind("whole-1", false, 1),
    kind("whole-64", false, 64),
];

struct Ours {
    host: Arc<McpHost>,
    streamed: Agent,
    whole: Agent,
}

impl Ours {
    async fn new(port: u16) -> Outcome<Self> {
        let program = env::current_exe()?;
        let server = ServerConfig::stdio("orders", program.to_string_lossy(), ["serve-tools"]);
        let host = Arc::new(McpHost::start(vec![server], HostOptions::default())?);
        host.ready().await?;
        let config = OpenAiConfig {
            base_url: format!("http://127.0.0.1:{port}/v1"),
            ..OpenAiConfig::new("sk-bench")
        };
        let model = Arc::new(OpenAiChatModel::new(config, "m")?);
        let streamed = Agent::new(model).with_tools(host.clone());
        let options = RunOptions {
            delivery: Delivery::Whole,
            ..RunOptions::default()
        };
        Ok(Self {
            whole: streamed.clone().with_options(options),
            streamed,
            host,
        })
    }
}

/// Returns the text after the last model call.
async fn final_text(mut run: RunStream) -> String {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Floor,
    Ours,
}

struct Bench {
    floor: Floor,
    ours: Ours,
    answer: String,
}

impl Bench {
    /// Returns CPU time and elapsed time of one turn, in microseconds.
    async fn batch(&self, kind: Kind, side: Side) -> Outcome<(f64, f64)> {
        let (cpu_before, start) = (cpu_nanoseconds(), Instant::now());
        let turns = stream::iter(0..BATCH).map(|_| async {
            let text = match side {
                Side::Floor => self.floor.turn(kind.streamed).await?,
                Side::Ours => {
                    let Ours {
                        streamed, whole, ..
                    } = &self.ours;
                    let agent = if kind.streamed { streamed } else { whole };
                    final_text(agent.ask(script::QUESTION)).await
                }
            };
            if text == self.answer {
                Ok(())
            } else {
                Err(format!("unexpected answer: {text}").into())
            }
        });
        let done: Outcome<()> = turns.buffer_unordered(kind.concurrency).try_collect().await;
        done?;
        let (cpu, elapsed) = (cpu_nanoseconds() - cpu_before, start.elapsed());
        #[allow(clippy::cast_precision_loss, reason = "a few hundred turns")]
        let turns = BATCH as f64;
        Ok((cpu / 1e3 / turns, elapsed.as_secs_f64() * 1e6 / turns))
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a float holds the nanoseconds of months"
)]
fn cpu_nanoseconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Starts the model server and returns it with its port.
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

pub(crate) async fn measure(batches: u32) -> Outcome<()> {
    let [server_cpu, own_cpu] = cpus()?;
    pin_to(server_cpu)?;
    let (_server, port) = model_server().await?;
    let bench = Bench {
        floor: Floor::new(port).await?,
        ours: Ours::new(port).await?,
        answer: script::words().concat(),
    };
    pin_to(own_cpu)?;
    for kind in KINDS {
        // Warm-up, not counted.
        bench.batch(kind, Side::Floor).await?;
        bench.batch(kind, Side::Ours).await?;
    }
    // Every round measures all kinds, so that other load on the machine affects each of them.
    for round in 0..batches {
        for kind in KINDS {
            let (floor, ours);
            if round % 2 == 0 {
                floor = bench.batch(kind, Side::Floor).await?;
                ours = bench.batch(kind, Side::Ours).await?;
            } else {
                ours = bench.batch(kind, Side::Ours).await?;
                floor = bench.batch(kind, Side::Floor).await?;
            }
            let name = kind.name;
            println!("{name} {} {} {} {}", floor.0, ours.0, floor.1, ours.1);
        }
    }
    bench.ours.host.close().await;
    Ok(())
}
