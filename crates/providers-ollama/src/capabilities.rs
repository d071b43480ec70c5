//! Capabilities of models on Ollama servers.
//!
//! Some capabilities are equal for every model, because they depend on the API. The server reports
//! the others on request ([`fetch_model_description`](crate::fetch_model_description)).

use switchboard_domain::ModelCapabilities;

/// Returns the capabilities of `model` (the server's name for it) that are known without a request.
///
/// `in_cloud` means that the server is Ollama's cloud. Cloud models are also recognized by name
/// (`:cloud`, `:120b-cloud`). "Ollama's Cloud currently does not support structured outputs"
/// (docs/capabilities/structured-outputs), so tool choices cannot be forced there either.
pub fn capabilities(model: &str, in_cloud: bool) -> ModelCapabilities {
    let held = !(in_cloud || is_cloud_model(model));
    ModelCapabilities {
        forced_tool_choice: Some(held),
        structured_output: Some(held),
        sampling: Some(true),
        documents: Some(false),
        ..ModelCapabilities::default()
    }
}

/// Returns whether a model runs in Ollama's cloud, which its name shows: the tag is `cloud` or ends
/// with `-cloud`. The server has the same rule (`modelref.ParseRef`).
fn is_cloud_model(model: &str) -> bool {
    let tag = model.rsplit_once(':').map(|(_, tag)| tag.trim());
    tag.is_some_and(|tag| {
        let tag = tag.to_ascii_lowercase();
        tag == "cloud" || tag.ends_with("-cloud")
    })
}

/// Returns the capabilities `known` with the values in the server's report about the model. Tools,
/// reasoning, images and audio become `Some(true)` if the server's list `abilities` names them, and
/// `Some(false)` if not. They become `None` without a list. The context window is replaced.
pub(crate) fn add_reported_capabilities(
    known: &ModelCapabilities,
    abilities: Option<&[String]>,
    context_window: Option<u64>,
) -> ModelCapabilities {
    let can = |word: &str| abilities.map(|list| list.iter().any(|it| it == word));
    ModelCapabilities {
        context_window,
        tools: can("tools"),
        reasoning: can("thinking"),
        images: can("vision"),
        audio: can("audio"),
        ..known.clone()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_providers_common::catalog;

    use super::*;

    #[test]
    fn the_cloud_does_not_constrain_answers() {
        for (model, in_cloud, held) in [
            ("qwen3:8b", false, true),
            ("qwen3", true, false),
            ("gpt-oss:120b-cloud", false, false),
            ("kimi-k2.5:cloud", false, false),
            ("cloud/model:latest", false, true),
            ("nimbus-cloud", false, true),
        ] {
            let can = capabilities(model, in_cloud);
            assert_eq!(can.structured_output, Some(held), "{model}");
            assert_eq!(can.forced_tool_choice, Some(held), "{model}");
        }
    }

    /// If this test fails, the catalog has entries for Ollama, and `capabilities` must prefer them,
    /// as in other adapters.
    #[test]
    fn the_catalogue_has_no_models_of_this_provider() {
        for model in [
            "qwen3:8b",
            "gpt-oss:120b-cloud",
            "llama3.1",
            "deepseek-r1:8b",
        ] {
            assert_eq!(catalog::find_model_entry("ollama", model), None, "{model}");
        }
        assert!(!catalog::PROVIDERS.contains(&"ollama"));
    }

    #[test]
    fn missing_fields_are_unknown() {
        let can = capabilities("qwen3:8b", false);
        assert_eq!(
            (can.tools, can.images, can.context_window),
            (None, None, None)
        );
        let nothing = add_reported_capabilities(&can, Some(&[]), None);
        assert_eq!(nothing.tools, Some(false));
        assert_eq!(add_reported_capabilities(&can, None, None).tools, None);
    }
}
