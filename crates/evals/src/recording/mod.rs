//! Runs that are written down and can be had again without network.
//!
//! What a run hears from outside comes through two ports: the model and the tool host. A [`Recorder`] stands
//! before both and writes down what they are asked and what they answer, with the time of every event; a
//! [`Player`] stands in for both and answers the same requests in the same way. Between them is a file of JSON
//! Lines, in which every message and every list of tools stands once however often it was sent.
//!
//! **Secrets** are taken out before anything is written: the values that the recorder was told of, what stands
//! under a name like `token` in a tool's input or result, and what reads like a key. A secret that a stream
//! cut in two is found as well.
//!
//! **Matching**: a request is answered by the recorded answer to the same request: the same messages, tools,
//! choice and settings. The ids of tool uses may differ, since some providers draw them anew; what a provider
//! wants back unchanged, such as signatures of thinking, must be the same. If there is none, the error says
//! where the most similar one differs. [`Matching::Order`] takes the recorded answers in their order
//! instead, for requests that hold a date.

mod error;
mod file;
mod matching;
mod play;
mod record;
mod scrub;

pub use error::RecordingError;
pub use matching::Matching;
pub use play::{Pace, Player};
pub use record::Recorder;
pub use scrub::Scrubber;
