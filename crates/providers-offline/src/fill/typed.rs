//! Numbers, dates, ids, paths, names: the mentions that have a type, each to the parameter that
//! they fit best.

use serde_json::Value;

use super::{
    Places,
    convert::{convert, convert_item},
    count::{SELECTING, counts_things, is_count_alone, is_of_several},
    nearness::{is_of_another, lead, nearness, noun_before},
};
use crate::{
    extract::{Found, Mention},
    schema::{Kind, Param, TextKind},
    thesaurus::{alike, same},
};

/// Below this an optional parameter is left out: it was not mentioned.
const OPTIONAL_AT_LEAST: f64 = 2.0;
/// A value that scores this much was certainly meant for the parameter, and is refused aloud if
/// it is not allowed.
const CERTAIN: f64 = 3.0;

/// Gives mentions to parameters, the best pair first; equal pairs in order of parameter and text.
pub(super) fn fill(places: &mut Places<'_>) {
    let reading = places.reading;
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (i, param) in places.open() {
        for (m, mention) in reading.mentions.iter().enumerate() {
            if places.taken[m] {
                continue;
            }
            if let Some(score) = score(places, mention, param)
                && (param.required || score >= OPTIONAL_AT_LEAST)
            {
                pairs.push((score, i, m));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut assigned: Vec<(usize, usize)> = Vec::new();
    for (score, i, m) in pairs {
        let param = &places.tool.params[i];
        if places.taken[m] || places.values[i].is_some() {
            continue;
        }
        let mention = &reading.mentions[m];
        let span = (lead(reading, mention.start, param), mention.end);
        if matches!(param.kind, Kind::List(_)) {
            put_list(places, i, mention, score);
        } else if let Some(value) = convert(mention, param, reading) {
            if places.put(i, value, span, score) {
                assigned.push((i, m));
            } else if score >= CERTAIN {
                places.refuse(param, (mention.start, mention.end));
            }
        }
    }
    further(places, &assigned);
}

/// All members of the mention's list become the items.
fn put_list(places: &mut Places<'_>, i: usize, mention: &Mention, score: f64) {
    let reading = places.reading;
    let param = &places.tool.params[i];
    let items: Option<Vec<Value>> = reading
        .group(mention)
        .iter()
        .map(|member| convert_item(member, param, reading))
        .collect();
    let (start, end) = reading.group_bounds(mention);
    if let Some(items) = items {
        places.put(i, Value::Array(items), (start, end), score);
    }
}

/// The other members of a list whose first member was taken for a single value.
fn further(places: &mut Places<'_>, assigned: &[(usize, usize)]) {
    let reading = places.reading;
    for &(i, m) in assigned {
        let param = &places.tool.params[i];
        if param.kind == Kind::Count || !(param.required || param.kind == Kind::IdNumber) {
            continue;
        }
        let group = reading.mentions[m].group;
        let mut others: Vec<usize> = (0..reading.mentions.len())
            .filter(|&o| o != m && reading.mentions[o].group == group)
            .collect();
        if others.is_empty() && matches!(param.kind, Kind::IdNumber | Kind::Text(TextKind::Id)) {
            // "customer 42 … customer 7": the same noun again.
            let noun =
                |o: usize| noun_before(reading, &reading.mentions[o]).map(|(noun, _)| &noun.stem);
            let own = noun(m).filter(|noun| param.stems.contains(noun));
            let again = |&o: &usize| o != m && !places.taken[o] && own.is_some() && noun(o) == own;
            others = (0..reading.mentions.len()).filter(again).collect();
        }
        if others.is_empty() || others.iter().any(|&o| places.taken[o]) {
            continue;
        }
        let values: Option<Vec<Value>> = others
            .iter()
            .map(|&o| convert(&reading.mentions[o], param, reading))
            .map(|value| value.filter(|value| places.allows(param, value)))
            .collect();
        if let Some(values) = values {
            for &o in &others {
                places.use_up((reading.mentions[o].start, reading.mentions[o].end));
            }
            places.filling.further = Some((param.name.clone(), values));
            return;
        }
    }
}

/// How well a mention suits a parameter; `None` if not at all.
fn score(places: &Places<'_>, mention: &Mention, param: &Param) -> Option<f64> {
    let reading = places.reading;
    let (kind, listed) = match &param.kind {
        Kind::List(inner) => (inner.as_ref(), true),
        kind => (kind, false),
    };
    convert(mention, param, reading)?;
    // "The last of these three": of what is meant, three is neither an id nor an amount.
    let is_number = matches!(mention.found, Found::Number(_));
    if is_number && kind != &Kind::Count && !listed && is_of_several(reading, mention, param) {
        return None;
    }
    let near = nearness(reading, mention, param);
    let base = match (kind, &mention.found) {
        (Kind::Count, Found::Number(amount)) => {
            let counts = counts_things(reading, mention);
            if amount.hash || (near <= 0.0 && !counts) {
                return None;
            }
            // "5 seconds" counts, but not what a tool of customers counts.
            let known = super::nearness::nouns_after(reading, mention)
                .first()
                .is_none_or(|noun| {
                    places.tool.speaks_of(&noun.stem)
                        || near > 0.0
                        || crate::text::is_stop(&noun.lower)
                        || SELECTING.contains(&noun.lower.as_str())
                        || alike(&noun.stem)
                            .iter()
                            .any(|stem| places.tool.speaks_of(stem))
                });
            match (counts, known) {
                (true, true) => 3.0,
                (true, false) => 1.0,
                (false, _) => 0.0,
            }
        }
        (Kind::IdNumber | Kind::Text(TextKind::Id), Found::Number(amount)) => {
            // "the 2 latest customers" names no customer; "customers 2 and 3" does.
            let named = noun_before(reading, mention)
                .is_some_and(|(noun, _)| param.stems.iter().any(|stem| same(stem, &noun.stem)));
            let counts = !listed && !named && counts_things(reading, mention);
            let alone =
                !listed && !amount.hash && is_count_alone(reading, mention, param, places.tool);
            if counts || alone || is_of_another(reading, mention, param, places.tool) {
                return None;
            }
            // "account 42": the noun is the tool's own.
            let related = noun_before(reading, mention)
                .is_some_and(|(noun, _)| places.tool.speaks_of(&noun.stem));
            1.0 + if amount.hash { 1.0 } else { 0.0 }
                + if related && near <= 0.0 { 1.5 } else { 0.0 }
        }
        (Kind::Integer | Kind::Number, Found::Number(_)) => 1.0,
        (Kind::Text(text), found) => text_base(*text, found)?,
        _ => return None,
    };
    let optional_needs_nearness = !param.required
        && matches!(
            kind,
            Kind::Text(TextKind::Name | TextKind::Plain | TextKind::Query)
        )
        && near < 1.0;
    (!optional_needs_nearness).then_some(base + near)
}

fn text_base(kind: TextKind, found: &Found) -> Option<f64> {
    use TextKind as T;
    Some(match (kind, found) {
        // Quotes for free text are weighed against the other text in `tail`.
        (T::Title | T::Body | T::Query | T::Plain, Found::Quoted(_)) | (T::Id, Found::Email(_)) => {
            return None;
        }
        (T::Email, Found::Email(_))
        | (T::Url, Found::Url(_))
        | (T::Uuid, Found::Uuid(_))
        | (T::Zone, Found::Zone(_)) => 4.0,
        (T::Date, Found::Date(_))
        | (T::DateTime, Found::DateTime(_))
        | (T::Time, Found::Time(_))
        | (T::Path, Found::Path(_))
        | (T::Zone, Found::Name(_))
        | (T::Id, Found::Uuid(_) | Found::Code(_)) => 3.0,
        (T::Query, Found::Path(path)) if path.contains('*') => 3.5,
        (T::DateTime, Found::Date(_)) | (T::Path | T::Name, Found::Quoted(_)) => 2.5,
        (T::Date, Found::DateTime(_)) | (T::Name, Found::Name(_)) | (T::Id, Found::Quoted(_)) => {
            2.0
        }
        (T::Name | T::Plain | T::Query, Found::Code(_) | Found::Name(_)) => 1.5,
        (T::Query, Found::Path(_)) => return None,
        _ => 1.0,
    })
}
