//! The command line of `eval`, and what it makes of a suite.

use std::{collections::HashMap, num::NonZeroUsize, path::PathBuf, sync::Arc};

use anyhow::anyhow;
use clap::Args;
use switchboard_domain::{ChatModel, ModelId};
use switchboard_evals::suite::{Suite, Thresholds};
use switchboard_orchestration::{strategy::Strategy, tools::pattern::Pattern};

use crate::{
    cli::{
        Approve, Failure, Global, ListOutput,
        agent::{AgentArgs, ApproveArgs},
        ask::say_choice,
        context::Context,
    },
    eval::{
        origin::Origin,
        suites::{self, Found},
    },
    tape::{Tape, TapeArgs},
};

/// Runs scenarios and judges what models do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct EvalArgs {
    /// The suite: a file (YAML, JSON), the name of one that ships, or - for standard input
    #[arg(
        value_name = "FILE|NAME",
        required_unless_present_any = ["list", "report", "bfcl"],
        conflicts_with_all = ["list", "report", "bfcl"]
    )]
    pub(super) suite: Option<String>,
    /// List the suites that ship
    #[arg(long, conflicts_with_all = ["report", "bfcl"])]
    pub(super) list: bool,
    /// Show this report again instead of running something
    #[arg(
        long,
        value_name = "REPORT",
        conflicts_with_all = ["bfcl", "record", "replay", "model", "scenario", "kind", "repetitions"]
    )]
    pub(super) report: Option<PathBuf>,
    /// Compare with this earlier report: what got better, what got worse
    #[arg(long, value_name = "REPORT")]
    pub(super) compare: Option<PathBuf>,
    /// End with 1 if something is worse than in the earlier report
    #[arg(long, requires = "compare")]
    pub(super) fail_if_worse: bool,
    #[command(flatten)]
    pub(super) global: Global,
    #[command(flatten)]
    pub(super) run: RunArgs,
    #[command(flatten)]
    pub(super) bfcl: BfclArgs,
    #[command(flatten)]
    pub(super) thresholds: ThresholdArgs,
    #[command(flatten)]
    pub(super) tape: TapeArgs,
    #[command(flatten)]
    pub(super) results: ResultArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is run")]
pub(super) struct RunArgs {
    /// A model to measure (repeatable); else those of the suite, else the one that `ask` would ask
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(super) model: Vec<String>,
    /// Only scenarios of this name (repeatable): the whole name with `*` and `?`, or else a part of it
    #[arg(long, value_name = "PATTERN")]
    pub(super) scenario: Vec<String>,
    /// Only scenarios of this kind (repeatable), in the same way
    #[arg(long, value_name = "PATTERN")]
    pub(super) kind: Vec<String>,
    /// Run each scenario so often with each model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repetitions: Option<u32>,
    /// Have this many conversations at the same time [default: as many as the machine has cores, 8 at most]
    #[arg(long, value_name = "N")]
    pub(super) at_once: Option<NonZeroUsize>,
    /// The recipe of scenarios that name none, instead of the suite's
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) recipe: Option<String>,
    /// How answers come about: loop, or gather-format
    #[arg(long, env = "SWITCHBOARD_STRATEGY")]
    pub(super) strategy: Option<Strategy>,
    /// Which tool calls may run: all; or, since nobody is asked, with `ask` as with `none` only those of tools that
    /// say they are read-only
    #[arg(long, value_name = "all|ask|none", env = "SWITCHBOARD_APPROVE", value_parser = approve)]
    pub(super) approve: Option<Approve>,
    /// Ask the model this many times at most for each answer
    #[arg(
        long,
        value_name = "N",
        env = "SWITCHBOARD_MAX_STEPS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) max_steps: Option<u32>,
    /// Have each answer as a whole, instead of piece by piece
    #[arg(long)]
    pub(super) no_stream: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Berkeley Function Calling Leaderboard")]
pub(super) struct BfclArgs {
    /// Run the entries of this file of the benchmark instead of a suite (repeatable)
    #[arg(long, value_name = "QUESTIONS")]
    pub(super) bfcl: Vec<PathBuf>,
    /// The answers to them, in the same order [default: `possible_answer/` beside the questions]
    #[arg(long, value_name = "ANSWERS", requires = "bfcl")]
    pub(super) answers: Vec<PathBuf>,
    /// Only so many entries of all
    #[arg(long, value_name = "N", requires = "bfcl")]
    pub(super) limit: Option<NonZeroUsize>,
}

/// What is to be reached, instead of what the suite says.
#[derive(Debug, Args)]
#[command(next_help_heading = "What must be reached, each as 0.9 or 90%")]
pub(super) struct ThresholdArgs {
    /// The least share of runs that do all that is expected
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) min_passed: Option<f64>,
    /// The least share of calls that are right
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) min_accuracy: Option<f64>,
    /// The greatest share of calls that are made up
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) max_hallucinated: Option<f64>,
    /// The greatest share of calls that are not needed
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) max_unnecessary: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What comes out")]
pub(super) struct ResultArgs {
    /// Write the report into this file
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write a page with charts and every transcript into this file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// The form of the result on standard output
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: ListOutput,
    /// Say nothing while it runs
    #[arg(short, long)]
    pub(super) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  switchboard eval --list
  switchboard eval ten-scenarios --model offline/planner --html report.html
  switchboard eval mine.yaml -m anthropic/claude-sonnet-5-5 -m openai/gpt-6.1-sol --repetitions 3
  switchboard eval mine.yaml --record mine.recording.jsonl --json before.json
  switchboard eval mine.yaml --replay mine.recording.jsonl --min-passed 90%
  switchboard eval mine.yaml --json now.json --compare before.json --fail-if-worse
  switchboard eval --report now.json --compare before.json --html changes.html

Exit codes: 0 all that must be reached was, 1 something was missed or could not be run,
2 wrong usage or configuration, 130 interrupted. docs/evaluation.md describes suites.";

fn share(text: &str) -> Result<f64, String> {
    let number = text.trim();
    let read = match number.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|it: f64| it / 100.0),
        None => number.parse(),
    };
    match read {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it must be a share, such as 0.9 or 90%".to_owned()),
    }
}

fn approve(text: &str) -> Result<Approve, String> {
    match text {
        "all" => Ok(Approve::All),
        "ask" => Ok(Approve::Ask),
        "none" => Ok(Approve::None),
        "later" => {
            Err("nobody comes back to a run of an evaluation: say all, ask or none".to_owned())
        }
        _ => Err("it must be all, ask or none".to_owned()),
    }
}

impl RunArgs {
    /// What holds for every run.
    pub(super) fn agent(&self) -> AgentArgs {
        AgentArgs {
            strategy: self.strategy.clone(),
            approve: ApproveArgs::in_person(self.approve),
            max_steps: self.max_steps,
            no_stream: self.no_stream,
            ..AgentArgs::default()
        }
    }
}

impl ThresholdArgs {
    pub(super) fn apply(&self, to: &mut Thresholds) {
        to.passed = self.min_passed.or(to.passed);
        to.accuracy = self.min_accuracy.or(to.accuracy);
        to.hallucinated = self.max_hallucinated.or(to.hallucinated);
        to.unnecessary = self.max_unnecessary.or(to.unnecessary);
    }
}

impl EvalArgs {
    /// The suite as it is to be run.
    pub(super) fn suite(&self, context: &Context) -> Result<(Suite, Origin), Failure> {
        let environment = &context.environment;
        let read = match (&self.suite, self.bfcl.bfcl.split_first()) {
            (Some(named), _) => suites::find(named, environment),
            (None, Some((first, more))) => {
                suites::find_bfcl((first, more), &self.bfcl.answers, environment)
            }
            // The command line asks for one of both.
            (None, None) => suites::find("-", environment),
        };
        let Found { mut suite, origin } = read.map_err(Failure::usage)?;
        self.narrow(&mut suite)?;
        if let Some(limit) = self.bfcl.limit {
            suite.scenarios.truncate(limit.get());
        }
        if let Some(repetitions) = self.run.repetitions {
            suite.repetitions = repetitions;
        }
        if let Some(recipe) = &self.run.recipe {
            suite.recipe = Some(recipe.clone());
        }
        self.thresholds.apply(&mut suite.thresholds);
        Ok((suite, origin))
    }

    /// Leaves the scenarios that are wanted.
    fn narrow(&self, suite: &mut Suite) -> Result<(), Failure> {
        let (names, kinds) = (&self.run.scenario, &self.run.kind);
        let all = std::mem::take(&mut suite.scenarios);
        let (left, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|it| is_wanted(names, &it.name) && is_wanted(kinds, &it.kind));
        if left.is_empty() {
            let mut there: Vec<String> = others
                .iter()
                .map(|it| match it.kind.as_str() {
                    "" => it.name.clone(),
                    kind => format!("{} ({kind})", it.name),
                })
                .collect();
            let more = there.len().saturating_sub(20);
            there.truncate(20);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            return Err(Failure::usage(anyhow!(
                "no scenario is of this name and kind; there are: {}{more}",
                there.join(", ")
            )));
        }
        suite.scenarios = left;
        Ok(())
    }

    /// The models that are measured, and what asks them.
    pub(super) async fn models(
        &self,
        suite: &Suite,
        context: &Context,
        tape: &Tape,
    ) -> Result<(Vec<ModelId>, HashMap<ModelId, Arc<dyn ChatModel>>), Failure> {
        let mut names: Vec<Option<String>> = self.run.model.iter().cloned().map(Some).collect();
        if names.is_empty() {
            names.extend(suite.models.iter().map(|it| Some(it.to_string())));
        }
        if names.is_empty() {
            match tape {
                Tape::Replay(player) => {
                    names.extend(player.models().iter().map(|it| Some(it.to_string())));
                }
                Tape::Off | Tape::Recording(_) => {}
            }
        }
        if names.is_empty() {
            names.push(
                context
                    .environment
                    .get("SWITCHBOARD_MODEL")
                    .map(str::to_owned),
            );
        }
        let (mut ids, mut models) = (Vec::new(), HashMap::new());
        for name in names {
            let chosen = match tape.choose(name.as_deref(), None) {
                Some(chosen) => chosen?,
                None => context.choose_model(name.as_deref()).await?,
            };
            say_choice(&chosen, context);
            let id = chosen.model.id().clone();
            if !ids.contains(&id) {
                ids.push(id.clone());
                models.insert(id, chosen.model);
            }
        }
        Ok((ids, models))
    }
}

/// Whether one of these patterns is of a text; if there are none, every text is wanted.
fn is_wanted(patterns: &[String], text: &str) -> bool {
    let text = text.to_lowercase();
    patterns.is_empty()
        || patterns.iter().any(|pattern| {
            let pattern = pattern.to_lowercase();
            text.contains(&pattern) || Pattern::new(pattern).matches(&text)
        })
}
