//! Defines the command-line options of runs and builds agents from them.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex},
};

use anyhow::anyhow;
use clap::Args;
use switchboard_domain::{ChatModel, Delivery, Sampling, ToolHost};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{
    Agent, Limits, Run, RunOptions, RunParameters,
    policy::approval::ApprovalSettings,
    recipe::Recipe,
    strategy::Strategy,
    tools::results::{CacheOptions, ResultCache},
};

use super::{
    arguments::{Approve, GlobalArgs},
    context::{Context, context_values},
    failure::Failure,
    recording::{RecordingArgs, RecordingMode},
    run_resources::RunResources,
};
use crate::{
    config::environment::Environment,
    models::{ChosenModel, find_list_price},
    storage::{approval_decisions::SavedDecisions, recipes},
    terminal::{
        self, LineReader, PresetApprovalDecision, Screen, TerminalApprover, output::AnswerFormat,
    },
};

/// Command-line arguments that `switchboard ask` and `chat` share.
#[derive(Debug, Args)]
pub(crate) struct ConversationArgs {
    /// Continue or start the saved conversation with this id
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, env = "SWITCHBOARD_OUTPUT")]
    pub(crate) output: AnswerFormat,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
}

/// Command-line options that configure a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgentArgs {
    /// Model to use, such as anthropic/claude-sonnet-5-5; a provider alone selects its default
    /// model
    #[arg(short, long, value_name = "PROVIDER/MODEL", env = "SWITCHBOARD_MODEL")]
    pub(crate) model: Option<String>,
    /// Model to use when the previous ones fail (repeatable)
    #[arg(
        long,
        value_name = "PROVIDER/MODEL",
        env = "SWITCHBOARD_FALLBACK",
        value_delimiter = ','
    )]
    pub(crate) fallback: Vec<String>,
    /// Recipe with prompt, tools, examples and limits for a kind of task; `switchboard recipes`
    /// lists them
    #[arg(long, value_name = "NAME|FILE", env = "SWITCHBOARD_RECIPE")]
    pub(crate) recipe: Option<String>,
    /// Which tool calls need your approval; default: the variable `SWITCHBOARD_APPROVE`, or none
    /// except calls of offline/planner that are not read-only
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
    /// Start no MCP servers and use no tools
    #[arg(long)]
    pub(crate) no_tools: bool,
}

/// Command-line options that control how answers are produced.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AnswerArgs {
    /// How the answer is produced: loop, or gather-format (gather with tools, then format)
    #[arg(long, env = "SWITCHBOARD_STRATEGY")]
    pub(crate) strategy: Option<Strategy>,
    /// Maximum number of model calls
    #[arg(
        long,
        value_name = "N",
        env = "SWITCHBOARD_MAX_STEPS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) max_steps: Option<u32>,
    /// Don't stream; print each answer when it is complete
    #[arg(long)]
    pub(crate) no_stream: bool,
}

/// Command-line options of a resumed run. Missing options keep the values of the stored run. The
/// environment variables of these options apply to new questions only.
#[derive(Debug, Args)]
pub(crate) struct ResumedRunArgs {
    /// Model to use instead of the stored one
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// Model to use when the previous ones fail (repeatable)
    #[arg(
        long,
        value_name = "PROVIDER/MODEL",
        env = "SWITCHBOARD_FALLBACK",
        value_delimiter = ','
    )]
    fallback: Vec<String>,
    /// Which further tool calls need your approval; pending calls are not affected
    #[arg(long, value_enum)]
    approve: Option<Approve>,
    /// Maximum number of model calls, counted from the start of the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Don't stream; print each further answer when it is complete
    #[arg(long)]
    no_stream: bool,
}

/// Sets the approval policy to the value of `--approve` or of its environment variable. Keeps the
/// approval rules of configuration files; with `none`, the policy takes precedence over them.
/// `in_person` is `true` if the user typed the option. Only then does `all` approve calls in
/// advance, because the user does not type the environment variable for each command.
fn apply_approval_option(approvals: &mut ApprovalSettings, approve: Approve, in_person: bool) {
    approvals.policy = approve.into();
    approvals.policy_overrides_rules = approve == Approve::None;
    approvals.approved_in_advance = in_person && approve == Approve::All;
}

impl ResumedRunArgs {
    /// Returns whether the run is stored, instead of asking the user, when another call needs
    /// approval. This requires `--approve later`, or the value `later` of `SWITCHBOARD_APPROVE`
    /// without `--approve`. Other values of this variable have no effect on a resumed run.
    pub(crate) fn stores_approval_requests(&self, environment: &Environment) -> bool {
        match self.approve {
            Some(approve) => approve == Approve::Later,
            None => environment.get("SWITCHBOARD_APPROVE") == Some("later"),
        }
    }

    /// Returns an error unless `--max-steps` exceeds the number of steps that the run has made.
    pub(crate) fn check_step_limit(&self, run: &Run) -> Result<(), Failure> {
        match self.max_steps {
            Some(most) if most <= run.step_count() => Err(Failure::usage_error(anyhow!(
                "--max-steps must exceed {}, the number of model calls that the run has already \
                 made",
                run.step_count()
            ))),
            _ => Ok(()),
        }
    }

    /// Chooses the models of a resumed run, applies the other options to `run`, and returns the
    /// plan for its agent. The caller sets `preset` and `no_tools` of the plan.
    pub(crate) async fn plan_resumed_run(
        &self,
        run: &mut Run,
        context: &Context,
    ) -> Result<AgentPlan, Failure> {
        let model = self.model.clone();
        let model = model.unwrap_or_else(|| run.model_id().to_string());
        let (chosen, fallbacks) = choose_models(context, Some(&model), &self.fallback).await?;
        if let Some(steps) = self.max_steps {
            run.set_max_steps(steps);
        }
        if let Some(approve) = self.approve {
            let mut approvals = run.run_options().approval.clone();
            apply_approval_option(&mut approvals, approve, true);
            run.set_approvals(approvals);
        }
        if self.no_stream {
            run.set_response_delivery(Delivery::Whole);
        }
        Ok(AgentPlan {
            sampled: Arc::clone(&chosen.model),
            chosen,
            fallbacks,
            // The recipe is part of the stored run and is not read again.
            recipe: None,
            options: run.run_options().clone(),
            later: self.stores_approval_requests(&context.environment),
            preset: HashMap::new(),
            no_tools: false,
        })
    }
}

/// Chooses the model and the fallback models of a run. Options of the command line take precedence
/// over the configuration.
pub(crate) async fn choose_models(
    context: &Context,
    named: Option<&str>,
    fallback: &[String],
) -> Result<(ChosenModel, Vec<Arc<dyn ChatModel>>), Failure> {
    let chosen = context.choose_model(named).await?;
    let configured = context.config.fallback_models.as_deref();
    let wanted = if fallback.is_empty() {
        configured.unwrap_or_default()
    } else {
        fallback
    };
    let mut fallbacks = Vec::new();
    for name in wanted {
        // A replay cannot use a fallback model without recorded responses, so the model is skipped.
        if !context.recording.lacks_recorded_model(name) {
            fallbacks.push(context.choose_model(Some(name)).await?.model);
        }
    }
    Ok((chosen, fallbacks))
}

/// Creates an approver that uses the decisions in `preset` first, and then asks the user.
pub(crate) fn create_approver(
    context: &Context,
    host: &Arc<McpHost>,
    screen: &Screen,
    lines: &Arc<dyn LineReader>,
    later: bool,
    preset: HashMap<String, PresetApprovalDecision>,
) -> Arc<TerminalApprover> {
    Arc::new(TerminalApprover {
        screen: screen.clone(),
        lines: Arc::clone(lines),
        tools: context.recording.wrap_tools(Arc::clone(host) as _),
        hidden: context_values::configured_context_values(&context.config),
        later,
        preset: Mutex::new(preset),
    })
}

/// Finds and reads a recipe. If the file contains unknown keys, which are ignored, prints a warning
/// that lists them.
pub(crate) fn load_recipe(name: &str, context: &Context) -> Result<Arc<Recipe>, Failure> {
    let found = recipes::find_recipe(name, &context.environment).map_err(Failure::usage_error)?;
    if !found.recipe.ignored.is_empty() {
        terminal::print_warning(&format!(
            "recipe {}: unknown keys are ignored: {}",
            found.recipe.name,
            found.recipe.ignored.join(", ")
        ));
    }
    Ok(Arc::new(found.recipe))
}

/// Everything that an agent needs except running servers, resolved before servers start.
pub(crate) struct AgentPlan {
    pub(crate) chosen: ChosenModel,
    /// Model for sampling requests of MCP servers. Its responses are not recorded, because they are
    /// part of tool results. A replay with `--match order` would confuse them with answers of the
    /// run.
    pub(crate) sampled: Arc<dyn ChatModel>,
    pub(crate) fallbacks: Vec<Arc<dyn ChatModel>>,
    pub(crate) recipe: Option<Arc<Recipe>>,
    pub(crate) options: RunOptions,
    pub(crate) later: bool,
    /// Decisions that the user made before the approval request is shown, by tool use id.
    pub(crate) preset: HashMap<String, PresetApprovalDecision>,
    pub(crate) no_tools: bool,
}

impl AgentArgs {
    /// Chooses the models, reads the recipe and resolves the options. This happens before servers
    /// start, so that errors appear early.
    pub(crate) async fn plan_agent(&self, context: &Context) -> Result<AgentPlan, Failure> {
        let named = self.recipe_name(context);
        let recipe = named.map(|name| load_recipe(name, context)).transpose()?;
        let of_recipe = recipe.as_ref().and_then(|recipe| recipe.model.as_deref());
        let named = self.model.as_deref().or(of_recipe);
        let (chosen, fallbacks) = choose_models(context, named, &self.fallback).await?;
        self.build_agent_plan(context, recipe, chosen, fallbacks)
    }

    /// Creates the agent's plan from a recipe and models that the caller has chosen.
    pub(crate) fn build_agent_plan(
        &self,
        context: &Context,
        recipe: Option<Arc<Recipe>>,
        chosen: ChosenModel,
        fallbacks: Vec<Arc<dyn ChatModel>>,
    ) -> Result<AgentPlan, Failure> {
        let variable = Approve::read_approval_variable(&context.environment)?;
        let approve = self.approve.or(variable);
        Ok(AgentPlan {
            options: self.resolve_run_options(context, recipe.as_deref(), approve),
            no_tools: self.no_tools || recipe.as_ref().is_some_and(|it| !it.tools.enabled),
            later: approve == Some(Approve::Later),
            preset: HashMap::new(),
            sampled: Arc::clone(&chosen.model),
            chosen,
            fallbacks,
            recipe,
        })
    }

    /// Returns the recipe name from the option `--recipe`, or else from the configuration.
    pub(crate) fn recipe_name<'a>(&'a self, context: &'a Context) -> Option<&'a str> {
        let configured = context.config.recipe.as_deref();
        self.recipe.as_deref().or(configured)
    }

    /// Returns the parameters that are stored with a run, for the case that it is resumed.
    pub(crate) fn run_parameters(&self, context: &Context, agent: &Agent) -> RunParameters {
        let mut run_parameters = RunParameters::from_agent(agent);
        run_parameters.recipe = self.recipe_name(context).map(str::to_owned);
        run_parameters.without_tools = self.no_tools;
        run_parameters
    }

    /// Resolves the options of a run. Flags take precedence over the recipe, and the recipe over
    /// the configuration. A recipe can only lower limits and tighten approvals.
    fn resolve_run_options(
        &self,
        context: &Context,
        recipe: Option<&Recipe>,
        approve: Option<Approve>,
    ) -> RunOptions {
        let config = &context.config;
        let reasoning = recipe.and_then(|recipe| recipe.reasoning.effort);
        let temperature = recipe.and_then(|recipe| recipe.temperature);
        let stream = recipe.and_then(|recipe| recipe.stream).or(config.stream);
        let mut options = RunOptions {
            sampling: Sampling {
                temperature: temperature.or(config.temperature),
                ..Sampling::default()
            },
            max_output_tokens: config.max_output_tokens.map(NonZeroU32::get),
            reasoning: reasoning.or(config.reasoning),
            delivery: if self.answers.no_stream || stream == Some(false) {
                Delivery::Whole
            } else {
                Delivery::Streamed
            },
            guards: config.guards.clone().unwrap_or_default(),
            results: config.results.clone().unwrap_or_default(),
            history: config.history.clone().unwrap_or_default(),
            search: config.tool_search.clone().unwrap_or_default(),
            ..RunOptions::default()
        };
        options.approval.policy = config.approve.unwrap_or_default();
        if let Some(approvals) = &config.approvals {
            approvals.apply_to_approval_settings(&mut options.approval);
        }
        if let Some(approve) = approve {
            apply_approval_option(&mut options.approval, approve, self.approve.is_some());
        }
        let max_steps = config.max_steps.map(NonZeroU32::get);
        options.limits = max_steps.map_or_else(Limits::default, Limits::with_max_steps);
        if let Some(limits) = &config.limits {
            limits.apply_to_run_limits(&mut options.limits);
        }
        if let Some(recipe) = recipe {
            recipe.policy.tighten_approvals(&mut options.approval);
            recipe.policy.lower_tool_call_limits(&mut options.limits);
            recipe.limits.apply_limits(&mut options.limits);
            if let Some(configured) = max_steps {
                options.limits.max_steps = options.limits.max_steps.min(configured);
            }
        }
        if let Some(steps) = self.answers.max_steps {
            options.limits.max_steps = steps;
        }
        let of_recipe = recipe.and_then(|recipe| recipe.strategy.clone());
        let strategy = self.answers.strategy.clone().or(of_recipe);
        if let Some(strategy) = strategy.or(config.strategy.clone()) {
            options.strategy = strategy;
        }
        options
    }
}

impl AgentPlan {
    /// Opens the recording of `--record`, if the option is set, and records the models' responses.
    pub(crate) fn start_recording(
        &mut self,
        args: &RecordingArgs,
        context: &mut Context,
    ) -> Result<(), Failure> {
        if let Some(recording) = args.open_recording(&context.config, &context.environment)? {
            self.record_models(&recording);
            context.recording = recording;
        }
        Ok(())
    }

    /// Wraps the models to record their responses. The model for sampling is not wrapped.
    pub(crate) fn record_models(&mut self, recording: &RecordingMode) {
        let models = std::iter::once(&mut self.chosen.model).chain(&mut self.fallbacks);
        for model in models {
            *model = recording.wrap_model(Arc::clone(model));
        }
    }

    /// Builds the agent of a terminal command. Its approver reads the user's decisions from
    /// `lines`.
    pub(crate) fn build_terminal_agent(
        mut self,
        context: &Context,
        resources: &RunResources,
        screen: &Screen,
        lines: &Arc<dyn LineReader>,
    ) -> Agent {
        let preset = std::mem::take(&mut self.preset);
        let approver = create_approver(context, &resources.host, screen, lines, self.later, preset);
        self.build_agent(context, &resources.host, &resources.decisions)
            .with_approver(approver)
    }

    /// Builds an agent without an approver. The agent denies tool calls that need approval.
    pub(crate) fn build_agent(
        self,
        context: &Context,
        host: &Arc<McpHost>,
        decisions: &SavedDecisions,
    ) -> Agent {
        let config = &context.config;
        let mut tools = Arc::clone(host) as Arc<dyn ToolHost>;
        if !self.no_tools {
            tools = context.recording.wrap_tools(tools);
        }
        let mut agent = Agent::new(self.chosen.model)
            .with_name("switchboard")
            .with_tools(tools)
            .with_redefined_tools(host.redefined_tool_names())
            .with_options(self.options)
            .with_monotonic_clock(context.monotonic_clock.clone())
            .with_shared_decisions(decisions.shared.clone())
            .with_model_prices(find_list_price)
            .with_context_injection(context_values::configured_context_values(config));
        for fallback in self.fallbacks {
            agent = agent.with_fallback(fallback);
        }
        if let Some(instructions) = &config.instructions {
            agent = agent.with_instructions(instructions);
        }
        if let Some(recipe) = self.recipe {
            agent = agent.with_recipe(recipe);
        }
        if let Some(lifetime) = config.cache_results.filter(|it| !it.is_zero()) {
            agent = agent.with_result_cache(Arc::new(ResultCache::new(CacheOptions {
                lifetime,
                ..CacheOptions::default()
            })));
        }
        agent
    }
}
