//! The number of steps of a check, counted before the check.

use std::collections::HashMap;

use serde_json::Value;

use super::graph::{NodeId, SchemaGraph};

/// Maximum nesting of an evaluation. References and levels of the value count as one each. The
/// validator has the same recursion, on a stack of 2 MiB.
const MAX_NESTING: usize = 400;
/// Bytes of a text that count as one step.
const BYTES_PER_STEP: usize = 64;
/// Steps of `uniqueItems` for each value in the array: up to 15 items are compared pairwise, more
/// are hashed.
const UNIQUE_STEPS: u64 = 16;

/// Steps of one schema node on one value node.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// The check itself.
    check: u64,
    /// Finding out which members were evaluated, for an `unevaluatedProperties` above.
    mark: u64,
    /// Copies of values in errors below `anyOf` and `oneOf`.
    copies: u64,
}

/// Returns an upper bound of the steps of a check of this value, or `None` if it exceeds `max`. The
/// count itself takes at most `max` steps.
pub(super) fn visits(graph: &SchemaGraph, value: &Value, max: u64) -> Option<u64> {
    Some(total(graph, value, max, false)?.check)
}

/// Returns an upper bound of the steps of listing the errors of this value, or `None` if the count
/// takes more than `max` steps.
pub(super) fn error_steps(graph: &SchemaGraph, value: &Value, max: u64) -> Option<u64> {
    let total = total(graph, value, max, true)?;
    Some(total.check.saturating_add(total.copies))
}

fn total(graph: &SchemaGraph, value: &Value, max: u64, count_copies: bool) -> Option<Cost> {
    let mut counter = Counter {
        graph,
        max,
        count_copies,
        steps: 0,
        known: HashMap::new(),
    };
    counter.cost(0, value, true, 0)
}

/// Returns the size of a value: one for each value in it and for each 64 bytes of text.
pub(super) fn size(value: &Value) -> u64 {
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

fn text_steps(text: &str) -> u64 {
    length(text.len() / BYTES_PER_STEP)
}

struct Counter<'a> {
    graph: &'a SchemaGraph,
    max: u64,
    count_copies: bool,
    /// Steps of this count. They are at most those of the check.
    steps: u64,
    /// The costs of shared nodes, by value. Only nodes with several references can be visited more
    /// often than the schema is long.
    known: HashMap<(NodeId, *const Value), Cost>,
}

impl Counter<'_> {
    /// Returns the cost of a node on a value; `None` if it is above the maximum. `keep` is false
    /// for values that do not live as long as the count.
    fn cost(&mut self, id: NodeId, value: &Value, keep: bool, nesting: usize) -> Option<Cost> {
        let node = &self.graph.nodes[id];
        let key = (id, std::ptr::from_ref(value));
        if node.shared
            && keep
            && let Some(cost) = self.known.get(&key)
        {
            return Some(*cost);
        }
        if nesting > MAX_NESTING {
            return None;
        }
        self.step(1)?;
        let mut check = Sum {
            total: 0,
            copies: 0,
            max: self.max,
        };
        check.add(node.fixed.saturating_add(1))?;
        let mut mark = 0_u64;
        for &same in &node.same {
            let cost = self.cost(same, value, keep, nesting + 1)?;
            check.add_cost(cost)?;
            mark = mark.saturating_add(cost.check).saturating_add(cost.mark);
        }
        if node.alternatives && self.count_copies {
            let size = size(value);
            self.step(size)?;
            check.copies = check
                .copies
                .saturating_add(check.total.saturating_mul(size));
        }
        match value {
            Value::String(text) => {
                check.add(text_steps(text))?;
                check.add(length(text.len()).saturating_mul(node.per_byte) / 8)?;
            }
            Value::Array(items) => {
                if node.unique {
                    let size = size(value);
                    self.step(size)?;
                    check.add(size.saturating_mul(UNIQUE_STEPS))?;
                }
                for (item, &prefix) in items.iter().zip(&node.prefix) {
                    check.add_cost(self.cost(prefix, item, keep, nesting + 1)?)?;
                }
                for &each in &node.items {
                    for item in items {
                        check.add_cost(self.cost(each, item, keep, nesting + 1)?)?;
                    }
                }
                mark = mark.saturating_add(length(items.len()));
            }
            Value::Object(fields) => {
                check.add(node.per_object)?;
                for (name, member) in fields {
                    check.add(1)?;
                    mark = mark.saturating_add(1);
                    check.add(length(name.len()).saturating_mul(node.per_name_byte) / 8)?;
                    let named = node.properties.get(name);
                    let others = match named {
                        Some(_) => &[][..],
                        None => &node.other_properties,
                    };
                    for &each in named.into_iter().chain(others).chain(&node.patterns) {
                        check.add_cost(self.cost(each, member, keep, nesting + 1)?)?;
                    }
                    if !node.names.is_empty() {
                        let name = Value::String(name.clone());
                        for &each in &node.names {
                            check.add_cost(self.cost(each, &name, false, nesting + 1)?)?;
                        }
                    }
                }
            }
            _ => {}
        }
        if node.marks {
            // Members may be checked twice: to mark them, and to report them.
            check.add(check.total)?;
            check.add(mark)?;
        }
        let cost = Cost {
            check: check.total,
            mark,
            copies: check.copies,
        };
        if node.shared && keep {
            self.known.insert(key, cost);
        }
        Some(cost)
    }

    /// Counts steps of the counting itself.
    fn step(&mut self, steps: u64) -> Option<()> {
        self.steps = self.steps.saturating_add(steps);
        (self.steps <= self.max).then_some(())
    }
}

/// A sum of steps with a maximum, and of copies without one.
struct Sum {
    total: u64,
    copies: u64,
    max: u64,
}

impl Sum {
    /// Adds a cost; `None` if the sum is above the maximum.
    fn add(&mut self, cost: u64) -> Option<()> {
        self.total = self.total.saturating_add(cost);
        (self.total <= self.max).then_some(())
    }

    /// Adds the check and the copies of a node.
    fn add_cost(&mut self, cost: Cost) -> Option<()> {
        self.copies = self.copies.saturating_add(cost.copies);
        self.add(cost.check)
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
