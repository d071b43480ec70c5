//! What models cost.

use switchboard_domain::ModelId;
use switchboard_orchestration::policy::limits::Pricing;
use switchboard_providers_common::catalog;

/// The list price of a model, where the catalogue has one.
pub fn list_price(model: &ModelId) -> Option<Pricing> {
    let prices = catalog::lookup(&model.provider, &model.name)?.prices;
    Pricing::from_list(
        prices.input,
        prices.output,
        prices.cache_read,
        prices.cache_write,
    )
}
