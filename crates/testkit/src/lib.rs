//! What the tests of every crate share. A dev-dependency, never more.
//!
//! | module | holds |
//! |---|---|
//! | [`fake`] | [`FakeModel`](fake::FakeModel): a scripted model server on loopback, for any wire |
//! | [`fixtures`] | conversations that every provider has to map |
//! | [`hostile`] | JSON Schemas and values that are made to take long, and a heartbeat |
//! | [`loopback`] | what the test of every adapter over real HTTP needs |
//! | [`transcripts`] | answers as they came over the wires, stored in `transcripts/<wire>/` |
//! | `trapi` | a stand-in for the biomedical knowledge service that the server `bte` asks; a feature |
//! | [`replay`] | feeds a transcript to a decoder in every way a network may cut it |
//!
//! The golden tests (one fixture, every provider, one snapshot each) and the replay tests stand in
//! this crate's `tests/` folder.
//!
//! Of ours this crate depends on `domain` alone. A decoder reaches [`replay::replay`] as a closure
//! from a body to a model's stream, which is how every provider's stream begins.
#![deny(missing_docs)]

pub mod fake;
pub mod fixtures;
pub mod hostile;
pub mod loopback;
pub mod replay;
pub mod transcripts;
#[cfg(feature = "trapi")]
pub mod trapi;
