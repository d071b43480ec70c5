//! What the provider adapters share.
#![deny(missing_docs)]

pub mod decoder;

pub use decoder::WireDecoder;
