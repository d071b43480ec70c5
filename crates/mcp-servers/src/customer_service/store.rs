//! Statements of the tools on the database.

use std::path::Path;

use rusqlite::{OptionalExtension as _, params};
use schemars::JsonSchema;
use serde::Serialize;

use super::support_ticket::Priority;
use crate::{
    error::ServerError,
    sqlite::{Database, Layout},
    tool::ToolError,
};

static LAYOUT: Layout = Layout {
    // The application id spells "sbcs" in ASCII.
    application_id: 0x7362_6373,
    version: 1,
    schema: include_str!("schema.sql"),
    seed: include_str!("seed.sql"),
};

/// A store of customers, purchases and support tickets. Clones share one connection.
#[derive(Clone)]
pub(super) struct Store {
    database: Database,
}

#[derive(Serialize, JsonSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "the other tools have the same name `customer_id`"
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

/// The sum and the number of one customer's purchases.
pub(super) struct Account {
    pub(super) customer_name: String,
    pub(super) purchases: i64,
    /// Sum of the purchases in cents of [`super::CURRENCY`].
    pub(super) cents: i64,
}

/// A created support ticket.
pub(super) struct NewTicket {
    pub(super) ticket_id: i64,
    pub(super) customer_name: String,
    pub(super) status: String,
}

impl Store {
    /// Opens the store in memory, or in `file` if there is one.
    pub(super) async fn open(file: Option<&Path>) -> Result<Self, ServerError> {
        let database = Database::open(&LAYOUT, file).await?;
        Ok(Self { database })
    }

    /// Returns at most `limit` customers, the latest first, and the number of all matching
    /// customers. With `since` (YYYY-MM-DD), only customers who joined on or after this day match.
    pub(super) async fn recent_customers(
        &self,
        limit: i64,
        since: Option<&str>,
    ) -> Result<(Vec<Customer>, i64), ToolError> {
        let since = since.map(str::to_owned);
        let read = self.database.read(move |transaction| {
            let mut statement = transaction.prepare(
                "SELECT customer_id, name, email, city, country, joined_on, COUNT(*) OVER () \
                 FROM customers WHERE ?2 IS NULL OR joined_on >= ?2 \
                 ORDER BY joined_on DESC, customer_id DESC LIMIT ?1",
            )?;
            let mut rows = statement.query(params![limit, since])?;
            let (mut customers, mut matching) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                customers.push(Customer {
                    customer_id: row.get(0)?,
                    name: row.get(1)?,
                    email: row.get(2)?,
                    city: row.get(3)?,
                    country: row.get(4)?,
                    joined: row.get(5)?,
                });
                matching = row.get(6)?;
            }
            Ok((customers, matching))
        });
        read.await
    }

    /// Returns the day on which the most recent customer joined.
    pub(super) async fn latest_join(&self) -> Result<String, ToolError> {
        let sql = "SELECT MAX(joined_on) FROM customers";
        let read = self
            .database
            .read(move |transaction| Ok(transaction.query_row(sql, [], |row| row.get(0))?));
        read.await
    }

    /// Returns the lowest and the highest customer id.
    pub(super) async fn customer_ids(&self) -> Result<(i64, i64), ToolError> {
        let sql = "SELECT MIN(customer_id), MAX(customer_id) FROM customers";
        let read = self.database.read(move |transaction| {
            Ok(transaction.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
        });
        read.await
    }

    /// Returns the purchase totals of a customer, or `None` for an unknown id.
    pub(super) async fn account(&self, customer_id: i64) -> Result<Option<Account>, ToolError> {
        let read = self.database.read(move |transaction| {
            let account = transaction.query_row(
                "SELECT name, COUNT(purchase_id), COALESCE(SUM(amount_cents), 0) \
                 FROM customers LEFT JOIN purchases USING (customer_id) \
                 WHERE customer_id = ?1 GROUP BY customer_id",
                [customer_id],
                |row| {
                    Ok(Account {
                        customer_name: row.get(0)?,
                        purchases: row.get(1)?,
                        cents: row.get(2)?,
                    })
                },
            );
            Ok(account.optional()?)
        });
        read.await
    }

    /// Stores a new support ticket durably. Returns `None` for an unknown customer id.
    pub(super) async fn create_ticket(
        &self,
        customer_id: i64,
        subject: &str,
        description: Option<&str>,
        priority: Priority,
    ) -> Result<Option<NewTicket>, ToolError> {
        let subject = subject.to_owned();
        let description = description.map(str::to_owned);
        let write = self.database.write(move |transaction| {
            let ticket = transaction.query_row(
                "INSERT INTO support_tickets (customer_id, subject, description, priority) \
                 SELECT customer_id, ?2, ?3, ?4 FROM customers WHERE customer_id = ?1 \
                 RETURNING ticket_id, status, \
                 (SELECT name FROM customers WHERE customers.customer_id = ?1)",
                params![customer_id, subject, description, priority.as_str()],
                |row| {
                    Ok(NewTicket {
                        ticket_id: row.get(0)?,
                        status: row.get(1)?,
                        customer_name: row.get(2)?,
                    })
                },
            );
            Ok(ticket.optional()?)
        });
        write.await
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
