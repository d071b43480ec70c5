//! Calls that fail until the user has opened URLs (`URLElicitationRequiredError`, 2025-11-25).

use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    server_requests::{
        elicitation::{Answer, Params},
        pending::register,
        responder::RequestResponder,
    },
    transport::call_context::RequestContext,
};

/// The error code of `URLElicitationRequiredError`.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// How many seconds to wait for the completion before each repetition of a call, five minutes in
/// total. A call that needs a URL elicitation has had no effect.
const WAITS: [u64; 8] = [5, 10, 20, 40, 60, 60, 60, 60];

/// The URLs that the user agreed to open for one call.
#[derive(Default)]
pub(crate) struct VisitedUrls {
    urls: Vec<String>,
    waits: usize,
}

/// Returns the URLs that a call needs opened first, from its error. `None` for any other error.
pub(crate) fn required_urls(error: &ErrorData) -> Option<Vec<Params>> {
    #[derive(Deserialize)]
    struct Data {
        elicitations: Vec<Params>,
    }
    if error.code != URL_ELICITATION_REQUIRED {
        return None;
    }
    let data = Data::deserialize(error.data.as_ref()?).ok()?;
    (!data.elicitations.is_empty()).then_some(data.elicitations)
}

impl RequestResponder {
    /// Asks the user to open the URLs, and waits until the call can be repeated: until the server
    /// reports the completion, or for a while, because not every server does. Returns the reason if
    /// a repetition does not help.
    pub(crate) async fn visit_urls(
        &self,
        elicitations: Vec<Params>,
        visited: &mut VisitedUrls,
        context: &RequestContext,
    ) -> Result<(), String> {
        if self.elicitor.is_none() {
            return Err("no user is present to open it".to_owned());
        }
        let Some(&wait) = WAITS.get(visited.waits) else {
            return Err(
                "the user agreed to open the URL, but the server has not completed it: call again \
                 later"
                    .to_owned(),
            );
        };
        visited.waits += 1;
        let mut ids = Vec::new();
        for params in elicitations {
            let id = params.elicitation_id.clone();
            let url = params.url.clone().unwrap_or_default();
            // The server may use another id for the same URL.
            if !visited.urls.contains(&url) {
                match self.ask(params, context).await? {
                    Answer::Consent | Answer::Content(_) => visited.urls.push(url),
                    Answer::Declined => return Err("the user declined".to_owned()),
                    Answer::Cancelled => return Err("the user did not answer".to_owned()),
                }
            }
            ids.push(id);
        }
        let _pending = register(&self.pending, context);
        let mut completed = self.completed.subscribe();
        let all_completed =
            completed.wait_for(|completed| ids.iter().all(|id| completed.contains(id)));
        // Fails only without a sender, which is a field of the responder.
        let _ = timeout(Duration::from_secs(wait), all_completed).await;
        // A later call with the same ids needs a new completion.
        self.completed
            .send_modify(|completed| completed.retain(|id| !ids.contains(id)));
        Ok(())
    }
}
