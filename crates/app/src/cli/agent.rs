//! From the command line and the configuration to an agent: what `ask` and those that follow it share.

use std::sync::Arc;

use anyhow::anyhow;
use clap::{ArgMatches, Args, FromArgMatches, parser::ValueSource};
use switchboard_domain::{Approver, ChatModel, Delivery, Sampling, ToolHost};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{
    Agent, BegunWith, Limits, Run, RunOptions,
    persistence::checkpoint::Checkpoints,
    policy::approval::Approvals,
    recipe::Recipe,
    strategy::Strategy,
    tools::results::{CacheOptions, ResultCache},
};

use super::{Approve, Failure, context::Context};
use crate::{
    decisions::KeptDecisions,
    environment::Environment,
    injection,
    model::{Chosen, list_price},
    recipes,
    runs::StoredRuns,
    tape::Tape,
    terminal::{self, PresetAnswer, PresetApprover, Screen, TerminalApprover},
};

/// How a question is answered.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgentArgs {
    /// The model to ask, such as anthropic/claude-sonnet-5-5; a provider alone means its default
    #[arg(short, long, value_name = "PROVIDER/MODEL", env = "SWITCHBOARD_MODEL")]
    pub(crate) model: Option<String>,
    /// A model that goes on when those before it fail (repeatable)
    #[arg(
        long,
        value_name = "PROVIDER/MODEL",
        env = "SWITCHBOARD_FALLBACK",
        value_delimiter = ','
    )]
    pub(crate) fallback: Vec<String>,
    /// A recipe: prompt, tools, examples and limits for one sort of task; `switchboard recipes` lists them
    #[arg(long, value_name = "NAME|FILE", env = "SWITCHBOARD_RECIPE")]
    pub(crate) recipe: Option<String>,
    /// How the answer comes about: loop, or gather-format (gather with tools, then format)
    #[arg(long, env = "SWITCHBOARD_STRATEGY")]
    pub(crate) strategy: Option<Strategy>,
    #[command(flatten)]
    pub(crate) approve: ApproveArgs,
    /// Ask the model this many times at most
    #[arg(
        long,
        value_name = "N",
        env = "SWITCHBOARD_MAX_STEPS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) max_steps: Option<u32>,
    /// Have each answer as a whole, instead of piece by piece as it is written
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Start no MCP server and offer no tools
    #[arg(long)]
    pub(crate) no_tools: bool,
}

/// `--approve`, and whether a person gave it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ApproveArgs {
    pub(crate) approve: Option<Approve>,
    /// It is on the command line or was typed in a conversation, and is not from a variable.
    in_person: bool,
}

#[derive(Args)]
struct ApproveOption {
    /// Which tool calls need your approval; without this option and a configuration, none do, except those of
    /// offline/planner that are not read-only
    #[arg(long, value_enum, env = "SWITCHBOARD_APPROVE")]
    approve: Option<Approve>,
}

impl ApproveArgs {
    /// Returns the option as a person gives it.
    pub(crate) fn in_person(approve: Option<Approve>) -> Self {
        Self {
            approve,
            in_person: true,
        }
    }

    fn is_later(self) -> bool {
        self.approve == Some(Approve::Later)
    }
}

impl Args for ApproveArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        ApproveOption::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        ApproveOption::augment_args_for_update(command)
    }
}

impl FromArgMatches for ApproveArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let ApproveOption { approve } = ApproveOption::from_arg_matches(matches)?;
        Ok(Self {
            approve,
            in_person: matches.value_source("approve") == Some(ValueSource::CommandLine),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// How a run that was stored goes on. What an option does not say is as it was when the run began; the
/// variables that stand for these options are for questions, and not looked at.
#[derive(Debug, Args)]
pub(super) struct ResumedArgs {
    /// Go on with this model instead of the one the run was stored with
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// A model that goes on when those before it fail (repeatable)
    #[arg(
        long,
        value_name = "PROVIDER/MODEL",
        env = "SWITCHBOARD_FALLBACK",
        value_delimiter = ','
    )]
    fallback: Vec<String>,
    /// Which further tool calls need your word; what waits already goes on waiting for it
    #[arg(long, value_enum)]
    approve: Option<Approve>,
    /// Ask the model this many times at most, counted from the run's beginning
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Have each further answer as a whole, instead of piece by piece as it is written
    #[arg(long)]
    no_stream: bool,
    #[command(flatten)]
    settled: Settled,
}

/// Options of `ask` that can only be had when a run begins. They are known here to say so.
#[derive(Debug, Args)]
struct Settled {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    recipe: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    strategy: Option<String>,
    #[arg(long, hide = true)]
    no_tools: bool,
}

impl Settled {
    fn check(&self) -> Result<(), Failure> {
        let (option, what) = if self.recipe.is_some() {
            ("--recipe", "the recipe")
        } else if self.strategy.is_some() {
            ("--strategy", "the strategy")
        } else if self.no_tools {
            ("--no-tools", "the tools")
        } else {
            return Ok(());
        };
        Err(Failure::usage(anyhow!(
            "{option} is for questions: a run goes on with {what} that it began with"
        )))
    }
}

/// Lets a word on the command line stand above what files say. Their rules stay: the next word may be another.
fn approve_by(approvals: &mut Approvals, ApproveArgs { approve, in_person }: ApproveArgs) {
    let Some(approve) = approve else { return };
    approvals.policy = approve.into();
    approvals.policy_overrides_rules = approve == Approve::None;
    approvals.approved_in_advance = in_person && approve == Approve::All;
}

impl ResumedArgs {
    /// Nobody is asked; what needs a word stays open. Of the variables this one is looked at: without it
    /// a further question would be lost where nobody is there.
    pub(super) fn decides_later(&self, environment: &Environment) -> bool {
        match self.approve {
            Some(approve) => approve == Approve::Later,
            None => environment.get("SWITCHBOARD_APPROVE") == Some("later"),
        }
    }

    /// What can be said without the configuration is said before the run is taken up.
    pub(super) fn check(&self, run: &Run) -> Result<(), Failure> {
        self.settled.check()?;
        match self.max_steps {
            Some(most) if most <= run.steps() => Err(Failure::usage(anyhow!(
                "the run has asked its model {} times already, and --max-steps counts from its beginning: \
                 say a number above that",
                run.steps()
            ))),
            _ => Ok(()),
        }
    }

    /// Chooses the models and sets in the run what the options say.
    pub(super) async fn plan(&self, run: &mut Run, context: &Context) -> Result<Plan, Failure> {
        let model = self
            .model
            .clone()
            .unwrap_or_else(|| run.model().to_string());
        let (chosen, fallbacks) = models(context, Some(&model), &self.fallback).await?;
        if let Some(steps) = self.max_steps {
            run.limit_steps(steps);
        }
        if self.approve.is_some() {
            let mut approvals = run.options().approval.clone();
            approve_by(&mut approvals, ApproveArgs::in_person(self.approve));
            run.set_approvals(approvals);
        }
        if self.no_stream {
            run.set_delivery(Delivery::Whole);
        }
        Ok(Plan {
            sampled: Arc::clone(&chosen.model),
            chosen,
            fallbacks,
            // Both are in the run.
            recipe: None,
            options: run.options().clone(),
            later: self.decides_later(&context.environment),
            preset: Vec::new(),
            runs: None,
            no_tools: false,
        })
    }
}

/// The model to ask and those that stand in for it: as an option names them, else as configured.
pub(crate) async fn models(
    context: &Context,
    named: Option<&str>,
    fallback: &[String],
) -> Result<(Chosen, Vec<Arc<dyn ChatModel>>), Failure> {
    let chosen = context.choose_model(named).await?;
    let configured = context.config.run.fallback_models.as_deref();
    let wanted = if fallback.is_empty() {
        configured.unwrap_or_default()
    } else {
        fallback
    };
    let mut fallbacks = Vec::new();
    for name in wanted {
        // One that was not needed when a run was recorded has no part in it.
        if !context.tape.lacks(name) {
            fallbacks.push(context.choose_model(Some(name)).await?.model);
        }
    }
    Ok((chosen, fallbacks))
}

/// The recipe of this name or file. What means nothing in it is told.
pub(crate) fn recipe(name: &str, context: &Context) -> Result<Arc<Recipe>, Failure> {
    let found = recipes::find(name, &context.environment).map_err(Failure::usage)?;
    if !found.recipe.ignored.is_empty() {
        terminal::say_warning(&format!(
            "recipe {}: these keys mean nothing here: {}",
            found.recipe.name,
            found.recipe.ignored.join(", ")
        ));
    }
    Ok(Arc::new(found.recipe))
}

/// What was settled before anything is started.
pub(crate) struct Plan {
    pub(crate) chosen: Chosen,
    /// The model that servers may ask. What it says is a part of their tool's result and no answer of the run, so it is
    /// never written down: an answer more would be taken for one of the run's own (`--match order`).
    pub(crate) sampled: Arc<dyn ChatModel>,
    fallbacks: Vec<Arc<dyn ChatModel>>,
    pub(crate) recipe: Option<Arc<Recipe>>,
    pub(crate) options: RunOptions,
    pub(crate) later: bool,
    /// What is answered to questions that are open already.
    pub(crate) preset: Vec<PresetAnswer>,
    /// Where the run that goes on was stored; it is taken there.
    pub(crate) runs: Option<StoredRuns>,
    pub(crate) no_tools: bool,
}

impl AgentArgs {
    /// Chooses the models, reads the recipe and settles the options. What is wrong is said before a
    /// server is started.
    pub(crate) async fn plan(&self, context: &Context) -> Result<Plan, Failure> {
        let config = &context.config.run;
        let named = self.recipe.as_deref().or(config.recipe.as_deref());
        let recipe = named.map(|name| recipe(name, context)).transpose()?;
        let of_recipe = recipe.as_ref().and_then(|recipe| recipe.model.as_deref());
        let named = self.model.as_deref().or(of_recipe);
        let (chosen, fallbacks) = models(context, named, &self.fallback).await?;
        Ok(self.settle(context, recipe, chosen, fallbacks))
    }

    /// The plan with these models and this recipe, whatever the options name.
    pub(crate) fn settle(
        &self,
        context: &Context,
        recipe: Option<Arc<Recipe>>,
        chosen: Chosen,
        fallbacks: Vec<Arc<dyn ChatModel>>,
    ) -> Plan {
        Plan {
            options: self.options(context, recipe.as_deref()),
            no_tools: self.no_tools || recipe.as_ref().is_some_and(|it| !it.tools.enabled),
            later: self.approve.is_later(),
            preset: Vec::new(),
            runs: None,
            sampled: Arc::clone(&chosen.model),
            chosen,
            fallbacks,
            recipe,
        }
    }

    /// The recipe that is followed, as it is named.
    pub(crate) fn recipe_name(&self, context: &Context) -> Option<String> {
        let named = self.recipe.as_ref().or(context.config.run.recipe.as_ref());
        named.cloned()
    }

    /// What a run of this agent is begun with, to be stored with it.
    pub(crate) fn begun_with(&self, context: &Context, agent: &Agent) -> BegunWith {
        let mut begun_with = BegunWith::of(agent);
        begun_with.recipe = self.recipe_name(context);
        begun_with.without_tools = self.no_tools;
        begun_with
    }

    /// A flag wins over the recipe, the recipe over the configuration. Limits and approvals of a recipe
    /// only make it stricter.
    fn options(&self, context: &Context, recipe: Option<&Recipe>) -> RunOptions {
        let config = &context.config;
        let reasoning = recipe.and_then(|recipe| recipe.reasoning.effort);
        let temperature = recipe.and_then(|recipe| recipe.temperature);
        let stream = recipe.and_then(|recipe| recipe.stream).or(config.stream);
        let mut options = RunOptions {
            sampling: Sampling {
                temperature: temperature.or(config.temperature),
                ..Sampling::default()
            },
            max_output_tokens: config.max_output_tokens,
            reasoning: reasoning.or(config.reasoning),
            delivery: if self.no_stream || stream == Some(false) {
                Delivery::Whole
            } else {
                Delivery::Streamed
            },
            guards: config.run.guards.clone().unwrap_or_default(),
            results: config.run.results.clone().unwrap_or_default(),
            history: config.run.history.clone().unwrap_or_default(),
            search: config.run.search.clone().unwrap_or_default(),
            ..RunOptions::default()
        };
        options.approval.policy = config.approve.unwrap_or_default();
        if let Some(approvals) = &config.run.approvals {
            approvals.apply(&mut options.approval);
        }
        approve_by(&mut options.approval, self.approve);
        options.limits = config.max_steps.map_or_else(Limits::default, Limits::steps);
        if let Some(limits) = &config.run.limits {
            limits.apply(&mut options.limits);
        }
        if let Some(recipe) = recipe {
            recipe.policy.tighten(&mut options.approval);
            recipe.policy.limit(&mut options.limits);
            recipe.limits.limit(&mut options.limits);
            if let Some(configured) = config.max_steps {
                options.limits.max_steps = options.limits.max_steps.min(configured);
            }
        }
        if let Some(steps) = self.max_steps {
            options.limits.max_steps = steps;
        }
        let of_recipe = recipe.and_then(|recipe| recipe.strategy.clone());
        let strategy = self.strategy.clone().or(of_recipe);
        if let Some(strategy) = strategy.or(config.run.strategy.clone()) {
            options.strategy = strategy;
        }
        options
    }
}

/// What an agent gets that is not configured.
pub(crate) struct AgentParts<'p> {
    /// Whom it asks about tool calls.
    pub(crate) approver: Arc<dyn Approver>,
    /// What was decided before.
    pub(crate) decisions: &'p KeptDecisions,
    /// Where its runs are stored.
    pub(crate) checkpoints: Option<Arc<dyn Checkpoints>>,
}

impl Plan {
    /// Writes down what its models say, but for what servers ask.
    pub(crate) fn record(&mut self, tape: &Tape) {
        self.chosen.model = tape.recorded(Arc::clone(&self.chosen.model));
        for model in &mut self.fallbacks {
            *model = tape.recorded(Arc::clone(model));
        }
    }

    /// The tools of a host, as they are recorded or had again.
    fn tools(&self, context: &Context, host: &Arc<McpHost>) -> Arc<dyn ToolHost> {
        let host = Arc::clone(host) as Arc<dyn ToolHost>;
        if self.no_tools {
            return host;
        }
        context.tape.tools(host)
    }

    /// The agent for one question at the terminal, with everything it needs.
    pub(crate) fn agent(
        mut self,
        context: &Context,
        host: &Arc<McpHost>,
        screen: &Screen,
        decisions: &KeptDecisions,
    ) -> Agent {
        let approver = TerminalApprover::new(screen.clone()).checking(
            self.tools(context, host),
            injection::configured(&context.config),
        );
        let approver: Arc<dyn Approver> = Arc::new(if self.later {
            approver.who_decides_later()
        } else {
            approver
        });
        let preset = std::mem::take(&mut self.preset);
        let runs = self.runs.take();
        let runs = runs.map_or_else(|| StoredRuns::of(&context.environment), Ok);
        let checkpoints = match runs {
            Ok(runs) => Some(Arc::new(runs) as Arc<dyn Checkpoints>),
            Err(error) => {
                if self.later {
                    terminal::say_warning(&error.to_string());
                }
                None
            }
        };
        let parts = AgentParts {
            approver: Arc::new(PresetApprover::new(preset, approver)),
            decisions,
            checkpoints,
        };
        self.agent_with(context, host, parts)
    }

    /// The agent, with everything it needs.
    pub(crate) fn agent_with(
        self,
        context: &Context,
        host: &Arc<McpHost>,
        parts: AgentParts<'_>,
    ) -> Agent {
        let config = &context.config;
        let tools = self.tools(context, host);
        let mut agent = Agent::new(self.chosen.model)
            .named("switchboard")
            .with_tools(tools)
            .with_redefined_tools(host.redefined_tools())
            .with_options(self.options)
            .with_approver(parts.approver)
            .with_steady_clock(context.steady.clone())
            .with_decisions(parts.decisions.shared.clone())
            .with_prices(list_price);
        for fallback in self.fallbacks {
            agent = agent.with_fallback(fallback);
        }
        if let Some(instructions) = &config.instructions {
            agent = agent.with_instructions(instructions);
        }
        if let Some(recipe) = self.recipe {
            agent = agent.with_recipe(recipe);
        }
        if let Some(checkpoints) = parts.checkpoints {
            agent = agent.with_checkpoints(checkpoints);
        }
        agent = agent.with_context(injection::configured(config));
        if let Some(lifetime) = config.run.cache_results.filter(|it| !it.is_zero()) {
            agent = agent.with_cache(Arc::new(ResultCache::new(CacheOptions {
                lifetime,
                ..CacheOptions::default()
            })));
        }
        agent
    }
}
