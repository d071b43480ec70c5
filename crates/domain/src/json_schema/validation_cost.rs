//! Upper bound of the steps of a schema check, computed before the check.

use std::{collections::HashMap, ptr, str::Chars};

use serde_json::Value;

use super::references::SchemaReferences;

/// Maximum recursion depth of the check of a value against a schema. A check with a deeper
/// recursion is refused, because the validator could overflow a stack of 2 MiB.
const MAX_NESTING: usize = 400;
/// Number of bytes of a text that count as one step of a check.
const BYTES_PER_STEP: usize = 64;
/// Number of steps that `uniqueItems` takes for each JSON value in the array, including nested
/// values. The validator compares up to 15 items pairwise and hashes the items of longer arrays.
const UNIQUE_STEPS: u64 = 16;

/// Returns an upper bound of the number of steps that a check of `value` against `schema` takes.
/// Returns `None` if this bound exceeds `max`, or if the check is nested more than [`MAX_NESTING`]
/// levels deep. The computation of the bound itself takes at most `max` steps.
pub(super) fn count_validation_steps(schema: &Value, value: &Value, max: u64) -> Option<u64> {
    Some(compute_total_cost(schema, value, max, false)?.check)
}

/// Returns an upper bound of the number of steps to list all errors of `value`: the steps of the
/// check and of copying values into errors. The check is limited to `max` steps, but the copying is
/// not, so the result may exceed `max`. Returns `None` if the check or the computation of the bound
/// takes more than `max` steps, or if the check is nested too deeply.
pub(super) fn count_error_listing_steps(schema: &Value, value: &Value, max: u64) -> Option<u64> {
    let total = compute_total_cost(schema, value, max, true)?;
    Some(total.check.saturating_add(total.copies))
}

fn compute_total_cost(
    schema: &Value,
    value: &Value,
    max: u64,
    counts_copies: bool,
) -> Option<Cost> {
    let mut counter = ValidationCostCounter {
        root: schema,
        references: None,
        max,
        counts_copies,
        steps: 0,
        known: HashMap::new(),
    };
    counter.estimate_cost(schema, value, CostContext::default())
}

/// Numbers of steps that the check of one value against one schema takes.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Steps to decide whether the value fits the schema.
    check: u64,
    /// Steps to find the members of the value that the schema evaluates. A keyword such as
    /// `unevaluatedProperties` in an enclosing schema needs this information.
    mark: u64,
    /// Steps to copy values into validation errors. Each error in a branch of `anyOf` or `oneOf`
    /// contains a copy of the invalid value.
    copies: u64,
}

/// Context of the cost computation for one pair of a subschema and a value: the nesting depth, and
/// how the computation reached the pair.
#[derive(Clone, Copy, Default)]
struct CostContext {
    nesting: usize,
    /// Whether a reference such as `$ref` led to the subschema. Only such a subschema can apply to
    /// the same value more than once, so only its cost is stored for reuse.
    is_referenced: bool,
    /// Whether the value is a temporary copy, such as a member name for `propertyNames`. Its cost
    /// is not stored, because another value may have the same address later.
    is_temporary: bool,
}

struct ValidationCostCounter<'s> {
    root: &'s Value,
    references: Option<SchemaReferences<'s>>,
    max: u64,
    counts_copies: bool,
    steps: u64,
    /// Costs that were computed earlier, for reuse. The key consists of the address of the schema
    /// and the address of the value.
    known: HashMap<(*const Value, *const Value), Cost>,
}

impl<'s> ValidationCostCounter<'s> {
    /// Returns the cost of checking a value against a schema. Returns `None` if the check or this
    /// computation exceeds the maximum number of steps, or if the nesting exceeds [`MAX_NESTING`].
    fn estimate_cost(
        &mut self,
        schema: &'s Value,
        value: &Value,
        visit: CostContext,
    ) -> Option<Cost> {
        let key = (ptr::from_ref(schema), ptr::from_ref(value));
        let is_stored = visit.is_referenced && !visit.is_temporary;
        if is_stored && let Some(cost) = self.known.get(&key) {
            return Some(*cost);
        }
        if visit.nesting > MAX_NESTING {
            return None;
        }
        let mut cost = Cost::default();
        self.add_counted_steps(&mut cost, 1)?;
        match value {
            Value::String(text) => self.add_counted_steps(&mut cost, count_text_steps(text))?,
            Value::Array(items) => cost.mark = to_u64(items.len()),
            Value::Object(members) => {
                cost.mark = to_u64(members.len());
                self.add_counted_steps(&mut cost, to_u64(members.len()))?;
            }
            _ => {}
        }
        let mut marks = false;
        for (keyword, part) in schema.as_object().into_iter().flatten() {
            self.add_counted_steps(&mut cost, 1)?;
            self.add_keyword_cost(&mut cost, schema, keyword, part, value, visit)?;
            marks |= keyword.starts_with("unevaluated");
        }
        if marks {
            // For an `unevaluated…` keyword, the validator may check each member a second time:
            // once to mark the evaluated members, and once to report errors.
            let again = cost.check.saturating_add(cost.mark);
            self.add_check_steps(&mut cost, again)?;
        }
        if is_stored {
            self.known.insert(key, cost);
        }
        Some(cost)
    }

    fn add_keyword_cost(
        &mut self,
        cost: &mut Cost,
        schema: &'s Value,
        keyword: &str,
        part: &'s Value,
        value: &Value,
        visit: CostContext,
    ) -> Option<()> {
        let below = CostContext {
            nesting: visit.nesting + 1,
            is_referenced: false,
            ..visit
        };
        match (keyword, part, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let root = self.root;
                let references = self
                    .references
                    .get_or_insert_with(|| SchemaReferences::collect_named_subschemas(root));
                let (targets, compared) = references.find_referenced(reference);
                self.add_counted_steps(cost, to_u64(compared))?;
                let by_reference = CostContext {
                    is_referenced: true,
                    ..below
                };
                self.add_whole_value_costs(cost, targets.iter().copied(), value, by_reference)
            }
            ("allOf", Value::Array(all), _) => self.add_whole_value_costs(cost, all, value, below),
            ("anyOf" | "oneOf", Value::Array(all), _) => {
                let before = cost.check;
                self.add_whole_value_costs(cost, all, value, below)?;
                if self.counts_copies {
                    let (size, steps) = (count_json_values(value), cost.check - before);
                    self.count_computation_steps(size)?;
                    cost.copies = cost.copies.saturating_add(steps.saturating_mul(size));
                }
                Some(())
            }
            ("not" | "if" | "then" | "else", _, _) => {
                self.add_whole_value_costs(cost, [part], value, below)
            }
            ("dependentSchemas" | "dependencies", Value::Object(all), _) => {
                self.add_counted_steps(cost, to_u64(all.len()))?;
                self.add_whole_value_costs(cost, all.values(), value, below)
            }
            ("properties", Value::Object(named), Value::Object(members)) => {
                self.add_counted_steps(cost, to_u64(named.len()))?;
                let members = members.iter();
                let pairs = members.filter_map(|(name, member)| Some((named.get(name)?, member)));
                self.add_member_costs(cost, pairs, below)
            }
            ("patternProperties", Value::Object(patterns), Value::Object(members)) => {
                for (pattern, schema) in patterns {
                    self.add_pattern_cost(cost, pattern, members.keys())?;
                    // The result is an upper bound, so the computation assumes that the pattern
                    // matches each member name.
                    self.add_member_costs(cost, members.values().map(|it| (schema, it)), below)?;
                }
                Some(())
            }
            ("additionalProperties", _, Value::Object(members)) => {
                let named = schema.get("properties");
                let is_other = |name: &str| named.is_none_or(|named| named.get(name).is_none());
                let others = members.iter().filter(|(name, _)| is_other(name));
                self.add_member_costs(cost, others.map(|(_, it)| (part, it)), below)
            }
            ("unevaluatedProperties", _, Value::Object(members)) => {
                self.add_member_costs(cost, members.values().map(|it| (part, it)), below)
            }
            ("propertyNames", _, Value::Object(members)) => {
                let temporary = CostContext {
                    is_temporary: true,
                    ..below
                };
                for name in members.keys() {
                    let name = Value::String(name.clone());
                    self.add_member_costs(cost, [(part, &name)], temporary)?;
                }
                Some(())
            }
            ("items" | "prefixItems", Value::Array(prefix), Value::Array(items)) => {
                self.add_member_costs(cost, prefix.iter().zip(items), below)
            }
            (
                "items" | "additionalItems" | "contains" | "unevaluatedItems",
                _,
                Value::Array(items),
            ) => self.add_member_costs(cost, items.iter().map(|it| (part, it)), below),
            ("pattern", Value::String(pattern), Value::String(text)) => {
                self.add_pattern_cost(cost, pattern, [text])
            }
            // Each byte of the text costs one step, as for a `pattern` with eight automaton states.
            ("format", _, Value::String(text)) => self.add_check_steps(cost, to_u64(text.len())),
            ("enum" | "const", _, _) | ("required" | "dependentRequired", _, Value::Object(_)) => {
                self.add_counted_steps(cost, count_json_values(part))
            }
            ("uniqueItems", Value::Bool(true), Value::Array(_)) => {
                let size = count_json_values(value);
                self.add_counted_steps(cost, size)?;
                self.add_check_steps(cost, size.saturating_mul(UNIQUE_STEPS))
            }
            _ => Some(()),
        }
    }

    /// Adds the cost of subschemas that apply to the whole value, such as the items of `allOf`.
    fn add_whole_value_costs(
        &mut self,
        cost: &mut Cost,
        schemas: impl IntoIterator<Item = &'s Value>,
        value: &Value,
        visit: CostContext,
    ) -> Option<()> {
        for schema in schemas {
            let same = self.estimate_cost(schema, value, visit)?;
            let mark = same.check.saturating_add(same.mark);
            cost.mark = cost.mark.saturating_add(mark);
            cost.copies = cost.copies.saturating_add(same.copies);
            self.add_check_steps(cost, same.check)?;
        }
        Some(())
    }

    /// Adds the cost of subschemas that apply to members or items of the value, such as the
    /// subschemas in `properties`. Each pair consists of a subschema and a member.
    fn add_member_costs<'v>(
        &mut self,
        cost: &mut Cost,
        pairs: impl IntoIterator<Item = (&'s Value, &'v Value)>,
        visit: CostContext,
    ) -> Option<()> {
        for (schema, member) in pairs {
            let of_member = self.estimate_cost(schema, member, visit)?;
            cost.copies = cost.copies.saturating_add(of_member.copies);
            self.add_check_steps(cost, of_member.check)?;
        }
        Some(())
    }

    fn add_pattern_cost<'v>(
        &mut self,
        cost: &mut Cost,
        pattern: &str,
        texts: impl IntoIterator<Item = &'v String>,
    ) -> Option<()> {
        self.add_counted_steps(cost, count_text_steps(pattern))?;
        let states = estimate_pattern_states(pattern);
        for text in texts {
            self.add_check_steps(cost, to_u64(text.len()).saturating_mul(states) / 8)?;
        }
        Some(())
    }

    /// Adds `steps` to the cost of the check and to the steps that the computation itself has
    /// taken. Returns `None` if one of the two sums exceeds the maximum.
    fn add_counted_steps(&mut self, cost: &mut Cost, steps: u64) -> Option<()> {
        self.count_computation_steps(steps)?;
        self.add_check_steps(cost, steps)
    }

    fn count_computation_steps(&mut self, steps: u64) -> Option<()> {
        self.steps = self.steps.saturating_add(steps);
        (self.steps <= self.max).then_some(())
    }

    fn add_check_steps(&self, cost: &mut Cost, steps: u64) -> Option<()> {
        cost.check = cost.check.saturating_add(steps);
        (cost.check <= self.max).then_some(())
    }
}

/// Returns the number of JSON values in `value`, including nested values. Each [`BYTES_PER_STEP`]
/// bytes of a string or of a member name count as one more value.
fn count_json_values(value: &Value) -> u64 {
    let mut size = 0_u64;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Value::String(text) => size += count_text_steps(text),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                size += fields
                    .keys()
                    .map(|name| count_text_steps(name))
                    .sum::<u64>();
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    size
}

/// Estimates the number of automaton states of a regular expression: its atoms, multiplied by the
/// repetitions around them. The automaton visits each state for each byte of a text.
pub(super) fn estimate_pattern_states(pattern: &str) -> u64 {
    let mut groups: Vec<u64> = vec![0];
    // Number of states of the last atom, such as `a` in `a{3}`, where `{3}` repeats the atom.
    let mut last = 0_u64;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        let mut added = 1;
        match char {
            // A Unicode class such as `\p{L}` counts as eight states: it has hundreds of ranges.
            '\\' if matches!(chars.next(), Some('p' | 'P' | 'w' | 'W' | 'd' | 'D')) => added = 8,
            '[' => skip_character_class(&mut chars),
            '(' => {
                groups.push(0);
                continue;
            }
            ')' if groups.len() > 1 => added = groups.pop().unwrap_or(1).max(1),
            '{' => {
                let text: String = chars.by_ref().take_while(|it| *it != '}').collect();
                let counts = text.split(',').filter_map(|it| it.trim().parse().ok());
                added = last.saturating_mul(counts.max().unwrap_or(1_u64).saturating_sub(1));
                // In `a{2}{3}`, the second repetition applies to the atom that is already repeated.
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

/// Skips the rest of a character class such as `[a-z]`, up to its closing bracket.
fn skip_character_class(chars: &mut Chars<'_>) {
    while let Some(char) = chars.next() {
        match char {
            ']' => return,
            '\\' => drop(chars.next()),
            _ => {}
        }
    }
}

fn count_text_steps(text: &str) -> u64 {
    to_u64(text.len() / BYTES_PER_STEP)
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
