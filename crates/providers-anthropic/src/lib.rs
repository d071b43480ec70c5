//! providers-anthropic
