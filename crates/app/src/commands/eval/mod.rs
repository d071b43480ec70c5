//! Command `eval`: evaluates how well models use tools.

mod args;
mod results;

use std::{collections::HashMap, fs, num::NonZeroUsize, path::Path, sync::Arc};

use anyhow::anyhow;
use jiff::Timestamp;
use switchboard_domain::ModelId;
use switchboard_evals::{
    report::{Report, SuiteRuns},
    suite::Suite,
};
use switchboard_orchestration::recipe::Recipe;

use crate::{
    config::{environment::Environment, remove_os_error_code},
    eval::{
        evaluator::{EvalBackgroundTasks, Evaluator},
        progress::Progress,
        suite_origin::SuiteOrigin,
        suite_servers::{StartedServers, SuiteServerSettings},
    },
    observe::{AuditLog, build_redactor},
    run_session::{
        agent,
        context::{self, Context, Process, context_values},
        failure::{Code, Failure},
        interrupts::Interrupts,
        recording::{RecordingMode, program_name_and_version},
        servers::Servers,
    },
    storage::approval_decisions::SavedDecisions,
    terminal::{self, Screen},
};
pub(crate) use args::EvalArgs;

pub(crate) async fn execute(args: EvalArgs, process: Process<'_>) -> Result<Code, Failure> {
    if args.list {
        return results::list_suites(args.results.output);
    }
    let earlier = args.compare.as_deref();
    let earlier = earlier
        .map(|file| read_report(file, &process.environment))
        .transpose()?;
    if let Some(file) = &args.report {
        let mut report = read_report(file, &process.environment)?;
        args.thresholds.apply_thresholds(&mut report.thresholds);
        return args.print_report(&report, earlier.as_ref(), &process.environment);
    }
    let mut context =
        Context::load_context_for_recording(&args.global, &args.recording, process.environment)?;
    let (suite, origin) = args.read_suite(&context)?;
    let blueprint = SuiteServerSettings::from_suite(&suite, origin);
    // The secrets of the suite's servers are collected first, because the audit and the recording
    // must redact them from their first line on.
    let given = blueprint.server_secrets(&context);
    context.config.filled.extend(given);
    let replay = args
        .recording
        .open_replay(&context.config, &context.environment)?;
    let (models, asked) = args.choose_models(&suite, &context, &replay).await?;
    let recipe = args.run.recipe.as_deref();
    let recipes = read_recipes(&suite, recipe, &blueprint.origin, &context)?;
    let has_no_servers = replay.is_replay() || suite.no_tools;
    let injected = if has_no_servers {
        context_values::configured_context_values(&context.config)
    } else {
        blueprint.check_servers(&suite, &context)?;
        blueprint.context_injection(&context)?
    };
    let audit = AuditLog::open_audit(&context.config, &context.environment, None)
        .map_err(Failure::usage_error)?;
    let decisions =
        SavedDecisions::load_decisions(&context.environment).map_err(Failure::usage_error)?;
    let recording = args
        .recording
        .open_recording(&context.config, &context.environment)?;
    let recording = recording.unwrap_or(replay);
    // The output files first get an empty report. If the evaluation then fails, they do not contain
    // the results of an earlier evaluation.
    let no_runs = empty_suite_runs(suite.count_planned_runs(models.len()));
    let nothing = build_report(&suite, &recording, no_runs);
    args.write_report_files(&nothing, earlier.as_ref(), &context.environment)?;
    let uses_shared = |suite: &Suite| {
        let mut scenarios = suite.scenarios.iter();
        scenarios.any(|it| it.tools.is_empty() && !it.fresh_servers)
    };
    let shared = if has_no_servers || !uses_shared(&suite) {
        StartedServers::start_without_servers()?
    } else {
        blueprint.start_servers(&context)?
    };
    let evaluator = Evaluator {
        args: args.run.build_agent_args(),
        models: asked,
        recipes,
        recording: recording.clone(),
        nothing: Arc::new(context::start_servers(Servers::default())?),
        redactor: build_redactor(&context.config, &context.environment),
        context: &context,
        shared: Arc::new(shared),
        blueprint,
        injected,
        decisions,
        audit,
        background: EvalBackgroundTasks::default(),
    };
    let result = evaluate_suite(&args, &suite, &models, &evaluator, process.interrupts).await;
    evaluator.close_servers(process.interrupts).await;
    recording.finish_recording(result.and_then(|report| {
        let code = args.print_report(&report, earlier.as_ref(), &context.environment)?;
        if report.is_unfinished() {
            return Ok(Code::Interrupted);
        }
        check_replay_complete(&recording).map(|()| code)
    }))
}

/// Waits until the MCP servers have started, and then runs all scenarios of the suite. If the user
/// interrupts the wait, returns a report without runs.
async fn evaluate_suite(
    args: &EvalArgs,
    suite: &Suite,
    models: &[ModelId],
    evaluator: &Evaluator<'_>,
    interrupts: &Interrupts,
) -> Result<Report, Failure> {
    let screen = Screen::new(false);
    if !args.results.quiet {
        screen.show_progress("starting MCP servers");
    }
    let host = &evaluator.shared.host;
    let ready = tokio::select! {
        () = interrupts.wait_for_first_interruption() => None,
        ready = host.wait_until_ready() => Some(ready),
    };
    screen.remove_spinner();
    let planned = suite.count_planned_runs(models.len());
    let Some(ready) = ready else {
        let no_runs = empty_suite_runs(planned);
        return Ok(build_report(suite, &evaluator.recording, no_runs));
    };
    ready?;
    for status in host.server_statuses() {
        if let Some(why) = evaluator.shared.unavailable_reason(&status.name) {
            terminal::print_warning(&why);
        }
    }
    let mut progress = Progress::new(planned, args.results.quiet);
    let done = |run: &_| progress.show_run_result(run);
    let at_once = args.run.at_once;
    let at_once = at_once.map_or_else(default_concurrency, NonZeroUsize::get);
    let stop = interrupts.wait_for_first_interruption();
    let ran = suite.run_scenarios(evaluator, models, at_once, stop, done);
    let ran = ran.await;
    Ok(build_report(suite, &evaluator.recording, ran))
}

fn build_report(suite: &Suite, recording: &RecordingMode, runs: SuiteRuns) -> Report {
    let created_at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let program = if recording.is_replay() {
        format!("{}, from a recording", program_name_and_version())
    } else {
        program_name_and_version()
    };
    Report::new(suite, program, created_at, runs)
}

/// Returns the results of an evaluation that has not made any of its `planned` runs.
fn empty_suite_runs(planned: usize) -> SuiteRuns {
    SuiteRuns {
        runs: Vec::new(),
        not_run: planned as u64,
    }
}

/// Returns the default number of concurrent conversations: the number of cores, at most 8, to stay
/// below rate limits of providers.
fn default_concurrency() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().min(8))
}

/// Returns an error if a replay had no recorded response for a request of the evaluation.
fn check_replay_complete(recording: &RecordingMode) -> Result<(), Failure> {
    let RecordingMode::Replay(player) = recording else {
        return Ok(());
    };
    let missed = player.missed_requests();
    let Some(first) = missed.first() else {
        return Ok(());
    };
    let more = match missed.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let error = anyhow!("the recording does not match the evaluation: {first}{more}");
    Err(Failure::usage_error(error))
}

fn read_report(file: &Path, environment: &Environment) -> Result<Report, Failure> {
    let path = environment.working_dir.join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| anyhow!("cannot read the report: {}", remove_os_error_code(error)));
    let read = text.and_then(|text| Ok(Report::parse_report(&text)?));
    read.map_err(|error| Failure::usage_error(error).add_context(file.display().to_string()))
}

/// Reads the recipes that the suite and its scenarios name. Returns them by name.
fn read_recipes(
    suite: &Suite,
    named: Option<&str>,
    origin: &SuiteOrigin,
    context: &Context,
) -> Result<HashMap<String, Arc<Recipe>>, Failure> {
    let mut recipes = HashMap::new();
    let of_suite = suite.recipe.iter();
    let of_suite = of_suite.map(|name| (name, named.is_none().then(|| "recipe".to_owned())));
    let of_scenarios = suite.scenarios.iter().filter_map(|scenario| {
        let place = origin.scenario_path(&scenario.name, "recipe");
        Some((scenario.recipe.as_ref()?, Some(place)))
    });
    for (name, place) in of_suite.chain(of_scenarios) {
        if !recipes.contains_key(name) {
            let recipe = agent::load_recipe(name, context).map_err(|failure| match place {
                Some(place) => Failure {
                    error: origin.field_error(&place, format!("{:#}", failure.error)),
                    ..failure
                },
                None => failure,
            })?;
            recipes.insert(name.clone(), recipe);
        }
    }
    Ok(recipes)
}
