//! Counting of tool calls for limits per minute.

use async_trait::async_trait;
use switchboard_domain::{
    CallRateCounter, CallRateLimits, Principal, ReachedCallRate, SessionStoreError,
};

#[cfg(feature = "postgres")]
use crate::database::DatabaseKind;
use crate::{
    Store,
    database::{DatabaseError, values},
};

const MINUTE_US: i64 = 60_000_000;

#[async_trait]
impl CallRateCounter for Store {
    async fn count_call(
        &self,
        principal: &Principal,
        tool: &str,
        limits: CallRateLimits,
        now_us: i64,
    ) -> Result<Option<ReachedCallRate>, SessionStoreError> {
        // The statement removes calls of more than a minute ago. It also removes calls with a time
        // of more than a minute in the future: they exist if the system clock was set back.
        const REMOVE: &str = "DELETE FROM tool_calls WHERE at_us <= $1 OR at_us > $2";
        const COUNT: &str = "SELECT COUNT(*), COUNT(CASE WHEN tool = $3 THEN 1 END)
            FROM tool_calls WHERE tenant = $1 AND person = $2";
        const INSERT: &str =
            "INSERT INTO tool_calls (tenant, person, tool, at_us) VALUES ($1, $2, $3, $4)";
        let (principal, tool) = (principal.clone(), tool.to_owned());
        self.perform_write("count a tool call", async move |tx| {
            let connection = &mut *tx.connection;
            #[cfg(feature = "postgres")]
            if connection.database_kind() == DatabaseKind::Postgres {
                // Other processes of the principal wait until this call is counted.
                const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext($1 || '/' || $2))::text";
                let of = values![&principal.tenant, &principal.user];
                connection.query_rows(LOCK, of).await?;
            }
            connection
                .execute(REMOVE, values![now_us - MINUTE_US, now_us + MINUTE_US])
                .await?;
            let of = values![&principal.tenant, &principal.user, &tool];
            let row = connection.query_row(COUNT, of).await?;
            let (all, same) = row.map_or(Ok((0, 0)), |row| {
                Ok::<_, DatabaseError>((row.read_int(0)?, row.read_int(1)?))
            })?;
            let reached = limits.find_reached_limit(all.unsigned_abs(), same.unsigned_abs());
            if reached.is_none() {
                let call = values![&principal.tenant, &principal.user, &tool, now_us];
                connection.execute(INSERT, call).await?;
            }
            Ok(reached)
        })
        .await
    }
}
