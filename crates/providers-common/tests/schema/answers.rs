//! Answers in a strict dialect, restored and then validated against the original schema of the
//! tool.

use serde_json::{Map, Value, json};
use switchboard_providers_common::schema::{Dialect, compile, restore_answer};

use crate::corpus::tools;

/// Generator of values that match a compiled strict schema. Each `turn` gives another value.
struct Maker<'s> {
    root: &'s Value,
    turn: usize,
    choices: usize,
}

impl Maker<'_> {
    /// Returns an index below `count` that varies with the turn and with each call.
    fn choose(&mut self, count: usize) -> usize {
        self.choices += 1;
        (self.turn * 7 + self.choices * 3 + self.turn * self.choices) % count.max(1)
    }

    /// Returns a value that matches `schema`, or `None` for an unsupported schema, such as a
    /// pattern.
    fn value(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            let target = root.pointer(reference.trim_start_matches('#'))?;
            return self.value(target, depth + 1);
        }
        if depth > 12 {
            return None;
        }
        if let Some(arms) = schema.get("anyOf").and_then(Value::as_array) {
            let first = self.choose(arms.len());
            // Deep in the schema, the alternative `null` is chosen, so that recursion ends.
            let null = arms.iter().position(|arm| arm["type"] == "null");
            if depth > 6
                && let Some(null) = null
            {
                return self.value(&arms[null], depth + 1);
            }
            return (0..arms.len())
                .find_map(|step| self.value(&arms[(first + step) % arms.len()], depth + 1));
        }
        if let Some(constant) = schema.get("const") {
            return Some(constant.clone());
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let index = self.choose(values.len());
            return values.get(index).cloned();
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let name = *types.get(self.choose(types.len()))?;
        Some(match name {
            "null" => Value::Null,
            "boolean" => json!(self.choose(2) == 0),
            "integer" | "number" => json!(self.number(schema)),
            "string" => json!(self.text(schema)?),
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(0);
                let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
                let count = least.max(self.choose(3) as u64).min(most);
                let count = if depth > 6 { least } else { count };
                let items = (0..count).map(|_| self.value(&schema["items"], depth + 1));
                Value::Array(items.collect::<Option<_>>()?)
            }
            _ => {
                let mut object = Map::new();
                for (name, property) in schema["properties"].as_object()? {
                    object.insert(name.clone(), self.value(property, depth + 1)?);
                }
                Value::Object(object)
            }
        })
    }

    fn number(&mut self, schema: &Value) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "bounds of a corpus")]
        let bound = |keyword: &str| schema[keyword].as_f64().map(|it| it as i64);
        let least = bound("minimum").or(bound("exclusiveMinimum").map(|it| it + 1));
        let most = bound("maximum").or(bound("exclusiveMaximum").map(|it| it - 1));
        let by = bound("multipleOf").unwrap_or(1).max(1);
        let some = by * i64::try_from(self.choose(3)).unwrap_or(1);
        let value = least.map_or(some, |least| some.max((least + by - 1) / by * by));
        most.map_or(value, |most| value.min(most))
    }

    fn text(&mut self, schema: &Value) -> Option<&'static str> {
        if schema.get("pattern").is_some() {
            return None;
        }
        Some(match schema["format"].as_str() {
            None => ["a", "some words", ""][self.choose(3)],
            Some("date-time") => "2026-11-21T08:00:00Z",
            Some("date") => "2026-11-21",
            Some("time") => "08:00:00Z",
            Some("duration") => "P1D",
            Some("email") => "a@example.org",
            Some("hostname") => "example.org",
            Some("uri") => "https://example.org/",
            Some("ipv4") => "192.0.2.1",
            Some("ipv6") => "2001:db8::1",
            Some(_) => "0193508a-7c1e-7c4e-8f7a-0123456789ab",
        })
    }
}

/// Counts of the checked answers in one dialect.
#[derive(Debug, Default)]
struct Seen {
    answers: usize,
    valid: usize,
    of_exact: usize,
}

fn run(dialect: Dialect) -> Seen {
    let mut seen = Seen::default();
    let mut wrong = Vec::new();
    for tool in tools() {
        // A validator of JSON Schema ignores `nullable`, a keyword of OpenAPI 3.0.
        if tool.schema.to_string().contains("\"nullable\":true") {
            continue;
        }
        // The validator refuses some schemas, for example because of missing `$ref` targets.
        let Ok(original) = jsonschema::validator_for(&tool.schema) else {
            continue;
        };
        let compiled = compile(&tool.schema, dialect);
        let strict = jsonschema::draft202012::new(&compiled.schema).expect("a compiled schema");
        for turn in 0..6 {
            let mut maker = Maker {
                root: &compiled.schema,
                turn,
                choices: 0,
            };
            let Some(answer) = maker.value(&compiled.schema, 0) else {
                continue;
            };
            assert!(strict.is_valid(&answer), "{}: made {answer}", tool.name);
            let restored = restore_answer(&tool.schema, dialect, answer.clone());
            // A restored answer does not change if it is restored again.
            let twice = restore_answer(&tool.schema, dialect, restored.clone());
            assert_eq!(twice, restored, "{}: restored twice", tool.name);
            let problem = original.validate(&restored).err().map(|it| it.to_string());
            seen.answers += 1;
            seen.valid += usize::from(problem.is_none());
            if compiled.keeps_all_constraints() {
                seen.of_exact += 1;
                if let Some(problem) = problem {
                    let name = &tool.name;
                    wrong.push(format!("{name}: {problem}: {answer} became {restored}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(8)]
    );
    seen
}

#[test]
fn an_answer_of_openais_strict_mode_is_one_for_the_tool() {
    let seen = run(Dialect::OpenAiStrict);
    assert!(seen.of_exact > 1_000, "{seen:?}");
    // The other answers violate constraints that the API does not enforce, such as lengths.
    assert!(seen.valid * 100 >= seen.answers * 70, "{seen:?}");
}

#[test]
fn an_answer_of_anthropics_strict_mode_is_one_for_the_tool() {
    let seen = run(Dialect::AnthropicStrict);
    assert!(seen.of_exact > 500, "{seen:?}");
    assert!(seen.valid * 100 >= seen.answers * 70, "{seen:?}");
}
