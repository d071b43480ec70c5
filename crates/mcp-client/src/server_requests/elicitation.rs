//! Elicitation: a server wants to know something of the person, in a form or at an address.

use reqwest::Url;
use rmcp::{
    model::{ErrorCode, ErrorData},
    service::ServiceError,
};
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_domain::{Candidates, Elicitation, ElicitationAnswer, ElicitationForm};
use tokio::time::{Duration, Instant, timeout, timeout_at};

use crate::server_requests::{
    form::Form,
    responder::Asks,
    within::{Counted, Within, count},
};
use crate::transport::open_requests::Unplaced;

/// Bytes of a question that are shown.
const MESSAGE_BYTES: usize = 4000;
/// How many times a person is asked whose answer does not fit the form.
const MOST_TRIES: u32 = 3;
/// `URLElicitationRequiredError` of 2025-11-25: the call needs the person to visit addresses first.
const VISIT_FIRST: ErrorCode = ErrorCode(-32042);

/// How many seconds the server is waited for to be done with a visit, before a call is made again to find out;
/// about five minutes in all. (A call that needs a visit has not run.)
const PAUSES: [u64; 8] = [5, 10, 20, 40, 60, 60, 60, 60];

/// The parameters of `elicitation/create`. Read by hand: the protocol's own types leave out what they
/// do not know of a form, and refuse one with a field that is new to them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    /// `form`, which is also meant by none, or `url`.
    mode: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Value,
    url: Option<String>,
    /// 2026-07-28 has none.
    #[serde(default)]
    elicitation_id: String,
}

/// The addresses that a call needs visited first, from its error.
pub(crate) struct Visits {
    addresses: Vec<Params>,
    error: ErrorData,
}

/// What the person agreed to visit for one call.
#[derive(Default)]
pub(crate) struct Visited {
    urls: Vec<String>,
    pauses: usize,
}

impl Visits {
    /// `None` for any other error.
    pub(crate) fn of(error: &ServiceError) -> Option<Self> {
        #[derive(Deserialize)]
        struct Data {
            elicitations: Vec<Params>,
        }
        let ServiceError::McpError(error) = error else {
            return None;
        };
        if error.code != VISIT_FIRST {
            return None;
        }
        let data = Data::deserialize(error.data.as_ref()?).ok()?;
        (!data.elicitations.is_empty()).then(|| Self {
            addresses: data.elicitations,
            error: error.clone(),
        })
    }
}

impl Asks {
    /// Asks the person, and gives the result of `elicitation/create`. Dropping the future withdraws the
    /// question.
    pub(crate) async fn elicit(&self, params: Value, within: &Within) -> Result<Value, ErrorData> {
        if self.elicitor.is_none() {
            return Ok(json!({"action": "decline"}));
        }
        let params = Params::deserialize(params)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let answer = self.ask(params, within).await;
        Ok(
            match answer.map_err(|why| ErrorData::invalid_params(why, None))? {
                Answer::Filled(content) => json!({"action": "accept", "content": content}),
                Answer::Agreed => json!({"action": "accept"}),
                Answer::Declined => json!({"action": "decline"}),
                Answer::Cancelled => json!({"action": "cancel"}),
            },
        )
    }

    /// Has the person visit what a call needs visited, and waits until it may be made again: the server
    /// says that it is done with all of it, or a while has passed, for not every server says so. Fails
    /// with the call's error and why there is no use in making it again.
    pub(crate) async fn visit(
        &self,
        visits: Visits,
        visited: &mut Visited,
        within: &Within,
    ) -> Result<(), ErrorData> {
        let Visits { addresses, error } = visits;
        self.visit_all(addresses, visited, within)
            .await
            .map_err(|why| ErrorData {
                message: format!("{} ({why})", error.message).into(),
                ..error
            })
    }

    async fn visit_all(
        &self,
        addresses: Vec<Params>,
        visited: &mut Visited,
        within: &Within,
    ) -> Result<(), String> {
        if self.elicitor.is_none() {
            return Err("nobody is there to be asked".to_owned());
        }
        let Some(&pause) = PAUSES.get(visited.pauses) else {
            return Err(
                "the person agreed to visit the address, but the server is not done with it yet; \
                 call it again after that"
                    .to_owned(),
            );
        };
        visited.pauses += 1;
        let mut matters = Vec::new();
        for params in addresses {
            let matter = params.elicitation_id.clone();
            let url = params.url.clone().unwrap_or_default();
            // It is the same visit, whatever the server calls it this time.
            if !visited.urls.contains(&url) {
                match self.ask(params, within).await? {
                    Answer::Agreed | Answer::Filled(_) => visited.urls.push(url),
                    Answer::Declined => return Err("the person declined".to_owned()),
                    Answer::Cancelled => {
                        return Err("the person was not there to answer".to_owned());
                    }
                }
            }
            matters.push(matter);
        }
        // They are on their way there.
        let _asking = count(&self.asking, within);
        let mut done = self.done.subscribe();
        let all_done = done.wait_for(|done| matters.iter().all(|matter| done.contains(matter)));
        // Fails only without a sender, which is borrowed.
        let _ = timeout(Duration::from_secs(pause), all_done).await;
        // A call that needs the same again is not let through for what was done before.
        self.done
            .send_modify(|done| done.retain(|id| !matters.contains(id)));
        Ok(())
    }

    /// Fails with what is wrong with the question.
    async fn ask(&self, params: Params, within: &Within) -> Result<Answer, String> {
        let Some(elicitor) = &self.elicitor else {
            return Ok(Answer::Declined);
        };
        let mut message = self.redactor.clean(params.message);
        if message.len() > MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
            message.push('…');
        }
        let (fields, form) = match params.mode.as_deref() {
            None | Some("form") => {
                let fields = Form::read(&params.requested_schema)?;
                let schema = params.requested_schema;
                (Some(fields), ElicitationForm::Fields { schema })
            }
            Some("url") => {
                let url = address(&params.url.unwrap_or_default())?;
                let id = params.elicitation_id;
                (None, ElicitationForm::Url { url, id })
            }
            Some(other) => return Err(format!("`{other}` is no known way to ask a person")),
        };
        let mut elicitation = Elicitation {
            server: self.server.clone(),
            message: message.clone(),
            call: None,
            candidates: Candidates::default(),
            form,
        };
        let Some(asking) = count(&self.asking, within) else {
            tracing::warn!(server = self.server, "it asks too much at once");
            return Ok(Answer::Cancelled);
        };
        self.place(&mut elicitation, within, &asking).await;
        // Who is asked where it is known whose the calls are may be another person each time: whoever shows questions
        // also says how many at once.
        let candidates = &elicitation.candidates;
        let is_known =
            elicitation.call.is_some() || !candidates.calls.is_empty() && !candidates.others;
        let _turn = if is_known {
            None
        } else {
            Some(self.turn.lock().await)
        };
        let until = Instant::now() + self.patience;
        for _ in 0..MOST_TRIES {
            let answer = timeout_at(until, elicitor.elicit(&elicitation)).await;
            let content = match answer.unwrap_or(ElicitationAnswer::Cancel) {
                ElicitationAnswer::Accept { content } => content,
                ElicitationAnswer::Decline => return Ok(Answer::Declined),
                ElicitationAnswer::Cancel => return Ok(Answer::Cancelled),
            };
            let Some(fields) = &fields else {
                return Ok(Answer::Agreed);
            };
            match fields.fill(content) {
                Ok(content) => return Ok(Answer::Filled(content.into())),
                Err(why) => {
                    elicitation.message =
                        format!("{message}\n\nThe last answer did not fit: {why}");
                }
            }
        }
        tracing::warn!(
            server = self.server,
            "no answer to its form fitted, so it gets none"
        );
        Ok(Answer::Cancelled)
    }

    /// Finds out within which call a question is asked, or at least whom it concerns.
    async fn place(&self, elicitation: &mut Elicitation, within: &Within, asking: &Counted<'_>) {
        let question = match within {
            Within::Known { caller, .. } => {
                elicitation.call.clone_from(&caller.key);
                return;
            }
            Within::Unplaced(question) => question,
        };
        let enough = |question: &Unplaced| {
            question.sole().is_some() || self.is_sure_with(&question.candidates())
        };
        question.settled(self.placing, enough).await;
        let callers = question.callers();
        if question.is_of_one_tool() {
            self.alone.learn(&self.server, &callers);
        }
        match question.sole() {
            Some(caller) => {
                asking.is_within(&caller);
                elicitation.call.clone_from(&caller.key);
            }
            None => elicitation.candidates = question.candidates(),
        }
    }
}

/// What came of a question.
enum Answer {
    Filled(Value),
    Agreed,
    Declined,
    Cancelled,
}

/// An address that a person may be sent to, as a browser would read it: a host name that only looks
/// like a known one shows its true letters, and nothing stands before the host.
fn address(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("its address cannot be used: {error}"))?;
    if !matches!(url.scheme(), "https" | "http") {
        let scheme = url.scheme();
        return Err(format!("`{scheme}:` is no address for a browser"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its address holds a user name, which hides where it leads".to_owned());
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_where_it_leads() {
        for (text, expected) in [
            ("https://example.org/a?b=c", Ok("https://example.org/a?b=c")),
            ("http://localhost:3000", Ok("http://localhost:3000/")),
            ("https://аpple.com/", Ok("https://xn--pple-43d.com/")),
            ("file:///etc/passwd", Err("`file:`")),
            ("javascript:alert(1)", Err("`javascript:`")),
            ("https://bank.example@evil.example/", Err("user name")),
            ("no address", Err("cannot be used")),
            ("", Err("cannot be used")),
        ] {
            match (address(text), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url, expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{text}: {why}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}
