//! Right and wrong answers to entries of the benchmark, derived from their right calls.

use serde_json::{Map, Value, json};

use crate::scripted::Call;

/// An entry of the benchmark with its right answer.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) category: &'static str,
    pub(crate) function: Value,
    pub(crate) answer: Value,
}

impl Entry {
    /// Returns the functions of the right calls, with the accepted values of each argument.
    fn expected(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        let calls = self.answer.as_array().into_iter().flatten();
        let named = calls.filter_map(|call| call.as_object()?.iter().next());
        named.filter_map(|(name, arguments)| Some((name.as_str(), arguments.as_object()?)))
    }

    fn parameters(&self, name: &str) -> &Value {
        let functions = self.function.as_array().into_iter().flatten();
        let mut named = functions.filter(|it| it["name"] == name);
        named.next().map_or(&Value::Null, |it| &it["parameters"])
    }

    /// Returns the right calls, with the first accepted value of each argument. Omits an argument
    /// that is not declared, and an optional argument without an accepted value.
    pub(crate) fn right(&self) -> Vec<(String, Map<String, Value>)> {
        let right = self.expected().map(|(name, arguments)| {
            let parameters = self.parameters(name);
            let is_required = |it: &str| {
                let required = parameters["required"].as_array();
                required.is_some_and(|names| names.iter().any(|name| name == it))
            };
            let given = arguments.iter().filter_map(|(argument, allowed)| {
                let allowed = allowed.as_array()?;
                let may_go = allowed.iter().any(|it| it == "") && !is_required(argument);
                if may_go && parameters["properties"].get(argument).is_none() {
                    return None;
                }
                let value = allowed.iter().find(|it| *it != "").map(written);
                let value = value.or_else(|| (!may_go).then(|| allowed.first().cloned())?);
                Some((argument.clone(), value?))
            });
            (name.to_owned(), given.collect())
        });
        right.collect()
    }

    /// Returns answers that are wrong for any values, each with the reason.
    pub(crate) fn wrong(&self) -> Vec<(&'static str, Vec<Call>)> {
        let right = self.right();
        let Some((first, arguments)) = right.first() else {
            let name = self.function[0]["name"].as_str().unwrap_or_default();
            return vec![("a call", vec![Call::new(name, &json!({}))])];
        };
        let calls = || as_calls(&right);
        let with_first = |input: Value| {
            let mut calls = calls();
            calls[0] = Call::new(first, &input);
            calls
        };
        let mut wrong = vec![("no call", Vec::new())];
        let mut missing = calls();
        missing.pop();
        wrong.push(("a call too few", missing));
        let mut extra = calls();
        extra.push(extra[0].clone());
        wrong.push(("a call too many", extra));
        let mut other = calls();
        other[0].function.push_str("_of_another_kind");
        wrong.push(("another function", other));
        let mut surplus = arguments.clone();
        surplus.insert("surplus_to_requirements".to_owned(), json!(1));
        wrong.push(("an argument too many", with_first(Value::Object(surplus))));
        let expected = self.expected().next();
        let (_, expected) = expected.unwrap_or((first, arguments));
        for (name, value) in arguments {
            let other = other_than(value);
            let allowed = expected.get(name).and_then(Value::as_array);
            if allowed.is_some_and(|it| !it.contains(&other)) {
                let mut changed = arguments.clone();
                changed.insert(name.clone(), other);
                wrong.push(("another value", with_first(Value::Object(changed))));
                break;
            }
        }
        wrong
    }

    /// Returns answers that may be right or wrong.
    pub(crate) fn changed(&self) -> Vec<Vec<Call>> {
        let right = self.right();
        let mut all = vec![Vec::new()];
        let calls = as_calls(&right);
        let mut reversed = calls.clone();
        reversed.reverse();
        all.push(reversed);
        for text in ["{", "[1]", "7", r#"{"a": 1,}"#, "{}"] {
            let function = match calls.first() {
                Some(call) => call.function.clone(),
                None => self.function[0]["name"].as_str().unwrap_or_default().into(),
            };
            let text = text.to_owned();
            let mut broken = calls.clone();
            broken.splice(..broken.len().min(1), [Call { function, text }]);
            all.push(broken);
        }
        for (at, (name, arguments)) in right.iter().enumerate() {
            let mut with = |arguments: Map<String, Value>| {
                let mut calls = calls.clone();
                calls[at] = Call::new(name, &Value::Object(arguments));
                all.push(calls);
            };
            let mut surplus = arguments.clone();
            surplus.insert("surplus".to_owned(), Value::Null);
            with(surplus);
            let allowed = self.expected().nth(at).map(|(_, allowed)| allowed);
            for (argument, allowed) in allowed.into_iter().flatten() {
                let mut without = arguments.clone();
                without.remove(argument);
                with(without);
                let listed = allowed.as_array().into_iter().flatten();
                let mut values: Vec<Value> =
                    listed.flat_map(|it| [it.clone(), written(it)]).collect();
                if let Some(value) = arguments.get(argument) {
                    values.extend(like(value));
                }
                values.extend([Value::Null, json!(""), json!([]), json!({}), json!(true)]);
                for value in values {
                    let mut changed = arguments.clone();
                    changed.insert(argument.clone(), value);
                    with(changed);
                }
            }
        }
        all
    }
}

pub(crate) fn as_calls(calls: &[(String, Map<String, Value>)]) -> Vec<Call> {
    let call = |(name, arguments): &(String, Map<String, Value>)| {
        Call::new(name, &Value::Object(arguments.clone()))
    };
    calls.iter().map(call).collect()
}

/// Converts an accepted value to the value in a call. In the benchmark, each field of an object has
/// a list of accepted values.
fn written(allowed: &Value) -> Value {
    match allowed {
        Value::Object(fields) => {
            let first = |(name, allowed): (&String, &Value)| {
                let value = allowed.as_array()?.iter().find(|it| *it != "")?;
                Some((name.clone(), value.clone()))
            };
            Value::Object(fields.iter().filter_map(first).collect())
        }
        Value::Array(items) if items.iter().all(Value::is_object) => {
            items.iter().map(written).collect()
        }
        other => other.clone(),
    }
}

/// Returns another value of the same type that no answer accepts.
fn other_than(value: &Value) -> Value {
    match value {
        Value::Bool(it) => json!(!it),
        Value::Number(it) => match it.as_i64() {
            Some(it) => json!(it + 1_000_003),
            None => json!(it.as_f64().unwrap_or_default() + 1_000_003.5),
        },
        Value::String(it) => json!(format!("{it} but not so")),
        Value::Array(items) => {
            let one = items.first().map_or(json!("none of them"), other_than);
            items.iter().cloned().chain([one]).collect()
        }
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("surplus_to_requirements".to_owned(), json!(1));
            Value::Object(fields)
        }
        Value::Null => json!("something"),
    }
}

/// Returns values that are similar to a value.
fn like(value: &Value) -> Vec<Value> {
    let mut like = vec![other_than(value), json!([value]), json!(value.to_string())];
    match value {
        Value::Bool(it) => like.extend([json!(i32::from(*it)), json!(f64::from(u8::from(*it)))]),
        Value::Number(it) => {
            let number = it.as_f64().unwrap_or_default();
            like.extend([json!(number), json!(number + 0.25), json!(-number)]);
            like.extend(it.as_i64().map(|it| json!(it + 1)));
            #[expect(clippy::cast_possible_truncation, reason = "any whole number will do")]
            like.push(json!(number as i64));
        }
        Value::String(it) => like.extend([
            json!(it.to_uppercase()),
            json!(it.replace(' ', "_-")),
            json!(format!(" {it}.^*")),
            json!(it.replace('\'', "\"")),
            json!(it.chars().skip(1).collect::<String>()),
            json!(it.chars().map(|it| it.to_string()).collect::<Vec<_>>()),
            json!(it.parse::<i64>().ok()),
        ]),
        Value::Array(items) => {
            like.extend([
                items.iter().rev().cloned().collect(),
                items.iter().skip(1).cloned().collect(),
            ]);
            for (at, item) in items.iter().enumerate().take(2) {
                let others = [Value::Null, other_than(item)];
                for other in others.into_iter().chain(like_simple(item)) {
                    let mut items = items.clone();
                    items[at] = other;
                    like.push(Value::Array(items));
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let mut without = fields.clone();
                without.remove(name);
                like.push(Value::Object(without));
                for other in like_simple(field)
                    .into_iter()
                    .chain([Value::Null, json!("")])
                {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), other);
                    like.push(Value::Object(fields));
                }
            }
        }
        Value::Null => {}
    }
    like
}

/// Returns the values that are similar to an item of a list or an object.
fn like_simple(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(_) => Vec::new(),
        simple => like(simple),
    }
}
