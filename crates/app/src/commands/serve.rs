//! Command `serve`: runs the HTTP server with the web page.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::anyhow;
use clap::Args;
use futures_util::FutureExt as _;
use switchboard_orchestration::questions::Questions;
use switchboard_server::{Server, ServerError, Shutdown};
use tokio::{
    net::TcpListener,
    time::{Instant, timeout_at},
};

use crate::{
    models::current_model::CurrentModelSampler,
    observe,
    run_session::{
        agent::AgentArgs,
        arguments::GlobalArgs,
        context::{self, Context, Process},
        failure::{Code, Failure},
        interrupts::Interrupts,
        recording::{RecordingArgs, RecordingMode},
        run_resources::RunResources,
        servers::{Servers, status::warn_of_changed_tools},
    },
    serve::{AppEngine, EngineParts},
    storage::sessions::OpenSessionStore,
    terminal,
};

const DEFAULT_BIND: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8484);

/// Command-line arguments of `switchboard serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on; an address other than loopback requires `serve.tokens` in the
    /// configuration. Port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", env = "SWITCHBOARD_BIND")]
    bind: Option<SocketAddr>,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    global: GlobalArgs,
    #[command(flatten)]
    recording: RecordingArgs,
}

pub(crate) async fn execute(args: ServeArgs, process: Process<'_>) -> Result<Code, Failure> {
    let interrupts = process.interrupts;
    let mut context =
        Context::load_context_with_replay(&args.global, &args.recording, process.environment)?;
    let config = &context.config.serve;
    let options = config.server_options();
    let bind = args.bind.or(config.bind).unwrap_or(DEFAULT_BIND);
    Server::check_listen_address(&options, bind).map_err(Failure::usage_error)?;
    // Plans the agent before any MCP server starts, so that configuration errors appear early.
    let plan = args.agent.plan_agent(&context).await?;
    context.add_recipe_servers(plan.recipe.as_deref())?;
    let listener = TcpListener::bind(bind).await.map_err(|error| {
        Failure::runtime_error(anyhow!(
            "cannot listen on {bind}: {error}. Choose another address with --bind"
        ))
    })?;
    let address = listener.local_addr()?;
    // The recording is opened after the checks of the options and the address, because the first
    // recorded response replaces an older recording in the file.
    let recording = args
        .recording
        .open_recording(&context.config, &context.environment)?;
    let recording = recording.unwrap_or_else(|| context.recording.clone());
    let sessions = OpenSessionStore::open_and_prune(&context.config, &context.environment).await?;
    let questions = Questions::default();
    let sampler = CurrentModelSampler::new(Arc::clone(&plan.sampled));
    let elicitor = Arc::new(questions.clone());
    let (no_tools, stored) = (plan.no_tools, Some(&sessions));
    let resources =
        RunResources::start_resources(&context, no_tools, stored, Some(elicitor), sampler)?;
    warn_of_changed_tools(&resources.host);
    let engine = Arc::new(AppEngine::new(EngineParts {
        no_host: Arc::new(context::start_servers(Servers::default())?),
        host: resources.host,
        context,
        recording: recording.clone(),
        args: args.agent,
        questions,
        call_rates: sessions.call_rates(),
        decisions: Arc::new(resources.decisions),
        audit: resources.audit,
    }));
    let shutdown_time = options.shutdown_time();
    let (store, runs) = (sessions.session_store(), sessions.run_store());
    let server = Server::new(Arc::clone(&engine) as Arc<_>, store, runs, options);
    if let RecordingMode::Replay(player) = &recording {
        terminal::print_note(&format!(
            "replaying {} recorded responses of models and tools, each once; no model or server \
             is contacted",
            player.count_unused_responses()
        ));
    }
    // Other programs read the port from this line.
    terminal::print_line(format_args!("listening on http://{address}"));
    let asked_to_stop = Arc::new(OnceLock::new());
    let shutdown = Shutdown {
        first: {
            let (interrupts, asked) = (interrupts.clone(), Arc::clone(&asked_to_stop));
            async move {
                interrupts.wait_for_first_interruption().await;
                asked.get_or_init(Instant::now);
            }
            .boxed()
        },
        second: {
            let interrupts = interrupts.clone();
            async move { interrupts.wait_for_second_interruption().await }.boxed()
        },
    };
    let reports = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            tokio::join!(
                engine.report_servers(),
                engine.warn_about_unknown_names_in_rules()
            );
        })
    };
    let outcome = server.serve(listener, shutdown).await;
    reports.abort();
    let end = *asked_to_stop.get_or_init(Instant::now) + shutdown_time;
    close_server(&engine, &sessions, interrupts, end).await;
    recording.finish_recording(match outcome {
        Ok(()) => Ok(Code::Success),
        Err(error @ ServerError::Unguarded { .. }) => Err(Failure::usage_error(error)),
        Err(error) => Err(Failure::runtime_error(error)),
    })
}

/// Time at shutdown that is reserved for killing MCP servers and dropping open tasks.
const KILL_TIME: Duration = Duration::from_millis(700);

/// Saves the approval decisions and closes the MCP servers, the session store and the audit file.
/// `end` is the time at which the shutdown must be complete. If the MCP servers are not closed at
/// the time `end - KILL_TIME`, kills them. No stored data is lost, because everything that was
/// reported to clients as stored is already in the store.
async fn close_server(
    engine: &Arc<AppEngine>,
    sessions: &OpenSessionStore,
    interrupts: &Interrupts,
    end: Instant,
) {
    let keeping = {
        let decisions = Arc::clone(&engine.parts.decisions);
        tokio::task::spawn_blocking(move || decisions.save_decisions())
    };
    let closing = async {
        let storing = async {
            engine.parts.audit.flush_audit_log().await;
            sessions.close_store().await;
        };
        let (closed, (), ()) = tokio::join!(
            keeping,
            context::close_servers(&engine.parts.host, interrupts),
            storing,
        );
        if let Ok(Err(error)) = closed {
            terminal::print_warning(&format!("failed to save approval decisions: {error}"));
        }
        observe::finish_span_export().await;
    };
    // `limit` may be in the past. `timeout_at` then still polls `closing` once.
    let limit = end.checked_sub(KILL_TIME).unwrap_or(end);
    if timeout_at(limit, closing).await.is_err() {
        terminal::print_warning(
            "the session store or an MCP server did not close within `serve.drain_time` and was \
             stopped; active runs can be resumed",
        );
        engine.parts.host.kill_servers().await;
    }
}
