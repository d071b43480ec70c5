//! HTTP requests to providers, and the conversion of their answers into model events.
//!
//! | module | content |
//! |---|---|
//! | [`transport`] | [`HttpTransport`](transport::HttpTransport): the HTTP client of a provider |
//! | [`retry`] | [`stream_with_retry`](retry::stream_with_retry): repeats a failed request |
//! | [`error_classifier`] | [`ErrorClassifier`](error_classifier::ErrorClassifier): error kinds |
//! | [`byte_stream`] | [`ByteStream`](byte_stream::ByteStream): a body as it arrives |
//! | `sse`, `ndjson` | split a body into frames: server-sent events or JSON lines |
//! | `text_fast_path` | converts frames without JSON parsing if they differ only in their text |
//! | [`wire_decoder`] | [`WireDecoder`](wire_decoder::WireDecoder): frames become events |
//! | [`stream_decoding`] | a body and a decoder become a model's stream |

pub mod byte_stream;
pub mod error_classifier;
pub(crate) mod ndjson;
pub mod retry;
pub(crate) mod sse;
pub mod stream_decoding;
mod text_fast_path;
pub mod transport;
pub mod wire_decoder;
