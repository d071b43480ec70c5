//! providers-openai
