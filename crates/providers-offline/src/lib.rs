//! providers-offline: not yet built.
#![deny(missing_docs)]
