//! Conversations, runs and their events, kept in SQLite or PostgreSQL.
#![deny(missing_docs)]
