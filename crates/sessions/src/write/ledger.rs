//! The audit, and what was decided about tools.

use async_trait::async_trait;
use switchboard_domain::{AuditEntry, Principal};

use crate::{database::values, error::Refusal, transaction::Transaction, writer::Write};

pub(crate) struct Audit {
    pub(crate) owner: Principal,
    pub(crate) entries: Vec<AuditEntry>,
}

#[async_trait]
impl Write for Audit {
    type Answer = ();
    const WHAT: &'static str = "append to the audit";

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

pub(crate) struct KeepDecisions {
    pub(crate) owner: Principal,
    pub(crate) json: String,
    pub(crate) before: Before,
}

/// What they must be now.
pub(crate) enum Before {
    Anything,
    Nothing,
    Exactly(String),
}

#[async_trait]
impl Write for KeepDecisions {
    type Answer = bool;
    const WHAT: &'static str = "keep decisions";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<bool, Refusal> {
        const SET: &str = "INSERT INTO decisions (tenant, person, decisions) VALUES ($1, $2, $3)
            ON CONFLICT (tenant, person) DO UPDATE SET decisions = excluded.decisions";
        const ADD: &str = "INSERT INTO decisions (tenant, person, decisions) VALUES ($1, $2, $3)
            ON CONFLICT (tenant, person) DO NOTHING";
        const REPLACE: &str = "UPDATE decisions SET decisions = $3
            WHERE tenant = $1 AND person = $2 AND decisions = $4";
        let mut values = values![&self.owner.tenant, &self.owner.user, &self.json];
        let sql = match &self.before {
            Before::Anything => SET,
            Before::Nothing => ADD,
            Before::Exactly(before) => {
                values.extend(values![before]);
                REPLACE
            }
        };
        Ok(tx.execute(sql, values).await? > 0)
    }
}
