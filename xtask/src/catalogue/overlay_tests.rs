use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn entries() -> BTreeMap<String, Entry> {
    let entry = |window: u64| Entry::from([("context_window", json!(window))]);
    BTreeMap::from([
        ("openai/a-1".to_owned(), entry(1)),
        ("openai/a-2".to_owned(), entry(2)),
        ("xai/b".to_owned(), entry(1)),
    ])
}

fn applied(rules: &Value) -> Result<BTreeMap<String, Entry>> {
    let mut entries = entries();
    let overlay = json!({ "featured": { "xai": ["b"] }, "rules": rules });
    apply(&overlay.to_string(), &mut entries)?;
    Ok(entries)
}

#[test]
fn rules_change_the_models_that_they_name() {
    let entries = applied(&json!([
        { "why": "x", "models": ["openai/a*"], "where": { "context_window": 1 },
          "set": { "context_window": 10, "tools": false } },
        { "why": "x", "models": ["openai/a-1"], "set": { "tools": true } },
        { "why": "x", "models": ["xai/b"], "set": { "context_window": null } },
        { "why": "x", "add": ["xai/c"], "set": { "images": true } },
    ]))
    .unwrap();
    assert_eq!(entries["openai/a-1"]["context_window"], 10);
    assert_eq!(entries["openai/a-1"]["tools"], true);
    assert_eq!(entries["openai/a-2"]["context_window"], 2);
    assert!(entries["xai/b"].is_empty());
    assert_eq!(entries["xai/c"], Entry::from([("images", json!(true))]));
}

#[test]
fn rules_without_effect_are_errors() {
    for (rule, expected) in [
        (
            json!({ "why": "x", "models": ["xai/z"], "set": { "tools": true } }),
            "no model is `xai/z`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "where": { "tools": true }, "set": { "tools": true } }),
            "no model is `xai/b`",
        ),
        (
            json!({ "why": "x", "add": ["xai/b"], "set": { "tools": true } }),
            "the source has `xai/b`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "set": { "tool": true } }),
            "no field `tool`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "sets": {} }),
            "unknown field `sets`",
        ),
        (
            json!({ "why": "x", "models": ["xai/b"], "set": {} }),
            "sets nothing",
        ),
        (
            json!({ "models": ["xai/b"], "set": { "tools": true } }),
            "missing field `why`",
        ),
        (
            json!({ "why": "x", "set": { "tools": true } }),
            "neither `models` nor `add`",
        ),
    ] {
        let error = format!("{:#}", applied(&json!([rule])).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_featured_model_exists() {
    let overlay = json!({ "featured": { "xai": ["b", "none"] }, "rules": [] }).to_string();
    let error = apply(&overlay, &mut entries()).unwrap_err().to_string();
    assert_eq!(error, "no model `xai/none` to feature");
    let overlay = json!({ "featured": { "xai": ["b"] }, "rules": [] }).to_string();
    let featured = apply(&overlay, &mut entries()).unwrap();
    assert_eq!(featured["xai"], ["b"]);
}

#[test]
fn a_star_matches_any_text() {
    for (pattern, name, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "a", true),
        ("a*", "abc", true),
        ("a*", "ba", false),
        ("a*c", "abc", true),
        ("a*c", "abcd", false),
        ("a*b*", "axxbxx", true),
        ("*b", "aab", true),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}
