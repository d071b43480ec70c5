//! Tests of the model catalog through its public API.

use switchboard_domain::ModelCapabilities;
use switchboard_providers_common::catalog::{self, ModelEntry, Prices};

fn name(provider: &str, model: &str) -> Option<&'static str> {
    catalog::find_model_entry(provider, model).map(|entry| entry.name)
}

fn names(entries: impl IntoIterator<Item = ModelEntry>) -> Vec<&'static str> {
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn an_entry_has_limits_prices_and_abilities() {
    let entry = catalog::find_model_entry("anthropic", "claude-opus-5-5").unwrap();
    assert_eq!(entry.model_id().to_string(), "anthropic/claude-opus-5-5");
    assert_eq!(
        entry.capabilities,
        ModelCapabilities {
            context_window: Some(1_000_000),
            max_output_tokens: Some(128_000),
            tools: Some(true),
            parallel_tools: Some(true),
            forced_tool_choice: Some(false),
            structured_output: Some(true),
            sampling: Some(false),
            reasoning: Some(true),
            images: Some(true),
            documents: Some(true),
            audio: Some(false),
            ..ModelCapabilities::default()
        }
    );
    assert_eq!(
        entry.prices,
        Prices {
            input: Some(4.0),
            output: Some(20.0),
            cache_read: Some(0.2),
            cache_write: Some(5.0),
        }
    );
    assert_eq!((entry.responses_only, entry.deprecated_on), (false, None));
}

#[test]
fn abilities_are_supported_unsupported_or_unknown() {
    let capabilities = |provider, model| {
        catalog::find_model_entry(provider, model)
            .unwrap()
            .capabilities
    };
    for (provider, model, forced) in [
        ("anthropic", "claude-haiku-5-5", Some(true)),
        ("anthropic", "claude-opus-5-5", Some(false)),
        ("anthropic", "claude-fable-5", None),
    ] {
        let found = capabilities(provider, model).forced_tool_choice;
        assert_eq!(found, forced, "{provider}/{model}");
    }
    for (provider, model, sampling) in [
        ("openai", "gpt-4o", Some(true)),
        ("openai", "o3", Some(false)),
        // Unknown, because it depends on the reasoning effort.
        ("openai", "gpt-6-luna", None),
    ] {
        let found = capabilities(provider, model).sampling;
        assert_eq!(found, sampling, "{provider}/{model}");
    }
    let schema = |provider, model| capabilities(provider, model).structured_output;
    assert_eq!(schema("deepseek", "deepseek-v4-flash"), Some(false));
    assert_eq!(schema("openai", "gpt-4o-mini"), Some(true));
    // The context window includes the answer.
    let window = capabilities("openai", "gpt-5").context_window;
    assert_eq!(window, Some(400_000));
}

#[test]
fn a_model_is_found_by_all_its_names() {
    for (provider, model, expected) in [
        ("anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("anthropic", "claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("anthropic", "claude-opus-5-5-latest", "claude-opus-5-5"),
        ("openai", "gpt-6-luna-2026-09-22", "gpt-6-luna"),
        // This dated model has its own catalog entry.
        ("openai", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        (
            "openai",
            "ft:gpt-4o-2024-08-06:acme::Abc1",
            "ft:gpt-4o-2024-08-06",
        ),
        (
            "openai",
            "gpt-4o-audio-preview",
            "gpt-4o-audio-preview-2025-06-03",
        ),
        ("mistral", "devstral", "devstral-latest"),
        ("gemini", "models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("gemini", "gemini-2.5-flash-001", "gemini-2.5-flash"),
        ("groq", "openai/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("azure", "gpt-6.1-sol", "gpt-6.1-sol"),
        (
            "litellm",
            "anthropic/claude-sonnet-5-5",
            "claude-sonnet-5-5",
        ),
        (
            "openrouter",
            "anthropic/claude-sonnet-5.5",
            "claude-sonnet-5-5",
        ),
    ] {
        assert_eq!(name(provider, model), Some(expected), "{provider} {model}");
    }
}

#[test]
fn unknown_names_are_not_guessed() {
    for (provider, model) in [
        ("anthropic", "claude"),
        ("anthropic", "claude-opus-5-5-fast"),
        ("anthropic", "gpt-5"),
        ("anthropic", ""),
        ("openai", "gpt-4-0314"),
        ("openai", "GPT-5"),
        ("openai", "gpt-5\t"),
        ("openai", "# source"),
        ("litellm", "fast"),
        ("ollama", "llama3.1"),
        ("offline", "planner"),
        ("", ""),
        ("é", "€"),
    ] {
        assert_eq!(name(provider, model), None, "{provider} {model}");
    }
}

#[test]
fn a_provider_has_its_models_by_name() {
    let anthropic = names(catalog::list_models("anthropic"));
    assert!(anthropic.is_sorted());
    assert!(anthropic.contains(&"claude-sonnet-5-5"));
    assert!(anthropic.iter().all(|name| name.starts_with("claude-")));
    let all: usize = catalog::PROVIDERS
        .iter()
        .map(|provider| catalog::list_models(provider).count())
        .sum();
    assert!(all > 200, "{all}");
    for unknown in ["", "ollama", "anthropi", "anthropic/", "azure"] {
        assert_eq!(catalog::list_models(unknown).count(), 0, "{unknown}");
    }
}

#[test]
fn the_default_comes_first() {
    let featured = |provider| names(catalog::featured_models(provider));
    let expected = ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"];
    assert_eq!(featured("anthropic"), expected);
    assert_eq!(featured("openai"), ["gpt-6.1-sol", "gpt-6-luna"]);
    assert_eq!(featured("gemini"), ["gemini-3.8-flash", "gemini-4-argon"]);
    assert!(featured("groq").is_empty());
    assert!(catalog::data_source().starts_with("litellm "));
}

#[test]
fn models_of_the_responses_api_are_marked() {
    let only = |model| {
        catalog::find_model_entry("openai", model)
            .unwrap()
            .responses_only
    };
    assert!(only("gpt-5.4-pro") && only("gpt-5.3-codex"));
    assert!(!only("gpt-6.1-sol"));
}

#[test]
fn the_first_known_value_takes_precedence() {
    let first = ModelCapabilities {
        tools: Some(false),
        ..ModelCapabilities::default()
    };
    let second = ModelCapabilities {
        tools: Some(true),
        context_window: Some(8192),
        audio: Some(false),
        ..ModelCapabilities::default()
    };
    let both = catalog::join_capabilities(&first, &second);
    assert_eq!(
        both,
        ModelCapabilities {
            tools: Some(false),
            ..second
        }
    );
}
