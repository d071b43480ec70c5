//! Shared test code for every crate. Use it as a dev-dependency only.
//!
//! | module | holds |
//! |---|---|
//! | [`fake`] | [`FakeModel`](fake::FakeModel): a scripted model server on loopback, for any wire |
//! | [`fixtures`] | conversations that every provider must map |
//! | [`hostile`] | slow JSON Schemas and values, and a heartbeat |
//! | [`loopback`] | shared checks of adapters over real HTTP |
//! | [`transcripts`] | recorded answers in `transcripts/<wire>/` |
//! | `trapi` | a stand-in for the knowledge service of the server `bte` (feature `trapi`) |
//! | [`replay`] | feeds a transcript to a decoder in every way a network may cut it |
//!
//! The golden tests (one fixture, every provider, one snapshot each) and the replay tests are in
//! this crate's `tests/` folder.
//!
//! The only workspace crate that it depends on is `domain`. Tests pass a decoder to
//! [`replay::replay`] as a closure from a body to a model's stream, like the start of every
//! provider's stream.
#![deny(missing_docs)]

pub mod fake;
pub mod fixtures;
pub mod hostile;
pub mod loopback;
pub mod replay;
pub mod transcripts;
#[cfg(feature = "trapi")]
pub mod trapi;
