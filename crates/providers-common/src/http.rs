//! HTTP: requests, answers and their framing.
//!
//! | module | content |
//! |---|---|
//! | [`transport`] | [`HttpTransport`](transport::HttpTransport): the HTTP client of a provider |
//! | [`retry`] | [`stream_with_retry`](retry::stream_with_retry): repeats a failed request |
//! | [`classify`] | [`ErrorClassifier`](classify::ErrorClassifier): errors of failed answers |
//! | [`byte_stream`] | [`ByteStream`](byte_stream::ByteStream): a body as it arrives |
//! | `sse`, `ndjson` | a body split into frames |
//! | `repeated_text` | fast reading of frames that differ only in their text |
//! | [`decoder`] | [`WireDecoder`](decoder::WireDecoder): frames become events |
//! | [`decode`] | a body and a decoder become a model's stream |

pub mod byte_stream;
pub mod classify;
pub mod decode;
pub mod decoder;
pub(crate) mod ndjson;
mod repeated_text;
pub mod retry;
pub(crate) mod sse;
pub mod transport;
