use serde_json::json;

use super::*;

const NOTHING: &str = r#"{ "featured": {}, "rules": [] }"#;

fn lines(models: &Value, overlay: &str) -> Vec<String> {
    let text = generate_catalogue(models, overlay).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_model_is_a_line() {
    let models = json!({ "gemini/full": {
        "litellm_provider": "gemini",
        "mode": "chat",
        "max_input_tokens": 200_000,
        "max_output_tokens": 8192,
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 7.5e-6,
        "cache_read_input_token_cost": 0.0,
        "cache_creation_input_token_cost": 3.7e-8,
        "supports_function_calling": true,
        "supports_tool_choice": true,
        "supports_forced_tool_use": false,
        "supports_vision": true,
        "supported_modalities": ["text", "image"],
        "deprecation_date": "2027-01-31",
    }, "gemini/least": {
        "litellm_provider": "gemini",
        "mode": "responses",
        "supports_tool_choice": true,
    } });
    assert_eq!(
        lines(
            &models,
            r#"{ "featured": { "gemini": ["full"] }, "rules": [] }"#
        ),
        [
            "gemini/full\t200000\t8192\t1\t7.5\t0\t0.037\ttools,!forced,images,!audio\t2027-01-31\t1",
            "gemini/least\t-\t-\t-\t-\t-\t-\tforced,responses-only\t-\t-",
        ]
    );
}

#[test]
fn other_providers_and_models_without_text_output_are_skipped() {
    let model = |provider: &str, mode: &str| json!({ "litellm_provider": provider, "mode": mode, "supports_vision": true });
    let mut music = model("gemini", "chat");
    music["supported_output_modalities"] = json!(["audio"]);
    let models = json!({
        "a": model("anthropic", "chat"),
        "b": model("bedrock", "chat"),
        "c": model("openai", "embedding"),
        "d": music,
        "e": { "litellm_provider": "openai", "mode": "chat" },
    });
    let lines = lines(&models, NOTHING);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("anthropic/a\t"), "{lines:?}");
}

#[test]
fn an_entry_with_a_provider_prefix_takes_precedence() {
    let model = |window: u64| json!({ "litellm_provider": "gemini", "mode": "chat", "max_input_tokens": window });
    for models in [
        json!({ "m": model(1), "gemini/m": model(2) }),
        json!({ "gemini/m": model(2), "m": model(1) }),
    ] {
        let lines = lines(&models, NOTHING);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("gemini/m\t2\t"), "{lines:?}");
    }
}

#[test]
fn a_versioned_name_with_equal_values_is_skipped() {
    let model = |window: u64| json!({ "litellm_provider": "openai", "mode": "chat", "max_input_tokens": window });
    let models = json!({
        "same": model(1), "same-2026-01-02": model(1), "same-latest": model(1), "same-001": model(1),
        "other": model(1), "other-20260102": model(2),
        "alone-2026-01-02": model(1),
    });
    let names: Vec<String> = lines(&models, NOTHING)
        .iter()
        .filter_map(|line| Some(line.split_once('\t')?.0.to_owned()))
        .collect();
    assert_eq!(
        names,
        [
            "openai/alone-2026-01-02",
            "openai/other",
            "openai/other-20260102",
            "openai/same"
        ]
    );
}

#[test]
fn an_invalid_number_or_date_is_an_error() {
    let model = |field: &str, value: Value| {
        let mut model = json!({ "litellm_provider": "openai", "mode": "chat" });
        model[field] = value;
        json!({ "m": model })
    };
    for (field, value) in [
        ("max_input_tokens", json!("many")),
        ("input_cost_per_token", json!("cheap")),
        ("input_cost_per_token", json!(-1.0)),
        ("deprecation_date", json!("soon")),
    ] {
        let error = generate_catalogue(&model(field, value.clone()), NOTHING);
        assert!(error.is_err(), "{field}: {value}");
    }
}

fn applied(rules: &Value) -> Result<String> {
    let model = |window: u64| json!({ "mode": "chat", "litellm_provider": "openai", "max_input_tokens": window });
    let mut b = model(1);
    b["litellm_provider"] = json!("xai");
    let overlay = json!({ "featured": { "xai": ["b"] }, "rules": rules });
    generate_catalogue(
        &json!({ "a-1": model(1), "a-2": model(2), "b": b }),
        &overlay.to_string(),
    )
}

#[test]
fn rules_change_the_models_that_they_name() {
    let text = applied(&json!([
        { "why": "x", "models": ["openai/a*"], "where": { "context_window": 1 },
          "set": { "context_window": 10, "tools": false } },
        { "why": "x", "models": ["openai/a-1"], "set": { "tools": true } },
        { "why": "x", "models": ["xai/b"], "set": { "context_window": null } },
        { "why": "x", "add": ["xai/c"], "set": { "images": true } },
    ]));
    let text = text.unwrap();
    let lines: Vec<&str> = text.lines().filter(|it| !it.starts_with('#')).collect();
    assert_eq!(
        lines,
        [
            "openai/a-1\t10\t-\t-\t-\t-\t-\ttools\t-\t-",
            "openai/a-2\t2\t-\t-\t-\t-\t-\t-\t-\t-",
            "xai/b\t-\t-\t-\t-\t-\t-\t-\t-\t1",
            "xai/c\t-\t-\t-\t-\t-\t-\timages\t-\t-",
        ]
    );
}

#[test]
fn rules_without_effect_are_errors() {
    for (rule, expected) in [
        (
            json!({ "why": "x", "models": ["xai/z"], "set": { "tools": true } }),
            "no model matches `xai/z`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "where": { "tools": true }, "set": { "tools": true } }),
            "no model matches `xai/b`",
        ),
        (
            json!({ "why": "x", "add": ["xai/b"], "set": { "tools": true } }),
            "the source already contains `xai/b`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "set": { "tool": true } }),
            "unknown field `tool`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "sets": {} }),
            "unknown field `sets`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "set": {} }),
            "`set` is empty",
        ),
        (
            json!({ "models": ["xai/b"], "set": { "tools": true } }),
            "missing field `why`",
        ),
        (
            json!({ "why": "x", "set": { "tools": true } }),
            "exactly one of `models` and `add`",
        ),
    ] {
        let error = format!("{:#}", applied(&json!([rule])).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_featured_model_exists() {
    let overlay = r#"{ "featured": { "xai": ["none"] }, "rules": [] }"#;
    let error = generate_catalogue(&json!({}), overlay)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the featured model `xai/none` does not exist");
}

#[test]
fn the_source_is_pinned_and_its_licence_committed() {
    assert!(WHEEL.starts_with(&format!("litellm=={VERSION} --hash=sha256:")));
    let licence = fs::read_to_string(folder().join(LICENCE)).unwrap();
    assert!(licence.contains("MIT License"), "{licence}");
}
