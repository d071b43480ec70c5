//! From what a client wants to an agent.

use std::sync::{Arc, atomic::Ordering};

use async_trait::async_trait;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, Approver, ToolChoice,
    nearest::{did_you_mean, nearest},
};
use switchboard_orchestration::{
    Agent, ApprovalPolicy, RunOptions, tools::arguments::ClientContext,
};
use switchboard_server::{Approve, Parameters, Wish, WishError};

use super::{
    AppEngine,
    agents::{Made, Sort},
};
use crate::{
    cli::agent::{AgentArgs, AgentParts},
    recipes,
};

impl AppEngine {
    pub(super) async fn agent_for(&self, wish: &Wish) -> Result<Agent, WishError> {
        let parameters = &wish.parameters;
        let model = Self::model_name(wish)?;
        if let Some(name) = &wish.recipe {
            self.check_recipe(name).await?;
        }
        let sort = Sort {
            model,
            recipe: wish.recipe.clone(),
            without_tools: parameters.tools == Some(false),
        };
        let made = if let Some(made) = self.agents.get(&sort) {
            made
        } else {
            let made = self.make(&sort).await?;
            self.agents.keep(sort, made.clone());
            made
        };
        let Made {
            agent,
            mut options,
            has_tools,
        } = made;
        apply(parameters, &mut options);
        if let ToolChoice::Only(names) = &options.tool_choice {
            self.check_tools(names).await?;
        }
        let agent = agent
            .with_options(options)
            // As they are now: they change while the server runs.
            .with_redefined_tools(self.host.redefined_tools());
        // The agent that is kept for others holds no values of a client.
        let agent = if wish.context.is_empty() {
            agent
        } else {
            let agent = with_client_values(agent, &wish.context)?;
            for text in wish.context.texts() {
                self.context.live_secrets.add_secret(text);
            }
            agent
        };
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(self.tape.run(number).of(agent, has_tools))
    }

    async fn make(&self, sort: &Sort) -> Result<Made, WishError> {
        let args = AgentArgs {
            model: sort.model.clone().or_else(|| self.args.model.clone()),
            recipe: sort.recipe.clone().or_else(|| self.args.recipe.clone()),
            ..self.args.clone()
        };
        let plan = args.plan(&self.context).await;
        let mut plan = plan.map_err(|failure| {
            let message = format!("{:#}", failure.error);
            match &sort.model {
                // What the client named, or what is configured.
                Some(_) => WishError::Unknown {
                    field: "model".to_owned(),
                    message,
                },
                None => WishError::Unavailable {
                    message,
                    retry_after: None,
                },
            }
        })?;
        plan.no_tools |= sort.without_tools;
        let has_tools = !plan.no_tools;
        let host = if has_tools { &self.host } else { &self.no_host };
        let options = plan.options.clone();
        let parts = AgentParts {
            // The server puts its own in this place for every run.
            approver: Arc::new(Nobody),
            decisions: &self.decisions,
            checkpoints: None,
        };
        let agent = plan
            .agent_with(&self.context, host, parts)
            .with_questions(self.questions.clone());
        Ok(Made {
            agent,
            options,
            has_tools,
        })
    }

    /// Returns the model as the client names it, behind the provider where that is a field of its own.
    fn model_name(wish: &Wish) -> Result<Option<String>, WishError> {
        let unfit = |field: &str| WishError::Invalid {
            field: field.to_owned(),
            message: "is empty: leave it out for the configured one".to_owned(),
        };
        let given = |text: &Option<String>| text.as_deref().map(str::trim).map(str::to_owned);
        let (provider, model) = (given(&wish.provider), given(&wish.model));
        if provider.as_deref() == Some("") {
            return Err(unfit("provider"));
        }
        if model.as_deref() == Some("") {
            return Err(unfit("model"));
        }
        for (field, name) in [("provider", &provider), ("model", &model)] {
            check_name(field, name.as_deref().unwrap_or_default())?;
        }
        Ok(match (provider, model) {
            (None, None) => None,
            (Some(provider), None) => Some(provider),
            (None, Some(model)) => Some(model),
            (Some(provider), Some(model)) => {
                let is_named = model
                    .strip_prefix(&provider)
                    .is_some_and(|rest| rest.starts_with('/'));
                Some(if is_named {
                    model
                } else {
                    format!("{provider}/{model}")
                })
            }
        })
    }

    /// A client names a recipe and never a file: nothing else of the disk is read on its behalf.
    async fn check_recipe(&self, name: &str) -> Result<(), WishError> {
        let environment = self.context.environment.clone();
        let wanted = name.to_owned();
        let is_file = name.contains(['/', '\\', '\0']) || name.contains('.');
        let found = tokio::task::spawn_blocking(move || {
            recipes::find_by_name(&wanted, &environment).map(|_| ())
        });
        let message = match found.await {
            Ok(Ok(())) if !is_file => return Ok(()),
            Ok(Ok(())) => {
                "names a file: a recipe is chosen by its name, which has no dot and no slash"
                    .to_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the recipes cannot be read".to_owned(),
        };
        Err(WishError::Unknown {
            field: "recipe".to_owned(),
            message,
        })
    }

    async fn check_tools(&self, names: &[String]) -> Result<(), WishError> {
        let catalog = self.catalog().await;
        let known: Vec<&str> = catalog
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        match names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(WishError::Unknown {
                field: "parameters.tool_choice".to_owned(),
                message: format!(
                    "there is no tool `{unknown}`{}; GET /mcp/tools lists those there are",
                    did_you_mean(nearest(unknown, known.iter().copied()))
                ),
            }),
        }
    }
}

/// Gives an agent the values that a client sent for one run.
fn with_client_values(agent: Agent, values: &ClientContext) -> Result<Agent, WishError> {
    let context = agent.context().clone().with_client(values.clone());
    let context = context.map_err(|error| {
        let message = error.to_string();
        let field = format!("context.{}", error.name());
        WishError::Unknown { field, message }
    })?;
    Ok(agent.with_context(context))
}

/// Characters of a model's name and of a provider's at most. Those that there are have far fewer.
const LONGEST_NAME: usize = 256;

/// Refuses what nothing is called: it would stand in every event, record and count.
fn check_name(field: &str, name: &str) -> Result<(), WishError> {
    if name.chars().count() <= LONGEST_NAME && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(WishError::Invalid {
        field: field.to_owned(),
        message: format!("has at most {LONGEST_NAME} characters, none of them a control character"),
    })
}

/// Nobody to ask.
struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn decide(&self, _: &ApprovalRequest) -> ApprovalDecision {
        ApprovalDecision::NobodyThere
    }
}

/// What a client says of a run. What costs or may do harm is only lessened by it: limits and approvals are whoever
/// runs the server's.
pub(crate) fn apply(parameters: &Parameters, options: &mut RunOptions) {
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
    options.reasoning = parameters.reasoning.or(options.reasoning);
    options.parallel_tool_use = parameters.parallel_tool_use.or(options.parallel_tool_use);
    let wanted = match parameters.approve {
        None | Some(Approve::All) => return,
        Some(Approve::Ask) => ApprovalPolicy::Ask,
        Some(Approve::None) => ApprovalPolicy::None,
    };
    let approval = &mut options.approval;
    if strictness(wanted) > strictness(approval.policy) {
        approval.policy = wanted;
    }
    // Above what rules of files allow.
    approval.policy_overrides_rules |= wanted == ApprovalPolicy::None;
}

fn strictness(policy: ApprovalPolicy) -> u8 {
    match policy {
        ApprovalPolicy::All => 0,
        ApprovalPolicy::Ask => 1,
        ApprovalPolicy::None => 2,
    }
}

#[cfg(test)]
#[path = "wish_tests.rs"]
mod tests;
