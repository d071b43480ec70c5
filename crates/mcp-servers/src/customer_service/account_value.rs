//! The tool `calculate_account_value`, which sums the purchases of a customer.

use rusqlite::{OptionalExtension as _, Transaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CURRENCY, unknown_customer};
use crate::{
    sqlite::Database,
    tool::{BundledTool, ToolOutput, ToolResult},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The number of the customer, as `get_recent_customers` lists it.
    #[schemars(range(min = 1))]
    customer_id: i64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    customer_id: i64,
    customer_name: String,
    /// The sum of all purchases in the currency's main unit, with two decimals: "1234.50".
    #[schemars(regex(pattern = r"^\d+\.\d{2}$"))]
    account_value: String,
    /// The account value as an integer in cents: 123450.
    account_value_cents: i64,
    /// The currency of the account value (ISO 4217).
    currency: &'static str,
    /// Number of purchases that the account value includes.
    purchases: i64,
}

pub(super) fn account_value_tool(database: Database) -> BundledTool {
    BundledTool::new(
        "calculate_account_value",
        "Account value",
        "Calculates the account value of one customer: the sum of all purchases, in euros.",
        database,
        run_tool,
    )
}

async fn run_tool(database: Database, Input { customer_id }: Input) -> ToolResult<Output> {
    database
        .read_in_transaction(move |transaction| account_value(transaction, customer_id))
        .await
}

fn account_value(transaction: &Transaction<'_>, customer_id: i64) -> ToolResult<Output> {
    let account = transaction.query_row(
        "SELECT name, COUNT(purchase_id), COALESCE(SUM(amount_cents), 0) \
         FROM customers LEFT JOIN purchases USING (customer_id) \
         WHERE customer_id = ?1 GROUP BY customer_id",
        [customer_id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    );
    let account: Option<(String, i64, i64)> = account.optional()?;
    let Some((customer_name, purchases, cents)) = account else {
        return unknown_customer(transaction, customer_id);
    };
    // The sum is not negative, because `schema.sql` excludes negative amounts.
    let account_value = format!("{}.{:02}", cents / 100, cents % 100);
    let from = match purchases {
        0 => "no purchases yet".to_owned(),
        1 => "1 purchase".to_owned(),
        many => format!("{many} purchases"),
    };
    let text = format!(
        "The account value of customer {customer_id} ({customer_name}) is \
         {account_value} {CURRENCY} ({from})."
    );
    let data = Output {
        customer_id,
        customer_name,
        account_value,
        account_value_cents: cents,
        currency: CURRENCY,
        purchases,
    };
    Ok(ToolOutput { text, data })
}
