//! `get_recent_customers`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{Customer, Store};
use crate::tool::{BundledTool, ToolError, ToolOutput};

pub(super) struct GetRecentCustomers(pub(super) Store);

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
pub(super) struct Output {
    /// The customers, the latest first.
    customers: Vec<Customer>,
    /// Number of all matching customers.
    matching: i64,
}

impl BundledTool for GetRecentCustomers {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "get_recent_customers";
    const TITLE: &'static str = "Recent customers";
    const DESCRIPTION: &'static str = "Lists the customers who joined most recently, the latest \
        first, with customer_id, name, e-mail, city, country and the day they joined.";

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let since = input.since.as_deref();
        let (customers, matching) = self.0.recent_customers(input.limit, since).await?;
        let mut text = match since {
            Some(since) if customers.is_empty() => {
                let latest = self.0.latest_join().await?;
                format!("No customer joined on or after {since}; the latest joined on {latest}.")
            }
            _ => heading(customers.len(), matching, since),
        };
        for customer in &customers {
            let Customer {
                customer_id,
                name,
                email,
                city,
                country,
                joined,
            } = customer;
            let _ = write!(
                text,
                "\n- {customer_id}: {name}, {email}, {city}, {country}, joined {joined}"
            );
        }
        Ok(ToolOutput {
            text,
            data: Output {
                customers,
                matching,
            },
        })
    }
}

fn heading(listed: usize, matching: i64, since: Option<&str>) -> String {
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
