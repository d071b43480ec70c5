//! Creates the agent for a request from the run parameters that the client sent.

use std::sync::atomic::Ordering;

use switchboard_domain::{
    ToolChoice,
    similar_names::{did_you_mean, find_nearest},
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, RunOptions, tools::arguments::ClientContext,
};
use switchboard_server::{Approve, Parameters, RunSettings, RunSettingsError};

use super::{
    AppEngine,
    agent_cache::{AgentKey, CachedAgent},
};
use crate::storage::recipes;

impl AppEngine {
    pub(super) async fn find_or_create_agent(
        &self,
        settings: &RunSettings,
    ) -> Result<Agent, RunSettingsError> {
        let parameters = &settings.parameters;
        let model = Self::read_model_name(settings)?;
        if let Some(name) = &settings.recipe {
            self.check_recipe_name(name).await?;
        }
        let key = AgentKey {
            model,
            recipe: settings.recipe.clone(),
            without_tools: parameters.tools == Some(false),
        };
        let mut cached = if let Some(cached) = self.agents.find_agent(&key) {
            cached
        } else {
            let cached = self.create_agent(&key).await?;
            self.agents.store_agent(key, cached.clone());
            cached
        };
        apply_client_parameters(parameters, &mut cached.options);
        if let ToolChoice::Only(names) = &cached.options.tool_choice {
            self.check_tool_names(names).await?;
        }
        let agent = cached
            .agent
            .with_options(cached.options)
            .with_shared_call_rates(self.parts.call_rates.clone())
            // Servers may redefine tools at any time, so a cached agent gets the current list.
            .with_redefined_tools(self.parts.host.redefined_tool_names());
        // Context values of a client are added after the cache lookup, so that the agents of other
        // clients do not contain them.
        let agent = if settings.context.is_empty() {
            agent
        } else {
            let agent = add_client_context(agent, &settings.context)?;
            for text in settings.context.text_values() {
                self.parts.context.live_secrets.add_secret(text);
            }
            agent
        };
        let number = self.started_runs.fetch_add(1, Ordering::Relaxed) + 1;
        let recording = self.parts.recording.select_run_recording(number);
        Ok(recording.wrap_agent(agent, cached.has_tools))
    }

    async fn create_agent(&self, key: &AgentKey) -> Result<CachedAgent, RunSettingsError> {
        let mut args = self.parts.args.clone();
        args.model = key.model.clone().or(args.model);
        args.recipe = key.recipe.clone().or(args.recipe);
        let plan = args.plan_agent(&self.parts.context).await;
        let mut plan = plan.map_err(|failure| {
            let message = format!("{:#}", failure.error);
            match &key.model {
                Some(_) => RunSettingsError::Unknown {
                    field: "model".to_owned(),
                    message,
                },
                None => RunSettingsError::Unavailable {
                    message,
                    retry_after: None,
                },
            }
        })?;
        plan.no_tools |= key.without_tools;
        let servers = self.parts.context.check_recipe_servers(&plan);
        servers.map_err(|error| RunSettingsError::Unknown {
            field: "recipe".to_owned(),
            message: error.to_string(),
        })?;
        let has_tools = !plan.no_tools;
        let host = if has_tools {
            &self.parts.host
        } else {
            &self.parts.no_host
        };
        let options = plan.options.clone();
        // The agent gets no approver, because the HTTP server sets one for each run.
        let agent = plan
            .build_agent(&self.parts.context, host, &self.parts.decisions)
            .with_question_registry(self.parts.questions.clone());
        Ok(CachedAgent {
            agent,
            options,
            has_tools,
        })
    }

    /// Returns the model that the client requested. If the request also has the field `provider`,
    /// returns `PROVIDER/MODEL`. If it has only `provider`, returns the provider, which means its
    /// default model. Returns `None` if it has neither.
    fn read_model_name(settings: &RunSettings) -> Result<Option<String>, RunSettingsError> {
        let read = |field: &str, text: &Option<String>| {
            let Some(name) = text.as_deref().map(str::trim) else {
                return Ok(None);
            };
            if name.is_empty() {
                return Err(RunSettingsError::Invalid {
                    field: field.to_owned(),
                    message: "is empty: omit it to use the configured one".to_owned(),
                });
            }
            check_name_format(field, name)?;
            Ok(Some(name.to_owned()))
        };
        let provider = read("provider", &settings.provider)?;
        let model = read("model", &settings.model)?;
        Ok(match (provider, model) {
            (Some(provider), Some(model)) if !model.starts_with(&format!("{provider}/")) => {
                Some(format!("{provider}/{model}"))
            }
            (provider, model) => model.or(provider),
        })
    }

    /// Checks the recipe name that a client sent. A file name is an error, because a client must
    /// not read files of the server.
    async fn check_recipe_name(&self, name: &str) -> Result<(), RunSettingsError> {
        let environment = self.parts.context.environment.clone();
        let wanted = name.to_owned();
        let is_file = name.contains(['/', '\\', '\0']) || name.contains('.');
        let found = tokio::task::spawn_blocking(move || {
            recipes::find_recipe_by_name(&wanted, &environment).map(|_| ())
        });
        let message = match found.await {
            Ok(Ok(())) if !is_file => return Ok(()),
            Ok(Ok(())) => {
                "the recipe must be a name without dots and slashes, not a file".to_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "failed to read the recipes".to_owned(),
        };
        Err(RunSettingsError::Unknown {
            field: "recipe".to_owned(),
            message,
        })
    }

    async fn check_tool_names(&self, names: &[String]) -> Result<(), RunSettingsError> {
        let catalog = self.parts.recording.list_tools(&self.parts.host).await;
        let known: Vec<&str> = catalog.tools.iter().map(|it| it.name.as_str()).collect();
        match names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(RunSettingsError::Unknown {
                field: "parameters.tool_choice".to_owned(),
                message: format!(
                    "unknown tool `{unknown}`{}. See GET /mcp/tools",
                    did_you_mean(find_nearest(unknown, known.iter().copied()))
                ),
            }),
        }
    }
}

/// Adds the context values that a client sent for one run. Returns an error for a value whose name
/// the server does not accept.
fn add_client_context(agent: Agent, values: &ClientContext) -> Result<Agent, RunSettingsError> {
    let context = agent.context_injection().clone();
    let context = context.with_client(values.clone());
    let context = context.map_err(|error| {
        let message = error.to_string();
        let field = format!("context.{}", error.value_name());
        RunSettingsError::Unknown { field, message }
    })?;
    Ok(agent.with_context_injection(context))
}

/// Maximum length in characters of a model or provider name that a client sends.
const MAX_NAME_LENGTH: usize = 256;

/// Checks a name that is used in events and metrics. Long names and control characters are errors.
fn check_name_format(field: &str, name: &str) -> Result<(), RunSettingsError> {
    if name.chars().count() <= MAX_NAME_LENGTH && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(RunSettingsError::Invalid {
        field: field.to_owned(),
        message: format!(
            "must have at most {MAX_NAME_LENGTH} characters and no control characters"
        ),
    })
}

/// Applies the run parameters of a client, which can only lower limits and tighten approvals.
pub(crate) fn apply_client_parameters(parameters: &Parameters, options: &mut RunOptions) {
    let sampling = &mut options.sampling;
    sampling.temperature = parameters.temperature.or(sampling.temperature);
    sampling.top_p = parameters.top_p.or(sampling.top_p);
    sampling.seed = parameters.seed.or(sampling.seed);
    if !parameters.stop.is_empty() {
        sampling.stop.clone_from(&parameters.stop);
    }
    if let Some(steps) = parameters.max_steps {
        options.limits.max_steps = options.limits.max_steps.min(steps);
    }
    if let Some(tokens) = parameters.max_output_tokens {
        let most = options.max_output_tokens.unwrap_or(tokens);
        options.max_output_tokens = Some(most.min(tokens));
    }
    if let Some(choice) = &parameters.tool_choice {
        options.tool_choice = choice.clone();
    }
    if let Some(strategy) = &parameters.strategy {
        options.strategy = strategy.clone();
    }
    options.reasoning = parameters.reasoning.or(options.reasoning);
    options.parallel_tool_use = parameters.parallel_tool_use.or(options.parallel_tool_use);
    let wanted = match parameters.approve {
        None | Some(Approve::All) => return,
        Some(Approve::Ask) => ApprovalPolicy::Ask,
        Some(Approve::None) => ApprovalPolicy::None,
    };
    let approval = &mut options.approval;
    if policy_strictness(wanted) > policy_strictness(approval.policy) {
        approval.policy = wanted;
    }
    // If a client requests the policy `none`, approval rules of configuration files cannot allow
    // calls.
    approval.policy_overrides_rules |= wanted == ApprovalPolicy::None;
}

fn policy_strictness(policy: ApprovalPolicy) -> u8 {
    match policy {
        ApprovalPolicy::All => 0,
        ApprovalPolicy::Ask => 1,
        ApprovalPolicy::None => 2,
    }
}

#[cfg(test)]
#[path = "run_parameters_tests.rs"]
mod tests;
