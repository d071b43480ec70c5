//! The overlay: rules of ours over the facts of the source.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::entry::{self, Entry};

/// Featured models by provider. The first of each list is the default.
pub(super) type Featured = BTreeMap<String, Vec<String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Overlay {
    #[serde(default, rename = "about")]
    _about: Value,
    featured: Featured,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    why: String,
    /// Patterns of existing models to change.
    #[serde(default)]
    models: Vec<String>,
    /// Names of new models.
    #[serde(default)]
    add: Vec<String>,
    /// Values that an existing model must have.
    #[serde(default, rename = "where")]
    conditions: BTreeMap<String, Value>,
    set: BTreeMap<String, Value>,
}

/// Applies the rules of an overlay and returns the models that it features.
///
/// Returns an error for a rule that matches nothing, and for a rule that adds a model of the
/// source, so that the overlay stays minimal.
pub(super) fn apply(overlay: &str, entries: &mut BTreeMap<String, Entry>) -> Result<Featured> {
    let overlay: Overlay = serde_json::from_str(overlay).context("the overlay is not valid")?;
    for (number, rule) in overlay.rules.iter().enumerate() {
        apply_rule(rule, entries)
            .with_context(|| format!("rule {} of the overlay: {}", number + 1, rule.why))?;
    }
    for (provider, names) in &overlay.featured {
        for name in names {
            let key = format!("{provider}/{name}");
            ensure!(entries.contains_key(&key), "no model `{key}` to feature");
        }
    }
    Ok(overlay.featured)
}

fn apply_rule(rule: &Rule, entries: &mut BTreeMap<String, Entry>) -> Result<()> {
    ensure!(!rule.why.is_empty(), "it has no reason in `why`");
    ensure!(!rule.set.is_empty(), "it sets nothing");
    ensure!(
        rule.models.is_empty() != rule.add.is_empty(),
        "it has neither `models` nor `add`, or both"
    );
    ensure!(
        rule.add.is_empty() || rule.conditions.is_empty(),
        "`where` selects existing models: it cannot be combined with `add`"
    );
    let (set, conditions) = (fields(&rule.set)?, fields(&rule.conditions)?);
    for pattern in &rule.models {
        let mut has_match = false;
        for (name, entry) in entries.iter_mut() {
            if matches(pattern, name) && meets(entry, &conditions) {
                has_match = true;
                change(entry, &set);
            }
        }
        ensure!(has_match, "no model is `{pattern}`");
    }
    for name in &rule.add {
        let mut entry = Entry::new();
        change(&mut entry, &set);
        let old = entries.insert(name.clone(), entry);
        ensure!(old.is_none(), "the source has `{name}` now");
    }
    Ok(())
}

fn change(entry: &mut Entry, set: &Entry) {
    for (field, value) in set {
        if value.is_null() {
            entry.remove(field);
        } else {
            entry.insert(field, value.clone());
        }
    }
}

fn meets(entry: &Entry, conditions: &Entry) -> bool {
    conditions
        .iter()
        .all(|(field, value)| entry.get(field).unwrap_or(&Value::Null) == value)
}

fn fields(values: &BTreeMap<String, Value>) -> Result<Entry> {
    values
        .iter()
        .map(|(name, value)| {
            let field = entry::field(name).with_context(|| format!("no field `{name}`"))?;
            Ok((field, value.clone()))
        })
        .collect()
}

/// Returns whether a name matches a pattern. `*` matches any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    name.strip_prefix(start).is_some_and(|name| {
        (0..=name.len())
            .filter_map(|at| name.get(at..))
            .any(|name| matches(rest, name))
    })
}

#[cfg(test)]
#[path = "overlay_tests.rs"]
mod tests;
