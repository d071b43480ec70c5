//! Implementation of `AuditStore` for `Store`.

use std::sync::Arc;

use async_trait::async_trait;
use switchboard_domain::{
    AuditStore, MAX_AUDIT_RECORD_BYTES, Principal, SessionStoreError, StoredAuditRecord,
};
use uuid::Uuid;

use crate::{
    Store,
    database::{DatabaseError, Row, values},
    json_limits::check_size,
};

const READ: &str = "read audit records";

#[async_trait]
impl AuditStore for Store {
    async fn append_audit_records(
        &self,
        records: &[(Principal, Arc<str>)],
    ) -> Result<(), SessionStoreError> {
        const ADD: &str = "INSERT INTO audit (id, tenant, person, at_us, record)
            VALUES ($1, $2, $3, $4, $5)";
        for (_, record) in records {
            check_size("an audit record", record, MAX_AUDIT_RECORD_BYTES)?;
        }
        let records = records.to_vec();
        self.perform_write("store audit records", async move |tx| {
            for (owner, record) in &records {
                // The ids that a process creates are in ascending order.
                let id = Uuid::now_v7().simple().to_string();
                let (tenant, at) = (&owner.tenant, tx.now.microseconds);
                let values = values![&id, tenant, &owner.user, at, &**record];
                tx.connection.execute(ADD, values).await?;
            }
            Ok(())
        })
        .await
    }

    async fn list_audit_records(
        &self,
        owner: &Principal,
        before: &str,
        limit: u32,
    ) -> Result<Vec<StoredAuditRecord>, SessionStoreError> {
        const LIST: &str = "SELECT id, record FROM audit
            WHERE tenant = $1 AND person = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
        // Ids are hexadecimal, so that `g` sorts after all of them.
        let before = if before.is_empty() { "g" } else { before };
        let values = values![&owner.tenant, &owner.user, before, i64::from(limit)];
        self.read_rows(READ, LIST, values, read_record).await
    }

    async fn load_audit_records_after(
        &self,
        owner: &Principal,
        after: &str,
        limit: u32,
    ) -> Result<Vec<StoredAuditRecord>, SessionStoreError> {
        const LOAD: &str = "SELECT id, record FROM audit
            WHERE tenant = $1 AND person = $2 AND id > $3 ORDER BY id LIMIT $4";
        let values = values![&owner.tenant, &owner.user, after, i64::from(limit)];
        self.read_rows(READ, LOAD, values, read_record).await
    }
}

fn read_record(row: &Row) -> Result<StoredAuditRecord, DatabaseError> {
    let record = serde_json::from_str(&row.read_text(1)?);
    Ok(StoredAuditRecord {
        id: row.read_text(0)?,
        record: record.map_err(DatabaseError::unreadable_data)?,
    })
}
