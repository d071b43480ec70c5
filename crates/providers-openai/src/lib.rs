//! providers-openai (not yet built)
