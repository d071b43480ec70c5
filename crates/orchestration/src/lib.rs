//! orchestration
