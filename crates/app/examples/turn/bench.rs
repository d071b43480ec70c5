//! Runs turns with the baseline and with Switchboard, and prints the measurements.

use std::{env, process::Stdio, sync::Arc};

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
    baseline::BaselineAgent,
    cpu::{choose_cpus, pin_thread_to_cpu},
    scripted_conversation,
};

/// Number of turns in one batch. A turn is one question with its answer. The CPU time is measured
/// for a whole batch.
const BATCH: usize = 256;

/// Kinds of measurement. Each entry contains its name, whether answers are streamed, and the number
/// of concurrent turns.
const KINDS: [(&str, bool, usize); 4] = [
    ("stream-1", true, 1),
    ("stream-64", true, 64),
    ("whole-1", false, 1),
    ("whole-64", false, 64),
];

/// Starts a Switchboard agent with the model and the tools of the benchmark. Returns the agent and
/// its tool host, which the caller closes.
async fn start_agent(port: u16) -> Outcome<(Agent, Arc<McpHost>)> {
    let program = env::current_exe()?;
    let server = ServerConfig::stdio("orders", program.to_string_lossy(), ["serve-tools"]);
    let host = Arc::new(McpHost::start(vec![server], HostOptions::default())?);
    host.wait_until_ready().await?;
    let config = OpenAiConfig {
        base_url: format!("http://127.0.0.1:{port}/v1"),
        ..OpenAiConfig::new("sk-bench")
    };
    let model = Arc::new(OpenAiChatModel::new(config, "m")?);
    Ok((Agent::new(model).with_tools(host.clone()), host))
}

/// Returns the text of the last model call of a run, which is the final answer.
async fn collect_final_text(mut run: RunStream) -> String {
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

struct TurnBenchmark {
    baseline: BaselineAgent,
    streamed: Agent,
    whole: Agent,
    answer: String,
}

impl TurnBenchmark {
    /// Runs one batch of turns, with the baseline or with Switchboard. Returns the CPU time of this
    /// process per turn in microseconds, or an error if an answer is wrong.
    async fn measure_turn_batch(
        &self,
        streamed: bool,
        concurrency: usize,
        is_baseline: bool,
    ) -> Outcome<f64> {
        let cpu_before = read_cpu_nanoseconds();
        let agent = if streamed {
            &self.streamed
        } else {
            &self.whole
        };
        let turns = stream::iter(0..BATCH).map(|_| async {
            let text = if is_baseline {
                self.baseline.run_turn(streamed).await?
            } else {
                collect_final_text(agent.ask(scripted_conversation::QUESTION)).await
            };
            if text == self.answer {
                Ok(())
            } else {
                Err(format!("unexpected answer: {text}").into())
            }
        });
        let done: Outcome<()> = turns.buffer_unordered(concurrency).try_collect().await;
        done?;
        let cpu = read_cpu_nanoseconds() - cpu_before;
        #[allow(clippy::cast_precision_loss, reason = "a few hundred turns")]
        let turns = BATCH as f64;
        Ok(cpu / 1e3 / turns)
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a float holds the nanoseconds of months"
)]
fn read_cpu_nanoseconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Starts the model server as a child process and returns it with its port.
async fn start_model_server() -> Outcome<(Child, u16)> {
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

pub(crate) async fn measure_turns(batches: u32) -> Outcome<()> {
    let [server_cpu, own_cpu] = choose_cpus()?;
    pin_thread_to_cpu(server_cpu)?;
    let (_server, port) = start_model_server().await?;
    let (streamed, host) = start_agent(port).await?;
    let options = RunOptions {
        delivery: Delivery::Whole,
        ..RunOptions::default()
    };
    let bench = TurnBenchmark {
        baseline: BaselineAgent::new(port).await?,
        whole: streamed.clone().with_options(options),
        streamed,
        answer: scripted_conversation::answer_words().concat(),
    };
    pin_thread_to_cpu(own_cpu)?;
    // Each round runs every kind of measurement, so that other load on the machine affects all
    // kinds equally. Round 0 is a warm-up, and its results are not printed.
    for round in 0..=batches {
        for (name, streamed, concurrency) in KINDS {
            let mut times = [0.0; 2];
            for side in [round % 2, (round + 1) % 2] {
                let is_baseline = side == 0;
                let measured = bench
                    .measure_turn_batch(streamed, concurrency, is_baseline)
                    .await?;
                times[usize::from(!is_baseline)] = measured;
            }
            let [baseline, ours] = times;
            if round > 0 {
                println!("{name} {baseline} {ours}");
            }
        }
    }
    host.close().await;
    Ok(())
}
