//! Runs of OpenAI's and Anthropic's clients, which send the whole conversation with every request.

use std::sync::Arc;

use serde::Deserialize;
use switchboard_domain::{Message, Principal, ToolHost};
use switchboard_orchestration::{strategy::formatter::Form, tools::arguments::ClientContext};
use utoipa::ToSchema;

use crate::{
    App, Approve, Parameters, Problem, RunSettings,
    dialects::{
        conversation::{chosen_model, model_not_found},
        response::{
            paused_runs::{ClientResults, PausedRuns},
            run_response::RunResponse,
        },
        tools::client_tools::{ClientTools, DeclaredTool},
    },
    hub::{ConversationInput, StartRequest},
};

/// The request fields that only Switchboard has, in a request of another protocol.
#[derive(Debug, Default, Clone, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SwitchboardFields {
    /// The name of the recipe for the run.
    recipe: Option<String>,
    /// The approval policy for tool calls. Only a stricter policy than the configured one has an
    /// effect.
    approve: Option<Approve>,
    /// Maximum number of model calls in the run.
    max_steps: Option<u32>,
    /// Whether the model may use tools. The default is `true`.
    tools: Option<bool>,
    /// Values for tools that are hidden from the model, by name.
    #[schema(value_type = Option<Object>)]
    context: Option<ClientContext>,
}

impl SwitchboardFields {
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters {
            approve: self.approve,
            max_steps: self.max_steps,
            tools: self.tools,
            ..Parameters::default()
        }
    }
}

/// A parsed request of an OpenAI or Anthropic client.
pub(crate) struct EphemeralRequest<'a> {
    pub(crate) parameters: Parameters,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) tools: Vec<DeclaredTool>,
    pub(crate) answer_form: Option<Form>,
    pub(crate) switchboard: SwitchboardFields,
    pub(crate) model: &'a str,
}

impl EphemeralRequest<'_> {
    /// Starts a run that is cancelled when its client disconnects. If the messages end with results
    /// of client tools, the run that waits for them is resumed instead.
    pub(crate) async fn start(
        self,
        app: App,
        principal: Principal,
        paused_runs: PausedRuns,
    ) -> Result<RunResponse, Problem> {
        self.parameters.check()?;
        let last = self.messages.last();
        if let Some(results) = ClientResults::of(last.into_iter().flat_map(|it| it.results())) {
            let (paused, reader) = paused_runs.resume(&principal, results).await?;
            return Ok(RunResponse::of_paused(app, paused, reader, paused_runs));
        }
        let tools = ClientTools::new(&app, self.tools).await?;
        let answer_form = self.answer_form.map(Arc::new);
        let settings = RunSettings {
            model: chosen_model(self.model),
            parameters: self.parameters,
            recipe: self.switchboard.recipe,
            context: self.switchboard.context.unwrap_or_default(),
            ..RunSettings::default()
        };
        let start = StartRequest {
            principal: principal.clone(),
            settings,
            conversation: ConversationInput::Ephemeral {
                messages: self.messages,
            },
            client_tools: tools.clone().map(|tools| tools as Arc<dyn ToolHost>),
            answer_form: answer_form.clone(),
        };
        let started = app.hub().start(start).await.map_err(model_not_found)?;
        let mut response = RunResponse::of_started(app, principal, &started);
        response.guard = Some(started.cancel_when_dropped());
        response.answer_form = answer_form;
        Ok(response.with_client_tools(tools, paused_runs))
    }
}
