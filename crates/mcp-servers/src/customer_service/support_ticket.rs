//! `create_support_ticket`.

use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{store::Store, unknown_customer};
use crate::tool::{BundledTool, ToolError, ToolOutput};

pub(super) struct CreateSupportTicket(pub(super) Store);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The number of the customer, as `get_recent_customers` lists it.
    #[schemars(range(min = 1))]
    customer_id: i64,
    /// The topic in a few words.
    #[schemars(length(min = 1, max = 200))]
    subject: String,
    /// The complete description, if the subject is not sufficient.
    #[schemars(length(max = 5000))]
    description: Option<String>,
    /// The urgency.
    #[serde(default)]
    priority: Priority,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    /// Returns the name of the priority in JSON and in the database.
    pub(super) fn as_str(self) -> &'static str {
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
    /// "open" for a new ticket.
    status: String,
}

impl BundledTool for CreateSupportTicket {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "create_support_ticket";
    const TITLE: &'static str = "New support ticket";
    const DESCRIPTION: &'static str = "Opens a new support ticket for a customer and returns its \
        number. Every call opens one more.";

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(false)
            .destructive(false)
            .idempotent(false)
            .open_world(false)
    }

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let Input {
            customer_id,
            priority,
            ..
        } = input;
        let subject = input.subject.trim();
        if subject.is_empty() {
            return Err(ToolError::Refused(
                "subject is blank. Write the topic of the ticket in a few words.".to_owned(),
            ));
        }
        let description = input.description.as_deref().map(str::trim);
        let description = description.filter(|text| !text.is_empty());
        let ticket = self
            .0
            .create_ticket(customer_id, subject, description, priority)
            .await?;
        let Some(ticket) = ticket else {
            return Err(unknown_customer(&self.0, customer_id).await);
        };
        Ok(ToolOutput {
            text: format!(
                "Ticket {} is {} for customer {customer_id} ({}) with {} priority: {subject}",
                ticket.ticket_id,
                ticket.status,
                ticket.customer_name,
                priority.as_str(),
            ),
            data: Output {
                ticket_id: ticket.ticket_id,
                customer_id,
                customer_name: ticket.customer_name,
                subject: subject.to_owned(),
                description: description.map(str::to_owned),
                priority,
                status: ticket.status,
            },
        })
    }
}
