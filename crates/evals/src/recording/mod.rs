//! Runs that are written down and can be had again without network.
//!
//! What a run hears from outside comes through two ports: the model and the tool host. A [`Recorder`] stands
//! before both and writes down what they are asked and what they answer, with the time of every event; a
//! [`Player`] stands in for both and answers the same requests in the same way. Between them is a file of JSON
//! Lines, in which every message and every list of tools stands once however often it was sent.
//!
//! **Secrets** are taken out before anything is written: the values that the recorder was told of, what stands
//! under a name like `token` in a tool's input or result, and what reads like a key. A secret that a stream
//! cut in two is found as well. In a request that is looked for later, anything may stand where something was taken
//! out: it need not be known any more, and may be another. A call whose input was struck out may be refused now, or
//! end in another way: the answers after it come in their order. What the host gives to tools behind the model's back
//! ([`Recorder::hiding`]) is not written either.
//!
//! **Matching**: a request is answered by the recorded answer to the same request: the same messages, tools,
//! choice and settings. The ids of tool uses may differ, since some providers draw them anew; what a provider
//! wants back unchanged, such as signatures of thinking, must be the same. If there is none, the error says
//! where the most similar one differs. [`Matching::Order`] takes the recorded answers in their order
//! instead, for requests that hold a date. Conversations that go on at once are recorded as tracks
//! ([`Recorder::track`], [`Player::track`]), so that each gets its own again whoever is first. Where nobody knows which
//! track a conversation is, as in a server with its clients, it is found by what is asked ([`Player::conversation`]).

mod error;
mod format;
mod matching;
mod numbers;
mod player;
mod recorder;
mod redaction;
mod whose;

pub use error::RecordingError;
pub use matching::Matching;
pub(crate) use matching::same_text;
pub use player::{Pace, Player};
pub use recorder::Recorder;
pub(crate) use redaction::REDACTED;
pub use redaction::Scrubber;
