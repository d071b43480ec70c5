//! Runs of OpenAI's and Anthropic's clients, which send the whole conversation with every request.

use std::sync::Arc;

use serde::Deserialize;
use switchboard_domain::{Message, Principal, ToolHost};
use switchboard_orchestration::{
    strategy::{Strategy, formatter::AnswerSchema},
    tools::arguments::ClientContext,
};
use utoipa::ToSchema;

use crate::{
    App, Approve, Parameters, Problem, RunSettings,
    dialects::{
        conversation::{convert_unknown_model_error, requested_model},
        response::{
            paused_runs::{ClientToolResults, PausedRuns},
            run_response::RunResponse,
        },
        tools::client_tools::{ClientTools, DeclaredTool},
    },
    hub::{ConversationInput, RunStartRequest},
    openapi::schema,
};

/// Fields that only Switchboard has, in a request of OpenAI's or Anthropic's API.
#[derive(Debug, Default, Clone, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SwitchboardFields {
    /// The name of the recipe, which is a file with a prompt, a tool selection and a strategy.
    recipe: Option<String>,
    /// The approval policy for tool calls. Only a stricter policy than the configured one has an
    /// effect.
    approve: Option<Approve>,
    /// Maximum number of model calls in the run.
    max_steps: Option<u32>,
    /// Whether the model may use tools. The default is `true`.
    tools: Option<bool>,
    /// The strategy of the run, instead of that of the recipe.
    #[schema(value_type = Option<schema::Strategy>)]
    strategy: Option<Strategy>,
    /// Named values that tools receive but the model does not, such as access tokens.
    #[schema(value_type = Option<Object>)]
    context: Option<ClientContext>,
}

impl SwitchboardFields {
    pub(crate) fn to_run_parameters(&self) -> Parameters {
        Parameters {
            approve: self.approve,
            max_steps: self.max_steps,
            tools: self.tools,
            strategy: self.strategy.clone(),
            ..Parameters::default()
        }
    }
}

/// A parsed request of an OpenAI or Anthropic client, whose run is ephemeral.
pub(crate) struct EphemeralRequest<'a> {
    pub(crate) parameters: Parameters,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) tools: Vec<DeclaredTool>,
    pub(crate) answer_form: Option<AnswerSchema>,
    pub(crate) switchboard: SwitchboardFields,
    pub(crate) model: &'a str,
}

impl EphemeralRequest<'_> {
    /// Starts a run that is cancelled when its client disconnects. If the messages end with results
    /// of client tools, the run that waits for them is resumed instead.
    pub(crate) async fn start_or_resume_run(
        self,
        app: App,
        principal: Principal,
        paused_runs: PausedRuns,
    ) -> Result<RunResponse, Problem> {
        self.parameters.validate_parameters()?;
        let last = self.messages.last();
        if let Some(results) =
            ClientToolResults::from_tool_results(last.into_iter().flat_map(|it| it.tool_results()))
        {
            let (paused, reader) = paused_runs.resume_run(&principal, results).await?;
            let resumed = RunResponse::from_paused_run(app, paused, reader, paused_runs);
            return Ok(resumed);
        }
        let tools = ClientTools::new(&app, self.tools).await?;
        let answer_form = self.answer_form.map(Arc::new);
        let settings = RunSettings {
            model: requested_model(self.model),
            parameters: self.parameters,
            recipe: self.switchboard.recipe,
            context: self.switchboard.context.unwrap_or_default(),
            ..RunSettings::default()
        };
        let start = RunStartRequest {
            principal: principal.clone(),
            settings,
            conversation: ConversationInput::Ephemeral {
                messages: self.messages,
            },
            client_tools: tools.clone().map(|tools| tools as Arc<dyn ToolHost>),
            answer_form: answer_form.clone(),
        };
        let started = app.hub().start_run(start).await;
        let started = started.map_err(convert_unknown_model_error)?;
        let mut response = RunResponse::from_started_run(app, principal, &started);
        response.guard = Some(started.cancel_guard());
        response.answer_form = answer_form;
        Ok(response.with_client_tools(tools, paused_runs))
    }
}
