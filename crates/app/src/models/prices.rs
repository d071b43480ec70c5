//! Looks up the list prices of models in the model catalogue.

use switchboard_domain::ModelId;
use switchboard_orchestration::policy::limits::Pricing;
use switchboard_providers_common::catalog;

/// Returns the list price of a model. `None` if the model is not in the catalogue.
pub(crate) fn find_list_price(model: &ModelId) -> Option<Pricing> {
    let prices = catalog::find_model_entry(&model.provider, &model.name)?.prices;
    Pricing::from_price_list(
        prices.input,
        prices.output,
        prices.cache_read,
        prices.cache_write,
    )
}
