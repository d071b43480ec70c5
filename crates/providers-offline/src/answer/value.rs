//! Values as people write them: `1,234.56 EUR`, yes and no.

use serde_json::{Map, Number, Value};

use super::fields::Field;
use crate::{text::identifier_words, wording::shortened};

/// Characters of one text value.
pub(super) const VALUE_LIMIT: usize = 300;
/// Items of a list of plain values.
const ITEMS: usize = 20;

/// Whether a key holds the unit of another value, and no value of its own.
pub(super) fn is_unit(key: &str) -> bool {
    identifier_words(key)
        .last()
        .is_some_and(|word| matches!(word.as_str(), "currency" | "unit" | "units"))
}

/// Whether an object is one amount: a value and its unit.
pub(super) fn is_money(map: &Map<String, Value>) -> bool {
    map.len() == 2
        && map.keys().any(|key| is_unit(key))
        && map
            .keys()
            .any(|key| matches!(key.as_str(), "amount" | "value" | "total"))
}

/// A field's value with its unit, which stands beside it or is the only one of its object.
pub(super) fn with_unit(field: &Field, fields: &[Field]) -> String {
    joined(&field.key, &field.value, unit_of(field, fields))
}

/// The unit of a field's value, if it is known.
pub(super) fn unit_of<'f>(field: &Field, fields: &'f [Field]) -> Option<&'f str> {
    let beside = fields
        .iter()
        .filter(|other| other.above == field.above && is_unit(&other.key));
    unit_for(
        &field.key,
        beside.map(|other| (other.key.as_str(), &other.value)),
    )
}

/// The same for a key of a row.
pub(super) fn with_unit_of(key: &str, value: &Value, row: &Map<String, Value>) -> String {
    let beside = row.iter().filter(|(other, _)| is_unit(other));
    let unit = unit_for(key, beside.map(|(key, value)| (key.as_str(), value)));
    joined(key, value, unit)
}

/// `weight_unit` is the unit of `weight`; a bare `currency` or `unit` that of every amount.
fn unit_for<'v>(key: &str, units: impl Iterator<Item = (&'v str, &'v Value)>) -> Option<&'v str> {
    let own = identifier_words(key);
    units
        .filter_map(|(unit, value)| {
            let words = identifier_words(unit);
            let prefix = words.get(..words.len().saturating_sub(1))?.to_vec();
            let fits = if prefix.is_empty() {
                is_amount(&own, unit)
            } else {
                own.starts_with(&prefix)
            };
            fits.then(|| (prefix.len(), value.as_str()))
                .and_then(|(length, text)| Some((length, text?)))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, text)| text)
}

/// Whether a key can be an amount of a currency; a bare unit is of everything that is measured.
fn is_amount(key: &[String], unit: &str) -> bool {
    const AMOUNTS: &[&str] = &[
        "value", "amount", "total", "balance", "price", "cost", "sum", "revenue", "refund",
        "refunds", "paid", "spent", "fee", "tax", "subtotal", "payment", "worth", "due",
    ];
    let counted = key.last().is_some_and(|word| {
        matches!(
            word.as_str(),
            "id" | "count" | "number" | "cents" | "cent" | "pence" | "minor" | "micros"
        )
    });
    !counted
        && (!unit.ends_with("currency") || key.iter().any(|word| AMOUNTS.contains(&word.as_str())))
}

fn joined(key: &str, value: &Value, unit: Option<&str>) -> String {
    let number = match value {
        Value::Number(number) => Some(number.to_string()),
        // Exact amounts travel as decimal text.
        Value::String(text) if unit.is_some() && is_decimal(text) => Some(text.clone()),
        _ => None,
    };
    match (number, unit) {
        (Some(number), Some(unit)) => {
            let currency = unit.len() == 3 && unit.chars().all(|c| c.is_ascii_uppercase());
            format!("{} {unit}", grouped(&number, if currency { 2 } else { 0 }))
        }
        _ => said(key, value),
    }
}

/// A value by itself.
pub(super) fn said(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => plain_or_grouped(key, number),
        Value::String(text) => shortened(text.trim(), VALUE_LIMIT).replace(['\n', '\r', '\t'], " "),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items)
            if items
                .iter()
                .all(|item| !item.is_object() && !item.is_array()) =>
        {
            let mut said_items: Vec<String> = items
                .iter()
                .take(ITEMS)
                .map(|item| said("", item))
                .collect();
            if items.len() > ITEMS {
                said_items.push(format!("and {} more", items.len() - ITEMS));
            }
            said_items.join(", ")
        }
        Value::Array(items) => format!("{} items", items.len()),
        Value::Object(map) if is_money(map) => money(map),
        Value::Object(_) => shortened(&value.to_string(), VALUE_LIMIT),
    }
}

fn money(map: &Map<String, Value>) -> String {
    let unit = map
        .iter()
        .find(|(key, _)| is_unit(key))
        .and_then(|(_, value)| value.as_str());
    let amount = map.iter().find(|(key, _)| !is_unit(key));
    amount.map_or_else(String::new, |(key, value)| joined(key, value, unit))
}

/// Ids and years are no amounts and stay as they are.
fn plain_or_grouped(key: &str, number: &Number) -> String {
    let words = identifier_words(key);
    let name = words.last().is_some_and(|word| {
        matches!(
            word.as_str(),
            "id" | "ids" | "year" | "number" | "no" | "code" | "port" | "key" | "version" | "line"
        )
    });
    if name || key.is_empty() {
        number.to_string()
    } else {
        grouped(&number.to_string(), 0)
    }
}

/// Whether a text is a number in plain digits.
pub(super) fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let mut halves = digits.splitn(2, '.');
    let all_digits = |half: &str| !half.is_empty() && half.bytes().all(|b| b.is_ascii_digit());
    halves.next().is_some_and(all_digits) && halves.next().is_none_or(all_digits)
}

/// Thousands apart, at least so many decimals: `1234.5` is `1,234.50`.
fn grouped(number: &str, decimals: usize) -> String {
    if !is_decimal(number) {
        return number.to_owned();
    }
    let (sign, digits) = number
        .strip_prefix('-')
        .map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut apart = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            apart.push(',');
        }
        apart.push(digit);
    }
    let fraction = if fraction.bytes().all(|b| b == b'0') && decimals == 0 {
        ""
    } else {
        fraction
    };
    let fraction = format!("{fraction:0<decimals$}");
    if fraction.is_empty() {
        format!("{sign}{apart}")
    } else {
        format!("{sign}{apart}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_written_with_thousands_and_their_unit() {
        for (key, value, row, expected) in [
            (
                "account_value",
                json!(1234.56),
                json!({"currency": "EUR"}),
                "1,234.56 EUR",
            ),
            (
                "account_value",
                json!("-1234567.5"),
                json!({"currency": "EUR"}),
                "-1,234,567.50 EUR",
            ),
            (
                "balance",
                json!(12),
                json!({"currency": "USD"}),
                "12.00 USD",
            ),
            (
                "weight",
                json!(1200),
                json!({"weight_unit": "kg"}),
                "1,200 kg",
            ),
            ("orders", json!(3), json!({"currency": "EUR"}), "3"),
            (
                "customer_id",
                json!(12345),
                json!({"currency": "EUR"}),
                "12345",
            ),
            ("population", json!(12345), json!({}), "12,345"),
            ("ratio", json!(0.25), json!({}), "0.25"),
            ("big", json!(1e300), json!({}), "1e+300"),
            ("active", json!(true), json!({}), "yes"),
            ("tags", json!(["a", 2]), json!({}), "a, 2"),
            (
                "price",
                json!({"amount": "9.5", "currency": "EUR"}),
                json!({}),
                "9.50 EUR",
            ),
        ] {
            let Value::Object(row) = row else {
                unreachable!()
            };
            assert_eq!(with_unit_of(key, &value, &row), expected, "{key} {value}");
        }
    }
}
