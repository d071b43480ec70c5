//! Conversion of the model names of providers and gateways into the names of the catalog.

use std::borrow::Cow;

use super::PROVIDERS;

/// Vendor names in the model ids of gateways, such as `google` in `google/gemini-2.5-pro`, each
/// with the catalog's name of the provider. Vendors whose two names are equal are not listed.
const VENDORS: [(&str, &str); 4] = [
    ("google", "gemini"),
    ("mistralai", "mistral"),
    ("x-ai", "xai"),
    ("azure", "openai"),
];

/// Converts a provider's or gateway's model name into the catalog's provider and model names.
/// Returns `None` if the catalog does not have the provider, or if a gateway's model name lacks the
/// vendor.
pub(super) fn to_catalog_name<'m>(
    provider: &str,
    model: &'m str,
) -> Option<(&'static str, Cow<'m, str>)> {
    match provider {
        "azure" => Some(("openai", Cow::Borrowed(model))),
        "litellm" | "openrouter" => {
            let (vendor, name) = model.split_once('/')?;
            let alias = VENDORS.iter().find(|(alias, _)| *alias == vendor);
            let provider = find_provider(alias.map_or(vendor, |(_, name)| name))?;
            // OpenRouter writes a dot where Anthropic's model names have a hyphen
            // (`claude-sonnet-4.5`), so dots become hyphens.
            let name = if provider == "anthropic" && name.contains('.') {
                Cow::Owned(name.replace('.', "-"))
            } else {
                Cow::Borrowed(name)
            };
            Some((provider, name))
        }
        // Gemini lists models with full resource names, which begin with `models/`. The catalog's
        // names lack this prefix.
        "gemini" => Some((
            "gemini",
            Cow::Borrowed(model.strip_prefix("models/").unwrap_or(model)),
        )),
        provider => Some((find_provider(provider)?, Cow::Borrowed(model))),
    }
}

fn find_provider(provider: &str) -> Option<&'static str> {
    PROVIDERS.iter().find(|name| **name == provider).copied()
}

/// Returns the catalog name of a fine-tuned model, for example `ft:gpt-4o-2024-08-06` for
/// `ft:gpt-4o-2024-08-06:acme::Abc123`. Returns `None` for a name that is not of this form.
pub(super) fn strip_fine_tune_suffix(model: &str) -> Option<&str> {
    let rest = model.strip_prefix("ft:")?;
    let end = rest.find(':')?;
    model.get(.."ft:".len() + end)
}

/// Returns a name without its version: `-latest`, a date, or a number such as `-001`. Returns
/// `None` for a name without a version. Four-digit numbers (`gpt-4-0613`, `mistral-small-2603`) do
/// not count as a version, because they can name other models.
pub(super) fn strip_version(name: &str) -> Option<&str> {
    let without = |form: &str| {
        let (base, tail) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        matches_digit_pattern(tail, form).then_some(base)
    };
    name.strip_suffix("-latest")
        .or_else(|| without("-20dd-dd-dd"))
        .or_else(|| without("-20dddddd"))
        // Google writes an `@` before the date in the names of Anthropic's models.
        .or_else(|| without("@20dddddd"))
        .or_else(|| without("-00d"))
        .filter(|base| !base.is_empty())
}

/// Returns whether a text matches a pattern such as `20dd-dd-dd`, where `d` is a digit.
pub(super) fn matches_digit_pattern(text: &str, form: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}
