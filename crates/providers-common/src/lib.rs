//! Shared parts of all provider adapters: HTTP, stream framing, errors, schemas, tool names and the
//! model catalog. Each adapter crate adds the mapping between domain types and the API of its
//! provider. A *wire* is one HTTP protocol of a provider.
//!
//! | module | content |
//! |---|---|
//! | [`provider`] | [`HttpModel`](provider::HttpModel): a model that is reached over HTTP |
//! | [`mod@http`] | transport, retry, error classification, framing of streams |
//! | [`schema`] | [`schema::compile`]: JSON Schemas in the subset that each API accepts |
//! | [`tool_names`] | tool names that a provider accepts, and the reverse mapping |
//! | [`text_tool_calls`] | tool calls in a model's text; tools for models without tool support |
//! | [`catalog`] | capabilities, limits and prices of models |
//! | [`tool_use_ids`] | [`ToolUseIds`]: ids of tool uses where the server sends none |
//! | [`tool_use_input`] | [`ToolUseInput`]: the input of a tool use as a JSON object |
//! | [`answer_events`] | [`AnswerEvents`]: events that begin and end every answer |
//! | [`request`] | request checks that all provider APIs share |
//! | [`content_warnings`] | [`ContentWarnings`]: warnings about parts of a conversation |
//! | [`body_fields`] | [`BodyFields`]: a request body with the caller's own fields |
//! | [`mod@media`] | media types and base64 |
//! | [`result_text`] | tool results as text |
//! | [`joined_text`] | text that is joined from parts |
//! | [`mod@opaque_text`] | the readable text of a provider's own blocks |
//! | [`tool_mapping`] | changes of tools and schemas that are reversed in the answer |
//! | [`mod@user_location`] | [`UserLocation`], for web searches |
//! | [`warnings`] | [`merge_warnings`]: equal warnings as one |
//! | [`mod@lenient`] | fields of answers that accept a value of the wrong type |
//!
//! Adapters use the transport through [`provider`]. It can also be used directly:
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
//!     .expect_media_types(&["text/event-stream"]);
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
    byte_stream::{ByteStream, decode_body_text, read_to_end},
    error_classifier::{
        ClassifiedError, ErrorClassifier, HttpFailure, StatusClassifier, interrupted_error,
        protocol_error,
    },
    retry::{SingleAttemptModel, stream_with_retry},
    stream_decoding::{assemble_response, decode_ndjson, decode_sse, decode_sse_with_context},
    transport::{
        Headers, HttpAnswer, HttpRequest, HttpTransport, ResponseErrorContext, RetryPolicy,
        TransportConfig,
    },
    wire_decoder::WireDecoder,
};
pub use answer_events::{AnswerEvents, AnswerSummary, emit_part_state, emit_usage};
pub use body_fields::BodyFields;
pub use content_warnings::ContentWarnings;
pub use joined_text::JoinedText;
pub use mapping::{
    answer_events, body_fields, content_warnings, joined_text, media, opaque_text, request,
    result_text, tool_use_ids, tool_use_input, user_location, warnings,
};
pub use opaque_text::opaque_block_text;
pub use text_tool_calls::TextCallModel;
pub use tool_mapping::{JsonShapeRestorer, ToolMapping};
pub use tool_use_ids::ToolUseIds;
pub use tool_use_input::ToolUseInput;
pub use user_location::UserLocation;
pub use warnings::merge_warnings;

/// Maximum size of one frame (a server-sent event or a JSON line): 16 MiB. The largest legitimate
/// frames carry a generated image as base64.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;
