//! One model has several names.

use std::borrow::Cow;

use super::PROVIDERS;

/// What gateways call the vendors whose models they pass on (the model lists of LiteLLM's proxy and
/// of `OpenRouter`).
const VENDORS: [(&str, &str); 4] = [
    ("google", "gemini"),
    ("mistralai", "mistral"),
    ("x-ai", "xai"),
    ("azure", "openai"),
];

/// The provider of the catalogue, and the name that it has for the model.
pub(super) fn at_home<'m>(provider: &str, model: &'m str) -> Option<(&'static str, Cow<'m, str>)> {
    match provider {
        "azure" => Some(("openai", Cow::Borrowed(model))),
        "litellm" | "openrouter" => {
            let (vendor, name) = model.split_once('/')?;
            let same = VENDORS.iter().find(|(theirs, _)| *theirs == vendor);
            let provider = known(same.map_or(vendor, |(_, ours)| ours))?;
            // OpenRouter writes versions with dots where Anthropic has none: claude-sonnet-4.5.
            let name = if provider == "anthropic" && name.contains('.') {
                Cow::Owned(name.replace('.', "-"))
            } else {
                Cow::Borrowed(name)
            };
            Some((provider, name))
        }
        // The full name of the resource, as Gemini's own list of models has it.
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

/// The entry for the tuned forms of a model: `ft:gpt-4o-2024-08-06` of
/// `ft:gpt-4o-2024-08-06:acme::Abc123`.
pub(super) fn tuned(model: &str) -> Option<&str> {
    let rest = model.strip_prefix("ft:")?;
    let end = rest.find(':')?;
    model.get(.."ft:".len() + end)
}

/// A name without what stands for one of its versions: `-latest`, a date, or a number such as
/// `-001`. Shorter numbers (`gpt-4-0613`, `mistral-small-2603`) can be other models, and stay.
pub(super) fn unversioned(name: &str) -> Option<&str> {
    let without = |form: &str| {
        let (base, tail) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        has_form(tail, form).then_some(base)
    };
    name.strip_suffix("-latest")
        .or_else(|| without("-20dd-dd-dd"))
        .or_else(|| without("-20dddddd"))
        // So Google names the models of Anthropic.
        .or_else(|| without("@20dddddd"))
        .or_else(|| without("-00d"))
        .filter(|base| !base.is_empty())
}

/// Whether a text has this form, in which `d` is a digit.
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
    fn tuned_models_are_told_by_their_base() {
        let name = "ft:gpt-4o-2024-08-06:acme::Abc123";
        assert_eq!(tuned(name), Some("ft:gpt-4o-2024-08-06"));
        assert_eq!(tuned("ft:gpt-4o"), None);
        assert_eq!(tuned("gpt-4o:acme"), None);
    }

    #[test]
    fn gateways_pass_on_models_of_known_vendors() {
        let told = |provider, model| {
            at_home(provider, model).map(|(provider, name)| format!("{provider}/{name}"))
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
                told(provider, model).as_deref(),
                expected,
                "{provider} {model}"
            );
        }
    }
}
