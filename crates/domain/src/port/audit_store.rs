//! The port for stored audit records.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Principal, SessionStoreError};

/// Maximum size of an audit record as JSON, in bytes.
pub const MAX_AUDIT_RECORD_BYTES: usize = 64 << 10;

/// An audit record that was read from a store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAuditRecord {
    /// The id of the record, unique within a store. Ids sort in the order of storage.
    pub id: String,
    /// The record, a JSON object. The store does not interpret it.
    pub record: Value,
}

/// Stores audit records. A principal can read only its own records. They do not belong to a
/// session, so that they remain when a session is deleted.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Appends records, each with its principal, in this order: all of them, or none. Fails with
    /// [`SessionStoreError::TooLarge`] if a record exceeds [`MAX_AUDIT_RECORD_BYTES`].
    async fn append_audit_records(
        &self,
        records: &[(Principal, Arc<str>)],
    ) -> Result<(), SessionStoreError>;

    /// Returns the records of a principal before the record with the id `before`, newest first, at
    /// most `limit`. An empty `before` selects the newest records.
    async fn list_audit_records(
        &self,
        owner: &Principal,
        before: &str,
        limit: u32,
    ) -> Result<Vec<StoredAuditRecord>, SessionStoreError>;

    /// Returns the records of a principal after the record with the id `after`, oldest first, at
    /// most `limit`. An empty `after` selects the oldest records.
    async fn load_audit_records_after(
        &self,
        owner: &Principal,
        after: &str,
        limit: u32,
    ) -> Result<Vec<StoredAuditRecord>, SessionStoreError>;
}
