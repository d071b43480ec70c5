//! Runs of clients that bring the whole conversation with every request: OpenAI's and Anthropic's.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{Message, Principal};
use switchboard_orchestration::{strategy::formatter::Form, tools::arguments::ClientContext};

use crate::dialects::{
    tools::client_tools::ClientTools,
    conversation::{chosen_model, model_not_found},
    response::run_response::RunResponse,
    response::paused_runs::{Results, PausedRuns},
};
use crate::{
    App, Parameters, Problem, Wish,
    hub::{Shape, Start, Talk},
};

/// What a request comes to.
pub(crate) struct EphemeralRequest<'a> {
    pub(crate) parameters: Parameters,
    pub(crate) messages: Vec<Arc<Message>>,
    /// The tools that run at the client: names, descriptions, schemas.
    pub(crate) tools: Vec<(String, String, Value)>,
    /// The form that the answer is to have.
    pub(crate) form: Option<Form>,
    pub(crate) recipe: Option<String>,
    /// Values for tools that the model does not see.
    pub(crate) context: ClientContext,
    pub(crate) model: &'a str,
}

impl EphemeralRequest<'_> {
    /// Begins a run, which ends when its client goes away; or goes on with the one that waits for what these messages
    /// end with: results of the client's tools.
    pub(crate) async fn begin(
        self,
        app: App,
        principal: Principal,
        waiting: PausedRuns,
    ) -> Result<RunResponse<()>, Problem> {
        self.parameters.check()?;
        if let Some(results) = Results::of_last(&self.messages) {
            let (held, reader) = waiting.answer(app.hub(), &principal, results).await?;
            return Ok(RunResponse::of_held(app, held, reader, waiting));
        }
        let tools = ClientTools::new(&app, self.tools).await?;
        let wish = Wish {
            model: chosen_model(self.model),
            parameters: self.parameters,
            recipe: self.recipe,
            context: self.context,
            ..Wish::default()
        };
        let start = Start {
            principal: principal.clone(),
            wish,
            talk: Talk::Loose {
                messages: self.messages,
            },
            shape: shape(tools.as_ref(), self.form.clone()),
        };
        let started = app.hub().start(start).await.map_err(model_not_found)?;
        let guard = started.cancel_when_dropped();
        let telling = RunResponse::of(app, principal, &started, ());
        Ok(telling
            .stopped_by(guard)
            .with_client(tools, waiting)
            .in_form(self.form.map(Arc::new)))
    }
}

/// The changes to an agent that a request wants.
fn shape(tools: Option<&Arc<ClientTools>>, form: Option<Form>) -> Option<Shape> {
    let with_tools = tools.map(ClientTools::shape);
    let Some(form) = form else {
        return with_tools;
    };
    Some(Box::new(move |agent| {
        let agent = agent.with_answer_form(&form);
        match with_tools {
            Some(with_tools) => with_tools(agent),
            None => agent,
        }
    }))
}
