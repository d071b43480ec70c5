//! The number of steps of a check, counted before the check.

use std::{collections::HashMap, ptr, str::Chars};

use serde_json::Value;

use super::references::References;

/// Maximum nesting of an evaluation. References and levels of the value count as one each. The
/// validator has the same recursion, on a stack of 2 MiB.
const MAX_NESTING: usize = 400;
/// Bytes of a text that count as one step.
const BYTES_PER_STEP: usize = 64;
/// Steps of `uniqueItems` for each value in the array: up to 15 items are compared pairwise, more
/// are hashed.
const UNIQUE_STEPS: u64 = 16;

/// Returns an upper bound of the steps of a check of this value, or `None` if it exceeds `max`. The
/// count itself takes at most `max` steps.
pub(super) fn visits(schema: &Value, value: &Value, max: u64) -> Option<u64> {
    Some(total(schema, value, max, false)?.check)
}

/// Returns an upper bound of the steps of listing the errors of this value, or `None` if the count
/// takes more than `max` steps.
pub(super) fn error_steps(schema: &Value, value: &Value, max: u64) -> Option<u64> {
    let total = total(schema, value, max, true)?;
    Some(total.check.saturating_add(total.copies))
}

fn total(schema: &Value, value: &Value, max: u64, counts_copies: bool) -> Option<Cost> {
    let mut counter = Counter {
        root: schema,
        references: None,
        max,
        counts_copies,
        steps: 0,
        known: HashMap::new(),
    };
    counter.cost(schema, value, Visit::default())
}

/// Steps of one schema on one value.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// The check itself.
    check: u64,
    /// Finding out which members were evaluated, for an `unevaluatedProperties` above.
    mark: u64,
    /// Copies of values in errors below `anyOf` and `oneOf`.
    copies: u64,
}

/// How an evaluation is reached.
#[derive(Clone, Copy, Default)]
struct Visit {
    nesting: usize,
    /// Whether a reference leads to the schema. Only such schemas can be reached repeatedly, so
    /// only their costs are stored.
    is_referenced: bool,
    /// Whether the value is not part of the checked document, so that its address is not unique.
    is_temporary: bool,
}

struct Counter<'s> {
    root: &'s Value,
    references: Option<References<'s>>,
    max: u64,
    counts_copies: bool,
    steps: u64,
    /// Costs by the addresses of schema and value.
    known: HashMap<(*const Value, *const Value), Cost>,
}

impl<'s> Counter<'s> {
    /// Returns the cost of this schema on this value. Ignores keywords without effect on the cost.
    fn cost(&mut self, schema: &'s Value, value: &Value, visit: Visit) -> Option<Cost> {
        let key = (ptr::from_ref(schema), ptr::from_ref(value));
        let is_stored = visit.is_referenced && !visit.is_temporary;
        if is_stored && let Some(cost) = self.known.get(&key) {
            return Some(*cost);
        }
        if visit.nesting > MAX_NESTING {
            return None;
        }
        let mut cost = Cost::default();
        self.charge(&mut cost, 1)?;
        match value {
            Value::String(text) => self.charge(&mut cost, text_steps(text))?,
            Value::Array(items) => cost.mark = length(items.len()),
            Value::Object(members) => {
                cost.mark = length(members.len());
                self.charge(&mut cost, length(members.len()))?;
            }
            _ => {}
        }
        let mut marks = false;
        for (keyword, part) in schema.as_object().into_iter().flatten() {
            self.charge(&mut cost, 1)?;
            self.add_keyword(&mut cost, schema, keyword, part, value, visit)?;
            marks |= keyword.starts_with("unevaluated");
        }
        if marks {
            // Members may be checked twice: to mark them, and to report them.
            let again = cost.check.saturating_add(cost.mark);
            self.add(&mut cost, again)?;
        }
        if is_stored {
            self.known.insert(key, cost);
        }
        Some(cost)
    }

    fn add_keyword(
        &mut self,
        cost: &mut Cost,
        schema: &'s Value,
        keyword: &str,
        part: &'s Value,
        value: &Value,
        visit: Visit,
    ) -> Option<()> {
        let below = Visit {
            nesting: visit.nesting + 1,
            is_referenced: false,
            ..visit
        };
        match (keyword, part, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let root = self.root;
                let references = self
                    .references
                    .get_or_insert_with(|| References::collect(root));
                let (targets, compared) = references.find_targets(reference);
                self.charge(cost, length(compared))?;
                let by_reference = Visit {
                    is_referenced: true,
                    ..below
                };
                self.add_same(cost, targets.iter().copied(), value, by_reference)
            }
            ("allOf", Value::Array(all), _) => self.add_same(cost, all, value, below),
            ("anyOf" | "oneOf", Value::Array(all), _) => {
                let before = cost.check;
                self.add_same(cost, all, value, below)?;
                if self.counts_copies {
                    let (size, steps) = (size(value), cost.check - before);
                    self.count(size)?;
                    cost.copies = cost.copies.saturating_add(steps.saturating_mul(size));
                }
                Some(())
            }
            ("not" | "if" | "then" | "else", _, _) => self.add_same(cost, [part], value, below),
            ("dependentSchemas" | "dependencies", Value::Object(all), _) => {
                self.charge(cost, length(all.len()))?;
                self.add_same(cost, all.values(), value, below)
            }
            ("properties", Value::Object(named), Value::Object(members)) => {
                self.charge(cost, length(named.len()))?;
                let members = members.iter();
                let pairs = members.filter_map(|(name, member)| Some((named.get(name)?, member)));
                self.add_members(cost, pairs, below)
            }
            ("patternProperties", Value::Object(patterns), Value::Object(members)) => {
                for (pattern, schema) in patterns {
                    self.add_pattern(cost, pattern, members.keys())?;
                    // The cost assumes that every name matches.
                    self.add_members(cost, members.values().map(|it| (schema, it)), below)?;
                }
                Some(())
            }
            ("additionalProperties", _, Value::Object(members)) => {
                let named = schema.get("properties");
                let is_other = |name: &str| named.is_none_or(|named| named.get(name).is_none());
                let others = members.iter().filter(|(name, _)| is_other(name));
                self.add_members(cost, others.map(|(_, it)| (part, it)), below)
            }
            ("unevaluatedProperties", _, Value::Object(members)) => {
                self.add_members(cost, members.values().map(|it| (part, it)), below)
            }
            ("propertyNames", _, Value::Object(members)) => {
                let temporary = Visit {
                    is_temporary: true,
                    ..below
                };
                for name in members.keys() {
                    let name = Value::String(name.clone());
                    self.add_members(cost, [(part, &name)], temporary)?;
                }
                Some(())
            }
            ("items" | "prefixItems", Value::Array(prefix), Value::Array(items)) => {
                self.add_members(cost, prefix.iter().zip(items), below)
            }
            (
                "items" | "additionalItems" | "contains" | "unevaluatedItems",
                _,
                Value::Array(items),
            ) => self.add_members(cost, items.iter().map(|it| (part, it)), below),
            ("pattern", Value::String(pattern), Value::String(text)) => {
                self.add_pattern(cost, pattern, [text])
            }
            // A format is matched like a pattern of eight states.
            ("format", _, Value::String(text)) => self.add(cost, length(text.len())),
            ("enum" | "const", _, _) | ("required" | "dependentRequired", _, Value::Object(_)) => {
                self.charge(cost, size(part))
            }
            ("uniqueItems", Value::Bool(true), Value::Array(_)) => {
                let size = size(value);
                self.charge(cost, size)?;
                self.add(cost, size.saturating_mul(UNIQUE_STEPS))
            }
            _ => Some(()),
        }
    }

    /// Adds the cost of schemas that are applied to the same value.
    fn add_same(
        &mut self,
        cost: &mut Cost,
        schemas: impl IntoIterator<Item = &'s Value>,
        value: &Value,
        visit: Visit,
    ) -> Option<()> {
        for schema in schemas {
            let same = self.cost(schema, value, visit)?;
            let mark = same.check.saturating_add(same.mark);
            cost.mark = cost.mark.saturating_add(mark);
            cost.copies = cost.copies.saturating_add(same.copies);
            self.add(cost, same.check)?;
        }
        Some(())
    }

    /// Adds the cost of schemas that are applied to members of the value.
    fn add_members<'v>(
        &mut self,
        cost: &mut Cost,
        pairs: impl IntoIterator<Item = (&'s Value, &'v Value)>,
        visit: Visit,
    ) -> Option<()> {
        for (schema, member) in pairs {
            let of_member = self.cost(schema, member, visit)?;
            cost.copies = cost.copies.saturating_add(of_member.copies);
            self.add(cost, of_member.check)?;
        }
        Some(())
    }

    fn add_pattern<'v>(
        &mut self,
        cost: &mut Cost,
        pattern: &str,
        texts: impl IntoIterator<Item = &'v String>,
    ) -> Option<()> {
        self.charge(cost, text_steps(pattern))?;
        let states = pattern_size(pattern);
        for text in texts {
            self.add(cost, length(text.len()).saturating_mul(states) / 8)?;
        }
        Some(())
    }

    /// Adds steps that the count takes too.
    fn charge(&mut self, cost: &mut Cost, steps: u64) -> Option<()> {
        self.count(steps)?;
        self.add(cost, steps)
    }

    fn count(&mut self, steps: u64) -> Option<()> {
        self.steps = self.steps.saturating_add(steps);
        (self.steps <= self.max).then_some(())
    }

    fn add(&self, cost: &mut Cost, steps: u64) -> Option<()> {
        cost.check = cost.check.saturating_add(steps);
        (cost.check <= self.max).then_some(())
    }
}

/// Returns the number of values in a JSON value, with long texts counted as several.
fn size(value: &Value) -> u64 {
    let mut size = 0_u64;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Value::String(text) => size += text_steps(text),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                size += fields.keys().map(|name| text_steps(name)).sum::<u64>();
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    size
}

/// Estimates the number of states of a pattern's automaton: its atoms, multiplied by the
/// repetitions around them. An automaton that is simulated visits each state for each byte.
pub(super) fn pattern_size(pattern: &str) -> u64 {
    let mut groups: Vec<u64> = vec![0];
    // The size of the atom before a repetition.
    let mut last = 0_u64;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        let mut added = 1;
        match char {
            // A Unicode class such as `\p{L}` has some hundred ranges.
            '\\' if matches!(chars.next(), Some('p' | 'P' | 'w' | 'W' | 'd' | 'D')) => added = 8,
            '[' => skip_class(&mut chars),
            '(' => {
                groups.push(0);
                continue;
            }
            ')' if groups.len() > 1 => added = groups.pop().unwrap_or(1).max(1),
            '{' => {
                let text: String = chars.by_ref().take_while(|it| *it != '}').collect();
                let counts = text.split(',').filter_map(|it| it.trim().parse().ok());
                added = last.saturating_mul(counts.max().unwrap_or(1_u64).saturating_sub(1));
                // A second repetition would repeat the repeated atom.
                last = last.saturating_add(added);
            }
            _ => {}
        }
        if char != '{' {
            last = added;
        }
        if let Some(group) = groups.last_mut() {
            *group = group.saturating_add(added);
        }
    }
    groups.into_iter().fold(1, u64::saturating_add)
}

/// Skips the rest of a bracketed class.
fn skip_class(chars: &mut Chars<'_>) {
    while let Some(char) = chars.next() {
        match char {
            ']' => return,
            '\\' => drop(chars.next()),
            _ => {}
        }
    }
}

fn text_steps(text: &str) -> u64 {
    length(text.len() / BYTES_PER_STEP)
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
