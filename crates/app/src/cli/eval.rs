//! `eval`: how well models use tools.

mod args;
mod results;

use std::{collections::HashMap, fs, num::NonZeroUsize, path::Path, sync::Arc};

use anyhow::anyhow;
use jiff::Timestamp;
use switchboard_domain::ModelId;
use switchboard_evals::{report::Report, run::Ran, suite::Suite};
use switchboard_orchestration::recipe::Recipe;

use super::{
    Code, Failure, agent,
    context::{self, Context},
    interrupt::Interrupts,
};
use crate::{
    decisions::KeptDecisions,
    environment::Environment,
    eval::{
        engine::{Evaluator, Going},
        origin::Origin,
        progress::Progress,
        servers::{Blueprint, Started},
        suites::plain,
    },
    injection,
    observe::AuditLog,
    servers::Servers,
    tape::{Tape, program, scrubber},
    terminal::{self, Screen},
};
pub(super) use args::EvalArgs;

pub(super) async fn run(
    args: EvalArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    if args.list {
        return results::list(args.results.output);
    }
    args.check_files(&environment)?;
    let earlier = args.compare.as_deref();
    let earlier = earlier.map(|file| report(file, &environment)).transpose()?;
    if let Some(file) = &args.report {
        let mut report = report(file, &environment)?;
        args.thresholds.apply(&mut report.thresholds);
        return args.tell(&report, earlier.as_ref(), &environment);
    }
    let mut context = Context::load_for(&args.global, &args.tape, environment)?;
    let (suite, origin) = args.suite(&context)?;
    let blueprint = Blueprint::of(&suite, Arc::new(origin));
    // Before anything is written down: neither audit nor recording nor report shows what the suite gives to servers.
    let given = blueprint.secrets(&context);
    context.config.filled.extend(given);
    let replay = args.tape.replay(&context)?;
    let (models, asked) = args.models(&suite, &context, &replay).await?;
    let recipes = recipes(
        &suite,
        args.run.recipe.as_deref(),
        blueprint.origin(),
        &context,
    )?;
    let injected = if replay.is_replay() {
        injection::configured(&context.config)
    } else {
        blueprint.check(&suite, &context)?;
        blueprint.injection(&context)?
    };
    let audit = AuditLog::open(&context.config, &context.environment).map_err(Failure::usage)?;
    let decisions = KeptDecisions::load(&context.environment).map_err(Failure::usage)?;
    let tape = args.tape.record(&context)?.unwrap_or(replay);
    // However this ends: whoever reads the files finds nothing of an earlier evaluation in them.
    let nothing = report_of(&suite, &tape, none_of(suite.planned(models.len())));
    args.write_files(&nothing, earlier.as_ref(), &context.environment)?;
    let uses_shared = |suite: &Suite| {
        let mut scenarios = suite.scenarios.iter();
        scenarios.any(|it| it.tools.is_empty() && !it.fresh_servers)
    };
    let shared = if tape.is_replay() || !uses_shared(&suite) {
        Started::nothing()?
    } else {
        blueprint.start(&context)?
    };
    let evaluator = Evaluator {
        args: args.run.agent(),
        models: asked,
        recipes,
        tape: tape.clone(),
        nothing: Arc::new(context::start(Servers::none())?),
        scrubber: scrubber(&context),
        context: &context,
        shared,
        blueprint,
        injected,
        decisions,
        audit,
        going: Going::default(),
    };
    let result = evaluate(&args, &suite, &models, &evaluator, interrupts).await;
    evaluator.close(interrupts).await;
    let code = match result {
        Ok(report) => {
            let told = args.tell(&report, earlier.as_ref(), &context.environment);
            if report.is_unfinished() {
                told.map(|_| Code::Interrupted)
            } else {
                told.and_then(|code| fits(&tape, code))
            }
        }
        Err(failure) => Err(failure),
    };
    tape.finish(code)
}

/// Runs the suite once its servers are there.
async fn evaluate(
    args: &EvalArgs,
    suite: &Suite,
    models: &[ModelId],
    evaluator: &Evaluator<'_>,
    interrupts: &Interrupts,
) -> Result<Report, Failure> {
    let screen = Screen::new(false);
    if !args.results.quiet {
        screen.wait_for("starting MCP servers");
    }
    let host = &evaluator.shared.host;
    let ready = tokio::select! {
        () = interrupts.first() => None,
        ready = host.require_ready() => Some(ready),
    };
    screen.hold_still();
    let planned = suite.planned(models.len());
    let Some(ready) = ready else {
        return Ok(report_of(suite, &evaluator.tape, none_of(planned)));
    };
    ready.map_err(Failure::run)?;
    for status in host.servers() {
        if let Some(why) = evaluator.shared.missing(&status.name) {
            terminal::say_warning(&why);
        }
    }
    let mut progress = Progress::new(planned, args.results.quiet);
    let done = |run: &_| progress.tell(run);
    let at_once = args.run.at_once.map_or_else(at_once, NonZeroUsize::get);
    let ran = suite.run(evaluator, models, at_once, interrupts.first(), done);
    let ran = ran.await;
    progress.end();
    Ok(report_of(suite, &evaluator.tape, ran))
}

/// The report of what was run.
fn report_of(suite: &Suite, tape: &Tape, ran: Ran) -> Report {
    let made = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let program = if tape.is_replay() {
        format!("{}, from a recording", program())
    } else {
        program()
    };
    Report::new(suite, program, made, ran)
}

/// Not one of so many runs.
fn none_of(planned: usize) -> Ran {
    Ran {
        runs: Vec::new(),
        not_run: planned as u64,
    }
}

/// As many as there are cores. More than 8 are soon too many for who is asked.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().min(8))
}

/// A recording that lacks what was asked for measures nothing.
fn fits(tape: &Tape, code: Code) -> Result<Code, Failure> {
    let Tape::Replay(player) = tape else {
        return Ok(code);
    };
    match player.missed().as_slice() {
        [] => Ok(code),
        [first, more @ ..] => {
            let more = match more.len() {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            Err(Failure::usage(anyhow!(
                "the recording does not fit what was run: {first}{more}"
            )))
        }
    }
}

fn report(file: &Path, environment: &Environment) -> Result<Report, Failure> {
    let path = environment.working_dir.join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| anyhow!("the report cannot be read: {}", plain(&error)));
    let read = text.and_then(|text| Ok(Report::read(&text)?));
    read.map_err(|error| Failure::usage(error).context(file.display().to_string()))
}

/// The recipes that a suite names, and the one of the command line, which stands in the place of the suite's own.
fn recipes(
    suite: &Suite,
    named: Option<&str>,
    origin: &Origin,
    context: &Context,
) -> Result<HashMap<String, Arc<Recipe>>, Failure> {
    let mut recipes = HashMap::new();
    let of_suite = suite.recipe.iter();
    let of_suite = of_suite.map(|name| (name, named.is_none().then(|| "recipe".to_owned())));
    let of_scenarios = suite.scenarios.iter().filter_map(|scenario| {
        let place = origin.in_scenario(&scenario.name, "recipe");
        Some((scenario.recipe.as_ref()?, Some(place)))
    });
    for (name, place) in of_suite.chain(of_scenarios) {
        if !recipes.contains_key(name) {
            let recipe = agent::recipe(name, context).map_err(|failure| match place {
                Some(place) => Failure {
                    error: origin.error(&place, format!("{:#}", failure.error)),
                    ..failure
                },
                None => failure,
            })?;
            recipes.insert(name.clone(), recipe);
        }
    }
    Ok(recipes)
}
