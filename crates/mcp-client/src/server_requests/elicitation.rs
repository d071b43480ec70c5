//! Elicitation: a server requests input from a person, in a form or at a URL.

use reqwest::Url;
use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_domain::{CandidateToolCalls, Elicitation, ElicitationAnswer, ElicitationForm};
use tokio::time::{Instant, timeout_at};

use crate::{
    server_requests::{
        form::Form, pending_requests::register_pending, responder::RequestResponder,
    },
    transport::call_context::RequestContext,
};

/// Maximum size in bytes of the message of an elicitation that a person sees. A longer message is
/// cut and ends with an ellipsis.
const MAX_MESSAGE: usize = 4000;
/// Number of invalid answers to one form after which the elicitation is cancelled.
const MAX_ATTEMPTS: u32 = 3;

/// Parameters of `elicitation/create`. The types of rmcp are not used: they drop unknown keywords
/// of a form and reject forms with an unknown field type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ElicitationParams {
    /// Mode of the elicitation: `form` (the default) or `url`.
    mode: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Value,
    pub(super) url: Option<String>,
    /// Id of a URL elicitation. The server repeats the id in the notification that the elicitation
    /// is complete. Empty for servers of version 2026-07-28, which send no id.
    #[serde(default)]
    pub(super) elicitation_id: String,
}

/// Answer of a person to an elicitation, after the form values were validated.
pub(super) enum Answer {
    /// The person filled in the form. The value contains the completed and validated fields.
    Content(Value),
    /// The person agreed to open the URL.
    Consent,
    Declined,
    Cancelled,
}

impl RequestResponder {
    /// Asks a person for the input that the server requests, and returns the result of
    /// `elicitation/create`. Without an elicitation handler, the result is `decline`. Dropping the
    /// future also drops the future of the handler.
    pub(crate) async fn answer_elicitation(
        &self,
        params: Value,
        context: &RequestContext,
    ) -> Result<Value, ErrorData> {
        if self.elicitor.is_none() {
            return Ok(json!({"action": "decline"}));
        }
        let params = ElicitationParams::deserialize(params)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let answer = self.ask_person(params, context).await;
        let answer = answer.map_err(|reason| ErrorData::invalid_params(reason, None))?;
        Ok(match answer {
            Answer::Content(values) => json!({"action": "accept", "content": values}),
            Answer::Consent => json!({"action": "accept"}),
            Answer::Declined => json!({"action": "decline"}),
            Answer::Cancelled => json!({"action": "cancel"}),
        })
    }

    /// Asks a person for input. Returns an error with the reason if the elicitation is invalid.
    pub(super) async fn ask_person(
        &self,
        params: ElicitationParams,
        context: &RequestContext,
    ) -> Result<Answer, String> {
        let Some(elicitor) = &self.elicitor else {
            return Ok(Answer::Declined);
        };
        let mut message = self.redactor.redact_known(&params.message).into_owned();
        if message.len() > MAX_MESSAGE {
            message.truncate(message.floor_char_boundary(MAX_MESSAGE));
            message.push('…');
        }
        let (fields, form) = match params.mode.as_deref() {
            None | Some("form") => {
                let fields = Form::parse(&params.requested_schema)?;
                let schema = params.requested_schema;
                (Some(fields), ElicitationForm::Fields { schema })
            }
            Some("url") => {
                let url = normalize_url(&params.url.unwrap_or_default())?;
                let id = params.elicitation_id;
                (None, ElicitationForm::Url { url, id })
            }
            Some(other) => return Err(format!("unknown elicitation mode `{other}`")),
        };
        let (call, candidates) = match context.unambiguous_call() {
            Some(call) => (call.idempotency_key.clone(), CandidateToolCalls::default()),
            None => (None, context.candidate_calls()),
        };
        let mut elicitation = Elicitation {
            server: self.server.clone(),
            message: message.clone(),
            call,
            candidates,
            form,
        };
        let Some(_pending) = register_pending(&self.pending, context) else {
            tracing::warn!(server = self.server, "too many pending requests");
            return Ok(Answer::Cancelled);
        };
        let deadline = Instant::now() + self.answer_timeout;
        for _ in 0..MAX_ATTEMPTS {
            let answer = timeout_at(deadline, elicitor.elicit(&elicitation)).await;
            let values = match answer.unwrap_or(ElicitationAnswer::Cancel) {
                ElicitationAnswer::Accept { content: values } => values,
                ElicitationAnswer::Decline => return Ok(Answer::Declined),
                ElicitationAnswer::Cancel => return Ok(Answer::Cancelled),
            };
            let Some(fields) = &fields else {
                return Ok(Answer::Consent);
            };
            match fields.complete_form(values) {
                Ok(values) => return Ok(Answer::Content(values.into())),
                Err(reason) => {
                    elicitation.message =
                        format!("{message}\n\nThe last answer was invalid: {reason}");
                }
            }
        }
        tracing::warn!(server = self.server, "all answers to a form were invalid");
        Ok(Answer::Cancelled)
    }
}

/// Normalizes a URL as a browser does. Shows an internationalized host name in ASCII, and rejects a
/// user name, because both could hide the actual host.
fn normalize_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("the URL is invalid: {error}"))?;
    if !matches!(url.scheme(), "https" | "http") {
        let scheme = url.scheme();
        return Err(format!("`{scheme}:` URLs are not allowed"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL contains a user name, which could hide the host".to_owned());
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_show_their_host_are_accepted() {
        for (text, expected) in [
            ("https://example.org/a?b=c", Ok("https://example.org/a?b=c")),
            ("http://localhost:3000", Ok("http://localhost:3000/")),
            ("https://аpple.com/", Ok("https://xn--pple-43d.com/")),
            ("file:///etc/passwd", Err("`file:`")),
            ("javascript:alert(1)", Err("`javascript:`")),
            ("https://bank.example@evil.example/", Err("user name")),
            ("not a URL", Err("is invalid")),
            ("", Err("is invalid")),
        ] {
            match (normalize_url(text), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url, expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{text}: {why}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}
