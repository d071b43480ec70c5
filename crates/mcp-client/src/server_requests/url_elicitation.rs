//! Calls that fail until the user has opened URLs (MCP 2025-11-25, `URLElicitationRequiredError`).

use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    server_requests::{
        elicitation::{Answer, ElicitationParams},
        pending_requests::register_pending,
        responder::RequestResponder,
    },
    transport::call_context::RequestContext,
};

/// Error code of the MCP error `URLElicitationRequiredError`.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Pauses in seconds before the repetitions of a call that needs a URL elicitation, about five
/// minutes in total. A repetition is safe, because such a call has had no effect.
const WAITS: [u64; 8] = [5, 10, 20, 40, 60, 60, 60, 60];

/// URLs that the user agreed to open for one call, and the number of waits so far.
#[derive(Default)]
pub(crate) struct VisitedUrls {
    urls: Vec<String>,
    waits: usize,
}

/// Returns the URL elicitations in an error with code -32042 (`URLElicitationRequiredError`). The
/// user must complete them before the call is repeated. Returns `None` for other errors.
pub(crate) fn parse_url_elicitations(error: &ErrorData) -> Option<Vec<ElicitationParams>> {
    #[derive(Deserialize)]
    struct UrlElicitationData {
        elicitations: Vec<ElicitationParams>,
    }
    if error.code != URL_ELICITATION_REQUIRED {
        return None;
    }
    let data = UrlElicitationData::deserialize(error.data.as_ref()?).ok()?;
    (!data.elicitations.is_empty()).then_some(data.elicitations)
}

impl RequestResponder {
    /// Asks the user to open the URLs, then waits until the call can be repeated. The wait ends
    /// when the server reports the completion, or after a time limit, because not every server
    /// reports it. Returns an error with the reason if a repetition of the call would not help.
    pub(crate) async fn ask_to_open_urls(
        &self,
        elicitations: Vec<ElicitationParams>,
        visited: &mut VisitedUrls,
        context: &RequestContext,
    ) -> Result<(), String> {
        if self.elicitor.is_none() {
            return Err("no user is available to open the URL".to_owned());
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
            // The user is asked once per URL, even if the server uses a new elicitation id for it.
            if !visited.urls.contains(&url) {
                match self.ask_person(params, context).await? {
                    Answer::Consent | Answer::Content(_) => visited.urls.push(url),
                    Answer::Declined => return Err("the user declined".to_owned()),
                    Answer::Cancelled => return Err("the user did not answer".to_owned()),
                }
            }
            ids.push(id);
        }
        let _pending = register_pending(&self.pending, context);
        let mut completed = self.completed.subscribe();
        let all_completed =
            completed.wait_for(|completed| ids.iter().all(|id| completed.contains(id)));
        // The result is ignored: the call is repeated after the time limit too, and waiting cannot
        // fail, because the sender is a field of this responder.
        let _ = timeout(Duration::from_secs(wait), all_completed).await;
        // The ids are removed, because a later call with these ids needs a new completion.
        self.completed
            .send_modify(|completed| completed.retain(|id| !ids.contains(id)));
        Ok(())
    }
}
