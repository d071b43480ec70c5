//! Finds the provider of a model name, for all commands and HTTP routes.

use anyhow::{anyhow, bail};
use switchboard_domain::{
    ModelId,
    similar_names::{did_you_mean, find_nearest},
};

use super::{Provider, Providers, Readiness};

/// Prefixes of model names, such as `claude-`, and the vendors of these model families.
const FAMILIES: [(&str, &str); 4] = [
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("gemini-", "gemini"),
];

/// Maximum number of models that are listed in an error message.
const MAX_LISTED: usize = 12;

impl Providers {
    /// Returns the provider that serves the model `text`, and the model name without its provider.
    ///
    /// The first match counts:
    ///
    /// 1. `PROVIDER/MODEL`, or a provider alone, which means its default model;
    /// 2. an exact name: of the configuration, then of the catalogue;
    /// 3. a name of the catalogue with a date or another version (`claude-sonnet-4-5-20250929`);
    /// 4. a family (`claude-…`, `gpt-…`, `o3…`, `gemini-…`), at the provider that owns it;
    /// 5. the only provider with a key, else the only one with a configured address.
    ///
    /// Rules 2 to 5 skip providers without a key. The name reaches the provider unchanged.
    pub(crate) fn resolve_model(&self, text: &str) -> anyhow::Result<(&Provider, String)> {
        let text = text.trim().trim_end_matches('/');
        if let Ok(id) = text.parse::<ModelId>() {
            let provider = self.find_provider(&id.provider)?;
            match &provider.default_model {
                Some(known) if provider.runs_in_process() && *known != *id.name => bail!(
                    "`{provider}` has no model `{}`. Available: {provider}/{known}",
                    id.name,
                    provider = provider.name
                ),
                _ => {}
            }
            return Ok((provider, id.name.to_string()));
        }
        if let Some(provider) = self.get(text) {
            let Some(model) = provider.default_model.clone() else {
                bail!(
                    "no model given for `{text}`. Use {text}/MODEL, or set \
                     `providers.{text}.model`"
                );
            };
            return Ok((provider, model));
        }
        let owner = self.model_owner(text, |provider| self.has_access(provider));
        match owner.or_else(|| self.find_only_provider(text)) {
            Some(provider) => Ok((provider, text.to_owned())),
            None => Err(self.unresolved_model_error(text)),
        }
    }

    /// Returns the first provider that has the model by rules 2 to 4 of [`Self::resolve_model`].
    /// Considers only providers for which `is_usable` returns `true`.
    fn model_owner(&self, name: &str, is_usable: impl Fn(&Provider) -> bool) -> Option<&Provider> {
        let usable = || self.iter().filter(|provider| is_usable(provider));
        let configured = || {
            let mut ids = self.configured.iter().filter(|id| &*id.name == name);
            ids.find_map(|id| usable().find(|provider| provider.name == *id.provider))
        };
        configured()
            .or_else(|| usable().find(|it| it.default_model.as_deref() == Some(name)))
            .or_else(|| usable().find(|it| it.find_catalogue_name(name) == Some(name)))
            .or_else(|| usable().find(|it| it.find_catalogue_name(name).is_some()))
            .or_else(|| {
                let family = find_model_family_vendor(name)?;
                usable().find(|it| it.catalogue_vendor() == Some(family))
            })
    }

    /// Returns whether no API key is missing for the provider.
    pub(crate) fn has_access(&self, provider: &Provider) -> bool {
        !matches!(self.check_readiness(provider), Readiness::KeyMissing(_))
    }

    /// Returns the only provider with an API key. If no provider has a key, returns the only
    /// provider with a configured address. Returns `None` if several providers remain, if `name` is
    /// similar to a provider name, or if the model belongs to another vendor.
    fn find_only_provider(&self, name: &str) -> Option<&Provider> {
        if self.suggest_provider(name).is_some() {
            return None;
        }
        let (mut keys, mut addresses) = (Vec::new(), Vec::new());
        for provider in self.iter() {
            match self.check_readiness(provider) {
                Readiness::Key(variable) => keys.push((variable, provider)),
                Readiness::NoKeyNeeded => {
                    addresses.extend(self.configured_address(provider).map(|it| (it, provider)));
                }
                Readiness::KeyMissing(_) => {}
            }
        }
        let candidates = if keys.is_empty() { addresses } else { keys };
        // Two configured providers with the same API key variable or address are the same vendor
        // with two API formats. They count as one.
        let (access, provider) = candidates.first()?;
        let is_only = candidates.iter().all(|(other, _)| other == access);
        (is_only && !self.is_other_vendors_model(provider, name)).then_some(*provider)
    }

    /// Returns whether the model belongs to a vendor other than the one that runs the provider.
    /// Returns `false` for a provider with a configured address, whose server may have models of
    /// any vendor.
    fn is_other_vendors_model(&self, provider: &Provider, name: &str) -> bool {
        let vendors = (find_model_family_vendor(name), provider.catalogue_vendor());
        let is_foreign = matches!(vendors, (Some(family), Some(vendor)) if family != vendor);
        is_foreign && self.configured_address(provider).is_none()
    }

    /// Returns the provider whose name is most similar to `name`. Returns `None` if `name` contains
    /// digits, because such a name is a model name and not a misspelled provider.
    fn suggest_provider(&self, name: &str) -> Option<&str> {
        if name.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        find_nearest(name, self.iter().map(|provider| provider.name.as_str()))
    }

    fn unresolved_model_error(&self, name: &str) -> anyhow::Error {
        let mut hint = did_you_mean(self.suggest_provider(name));
        if let Some(provider) = self.model_owner(name, |_| true)
            && let Readiness::KeyMissing(variable) = self.check_readiness(provider)
        {
            let provider = &provider.name;
            hint = format!(": it belongs to `{provider}`, which has no API key. Set {variable}");
        }
        let askable = self.iter().filter(|provider| self.has_access(provider));
        let known = askable.flat_map(|provider| {
            let models = provider.known_models().into_iter();
            models.map(|(model, _)| format!("{}/{model}", provider.name))
        });
        let known: Vec<String> = known.take(MAX_LISTED).collect();
        anyhow!(
            "no provider was found for model `{name}`{hint}. Write PROVIDER/MODEL; known \
             models: {}",
            known.join(", ")
        )
    }
}

/// Returns the vendor of a model family by the prefix of the model name. Returns `None` for an
/// unknown family.
fn find_model_family_vendor(name: &str) -> Option<&'static str> {
    let base = name.strip_prefix("ft:").unwrap_or(name);
    // `gpt-oss` models have the prefix of OpenAI, but OpenAI does not serve these open models.
    if base.starts_with("gpt-oss") {
        return None;
    }
    let is_reasoning_series = base.strip_prefix('o').is_some_and(|rest| {
        let number = rest.split('-').next().unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    if is_reasoning_series {
        return Some("openai");
    }
    let mut families = FAMILIES.into_iter();
    families
        .find(|(prefix, _)| base.starts_with(prefix))
        .map(|(_, vendor)| vendor)
}

#[cfg(test)]
#[path = "model_resolution_tests.rs"]
mod tests;
