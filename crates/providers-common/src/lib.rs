//! What the provider adapters share: everything between a request body and domain events that is
//! not the mapping itself.
//!
//! | module | holds |
//! |---|---|
//! | [`transport`] | [`HttpTransport`]: one HTTP client per provider, with time-outs and retry |
//! | [`classify`] | [`ErrorClassifier`]: from a failed answer to a typed error |
//! | [`byte_stream`] | [`ByteStream`]: a body as it arrives |
//! | [`sse`], [`ndjson`] | a body cut into frames |
//! | [`decoder`] | [`WireDecoder`], the seam between frames and events |
//! | [`schema`] | [`schema::compile`]: JSON Schemas in the form that each wire takes |
//! | [`tool_names`] | names of tools as a wire takes them, and back |
//! | [`recovery`] | tool calls that a model wrote as text |
//! | [`prompted`] | tools for models that have none |
//! | [`text_calls`] | [`TextCalls`]: any model, with its calls read from text or its tools told in words |
//! | [`catalogue`] | what models can do and cost |
//! | [`decode`] | [`decode_sse_of`], [`decode_ndjson_of`]: a body and a decoder make a model's stream |
//! | [`retrying`] | [`stream_with_retry`]: repeats a request while nothing of its answer was shown |
//! | [`local_ids`] | [`LocalIds`]: ids of tool uses where the server gives none |
//! | [`tally`] | [`tallied`]: warnings, each said once |
//! | [`mod@lenient`] | fields of answers that forgive a value of the wrong type |
//! | [`plain`] | and those that do not, and copy nothing |
//!
//! An adapter joins them so:
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
//! let context = answer.context();
//! Ok(decode_sse_of(context, "example", answer.body, decoder))
//! # }
//! ```
#![deny(missing_docs)]

pub mod byte_stream;
pub mod catalogue;
pub mod classify;
pub mod decode;
pub mod decoder;
pub mod lenient;
pub mod local_ids;
pub mod ndjson;
mod outgoing;
pub mod plain;
pub mod prompted;
pub mod provider;
pub mod recovery;
mod repeated;
pub mod retrying;
pub mod schema;
pub mod sse;
pub mod tally;
pub mod text_calls;
pub mod tool_names;
pub mod transport;

pub use byte_stream::{ByteStream, as_text, read_to_end};
pub use classify::{Classified, ErrorClassifier, HttpFailure, StatusClassifier};
pub use decode::{assembled, decode_ndjson, decode_ndjson_of, decode_sse, decode_sse_of};
pub use decoder::WireDecoder;
pub use local_ids::LocalIds;
pub use repeated::Repeated;
pub use retrying::{SingleAttempt, stream_with_retry};
pub use tally::tallied;
pub use text_calls::TextCalls;
pub use transport::{
    AnswerContext, Endpoint, Endpoints, Headers, HttpAnswer, HttpRequest, HttpTransport,
    RetryPolicy, TransportConfig,
};

/// Bytes of one frame (an event, a line) that are read at most: 16 MiB. The largest honest frames
/// carry a generated image as base64.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;
