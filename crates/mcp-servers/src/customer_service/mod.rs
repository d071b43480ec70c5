//! `customer-service`: customers, purchases and support tickets of an invented coffee shop.

mod account_value;
mod recent_customers;
mod store;
mod support_ticket;

use crate::{
    error::ServerError,
    options::ServerOptions,
    tool::{BundledServer, ServedTool, ToolError, server::ToolServer},
};
use account_value::CalculateAccountValue;
use recent_customers::GetRecentCustomers;
use store::Store;
use support_ticket::CreateSupportTicket;

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "customer-service",
    title: "Customer service",
    description: "Customers of an invented shop, the value of their accounts, and support tickets",
};

/// Currency of all amounts in the shop (ISO 4217).
const CURRENCY: &str = "EUR";

pub(crate) async fn open(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    let store = Store::open(options.data.as_deref()).await?;
    let storage = if options.data.is_some() {
        "New tickets are stored."
    } else {
        "New tickets are lost when the server ends."
    };
    let instructions = format!(
        "Customers of an invented shop. A customer is named by customer_id, an integer; \
         get_recent_customers lists customers with their ids. Amounts are in euros ({CURRENCY}); \
         fields that end in _cents are integers in cents. Dates are written YYYY-MM-DD. {storage}"
    );
    let tools = vec![
        ServedTool::new(GetRecentCustomers(store.clone())),
        ServedTool::new(CreateSupportTicket(store.clone())),
        ServedTool::new(CalculateAccountValue(store)),
    ];
    Ok(ToolServer::new(IDENTITY, instructions, tools))
}

/// Returns the error for an unknown customer id, with the valid range of ids.
async fn unknown_customer(store: &Store, customer_id: i64) -> ToolError {
    match store.customer_ids().await {
        Ok((first, last)) => ToolError::Refused(format!(
            "There is no customer {customer_id}; ids go from {first} to {last}. \
             get_recent_customers lists some."
        )),
        Err(error) => error,
    }
}
