//! testkit: not yet built.
#![deny(missing_docs)]
