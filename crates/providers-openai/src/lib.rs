//! providers-openai: not yet built.
#![deny(missing_docs)]
