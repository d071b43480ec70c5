//! Parses the arguments of the command `eval` and applies them to a suite.

use std::{collections::HashMap, num::NonZeroUsize, path::PathBuf, sync::Arc};

use anyhow::anyhow;
use clap::Args;
use switchboard_domain::{ChatModel, ModelId};
use switchboard_evals::suite::{Scenario, Suite, Thresholds};
use switchboard_orchestration::tools::name_pattern::NamePattern;

use crate::{
    eval::{suite_origin::SuiteOrigin, suites},
    run_session::{
        agent::{AgentArgs, AnswerArgs},
        arguments::{Approve, GlobalArgs},
        context::Context,
        failure::Failure,
        recording::{RecordingArgs, RecordingMode},
        terminal_run::print_chosen_model,
    },
    terminal::output::ListFormat,
};

/// Command-line arguments of `switchboard eval`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EvalArgs {
    /// Suite to run: a file (YAML, JSON), the name of a shipped suite, or - for standard input
    #[arg(
        value_name = "FILE|NAME",
        required_unless_present_any = ["list", "report", "bfcl"],
        conflicts_with_all = ["list", "report", "bfcl"]
    )]
    pub(crate) suite: Option<String>,
    /// List the shipped suites
    #[arg(long, conflicts_with_all = ["report", "bfcl"])]
    pub(crate) list: bool,
    /// Print this report again instead of running a suite
    #[arg(
        long,
        value_name = "REPORT",
        conflicts_with_all = [
            "bfcl", "record", "replay", "model", "scenario", "kind", "repetitions"
        ]
    )]
    pub(crate) report: Option<PathBuf>,
    /// Compare with this earlier report
    #[arg(long, value_name = "REPORT")]
    pub(crate) compare: Option<PathBuf>,
    /// Exit with code 1 if a result is worse than in the earlier report
    #[arg(long, requires = "compare")]
    pub(crate) fail_if_worse: bool,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) bfcl: BfclArgs,
    #[command(flatten)]
    pub(crate) thresholds: ThresholdArgs,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    #[command(flatten)]
    pub(crate) results: ReportOutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Runs")]
pub(crate) struct RunArgs {
    /// Model to evaluate (repeatable); default: the models of the suite, or the model of `ask`
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Vec<String>,
    /// Run only scenarios with this name (repeatable): the whole name with `*` and `?`, or a part
    /// of it
    #[arg(long, value_name = "PATTERN")]
    pub(crate) scenario: Vec<String>,
    /// Run only scenarios of this kind (repeatable), with the same patterns
    #[arg(long, value_name = "PATTERN")]
    pub(crate) kind: Vec<String>,
    /// Number of runs for each scenario and model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// Number of concurrent conversations [default: number of cores, at most 8]
    #[arg(long, value_name = "N")]
    pub(crate) at_once: Option<NonZeroUsize>,
    /// Recipe for scenarios without one, instead of the suite's recipe
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) recipe: Option<String>,
    /// Which tool calls are allowed: all; `ask` and `none` allow read-only tools only, because no
    /// person is present
    #[arg(
        long,
        value_name = "all|ask|none",
        env = "SWITCHBOARD_APPROVE",
        value_parser = parse_approval_policy
    )]
    pub(crate) approve: Option<Approve>,
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
    /// Start no MCP servers, offer no tools and skip all expectations about calls
    #[arg(long, conflicts_with_all = ["bfcl", "report"])]
    pub(crate) no_tools: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Berkeley Function Calling Leaderboard")]
pub(crate) struct BfclArgs {
    /// Run the entries of this BFCL file instead of a suite (repeatable)
    #[arg(long, value_name = "QUESTIONS")]
    pub(crate) bfcl: Vec<PathBuf>,
    /// Expected answers for the entries, in the same order [default: `possible_answer/` beside the
    /// questions]
    #[arg(long, value_name = "ANSWERS", requires = "bfcl")]
    pub(crate) answers: Vec<PathBuf>,
    /// Limit the number of entries
    #[arg(long, value_name = "N", requires = "bfcl")]
    pub(crate) limit: Option<NonZeroUsize>,
}

/// Command-line thresholds of `eval`, which replace the thresholds of the suite.
#[derive(Debug, Args)]
#[command(next_help_heading = "Thresholds (as 0.9 or 90%)")]
pub(crate) struct ThresholdArgs {
    /// Minimum share of passed runs
    #[arg(long, value_name = "SHARE", value_parser = parse_fraction)]
    pub(crate) min_passed: Option<f64>,
    /// Minimum share of correct calls
    #[arg(long, value_name = "SHARE", value_parser = parse_fraction)]
    pub(crate) min_accuracy: Option<f64>,
    /// Maximum share of hallucinated calls
    #[arg(long, value_name = "SHARE", value_parser = parse_fraction)]
    pub(crate) max_hallucinated: Option<f64>,
    /// Maximum share of unnecessary calls
    #[arg(long, value_name = "SHARE", value_parser = parse_fraction)]
    pub(crate) max_unnecessary: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportOutputArgs {
    /// Write the report to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page with charts and all transcripts to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ListFormat,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Maximum number of scenario names that an error message lists.
const MAX_NAMES: usize = 20;

const EXAMPLES: &str = "\
Examples:
  switchboard eval --list
  switchboard eval ten-scenarios --model offline/planner --html report.html
  switchboard eval mine.yaml -m anthropic/claude-sonnet-5-5 -m openai/gpt-6.1-sol --repetitions 3
  switchboard eval mine.yaml --record mine.recording.jsonl --json before.json
  switchboard eval mine.yaml --replay mine.recording.jsonl --min-passed 90%
  switchboard eval mine.yaml --no-tools --json before.json
  switchboard eval mine.yaml --json now.json --compare before.json --fail-if-worse
  switchboard eval --report now.json --compare before.json --html changes.html

Exit codes: 0 all thresholds were met, 1 a threshold was missed or a run could not be executed,
2 wrong usage or configuration, 130 interrupted. docs/evaluation.md describes suites.";

fn parse_fraction(text: &str) -> Result<f64, String> {
    let number = text.trim();
    let read = match number.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|it: f64| it / 100.0),
        None => number.parse(),
    };
    match read {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be a number from 0 to 1 or a percentage, such as 0.9 or 90%".to_owned()),
    }
}

fn parse_approval_policy(text: &str) -> Result<Approve, String> {
    match text {
        "all" => Ok(Approve::All),
        "ask" => Ok(Approve::Ask),
        "none" => Ok(Approve::None),
        "later" => Err("an evaluation cannot wait for a decision: use all, ask or none".to_owned()),
        _ => Err("must be all, ask or none".to_owned()),
    }
}

impl RunArgs {
    /// Returns the agent options that all conversations of the evaluation share.
    pub(crate) fn build_agent_args(&self) -> AgentArgs {
        AgentArgs {
            approve: self.approve,
            answers: self.answers.clone(),
            no_tools: self.no_tools,
            ..AgentArgs::default()
        }
    }
}

impl ThresholdArgs {
    pub(crate) fn apply_thresholds(&self, to: &mut Thresholds) {
        to.passed = self.min_passed.or(to.passed);
        to.accuracy = self.min_accuracy.or(to.accuracy);
        to.hallucinated = self.max_hallucinated.or(to.hallucinated);
        to.unnecessary = self.max_unnecessary.or(to.unnecessary);
    }
}

impl EvalArgs {
    /// Reads the suite that the command line names. Then applies options such as `--scenario` and
    /// `--repetitions` to the suite.
    pub(crate) fn read_suite(&self, context: &Context) -> Result<(Suite, SuiteOrigin), Failure> {
        let environment = &context.environment;
        let read = match self.suite.as_deref() {
            None if !self.bfcl.bfcl.is_empty() => {
                suites::read_bfcl_suite(&self.bfcl.bfcl, &self.bfcl.answers, environment)
            }
            named => suites::find_suite(named.unwrap_or("-"), environment),
        };
        let (mut suite, origin) = read.map_err(Failure::usage_error)?;
        self.select_scenarios(&mut suite)?;
        if let Some(limit) = self.bfcl.limit {
            suite.scenarios.truncate(limit.get());
        }
        if let Some(repetitions) = self.run.repetitions {
            suite.repetitions = repetitions;
        }
        if let Some(recipe) = &self.run.recipe {
            suite.recipe = Some(recipe.clone());
        }
        if self.run.no_tools {
            suite.remove_tools();
        }
        self.thresholds.apply_thresholds(&mut suite.thresholds);
        Ok((suite, origin))
    }

    /// Keeps the scenarios that match `--scenario` and `--kind`. Fails if none match.
    fn select_scenarios(&self, suite: &mut Suite) -> Result<(), Failure> {
        let (names, kinds) = (&self.run.scenario, &self.run.kind);
        let is_wanted = |it: &Scenario| {
            matches_any_pattern(names, &it.name) && matches_any_pattern(kinds, &it.kind)
        };
        if !suite.scenarios.iter().any(is_wanted) {
            let all = suite.scenarios.iter().take(MAX_NAMES);
            let known: Vec<&str> = all.map(|it| it.name.as_str()).collect();
            return Err(Failure::usage_error(anyhow!(
                "no scenario matches this name and kind. The suite has {}, such as: {}",
                suite.scenarios.len(),
                known.join(", ")
            )));
        }
        suite.scenarios.retain(is_wanted);
        Ok(())
    }

    /// Returns the ids of the models to evaluate, and the connected models by id. Uses the models
    /// of `--model`, else the models of the suite, else in a replay the recorded models, else the
    /// default model.
    pub(crate) async fn choose_models(
        &self,
        suite: &Suite,
        context: &Context,
        recording: &RecordingMode,
    ) -> Result<(Vec<ModelId>, HashMap<ModelId, Arc<dyn ChatModel>>), Failure> {
        let mut names = self.run.model.clone();
        if names.is_empty() {
            names = suite.models.iter().map(ToString::to_string).collect();
        }
        if names.is_empty()
            && let RecordingMode::Replay(player) = recording
        {
            let recorded = player.recorded_models();
            names = recorded.iter().map(ToString::to_string).collect();
        }
        let mut names: Vec<Option<&str>> = names.iter().map(|it| Some(it.as_str())).collect();
        if names.is_empty() {
            names.push(context.environment.get("SWITCHBOARD_MODEL"));
        }
        let (mut ids, mut models) = (Vec::new(), HashMap::new());
        for name in names {
            let chosen = match recording.choose_recorded_model(name, None) {
                Some(chosen) => chosen?,
                None => context.choose_model(name).await?,
            };
            print_chosen_model(&chosen);
            let id = chosen.model.id().clone();
            if !ids.contains(&id) {
                ids.push(id.clone());
                models.insert(id, chosen.model);
            }
        }
        Ok((ids, models))
    }
}

/// Returns whether a pattern matches `text`: as a part of it, or as the whole text with the
/// wildcards `*` and `?`. Ignores upper and lower case. An empty pattern list matches every text.
fn matches_any_pattern(patterns: &[String], text: &str) -> bool {
    let text = text.to_lowercase();
    patterns.is_empty()
        || patterns.iter().any(|pattern| {
            let pattern = pattern.to_lowercase();
            text.contains(&pattern) || NamePattern::new(pattern).matches(&text)
        })
}
