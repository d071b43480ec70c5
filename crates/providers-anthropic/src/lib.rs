//! providers-anthropic: not yet built.
#![deny(missing_docs)]
