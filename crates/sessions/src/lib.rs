//! Conversations, runs and their events, kept in SQLite or PostgreSQL.
//!
//! [`Store`] implements [`SessionStore`](switchboard_domain::SessionStore) and
//! [`RunStore`](switchboard_domain::RunStore). It behaves the same on both databases.
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
//! store.create(&me, &session).await?;
//! store.append(&me, &session.id, 0, &[Message::user("Hello").into()]).await?;
//! store.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! All writes of a process go through one task, which takes everything that is queued, does it in one
//! transaction and then answers each: a thousand runs that append events cost few commits.
//!
//! Each open store is an *instance*, which holds a lock for as long as it lives: of the operating system for
//! SQLite, of the server for PostgreSQL. A run whose instance holds its lock no more is interrupted, at once and
//! for everybody.
#![deny(missing_docs)]

mod database;
mod depth;
mod elements;
mod error;
mod export;
mod import;
mod instance;
mod long_read;
mod options;
mod place;
mod read;
mod record;
mod retention;
mod schema;
mod sqlite;
mod store;
mod transaction;
mod wish;
mod write;
mod writer;

pub use error::{ImportError, OpenError};
pub use export::Export;
pub use import::{ImportIds, Imported};
pub use options::{Durability, StoreOptions};
pub use retention::{Pruned, Retention};
pub use store::Store;
