//! From the command line and the configuration to an agent: what `ask` and those that follow it share.

use std::sync::Arc;

use clap::Args;
use secrecy::ExposeSecret as _;
use switchboard_domain::{Approver, ChatModel, Sampling, ToolHost};
use switchboard_mcp_client::McpHost;
use switchboard_orchestration::{
    Agent, ApprovalPolicy, Limits, RunOptions,
    approval::RuleVerdict,
    arguments::ContextInjection,
    recipe::Recipe,
    results::{CacheOptions, ResultCache},
    strategy::Strategy,
};

use super::{Approve, Failure, context::Context};
use crate::{
    decisions::KeptDecisions,
    model::{Chosen, list_price},
    recipes,
    runs::StoredRuns,
    terminal::{self, PresetAnswer, PresetApprover, Screen, TerminalApprover},
};

/// How a question is answered.
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// The model to ask, such as anthropic/claude-sonnet-5-5; a provider alone means its default
    #[arg(short, long, value_name = "PROVIDER/MODEL", env = "SWITCHBOARD_MODEL")]
    pub(super) model: Option<String>,
    /// A model that goes on when those before it fail (repeatable)
    #[arg(
        long,
        value_name = "PROVIDER/MODEL",
        env = "SWITCHBOARD_FALLBACK",
        value_delimiter = ','
    )]
    fallback: Vec<String>,
    /// A recipe: prompt, tools, examples and limits for one sort of task; `switchboard recipes` lists them
    #[arg(long, value_name = "NAME|FILE", env = "SWITCHBOARD_RECIPE")]
    recipe: Option<String>,
    /// How the answer comes about: loop, or gather-format (gather with tools, then format)
    #[arg(long, env = "SWITCHBOARD_STRATEGY")]
    strategy: Option<Strategy>,
    /// Which tool calls need your word; without this and a configuration, none do
    #[arg(long, value_enum, env = "SWITCHBOARD_APPROVE")]
    approve: Option<Approve>,
    /// Ask the model this many times at most
    #[arg(
        long,
        value_name = "N",
        env = "SWITCHBOARD_MAX_STEPS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    max_steps: Option<u32>,
    /// Start no MCP server and offer no tools
    #[arg(long)]
    pub(super) no_tools: bool,
}

/// What was settled before anything is started.
pub(super) struct Plan {
    pub(super) chosen: Chosen,
    fallbacks: Vec<Arc<dyn ChatModel>>,
    recipe: Option<Arc<Recipe>>,
    options: RunOptions,
    later: bool,
    /// What is answered to questions that are open already.
    pub(super) preset: Vec<PresetAnswer>,
    /// Where the run that goes on was stored; it is taken there.
    pub(super) runs: Option<StoredRuns>,
    pub(super) no_tools: bool,
}

impl AgentArgs {
    pub(super) fn decides_later(&self) -> bool {
        self.approve == Some(Approve::Later)
    }

    /// Chooses the models, reads the recipe and settles the options. What is wrong is said before a
    /// server is started.
    pub(super) async fn plan(&self, context: &Context) -> Result<Plan, Failure> {
        let config = &context.config.run;
        let recipe = match self.recipe.as_deref().or(config.recipe.as_deref()) {
            None => None,
            Some(name) => {
                let found = recipes::find(name, &context.environment).map_err(Failure::usage)?;
                if !found.recipe.ignored.is_empty() {
                    terminal::say_warning(&format!(
                        "recipe {}: these keys mean nothing here: {}",
                        found.recipe.name,
                        found.recipe.ignored.join(", ")
                    ));
                }
                Some(Arc::new(found.recipe))
            }
        };
        let of_recipe = recipe.as_ref().and_then(|recipe| recipe.model.as_deref());
        let named = self.model.as_deref().or(of_recipe);
        let chosen = context.choose_model(named).await?;
        let mut fallbacks = Vec::new();
        let configured = config.fallback_models.iter().flatten();
        let wanted: Vec<&String> = if self.fallback.is_empty() {
            configured.collect()
        } else {
            self.fallback.iter().collect()
        };
        for name in wanted {
            fallbacks.push(context.choose_model(Some(name)).await?.model);
        }
        Ok(Plan {
            options: self.options(context, recipe.as_deref()),
            no_tools: self.no_tools || recipe.as_ref().is_some_and(|it| !it.tools.enabled),
            later: self.decides_later(),
            preset: Vec::new(),
            runs: None,
            chosen,
            fallbacks,
            recipe,
        })
    }

    /// A flag wins over the recipe, the recipe over the configuration. Limits and approvals of a recipe
    /// only make it stricter.
    fn options(&self, context: &Context, recipe: Option<&Recipe>) -> RunOptions {
        let config = &context.config;
        let reasoning = recipe.and_then(|recipe| recipe.reasoning.effort);
        let temperature = recipe.and_then(|recipe| recipe.temperature);
        let mut options = RunOptions {
            sampling: Sampling {
                temperature: temperature.or(config.temperature),
                ..Sampling::default()
            },
            max_output_tokens: config.max_output_tokens,
            reasoning: reasoning.or(config.reasoning),
            guards: config.run.guards.clone().unwrap_or_default(),
            results: config.run.results.clone().unwrap_or_default(),
            history: config.run.history.clone().unwrap_or_default(),
            search: config.run.search.clone().unwrap_or_default(),
            ..RunOptions::default()
        };
        options.approval.policy = self
            .approve
            .map(ApprovalPolicy::from)
            .or(config.approve)
            .unwrap_or_default();
        if let Some(approvals) = &config.run.approvals {
            approvals.apply(&mut options.approval);
        }
        if self.approve == Some(Approve::None) {
            // Who says so now means it, whatever a file allows.
            let rules = &mut options.approval.rules.0;
            rules.retain(|rule| rule.verdict != RuleVerdict::Allow);
        }
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

impl Plan {
    /// The agent, with everything it needs.
    pub(super) fn agent(
        self,
        context: &Context,
        host: &Arc<McpHost>,
        screen: &Screen,
        decisions: &KeptDecisions,
    ) -> Agent {
        let config = &context.config;
        let approver = TerminalApprover::new(screen.clone());
        let approver: Arc<dyn Approver> = Arc::new(if self.later {
            approver.who_decides_later()
        } else {
            approver
        });
        let approver = PresetApprover::new(self.preset, approver);
        let mut agent = Agent::new(self.chosen.model)
            .named("switchboard")
            .with_tools(Arc::clone(host) as Arc<dyn ToolHost>)
            .with_redefined_tools(host.redefined_tools())
            .with_options(self.options)
            .with_approver(Arc::new(approver))
            .with_decisions(decisions.shared.clone())
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
        match self
            .runs
            .map_or_else(|| StoredRuns::of(&context.environment), Ok)
        {
            Ok(runs) => agent = agent.with_checkpoints(Arc::new(runs)),
            Err(error) if self.later => terminal::say_warning(&error.to_string()),
            Err(_) => {}
        }
        if let Some(values) = &config.run.context {
            let injected =
                values
                    .iter()
                    .fold(ContextInjection::new(), |injected, (name, value)| {
                        // It was JSON when it was read.
                        match serde_json::from_str(value.expose_secret()) {
                            Ok(value) => injected.with(name, value),
                            Err(_) => injected,
                        }
                    });
            let known = host.servers();
            for name in config.run.context_servers.iter().flatten() {
                if !known.iter().any(|server| server.name == *name) {
                    terminal::say_warning(&format!(
                        "`context_servers` names `{name}`, and there is no such server"
                    ));
                }
            }
            let injected = match &config.run.context_servers {
                Some(servers) => injected.only_for(servers.iter().cloned()),
                None => injected,
            };
            agent = agent.with_context(injected);
        }
        if let Some(lifetime) = config.run.cache_results.filter(|it| !it.is_zero()) {
            agent = agent.with_cache(Arc::new(ResultCache::new(CacheOptions {
                lifetime,
                ..CacheOptions::default()
            })));
        }
        agent
    }
}
