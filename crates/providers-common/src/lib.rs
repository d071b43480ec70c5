//! providers-common
