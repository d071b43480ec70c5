//! Recordings of model and tool traffic.
//!
//! A [`Recorder`] wraps models and tool hosts and writes their requests and responses to a file. A
//! [`Player`] replaces both and gives the same requests the recorded responses, without network and
//! keys. The file has JSON Lines; each message and each list of tools is stored once.
//!
//! **Secrets** are redacted before anything is written, with a
//! [`Redactor`](switchboard_domain::redact::Redactor). In a replay, redacted text of a recorded
//! request matches any text. Arguments that the host adds to tool calls are not written either
//! ([`Recorder::with_hidden_arguments`]).
//!
//! **Matching**: the n-th equal request gets the n-th recorded response. Requests are equal if they
//! have the same model, messages, tools and settings; only the ids of tool uses may differ. If no
//! response is left, the error names the difference to the most similar request. With
//! [`RequestMatching::Order`], responses are replayed in their order instead, for requests that
//! contain changing data such as a date.
//!
//! Concurrent conversations are recorded under names ([`Recorder::with_conversation`]). A replay
//! selects one by name ([`Player::select_conversation`]), or by its requests where the names are
//! not known, as in a server ([`Player::detect_conversation`]).

mod error;
mod format;
mod player;
mod recorder;
mod redacted_comparison;
mod redaction;
mod request_matching;

use switchboard_domain::{JsonObject, ToolCatalog};
use switchboard_orchestration::tools::arguments::ContextInjection;

pub use error::RecordingError;
pub use player::Player;
pub use recorder::Recorder;
pub(crate) use redacted_comparison::{is_redacted, may_match_redacted};
pub(crate) use redaction::Redaction;
pub use request_matching::RequestMatching;

/// Removes the arguments in `hidden`, which the host and not the model adds, from the input of a
/// tool call. The definition of the tool in `catalogs` determines which arguments the host adds to
/// this tool. If no catalog has the tool, every argument with a name in `hidden` is removed.
fn remove_hidden_arguments<'a>(
    hidden: &ContextInjection,
    catalogs: impl Iterator<Item = &'a ToolCatalog>,
    tool: &str,
    input: JsonObject,
) -> JsonObject {
    let mut tools = catalogs.flat_map(|catalog| &catalog.tools);
    match tools.find(|definition| definition.name == tool) {
        Some(definition) => hidden.remove_hidden_arguments(definition, input),
        None => hidden.remove_all_hidden_arguments(input),
    }
}
