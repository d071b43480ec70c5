//! `calculate_account_value`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CURRENCY, store::Store, unknown_customer};
use crate::tool::{BundledTool, ToolError, ToolOutput};

pub(super) struct CalculateAccountValue(pub(super) Store);

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
    /// The currency of both amounts (ISO 4217).
    currency: &'static str,
    /// Number of these purchases.
    purchases: i64,
}

impl BundledTool for CalculateAccountValue {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "calculate_account_value";
    const TITLE: &'static str = "Account value";
    const DESCRIPTION: &'static str =
        "Calculates the account value of one customer: the sum of all purchases, in euros.";

    async fn call(&self, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        let customer_id = input.customer_id;
        let Some(account) = self.0.account(customer_id).await? else {
            return Err(unknown_customer(&self.0, customer_id).await);
        };
        let customer_name = account.customer_name;
        let purchases = account.purchases;
        let account_value = amount(account.cents);
        let from = match purchases {
            0 => "no purchases yet".to_owned(),
            1 => "1 purchase".to_owned(),
            many => format!("{many} purchases"),
        };
        Ok(ToolOutput {
            text: format!(
                "The account value of customer {customer_id} ({customer_name}) is \
                 {account_value} {CURRENCY} ({from})."
            ),
            data: Output {
                customer_id,
                customer_name,
                account_value,
                account_value_cents: account.cents,
                currency: CURRENCY,
                purchases,
            },
        })
    }
}

/// Formats cents in the main currency unit with two decimals. `schema.sql` excludes negative
/// amounts.
fn amount(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
