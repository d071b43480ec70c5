use std::collections::{BTreeMap, BTreeSet};

use super::super::{PROVIDERS, model_names};
use super::*;

fn rows() -> impl Iterator<Item = &'static str> {
    MODELS.lines().filter(|line| !line.starts_with('#'))
}

fn entries() -> impl Iterator<Item = ModelEntry> {
    rows().map(|row| parse_row(row).unwrap_or_else(|| panic!("no entry: {row}")))
}

#[test]
fn the_lines_are_sorted_and_unique() {
    let keys: Vec<&str> = rows().map(row_key).collect();
    assert!(keys.len() > 200, "{}", keys.len());
    assert!(keys.is_sorted_by(|one, next| one < next));
    let head = MODELS.lines().take_while(|line| line.starts_with('#'));
    assert_eq!(head.count() + keys.len(), MODELS.lines().count());
    assert!(MODELS.ends_with('\n'));
}

#[test]
fn every_line_is_an_entry_and_every_entry_is_found() {
    let mut providers = BTreeSet::new();
    for entry in entries() {
        assert_eq!(
            super::super::find_model_entry(entry.provider, entry.name).as_ref(),
            Some(&entry)
        );
        providers.insert(entry.provider);
    }
    assert_eq!(providers.into_iter().collect::<Vec<_>>(), PROVIDERS);
}

#[test]
fn limits_are_plausible() {
    for entry in entries() {
        let id = entry.model_id();
        let window = entry.capabilities.context_window;
        let output = entry.capabilities.max_output_tokens;
        for limit in [window, output].into_iter().flatten() {
            assert!((256..=20_000_000).contains(&limit), "{id}: {limit}");
        }
        if let (Some(window), Some(output)) = (window, output) {
            assert!(output <= window, "{id}: {output} of {window}");
        }
    }
}

#[test]
fn prices_are_plausible() {
    for entry in entries() {
        let id = entry.model_id();
        let Prices {
            input,
            output,
            cache_read,
            cache_write,
        } = entry.prices;
        for price in [input, output, cache_read, cache_write]
            .into_iter()
            .flatten()
        {
            assert!((0.0..=1000.0).contains(&price), "{id}: {price}");
        }
        // The prices of input and output are both known or both unknown. Cached input is never more
        // expensive than other input.
        assert_eq!(input.is_some(), output.is_some(), "{id}");
        if let (Some(input), Some(read)) = (input, cache_read) {
            assert!(read <= input, "{id}: {read} of {input}");
        }
        if let (Some(input), Some(write)) = (input, cache_write) {
            assert!(write == 0.0 || write >= input, "{id}: {write} of {input}");
        }
    }
}

#[test]
fn deprecation_days_are_dates() {
    let mut found_any = false;
    for entry in entries() {
        if let Some(day) = entry.deprecated_on {
            found_any = true;
            assert!(
                model_names::matches_digit_pattern(day, "20dd-dd-dd"),
                "{}: {day}",
                entry.model_id()
            );
        }
    }
    assert!(found_any);
}

#[test]
fn featured_models_are_numbered_from_one() {
    let mut ranks: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for row in rows() {
        let (provider, _) = row.split_once('/').unwrap();
        ranks
            .entry(provider)
            .or_default()
            .extend(featured_rank(row));
    }
    for (provider, mut ranks) in ranks {
        ranks.sort_unstable();
        let expected: Vec<u8> = (1..).take(ranks.len()).collect();
        assert_eq!(ranks, expected, "{provider}");
    }
}

#[test]
fn a_dated_name_is_listed_only_if_its_entry_differs() {
    for entry in entries() {
        let base =
            model_names::strip_version(entry.name).and_then(|base| find_row(entry.provider, base));
        if let Some(base) = base.and_then(super::parse_row) {
            let renamed = ModelEntry {
                name: base.name,
                ..entry.clone()
            };
            assert_ne!(renamed, base, "{} repeats {}", entry.name, base.name);
        }
    }
}

#[test]
fn the_overlay_is_in_the_data() {
    let overlay: serde_json::Value = serde_json::from_str(include_str!("overlay.json")).unwrap();
    for (provider, names) in overlay["featured"].as_object().unwrap() {
        let featured: Vec<&str> = super::super::featured_models(provider)
            .iter()
            .map(|entry| entry.name)
            .collect();
        let expected = names.as_array().unwrap();
        assert_eq!(
            featured
                .iter()
                .map(|name| (*name).into())
                .collect::<Vec<serde_json::Value>>(),
            *expected
        );
    }
    let mut checked = 0;
    for rule in overlay["rules"].as_array().unwrap() {
        // Names with `*` are skipped: the task that generates the table checks them.
        for list in [&rule["models"], &rule["add"]] {
            for name in list.as_array().into_iter().flatten() {
                let name = name.as_str().unwrap();
                if name.contains('*') {
                    continue;
                }
                let (provider, model) = name.split_once('/').unwrap();
                assert!(
                    super::super::find_model_entry(provider, model).is_some(),
                    "{name}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "{checked}");
}

#[test]
fn an_invalid_line_has_no_entry() {
    const GOOD: &str = "p/m\t1\t-\t0.5\t-\t-\t-\ttools,!audio\t-\t-";
    assert!(parse_row(GOOD).is_some());
    for bad in [
        "",
        "# head",
        "p/m",
        "m\t1\t-\t0.5\t-\t-\t-\ttools\t-\t-",
        "p/m\tx\t-\t0.5\t-\t-\t-\ttools\t-\t-",
        "p/m\t1\t-\t0.5\t-\t-\t-\tflies\t-\t-",
        "p/m\t1\t-\t0.5\t-\t-\t-\ttools\t-\t-\t-",
        "p/m\t1\t-\t0.5\t-\t-\t-\ttools\t-\tfirst",
    ] {
        assert!(parse_row(bad).is_none(), "{bad}");
    }
}
