//! The overlay: rules of ours over the facts of the source.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

use super::entry::{self, Entry};

/// Models worth naming, by provider; the first of each is its default.
pub(super) type Featured = BTreeMap<String, Vec<String>>;

/// Applies the rules of an overlay and returns the models that it features.
///
/// Returns an error for a rule that matches nothing, and for a rule that repeats the source, so
/// that the overlay stays minimal.
pub(super) fn apply(overlay: &str, entries: &mut BTreeMap<String, Entry>) -> Result<Featured> {
    let overlay: Map<String, Value> =
        serde_json::from_str(overlay).context("the overlay is not a JSON object")?;
    only_keys(&overlay, &["about", "featured", "rules"])?;
    let rules = overlay.get("rules").and_then(Value::as_array);
    for (number, rule) in rules
        .context("the overlay has no `rules`")?
        .iter()
        .enumerate()
    {
        apply_rule(rule, entries)
            .with_context(|| format!("rule {} of the overlay: {}", number + 1, rule["why"]))?;
    }
    let featured = overlay.get("featured").context("no `featured`")?;
    let featured: Featured = featured
        .as_object()
        .context("`featured` is not an object")?
        .iter()
        .map(|(provider, names)| Ok((provider.clone(), texts(names)?)))
        .collect::<Result<_>>()?;
    for (provider, names) in &featured {
        for name in names {
            let key = format!("{provider}/{name}");
            ensure!(entries.contains_key(&key), "no model `{key}` to feature");
        }
    }
    Ok(featured)
}

fn apply_rule(rule: &Value, entries: &mut BTreeMap<String, Entry>) -> Result<()> {
    let rule = rule.as_object().context("the rule is not an object")?;
    only_keys(rule, &["why", "models", "add", "where", "set"])?;
    let why = rule.get("why").and_then(Value::as_str).unwrap_or_default();
    ensure!(!why.is_empty(), "it does not say why");
    let set = fields(rule, "set")?;
    ensure!(!set.is_empty(), "it sets nothing");
    let conditions = fields(rule, "where")?;
    match (rule.get("models"), rule.get("add")) {
        (Some(patterns), None) => {
            for pattern in texts(patterns)? {
                let mut met = false;
                for (_, entry) in entries
                    .iter_mut()
                    .filter(|(key, _)| matches(&pattern, key))
                    .filter(|(_, entry)| holds(&conditions, entry))
                {
                    met = true;
                    change(entry, &set);
                }
                ensure!(met, "no model is `{pattern}`");
            }
        }
        (None, Some(names)) => {
            ensure!(
                conditions.is_empty(),
                "`where` selects existing models: it cannot go with `add`"
            );
            for name in texts(names)? {
                let mut entry = Entry::new();
                change(&mut entry, &set);
                let old = entries.insert(name.clone(), entry);
                ensure!(old.is_none(), "the source has `{name}` now");
            }
        }
        _ => bail!("it has neither `models` nor `add`, or both"),
    }
    Ok(())
}

fn change(entry: &mut Entry, set: &[(&'static str, Value)]) {
    for (field, value) in set {
        if value.is_null() {
            entry.remove(field);
        } else {
            entry.insert(field, value.clone());
        }
    }
}

fn holds(conditions: &[(&'static str, Value)], entry: &Entry) -> bool {
    conditions
        .iter()
        .all(|(field, value)| entry.get(field).unwrap_or(&Value::Null) == value)
}

/// The fields under `key`, if it is there.
fn fields(rule: &Map<String, Value>, key: &str) -> Result<Vec<(&'static str, Value)>> {
    let Some(value) = rule.get(key) else {
        return Ok(Vec::new());
    };
    let value = value
        .as_object()
        .with_context(|| format!("`{key}` is not an object"))?;
    value
        .iter()
        .map(|(name, value)| {
            let field = entry::field(name).with_context(|| format!("no field `{name}`"))?;
            Ok((field, value.clone()))
        })
        .collect()
}

fn only_keys(object: &Map<String, Value>, known: &[&str]) -> Result<()> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => bail!("`{key}` is none of {}", known.join(", ")),
    }
}

fn texts(value: &Value) -> Result<Vec<String>> {
    let texts = value.as_array().into_iter().flatten();
    let texts: Option<Vec<String>> = texts.map(|text| text.as_str().map(str::to_owned)).collect();
    texts
        .filter(|texts| !texts.is_empty())
        .with_context(|| format!("{value} is not a list of names"))
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
