//! A mention as a value of a parameter's type.

use serde_json::Value;

use crate::{
    extract::{Found, Mention, Reading, zone_of_city},
    schema::{Kind, Param, TextKind, type_name},
};

/// The value that a mention has for a parameter, if its type fits. A list takes it as one item.
pub(super) fn convert(mention: &Mention, param: &Param, reading: &Reading<'_>) -> Option<Value> {
    if !param.choices.is_empty() {
        return listed(mention, param);
    }
    match &param.kind {
        Kind::List(inner) => {
            let items = param.schema.get("items").unwrap_or(&Value::Null);
            one(mention, inner, items, reading).map(|value| Value::Array(vec![value]))
        }
        kind => one(mention, kind, &param.schema, reading),
    }
}

/// The value of a mention for one item of a list, or for the parameter itself.
pub(super) fn convert_item(
    mention: &Mention,
    param: &Param,
    reading: &Reading<'_>,
) -> Option<Value> {
    match convert(mention, param, reading)? {
        Value::Array(items) if matches!(param.kind, Kind::List(_)) => items.into_iter().next(),
        value => Some(value),
    }
}

fn listed(mention: &Mention, param: &Param) -> Option<Value> {
    let value = match &mention.found {
        Found::Number(amount) => Value::Number(amount.number.clone()),
        other => Value::from(other.as_text()?),
    };
    let alike = |choice: &&Value| match (choice.as_str(), value.as_str()) {
        (Some(choice), Some(value)) => choice.eq_ignore_ascii_case(value),
        _ => **choice == value,
    };
    let choice = param.choices.iter().find(alike)?.clone();
    Some(if matches!(param.kind, Kind::List(_)) {
        Value::Array(vec![choice])
    } else {
        choice
    })
}

fn one(mention: &Mention, kind: &Kind, schema: &Value, reading: &Reading<'_>) -> Option<Value> {
    match (kind, &mention.found) {
        (Kind::Count | Kind::IdNumber | Kind::Integer | Kind::Number, Found::Number(amount)) => {
            let whole_only = kind == &Kind::Integer || type_name(schema) == Some("integer");
            match amount.whole {
                None if whole_only => None,
                _ => Some(Value::Number(amount.number.clone())),
            }
        }
        // RFC 3339 wants seconds and a zone.
        (Kind::Text(TextKind::Time), Found::Time(time))
            if schema.get("format").and_then(Value::as_str) == Some("time") =>
        {
            Some(Value::String(format!("{time}:00Z")))
        }
        (Kind::Text(text), found) => text_value(*text, found, mention, reading).map(Value::String),
        _ => None,
    }
}

fn text_value(
    kind: TextKind,
    found: &Found,
    mention: &Mention,
    reading: &Reading<'_>,
) -> Option<String> {
    use TextKind as T;
    match (kind, found) {
        (T::Date, Found::Date(date)) => Some(date.to_string()),
        (T::Date, Found::DateTime(text)) => text.get(..10).map(str::to_owned),
        (T::DateTime, Found::Date(date)) => Some(format!("{date}T00:00:00Z")),
        (T::DateTime, Found::DateTime(text)) => {
            let zoned =
                text.ends_with('Z') || text.get(10..).is_some_and(|t| t.contains(['+', '-']));
            let seconds =
                if text.matches(':').count() < 2 + usize::from(zoned && !text.ends_with('Z')) {
                    ":00"
                } else {
                    ""
                };
            Some(if zoned {
                text.clone()
            } else {
                format!("{text}{seconds}Z")
            })
        }
        (T::Zone, Found::Name(city) | Found::Quoted(city)) if zone_of_city(city).is_some() => {
            zone_of_city(city).map(str::to_owned)
        }
        (T::Time, Found::Time(text))
        | (T::Email, Found::Email(text))
        | (T::Url, Found::Url(text))
        | (T::Uuid, Found::Uuid(text))
        | (T::Path, Found::Path(text) | Found::Url(text))
        | (T::Id, Found::Uuid(text) | Found::Code(text) | Found::Email(text))
        | (T::Name, Found::Name(text) | Found::Code(text) | Found::Path(text))
        | (
            T::Query,
            Found::Name(text) | Found::Code(text) | Found::Email(text) | Found::Path(text),
        )
        | (
            T::Plain,
            Found::Name(text)
            | Found::Code(text)
            | Found::Url(text)
            | Found::Path(text)
            | Found::Email(text)
            | Found::Uuid(text),
        )
        | (T::Zone | T::Path, Found::Zone(text))
        | (_, Found::Quoted(text)) => Some(text.clone()),
        (T::Id, Found::Number(amount)) => {
            let written = reading.slice(mention.start, mention.end);
            let digits = written.contains(|c: char| c.is_ascii_digit());
            let written = written.trim_start_matches(['#', ' ']).to_owned();
            Some(if digits {
                written
            } else {
                amount.number.to_string()
            })
        }
        _ => None,
    }
}
