//! Secrets of the store itself.

use async_trait::async_trait;
use switchboard_domain::IdKey;
use uuid::Uuid;

use super::{
    queue::{Refusal, Write},
    transaction::Transaction,
};
use crate::{
    database::{DatabaseError, values},
    rows::{READ_ID_KEY, read_id_key},
};

/// Creates the key of session ids if it is missing, and returns it.
pub(crate) struct CreateIdKey;

#[async_trait]
impl Write for CreateIdKey {
    type Output = IdKey;
    const OPERATION: &'static str = "create the key of session ids";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<IdKey, Refusal> {
        const ADD: &str =
            "INSERT INTO secrets (name, value) VALUES ('id_key', $1) ON CONFLICT (name) DO NOTHING";
        // 244 bits from a cryptographic generator.
        let random = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        tx.execute(ADD, values![&random]).await?;
        let row = tx.row(READ_ID_KEY, values![]).await?;
        let row = row.ok_or_else(|| DatabaseError::other("the key is missing"))?;
        Ok(read_id_key(&row)?)
    }
}
