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

/// The kinds of measurement: name, whether answers are streamed, and turns at the same time.
const KINDS: [(&str, bool, usize); 4] = [
    ("stream-1", true, 1),
    ("stream-64", true, 64),
    ("whole-1", false, 1),
    ("whole-64", false, 64),
];

/// Returns the model and the tools as an agent, and the host of the tools.
async fn start_agent(port: u16) -> Outcome<(Agent, Arc<McpHost>)> {
    let program = env::current_exe()?;
    let server = ServerConfig::stdio("orders", program.to_string_lossy(), ["serve-tools"]);
    let host = Arc::new(McpHost::start(vec![server], HostOptions::default())?);
    host.ready().await?;
    let config = OpenAiConfig {
        base_url: format!("http://127.0.0.1:{port}/v1"),
        ..OpenAiConfig::new("sk-bench")
    };
    let model = Arc::new(OpenAiChatModel::new(config, "m")?);
    Ok((Agent::new(model).with_tools(host.clone()), host))
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

struct Bench {
    floor: Floor,
    streamed: Agent,
    whole: Agent,
    answer: String,
}

impl Bench {
    /// Returns CPU time and elapsed time of one turn, in microseconds.
    async fn batch(&self, streamed: bool, concurrency: usize, is_floor: bool) -> Outcome<[f64; 2]> {
        let (cpu_before, start) = (cpu_nanoseconds(), Instant::now());
        let agent = if streamed {
            &self.streamed
        } else {
            &self.whole
        };
        let turns = stream::iter(0..BATCH).map(|_| async {
            let text = if is_floor {
                self.floor.turn(streamed).await?
            } else {
                final_text(agent.ask(script::QUESTION)).await
            };
            if text == self.answer {
                Ok(())
            } else {
                Err(format!("unexpected answer: {text}").into())
            }
        });
        let done: Outcome<()> = turns.buffer_unordered(concurrency).try_collect().await;
        done?;
        let (cpu, elapsed) = (cpu_nanoseconds() - cpu_before, start.elapsed());
        #[allow(clippy::cast_precision_loss, reason = "a few hundred turns")]
        let turns = BATCH as f64;
        Ok([cpu / 1e3 / turns, elapsed.as_secs_f64() * 1e6 / turns])
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
    let (streamed, host) = start_agent(port).await?;
    let options = RunOptions {
        delivery: Delivery::Whole,
        ..RunOptions::default()
    };
    let bench = Bench {
        floor: Floor::new(port).await?,
        whole: streamed.clone().with_options(options),
        streamed,
        answer: script::words().concat(),
    };
    pin_to(own_cpu)?;
    // Every round measures all kinds, so that other load on the machine affects each of them. The
    // first one is the warm-up, which is not counted.
    for round in 0..=batches {
        for (name, streamed, concurrency) in KINDS {
            let mut times = [[0.0; 2]; 2];
            for side in [round % 2, (round + 1) % 2] {
                let is_floor = side == 0;
                let measured = bench.batch(streamed, concurrency, is_floor).await?;
                times[usize::from(!is_floor)] = measured;
            }
            let [floor, ours] = times;
            if round > 0 {
                println!("{name} {} {} {} {}", floor[0], ours[0], floor[1], ours[1]);
            }
        }
    }
    host.close().await;
    Ok(())
}
