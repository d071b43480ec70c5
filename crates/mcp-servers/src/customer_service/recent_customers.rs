//! The tool `get_recent_customers`, which lists the latest customers.

use std::fmt::Write as _;

use rusqlite::{Transaction, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    sqlite::Database,
    text::format_quantity,
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
    /// List only customers with this status: `new` has no purchase yet; `active` has a purchase
    /// within the year before the latest purchase of all customers.
    #[schemars(extend("enum" = ["new", "active", "inactive"]))]
    status: Option<String>,
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
    /// The status: new, active or inactive.
    status: String,
    /// The time of the latest purchase or ticket, or of joining, in UTC. The hour is unknown for
    /// purchases and joining.
    #[schemars(extend("format" = "date-time"))]
    last_activity: String,
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
         name, e-mail, city, country, the day they joined, status and last activity.",
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
    let mut statement = transaction.prepare(include_str!("recent_customers.sql"))?;
    let mut rows = statement.query(params![input.limit, input.since, input.status])?;
    let (mut customers, mut matching, mut lines) = (Vec::new(), 0, String::new());
    while let Some(row) = rows.next()? {
        let customer = Customer {
            customer_id: row.get(0)?,
            name: row.get(1)?,
            email: row.get(2)?,
            city: row.get(3)?,
            country: row.get(4)?,
            joined: row.get(5)?,
            status: row.get(6)?,
            last_activity: row.get(7)?,
        };
        matching = row.get(8)?;
        let it = &customer;
        let who = [it.name.as_str(), &it.email, &it.city, &it.country].join(", ");
        let (id, joined, status, last) =
            (it.customer_id, &it.joined, &it.status, &it.last_activity);
        let _ = write!(
            lines,
            "\n- {id}: {who}, joined {joined}, {status}, last activity {last}"
        );
        customers.push(customer);
    }
    let status = input.status.as_ref();
    let noun = status.map_or_else(
        || "customer".to_owned(),
        |status| format!("{status} customer"),
    );
    let text = match &input.since {
        Some(since) if customers.is_empty() => {
            let sql = "SELECT MAX(joined_on) FROM customers";
            let latest: String = transaction.query_row(sql, [], |row| row.get(0))?;
            format!("No {noun} joined on or after {since}; the latest customer joined on {latest}.")
        }
        since => format_list_heading(&noun, customers.len(), matching, since.as_deref()) + &lines,
    };
    let data = Output {
        customers,
        matching,
    };
    Ok(ToolOutput { text, data })
}

fn format_list_heading(noun: &str, listed: usize, matching: i64, since: Option<&str>) -> String {
    let matching = usize::try_from(matching).unwrap_or(usize::MAX);
    let mut heading = format_quantity(matching, noun);
    if listed < matching {
        heading = format!("{listed} of {heading}");
    }
    if let Some(since) = since {
        let _ = write!(heading, " who joined on or after {since}");
    }
    heading + ", the latest first:"
}
