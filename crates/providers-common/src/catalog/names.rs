//! Names of models at providers and gateways.

use std::borrow::Cow;

use super::PROVIDERS;

/// The names that gateways use for vendors (model lists of LiteLLM's proxy and of `OpenRouter`).
const VENDORS: [(&str, &str); 4] = [
    ("google", "gemini"),
    ("mistralai", "mistral"),
    ("x-ai", "xai"),
    ("azure", "openai"),
];

/// Returns the provider in the catalog and its name for the model.
pub(super) fn at_vendor<'m>(
    provider: &str,
    model: &'m str,
) -> Option<(&'static str, Cow<'m, str>)> {
    match provider {
        "azure" => Some(("openai", Cow::Borrowed(model))),
        "litellm" | "openrouter" => {
            let (vendor, name) = model.split_once('/')?;
            let alias = VENDORS.iter().find(|(alias, _)| *alias == vendor);
            let provider = known(alias.map_or(vendor, |(_, name)| name))?;
            // OpenRouter writes versions with dots where Anthropic has none: claude-sonnet-4.5.
            let name = if provider == "anthropic" && name.contains('.') {
                Cow::Owned(name.replace('.', "-"))
            } else {
                Cow::Borrowed(name)
            };
            Some((provider, name))
        }
        // Gemini's list of models contains the full name of the resource.
        "gemini" => Some((
            "gemini",
            Cow::Borrowed(model.strip_prefix("models/").unwrap_or(model)),
        )),
        provider => Some((known(provider)?, Cow::Borrowed(model))),
    }
}

fn known(provider: &str) -> Option<&'static str> {
    PROVIDERS.iter().find(|name| **name == provider).copied()
}

/// Returns the catalog name of a fine-tuned model: `ft:gpt-4o-2024-08-06` of
/// `ft:gpt-4o-2024-08-06:acme::Abc123`.
pub(super) fn tuned_base(model: &str) -> Option<&str> {
    let rest = model.strip_prefix("ft:")?;
    let end = rest.find(':')?;
    model.get(.."ft:".len() + end)
}

/// Returns a name without its version: `-latest`, a date, or a number such as `-001`. Shorter
/// numbers (`gpt-4-0613`, `mistral-small-2603`) can be other models, and stay.
pub(super) fn unversioned(name: &str) -> Option<&str> {
    let without = |form: &str| {
        let (base, tail) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        has_form(tail, form).then_some(base)
    };
    name.strip_suffix("-latest")
        .or_else(|| without("-20dd-dd-dd"))
        .or_else(|| without("-20dddddd"))
        // Google's names of Anthropic's models.
        .or_else(|| without("@20dddddd"))
        .or_else(|| without("-00d"))
        .filter(|base| !base.is_empty())
}

/// Whether a text has a form such as `20dd-dd-dd`, where `d` is a digit.
pub(super) fn has_form(text: &str, form: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_full_date_latest_or_a_serial_number() {
        for (name, expected) in [
            ("claude-opus-4-1-20250805", Some("claude-opus-4-1")),
            ("claude-opus-4-1@20250805", Some("claude-opus-4-1")),
            ("gpt-5.4-mini-2026-03-17", Some("gpt-5.4-mini")),
            ("mistral-large-latest", Some("mistral-large")),
            ("gemini-2.5-flash-001", Some("gemini-2.5-flash")),
            ("gpt-4-0613", None),
            ("claude-opus-4-1", None),
            ("gpt-5.4-mini-2026-3-17", None),
            ("-latest", None),
            ("-20250805", None),
            ("model-19991231", None),
            ("modèle-20250805", Some("modèle")),
            ("é", None),
            ("ééééé", None),
            ("", None),
        ] {
            assert_eq!(unversioned(name), expected, "{name}");
        }
    }

    #[test]
    fn a_fine_tuned_model_has_the_name_of_its_base() {
        let name = "ft:gpt-4o-2024-08-06:acme::Abc123";
        assert_eq!(tuned_base(name), Some("ft:gpt-4o-2024-08-06"));
        assert_eq!(tuned_base("ft:gpt-4o"), None);
        assert_eq!(tuned_base("gpt-4o:acme"), None);
    }

    #[test]
    fn gateway_names_contain_the_vendor() {
        let found = |provider, model| {
            at_vendor(provider, model).map(|(provider, name)| format!("{provider}/{name}"))
        };
        for (provider, model, expected) in [
            ("openai", "a/b", Some("openai/a/b")),
            ("azure", "gpt-5", Some("openai/gpt-5")),
            ("gemini", "models/gemini-4", Some("gemini/gemini-4")),
            ("litellm", "openai/gpt-5.4", Some("openai/gpt-5.4")),
            ("litellm", "azure/gpt-5.4", Some("openai/gpt-5.4")),
            ("openrouter", "google/gemini-4", Some("gemini/gemini-4")),
            ("openrouter", "x-ai/grok-4.7", Some("xai/grok-4.7")),
            (
                "openrouter",
                "anthropic/claude-sonnet-4.5",
                Some("anthropic/claude-sonnet-4-5"),
            ),
            ("litellm", "my-alias", None),
            ("openrouter", "nobody/model", None),
            ("ollama", "llama3.1", None),
            ("", "", None),
        ] {
            assert_eq!(
                found(provider, model).as_deref(),
                expected,
                "{provider} {model}"
            );
        }
    }
}
