//! Runs of clients that bring the whole conversation with every request: OpenAI's and Anthropic's.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{Message, Principal};
use switchboard_orchestration::{strategy::formatter::Form, tools::arguments::ClientContext};

use super::{
    client_tools::ClientTools,
    inbound::{chosen_model, model_not_found},
    respond::Telling,
    waiting::{Results, Waiting},
};
use crate::{
    App, Parameters, Problem, Wish,
    hub::{Shape, Start, Talk},
};

/// What a request comes to.
pub(super) struct Asked<'a> {
    pub(super) parameters: Parameters,
    pub(super) messages: Vec<Arc<Message>>,
    /// The tools that run at the client: names, descriptions, schemas.
    pub(super) tools: Vec<(String, String, Value)>,
    /// The form that the answer is to have.
    pub(super) form: Option<Form>,
    pub(super) recipe: Option<String>,
    /// Values for tools that the model does not see.
    pub(super) context: ClientContext,
    pub(super) model: &'a str,
}

impl Asked<'_> {
    /// Begins a run, which ends when its client goes away; or goes on with the one that waits for what these messages
    /// end with: results of the client's tools.
    pub(super) async fn begin(
        self,
        app: App,
        principal: Principal,
        waiting: Waiting,
    ) -> Result<Telling<()>, Problem> {
        self.parameters.check()?;
        if let Some(results) = Results::of_last(&self.messages) {
            let (held, reader) = waiting.answer(app.hub(), &principal, results).await?;
            return Ok(Telling::of_held(app, held, reader, waiting));
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
        let telling = Telling::of(app, principal, &started, ());
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
