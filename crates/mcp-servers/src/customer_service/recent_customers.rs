//! The tool `get_recent_customers`, which lists the latest customers.

use std::fmt::Write as _;

use rusqlite::{Transaction, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    sqlite::Database,
    tool::{BundledTool, ToolOutput, ToolResult},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Maximum number of customers to list.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: i64,
    /// List only customers who joined on this day or later, YYYY-MM-DD.
    #[schemars(extend("format" = "date"))]
    since: Option<String>,
}

fn default_limit() -> i64 {
    10
}

#[derive(Serialize, JsonSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "the other tools have the same name `customer_id`"
)]
struct Customer {
    /// The number of the customer, for calls of other tools.
    customer_id: i64,
    name: String,
    email: String,
    city: String,
    country: String,
    /// The day on which the customer joined, YYYY-MM-DD.
    #[schemars(extend("format" = "date"))]
    joined: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The customers, the latest first.
    customers: Vec<Customer>,
    /// Number of customers that match, including those that are not listed.
    matching: i64,
}

pub(super) fn recent_customers_tool(database: Database) -> BundledTool {
    BundledTool::new(
        "get_recent_customers",
        "Recent customers",
        "Lists the customers who joined most recently, the latest first, with customer_id, \
         name, e-mail, city, country and the day they joined.",
        database,
        run_tool,
    )
}

async fn run_tool(database: Database, input: Input) -> ToolResult<Output> {
    database
        .read_in_transaction(move |transaction| recent_customers(transaction, &input))
        .await
}

fn recent_customers(transaction: &Transaction<'_>, input: &Input) -> ToolResult<Output> {
    let mut statement = transaction.prepare(
        "SELECT customer_id, name, email, city, country, joined_on, COUNT(*) OVER () \
         FROM customers WHERE ?2 IS NULL OR joined_on >= ?2 \
         ORDER BY joined_on DESC, customer_id DESC LIMIT ?1",
    )?;
    let mut rows = statement.query(params![input.limit, input.since])?;
    let (mut customers, mut matching, mut lines) = (Vec::new(), 0, String::new());
    while let Some(row) = rows.next()? {
        let customer = Customer {
            customer_id: row.get(0)?,
            name: row.get(1)?,
            email: row.get(2)?,
            city: row.get(3)?,
            country: row.get(4)?,
            joined: row.get(5)?,
        };
        matching = row.get(6)?;
        let Customer {
            customer_id,
            name,
            email,
            city,
            country,
            joined,
        } = &customer;
        let _ = write!(
            lines,
            "\n- {customer_id}: {name}, {email}, {city}, {country}, joined {joined}"
        );
        customers.push(customer);
    }
    let text = match &input.since {
        Some(since) if customers.is_empty() => {
            let sql = "SELECT MAX(joined_on) FROM customers";
            let latest: String = transaction.query_row(sql, [], |row| row.get(0))?;
            format!("No customer joined on or after {since}; the latest joined on {latest}.")
        }
        since => format_list_heading(customers.len(), matching, since.as_deref()) + &lines,
    };
    let data = Output {
        customers,
        matching,
    };
    Ok(ToolOutput { text, data })
}

fn format_list_heading(listed: usize, matching: i64, since: Option<&str>) -> String {
    let of_all = if i64::try_from(listed).is_ok_and(|listed| listed < matching) {
        format!(" of {matching}")
    } else {
        String::new()
    };
    let plural = if listed == 1 && of_all.is_empty() {
        ""
    } else {
        "s"
    };
    let since = since.map_or_else(String::new, |since| {
        format!(" who joined on or after {since}")
    });
    format!("{listed}{of_all} customer{plural}{since}, the latest first:")
}
