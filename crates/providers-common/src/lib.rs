//! The parts that all provider adapters share: everything between a request body and domain events
//! except the mapping itself.
//!
//! | module | content |
//! |---|---|
//! | [`provider`] | [`HttpModel`](provider::HttpModel): a model of a configuration and a wire |
//! | [`mod@http`] | transport, retry, error classification, framing of streams |
//! | [`schema`] | [`schema::compile`]: JSON Schemas in the subset that each wire accepts |
//! | [`tool_names`] | tool names that a wire accepts, and their way back |
//! | [`text_tool_calls`] | tool calls in a model's text; tools for models without tool support |
//! | [`catalog`] | capabilities, limits and prices of models |
//! | [`local_ids`] | [`LocalIds`]: ids of tool uses where the server sends none |
//! | [`answer_events`] | [`AnswerEvents`]: the events that all wires share |
//! | [`request`] | checks of a request that are the same on every wire |
//! | [`body_fields`] | [`BodyFields`]: a request body with the caller's own fields |
//! | [`mod@media`] | media types and base64 |
//! | [`result_text`] | tool results as text |
//! | [`joined_text`] | text that is joined from parts |
//! | [`mod@opaque_text`] | the readable text of a provider's own blocks |
//! | [`tool_mapping`] | changes of tools and schemas that are reversed in the answer |
//! | [`warnings`] | [`tallied`]: equal warnings as one |
//! | [`mod@lenient`] | fields of answers that accept a value of the wrong type |
//!
//! An adapter uses the transport through [`provider`]. Directly, it is used so:
//!
//! ```no_run
//! # use switchboard_domain::{ModelError, port::ModelStream};
//! # use switchboard_providers_common::*;
//! # async fn ask(
//! #     transport: &HttpTransport,
//! #     key: &secrecy::SecretString,
//! #     decoder: impl WireDecoder + 'static,
//! # ) -> Result<ModelStream, ModelError> {
//! let request = HttpRequest::new("https://models.example/v1/messages")
//!     .with_secret("x-api-key", key)
//!     .with_json("{}")
//!     .expecting(&["text/event-stream"]);
//! let answer = transport.post(&request, &StatusClassifier).await?;
//! Ok(decode_sse("example", answer.body, decoder))
//! # }
//! ```
#![deny(missing_docs)]

pub mod catalog;
pub mod http;
pub mod lenient;
pub mod mapping;
pub mod provider;
pub mod schema;
pub mod text_tool_calls;
pub mod tool_mapping;
pub mod tool_names;

pub use self::http::{
    byte_stream::{ByteStream, as_text, read_to_end},
    classify::{Classified, ErrorClassifier, HttpFailure, StatusClassifier},
    decode::{assembled, decode_ndjson, decode_sse, decode_sse_of},
    decoder::WireDecoder,
    retry::{SingleAttempt, stream_with_retry},
    transport::{
        AnswerContext, Headers, HttpAnswer, HttpRequest, HttpTransport, RetryPolicy,
        TransportConfig,
    },
};
pub use answer_events::{AnswerEvents, AnswerSummary};
pub use body_fields::BodyFields;
pub use joined_text::JoinedText;
pub use local_ids::LocalIds;
pub use mapping::{
    answer_events, body_fields, joined_text, local_ids, media, opaque_text, request, result_text,
    warnings,
};
pub use opaque_text::opaque_text;
pub use text_tool_calls::TextCalls;
pub use tool_mapping::{ShapeRestorer, ToolMapping};
pub use warnings::tallied;

/// Maximum size of one frame (an event, a line): 16 MiB. The largest legitimate frames carry a
/// generated image as base64.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;
