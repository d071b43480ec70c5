//! The data as text: a line for each model, in the order of their names.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::entry::{self, ABILITIES, DEPRECATED_ON, Entry, LIMITS, PRICES};
use super::overlay::{self, Featured};
use super::source::VERSION;

/// Cell text of an unknown value.
const UNKNOWN: &str = "-";

/// The data that the source's models and an overlay give: the same bytes whenever it is made.
pub(super) fn make(models: &Value, overlay: &str) -> Result<String> {
    let mut entries = entry::of_source(models)?;
    let featured = overlay::apply(overlay, &mut entries)?;
    let repeats: Vec<String> = entries
        .iter()
        .filter(|(name, entry)| repeats_its_base(name, entry, &entries))
        .map(|(name, _)| name.clone())
        .collect();
    for name in &repeats {
        entries.remove(name);
    }
    let mut text = header();
    for (name, entry) in &entries {
        line(&mut text, name, entry, &featured).with_context(|| format!("model `{name}`"))?;
    }
    Ok(text)
}

fn header() -> String {
    let columns: Vec<&str> = ["model"]
        .into_iter()
        .chain(LIMITS)
        .chain(PRICES.map(|(field, _)| field))
        .chain(["abilities", DEPRECATED_ON, "featured"])
        .collect();
    format!(
        "# What models can do and cost. Made by `cargo xtask catalogue`; do not edit: change overlay.json.\n\
         # The facts of the source are under its licence, LICENSE-litellm.\n\
         # source: litellm {VERSION}\n\
         # Limits are in tokens, prices in US dollars for a million tokens; `!` is no, what is missing or `-` is not known.\n\
         # {}\n",
        columns.join(" | ")
    )
}

/// Returns whether a versioned name repeats the entry of its base name. The reader falls back to
/// the base name.
fn repeats_its_base(name: &str, entry: &Entry, entries: &BTreeMap<String, Entry>) -> bool {
    unversioned(name).is_some_and(|base| entries.get(base) == Some(entry))
}

/// Removes the version suffix of a name: `-latest`, a date, or a number such as `-001`. The reader,
/// `providers-common/src/catalog/names.rs`, has the same rule. A test of the data checks that both
/// agree.
fn unversioned(name: &str) -> Option<&str> {
    let with_tail = |length: usize, fits: fn(&str) -> bool| {
        let (base, tail) = name.split_at_checked(name.len().checked_sub(length)?)?;
        fits(tail).then_some(base)
    };
    name.strip_suffix("-latest")
        .or_else(|| with_tail(11, |tail| has_form(tail, "-20dd-dd-dd")))
        .or_else(|| with_tail(9, |tail| has_form(tail, "-20dddddd")))
        .or_else(|| with_tail(9, |tail| has_form(tail, "@20dddddd")))
        .or_else(|| with_tail(4, |tail| has_form(tail, "-00d")))
        .filter(|base| !base.is_empty())
}

/// Returns whether a text has this form. `d` matches a digit.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text
            .bytes()
            .zip(form.bytes())
            .all(|(byte, form)| match form {
                b'd' => byte.is_ascii_digit(),
                other => byte == other,
            })
}

fn line(text: &mut String, name: &str, entry: &Entry, featured: &Featured) -> Result<()> {
    text.push_str(name);
    for field in LIMITS {
        let tokens = entry.get(field).map(|value| {
            let tokens = value.as_u64().filter(|tokens| *tokens > 0);
            tokens.with_context(|| format!("`{field}` is {value}"))
        });
        column(text, tokens.transpose()?);
    }
    for (field, _) in PRICES {
        let price = entry.get(field).map(|value| {
            let price = value.as_f64().filter(|price| *price >= 0.0);
            price.with_context(|| format!("`{field}` is {value}"))
        });
        column(text, price.transpose()?);
    }
    let mut words = Vec::new();
    for (field, word) in ABILITIES {
        match entry.get(field) {
            None => {}
            Some(Value::Bool(true)) => words.push(word.to_owned()),
            Some(Value::Bool(false)) => words.push(format!("!{word}")),
            Some(other) => bail!("`{field}` is {other}"),
        }
    }
    column(text, (!words.is_empty()).then(|| words.join(",")));
    let date = entry.get(DEPRECATED_ON);
    let is_date = |value: &Value| {
        let date = value.as_str().filter(|date| has_form(date, "20dd-dd-dd"));
        date.map(str::to_owned)
            .with_context(|| format!("`{DEPRECATED_ON}` is {value}"))
    };
    column(text, date.map(is_date).transpose()?);
    column(text, rank(name, featured));
    text.push('\n');
    Ok(())
}

fn column(text: &mut String, value: Option<impl std::fmt::Display>) {
    text.push('\t');
    match value {
        // Writing to a string cannot fail.
        Some(value) => drop(write!(text, "{value}")),
        None => text.push_str(UNKNOWN),
    }
}

/// From 1, the provider's default.
fn rank(name: &str, featured: &Featured) -> Option<usize> {
    let (provider, name) = name.split_once('/')?;
    let names = featured.get(provider)?;
    Some(names.iter().position(|one| one == name)? + 1)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
