//! `customer-service`: customers, purchases and support tickets of an invented coffee shop.

mod account_value;
mod recent_customers;
mod support_ticket;

use rusqlite::Transaction;

use crate::{
    error::ServerError,
    options::ServerOptions,
    sqlite::{Database, Layout},
    tool::{BundledServer, ToolError, server::ToolServer},
};
use account_value::account_value_tool;
use recent_customers::recent_customers_tool;
use support_ticket::support_ticket_tool;

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "customer-service",
    title: "Customer service",
    description: "Customers of a fictional shop, the value of their accounts, and support tickets",
};

static LAYOUT: Layout = Layout {
    // The id identifies database files of this server. It spells "sbcs" in ASCII.
    application_id: 0x7362_6373,
    version: 1,
    schema: include_str!("schema.sql"),
    seed: include_str!("seed.sql"),
};

/// Currency of all amounts in the shop (ISO 4217).
const CURRENCY: &str = "EUR";

pub(crate) async fn open_server(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    let database = Database::open(&LAYOUT, options.data.as_deref()).await?;
    let storage = match options.data {
        Some(_) => "New tickets are stored.",
        None => "New tickets are lost when the server stops.",
    };
    let instructions = format!(
        "Customers of a fictional shop. A customer is identified by customer_id, an integer; \
         get_recent_customers lists customers with their ids. Amounts are in euros ({CURRENCY}); \
         fields that end in _cents are integers in cents. Dates are written YYYY-MM-DD. {storage}"
    );
    let tools = vec![
        recent_customers_tool(database.clone()),
        support_ticket_tool(database.clone()),
        account_value_tool(database),
    ];
    Ok(ToolServer::new(IDENTITY, instructions, tools))
}

/// Returns the error for the model that no customer has this id. The error contains the lowest and
/// the highest customer id.
fn unknown_customer<T>(transaction: &Transaction<'_>, customer_id: i64) -> Result<T, ToolError> {
    let sql = "SELECT MIN(customer_id), MAX(customer_id) FROM customers";
    let ids = transaction.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
    let (first, last): (i64, i64) = ids?;
    Err(format!(
        "There is no customer {customer_id}; ids range from {first} to {last}. \
         get_recent_customers lists customers."
    )
    .into())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
