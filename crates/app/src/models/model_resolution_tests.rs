use super::*;
use crate::config::{Config, ProviderEntry, ProviderKind, environment::Environment};

const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "k");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "k");
const GEMINI: (&str, &str) = ("GEMINI_API_KEY", "k");
const OPENAI_ADDRESS: (&str, &str) = ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
const OLLAMA_ADDRESS: (&str, &str) = ("OLLAMA_HOST", "http://127.0.0.1:9");

/// Returns the providers for these environment variables and OpenAI-compatible servers.
fn providers(variables: &[(&str, &str)], servers: &[&str]) -> Providers {
    let server = |name: &&str| ProviderEntry {
        base_url: Some(format!("http://{name}.test/v1")),
        ..ProviderEntry::with_default_settings(name, ProviderKind::OpenAiCompatible)
    };
    let config = Config {
        model: Some("litellm/large".to_owned()),
        providers: servers.iter().map(server).collect(),
        ..Config::default()
    };
    Providers::new(
        &config,
        &Environment::from_variables(variables.iter().copied()),
    )
}

fn resolved(providers: &Providers, name: &str) -> Result<String, String> {
    match providers.resolve_model(name) {
        Ok((provider, model)) => Ok(format!("{}/{model}", provider.name)),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_name_leads_to_the_provider_that_serves_it() {
    let all: &[(&str, &str)] = &[ANTHROPIC, OPENAI, GEMINI];
    let litellm: &[&str] = &["litellm"];
    for (variables, servers, name, expected) in [
        // The name begins with a provider.
        (all, &[][..], "openai/any-name", "openai/any-name"),
        (all, &[], "anthropic/", "anthropic/claude-sonnet-5-5"),
        (all, &[], "offline", "offline/planner"),
        // The name is exactly the name of a known model.
        (all, litellm, "large", "litellm/large"),
        (
            all,
            &[],
            " claude-sonnet-4-5 ",
            "anthropic/claude-sonnet-4-5",
        ),
        (all, &[], "gpt-4o-mini", "openai/gpt-4o-mini"),
        (all, &[], "planner", "offline/planner"),
        // The name has a date or a version at its end.
        (
            all,
            &[],
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4-5-20250929",
        ),
        (
            all,
            &[],
            "gpt-4o-mini-2024-07-18",
            "openai/gpt-4o-mini-2024-07-18",
        ),
        (
            all,
            &[],
            "gemini-2.5-flash-001",
            "gemini/gemini-2.5-flash-001",
        ),
        // The name begins with a model family of a provider, such as `claude` or `gpt`.
        (
            all,
            &[],
            "claude-2999-20990101",
            "anthropic/claude-2999-20990101",
        ),
        (all, &[], "gpt-99", "openai/gpt-99"),
        (all, &[], "o9-mini", "openai/o9-mini"),
        (all, &[], "o3", "openai/o3"),
        (all, &[], "ft:gpt-99:acme::1", "openai/ft:gpt-99:acme::1"),
        (all, &[], "gemini-99-pro", "gemini/gemini-99-pro"),
        (&[OPENAI_ADDRESS], &[], "gpt-99", "openai/gpt-99"),
        // The name goes to the only provider with a key. OpenAI's two wires count as one provider.
        (&[OPENAI], &[], "my-model", "openai/my-model"),
        (&[ANTHROPIC, OLLAMA_ADDRESS], &[], "m1", "anthropic/m1"),
        // The name goes to the only provider with a configured address.
        (&[], litellm, "claude-9", "litellm/claude-9"),
        (&[OPENAI_ADDRESS], &[], "claude-9", "openai/claude-9"),
        (&[OLLAMA_ADDRESS], &[], "llama3.2", "ollama/llama3.2"),
    ] {
        let providers = providers(variables, servers);
        assert_eq!(
            resolved(&providers, name).as_deref(),
            Ok(expected),
            "{name} with {variables:?}"
        );
    }
}

#[test]
fn a_name_that_leads_nowhere_is_an_error_with_the_way_out() {
    let two: &[(&str, &str)] = &[ANTHROPIC, OPENAI];
    for (variables, servers, name, expected) in [
        (
            &[][..],
            &[][..],
            "claude-sonnet-4-5-20250929",
            "Set ANTHROPIC_API_KEY",
        ),
        // The API of one vendor does not get a request for a model of another vendor.
        (&[OPENAI], &[], "claude-9", "Set ANTHROPIC_API_KEY"),
        (&[ANTHROPIC], &[], "gemini-99", "Set GEMINI_API_KEY"),
        (
            two,
            &[],
            "my-model",
            "known models: anthropic/claude-sonnet-5-5, ",
        ),
        (two, &[], "gpt-oss-20b", "PROVIDER/MODEL"),
        (&[], &["one", "two"], "m1", "PROVIDER/MODEL"),
        (&[ANTHROPIC], &[], "antropic", "did you mean `anthropic`?"),
        (two, &[], "antropic/claude-9", "did you mean `anthropic`?"),
        (&[], &[], "m1", "known models: offline/planner"),
        (&[], &["litellm"], "litellm", "no model given for"),
        (two, &[], "offline/gpt", "offline/planner"),
        (two, &[], "", "PROVIDER/MODEL"),
    ] {
        let providers = providers(variables, servers);
        let error = resolved(&providers, name).unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
}
