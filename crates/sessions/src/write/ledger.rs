//! Audit entries and permanent decisions about tools.

use async_trait::async_trait;
use switchboard_domain::{AuditEntry, Principal};

use super::{
    queue::{Refusal, Write},
    transaction::Transaction,
};
use crate::database::values;

pub(crate) struct AppendAudit {
    pub(crate) owner: Principal,
    pub(crate) entries: Vec<AuditEntry>,
}

#[async_trait]
impl Write for AppendAudit {
    type Output = ();
    const OPERATION: &'static str = "append to the audit";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const ADD: &str = "INSERT INTO audit (tenant, person, at, run, entry, stored_us)
            VALUES ($1, $2, $3, $4, $5, $6)";
        for entry in &self.entries {
            let values = values![
                &self.owner.tenant,
                &self.owner.user,
                &entry.time,
                entry.run.as_deref(),
                &*entry.json,
                tx.now.microseconds,
            ];
            tx.execute(ADD, values).await?;
        }
        Ok(())
    }
}

pub(crate) struct StoreDecisions {
    pub(crate) owner: Principal,
    pub(crate) json: String,
    pub(crate) expected: ExpectedDecisions,
}

/// The condition on the stored decisions for replacing them.
pub(crate) enum ExpectedDecisions {
    Any,
    Missing,
    Equal(String),
}

#[async_trait]
impl Write for StoreDecisions {
    type Output = bool;
    const OPERATION: &'static str = "store decisions";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<bool, Refusal> {
        const SET: &str = "INSERT INTO decisions (tenant, person, decisions) VALUES ($1, $2, $3)
            ON CONFLICT (tenant, person) DO UPDATE SET decisions = excluded.decisions";
        const ADD: &str = "INSERT INTO decisions (tenant, person, decisions) VALUES ($1, $2, $3)
            ON CONFLICT (tenant, person) DO NOTHING";
        const REPLACE: &str = "UPDATE decisions SET decisions = $3
            WHERE tenant = $1 AND person = $2 AND decisions = $4";
        let mut values = values![&self.owner.tenant, &self.owner.user, &self.json];
        let sql = match &self.expected {
            ExpectedDecisions::Any => SET,
            ExpectedDecisions::Missing => ADD,
            ExpectedDecisions::Equal(expected) => {
                values.extend(values![expected]);
                REPLACE
            }
        };
        Ok(tx.execute(sql, values).await? > 0)
    }
}
