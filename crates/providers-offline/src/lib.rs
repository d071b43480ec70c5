//! providers-offline (not yet built)
