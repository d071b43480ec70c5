//! What the tools ask the database.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::SqlitePool;

use super::support_ticket::Priority;
use crate::{
    ServerError,
    sqlite::{self, Layout},
};

pub(super) const LAYOUT: Layout = Layout {
    // "sbcs" in ASCII.
    application_id: 0x7362_6373,
    version: 1,
    schema: include_str!("schema.sql"),
    seed: include_str!("seed.sql"),
};

/// The customers, purchases and tickets. Clones share one connection.
#[derive(Clone)]
pub(super) struct Store {
    pool: SqlitePool,
}

#[derive(Serialize, JsonSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "`customer_id` is what the other tools call it"
)]
pub(super) struct Customer {
    /// The number that other tools take.
    pub(super) customer_id: i64,
    pub(super) name: String,
    pub(super) email: String,
    pub(super) city: String,
    pub(super) country: String,
    /// The day on which the customer joined, YYYY-MM-DD.
    #[schemars(extend("format" = "date"))]
    pub(super) joined: String,
}

/// What a customer has bought so far.
pub(super) struct Account {
    pub(super) customer_name: String,
    pub(super) purchases: i64,
    /// The sum of the purchases in cents of [`super::CURRENCY`].
    pub(super) cents: i64,
}

/// A ticket that has been written.
pub(super) struct NewTicket {
    pub(super) ticket_id: i64,
    pub(super) customer_name: String,
    pub(super) status: String,
}

impl Store {
    /// In memory, or in a file.
    pub(super) async fn open(file: Option<&Path>) -> Result<Self, ServerError> {
        let pool = sqlite::open(&LAYOUT, file).await?;
        Ok(Self { pool })
    }

    /// At most `limit` customers, the latest first, and how many there are without the limit.
    /// `since` (YYYY-MM-DD) leaves out those who joined earlier.
    pub(super) async fn recent_customers(
        &self,
        limit: i64,
        since: Option<&str>,
    ) -> Result<(Vec<Customer>, i64), sqlx::Error> {
        type Row = (i64, String, String, String, String, String, i64);
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT customer_id, name, email, city, country, joined_on, COUNT(*) OVER () \
             FROM customers WHERE $2 IS NULL OR joined_on >= $2 \
             ORDER BY joined_on DESC, customer_id DESC LIMIT $1",
        )
        .bind(limit)
        .bind(since)
        .fetch_all(&self.pool)
        .await?;
        let matching = rows.first().map_or(0, |row| row.6);
        let customers = rows.into_iter().map(
            |(customer_id, name, email, city, country, joined, _)| Customer {
                customer_id,
                name,
                email,
                city,
                country,
                joined,
            },
        );
        Ok((customers.collect(), matching))
    }

    /// The day on which the latest customer joined.
    pub(super) async fn latest_join(&self) -> Result<Option<String>, sqlx::Error> {
        sqlx::query_scalar("SELECT MAX(joined_on) FROM customers")
            .fetch_one(&self.pool)
            .await
    }

    /// The lowest and the highest number of a customer.
    pub(super) async fn customer_ids(&self) -> Result<Option<(i64, i64)>, sqlx::Error> {
        let (first, last): (Option<i64>, Option<i64>) =
            sqlx::query_as("SELECT MIN(customer_id), MAX(customer_id) FROM customers")
                .fetch_one(&self.pool)
                .await?;
        Ok(first.zip(last))
    }

    /// The account of a customer, if there is this customer.
    pub(super) async fn account(&self, customer_id: i64) -> Result<Option<Account>, sqlx::Error> {
        let row: Option<(String, i64, i64)> = sqlx::query_as(
            "SELECT name, COUNT(purchase_id), COALESCE(SUM(amount_cents), 0) \
             FROM customers LEFT JOIN purchases USING (customer_id) \
             WHERE customer_id = $1 GROUP BY customer_id",
        )
        .bind(customer_id)
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|(customer_name, purchases, cents)| Account {
            customer_name,
            purchases,
            cents,
        }))
    }

    /// Writes a ticket, if there is this customer. It is on disk when this returns.
    pub(super) async fn create_ticket(
        &self,
        customer_id: i64,
        subject: &str,
        description: Option<&str>,
        priority: Priority,
    ) -> Result<Option<NewTicket>, sqlx::Error> {
        // One statement, so there is no moment between looking for the customer and writing.
        let row: Option<(i64, String, String)> = sqlx::query_as(
            "INSERT INTO support_tickets (customer_id, subject, description, priority) \
             SELECT customer_id, $2, $3, $4 FROM customers WHERE customer_id = $1 \
             RETURNING ticket_id, status, \
             (SELECT name FROM customers WHERE customers.customer_id = $1)",
        )
        .bind(customer_id)
        .bind(subject)
        .bind(description)
        .bind(priority.as_str())
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|(ticket_id, status, customer_name)| NewTicket {
            ticket_id,
            customer_name,
            status,
        }))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
