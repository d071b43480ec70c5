//! providers-anthropic (not yet built)
