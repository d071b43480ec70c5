//! Storage of conversations, runs and their events in SQLite or PostgreSQL.
//!
//! [`Store`] implements [`SessionStore`](switchboard_domain::SessionStore) and
//! [`RunStore`](switchboard_domain::RunStore). It behaves the same on both databases.
//! PostgreSQL needs the feature `postgres`.
//!
//! ```no_run
//! use switchboard_domain::{Message, Principal, Session, SessionId, SessionStore as _};
//! use switchboard_sessions::{Store, StoreOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::open(StoreOptions::sqlite("data/sessions.db")).await?;
//! let me = Principal::default();
//! let session = Session {
//!     id: SessionId("first".into()),
//!     title: String::new(),
//!     created_at: "2026-11-21T12:00:00Z".into(),
//!     messages: 0,
//! };
//! store.create_session(&me, &session).await?;
//! store.append_messages(&me, &session.id, 0, &[Message::user("Hello").into()]).await?;
//! store.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! One thread of a process performs all writes. It executes all queued writes in one transaction
//! and then notifies each caller, so a thousand runs that append events need few commits.
//!
//! Each open store is an *instance*. It holds a lock as long as it exists: a lock of the operating
//! system for SQLite, a lock of the server for PostgreSQL. A run whose instance has lost its lock
//! is interrupted.
#![deny(missing_docs)]

mod database;
mod error;
mod json_limits;
mod options;
mod retention;
mod rows;
mod runs;
mod sessions;
mod store;
mod transfer;
mod write;

pub use error::{ImportError, StoreOpenError};
pub use options::{Durability, StoreOptions};
pub use retention::Retention;
pub use store::Store;
pub use transfer::{ImportIdPolicy, ImportSummary};
