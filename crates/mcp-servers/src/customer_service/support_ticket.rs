//! The tool `create_support_ticket`, which stores a new ticket.

use rusqlite::{OptionalExtension as _, Transaction, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unknown_customer;
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
    /// The topic of the ticket in a few words.
    #[schemars(length(min = 1, max = 200))]
    subject: String,
    /// The complete description of the problem, if the subject is not sufficient.
    #[schemars(length(max = 5000))]
    description: Option<String>,
    /// The urgency of the ticket.
    #[serde(default)]
    priority: Priority,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    /// Returns the name of the priority as JSON and the database contain it, such as `low`.
    fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The number of the new ticket.
    ticket_id: i64,
    customer_id: i64,
    customer_name: String,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    description: Option<String>,
    priority: Priority,
    /// The status of the ticket: "open" for a new one.
    status: String,
}

pub(super) fn support_ticket_tool(database: Database) -> BundledTool {
    BundledTool::new(
        "create_support_ticket",
        "New support ticket",
        "Opens a new support ticket for a customer and returns its number. Every call opens one \
         more.",
        database,
        run_tool,
    )
    .map_annotations(|it| it.read_only(false).idempotent(false))
}

async fn run_tool(database: Database, input: Input) -> ToolResult<Output> {
    database
        .write_in_transaction(move |transaction| create_ticket(transaction, &input))
        .await
}

fn create_ticket(transaction: &Transaction<'_>, input: &Input) -> ToolResult<Output> {
    let &Input {
        customer_id,
        priority,
        ..
    } = input;
    let subject = input.subject.trim();
    if subject.is_empty() {
        return Err("subject is blank. Write the topic of the ticket in a few words.".into());
    }
    let description = input.description.as_deref().map(str::trim);
    let description = description.filter(|text| !text.is_empty());
    let ticket = transaction.query_row(
        "INSERT INTO support_tickets (customer_id, subject, description, priority) \
         SELECT customer_id, ?2, ?3, ?4 FROM customers WHERE customer_id = ?1 \
         RETURNING ticket_id, status, \
         (SELECT name FROM customers WHERE customers.customer_id = ?1)",
        params![customer_id, subject, description, priority.as_str()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    );
    let ticket: Option<(i64, String, String)> = ticket.optional()?;
    let Some((ticket_id, status, customer_name)) = ticket else {
        return unknown_customer(transaction, customer_id);
    };
    let text = format!(
        "Ticket {ticket_id} is {status} for customer {customer_id} ({customer_name}) with {} \
         priority: {subject}",
        priority.as_str(),
    );
    let data = Output {
        ticket_id,
        customer_id,
        customer_name,
        subject: subject.to_owned(),
        description: description.map(str::to_owned),
        priority,
        status,
    };
    Ok(ToolOutput { text, data })
}
