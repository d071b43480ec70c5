//! Looks up the capabilities of Claude models in the table of
//! [`model_rules`](mod@crate::model_rules).

use switchboard_domain::ModelCapabilities;

use crate::model_rules::{SamplingSupport, find_rules};

/// Returns the capabilities of `model` according to the model table
/// [`TABLE`](crate::model_rules::TABLE). For a model that is not in the table, the capabilities are
/// unknown (`None`).
pub fn capabilities(model: &str) -> ModelCapabilities {
    let Some(rules) = find_rules(model) else {
        return ModelCapabilities::default();
    };
    ModelCapabilities {
        context_window: Some(rules.context_window),
        max_output_tokens: Some(rules.max_output_tokens),
        tools: Some(true),
        parallel_tools: Some(true),
        forced_tool_choice: rules.forced_tool_choice,
        structured_output: Some(rules.structured_output),
        sampling: Some(rules.sampling != SamplingSupport::Refused),
        reasoning: Some(rules.thinking.is_some()),
        images: Some(true),
        documents: Some(rules.documents),
        audio: Some(false),
        ..ModelCapabilities::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_providers_common::catalog;

    #[test]
    fn the_table_agrees_with_the_catalogue() {
        let mut known = 0;
        for entry in catalog::list_models("anthropic") {
            known += 1;
            let ours = capabilities(entry.name);
            let theirs = &entry.capabilities;
            // `join_capabilities` prefers its first argument, so equal results mean agreement.
            assert_eq!(
                catalog::join_capabilities(theirs, &ours),
                catalog::join_capabilities(&ours, theirs),
                "{}",
                entry.name
            );
            assert!(ours.context_window.is_some(), "no row for {}", entry.name);
        }
        assert!(
            known > 10,
            "the catalogue has {known} of Anthropic's models"
        );
    }

    #[test]
    fn limits_depend_on_the_generation() {
        let limits = |model| {
            let it = capabilities(model);
            (it.context_window.unwrap(), it.max_output_tokens.unwrap())
        };
        assert_eq!(limits("claude-sonnet-5-5"), (1_000_000, 128_000));
        assert_eq!(limits("claude-haiku-4-5"), (200_000, 64_000));
        assert_eq!(limits("claude-opus-4-1"), (200_000, 32_000));
        assert_eq!(limits("claude-3-5-sonnet-20241022"), (200_000, 8_192));
        assert_eq!(capabilities("kimi-k3"), ModelCapabilities::default());
    }

    #[test]
    fn refused_features_are_not_capabilities() {
        let newest = capabilities("claude-opus-5-5");
        assert_eq!(newest.forced_tool_choice, Some(false));
        assert_eq!(newest.sampling, Some(false));
        assert_eq!(newest.reasoning, Some(true));
        let first = capabilities("claude-3-haiku-20240307");
        assert_eq!(first.documents, Some(false));
        assert_eq!(first.reasoning, Some(false));
        assert_eq!(capabilities("claude-fable-5").forced_tool_choice, None);
    }
}
