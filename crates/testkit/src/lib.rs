//! testkit (not yet built)
