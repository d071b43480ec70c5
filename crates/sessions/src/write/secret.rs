//! Secrets of the store itself.

use async_trait::async_trait;
use switchboard_domain::IdKey;
use uuid::Uuid;

use crate::{
    database::{Row, values},
    error::Refusal,
    transaction::Transaction,
    writer::Write,
};

/// Reads the key of ids.
pub(crate) const READ_ID_KEY: &str = "SELECT value FROM secrets WHERE name = 'id_key'";

/// Reads the key from the row that [`READ_ID_KEY`] finds.
pub(crate) fn id_key(row: &Row) -> Result<IdKey, sqlx::Error> {
    Ok(IdKey::new(row.text(0)?))
}

/// Makes the key of ids if there is none, and returns the one that there is.
pub(crate) struct MakeIdKey;

#[async_trait]
impl Write for MakeIdKey {
    type Answer = IdKey;
    const WHAT: &'static str = "make the key of ids";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<IdKey, Refusal> {
        const ADD: &str =
            "INSERT INTO secrets (name, value) VALUES ('id_key', $1) ON CONFLICT (name) DO NOTHING";
        // 244 bits of a cryptographic generator.
        let random = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        tx.execute(ADD, values![&random]).await?;
        let row = tx.row(READ_ID_KEY, values![]).await?;
        let row = row.ok_or(sqlx::Error::RowNotFound)?;
        Ok(id_key(&row)?)
    }
}
