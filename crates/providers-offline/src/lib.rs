//! providers-offline
