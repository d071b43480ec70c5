//! Hostile JSON Schemas and values, and a heartbeat that measures blocked workers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

/// Returns a chain of definitions, each of which refers to the next one `width` times. Only the
/// last definition fails for values other than `null`. Without a limit, a validator takes `width`
/// to the power of `length` steps.
pub fn chain(length: usize, applicator: &str, width: usize) -> Value {
    let mut definitions = Map::new();
    for at in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({applicator: vec![next; width]}));
    }
    definitions.insert(format!("d{length}"), json!({"type": "null"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

/// Returns a strategy for schemas whose definitions refer to each other.
pub fn schemas() -> impl Strategy<Value = Value> {
    let reference = (0..6_usize).prop_map(|n| json!({"$ref": format!("#/$defs/d{n}")}));
    let leaf = prop_oneof![
        4 => reference,
        1 => Just(json!({"$ref": "#"})),
        1 => Just(json!({"type": "integer"})),
        1 => Just(json!({"pattern": "(a|b|ab)*c{1,40}"})),
        1 => Just(json!({"uniqueItems": true})),
        1 => Just(json!(true)),
        1 => Just(json!(false)),
    ];
    let node = leaf.prop_recursive(4, 24, 4, |inner| {
        let several = proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (prop_oneof!["anyOf", "oneOf", "allOf"], several.clone())
                .prop_map(|(key, all)| json!({key: all})),
            (
                prop_oneof![
                    "items",
                    "not",
                    "contains",
                    "additionalProperties",
                    "propertyNames",
                    "unevaluatedProperties",
                    "unevaluatedItems",
                    "if"
                ],
                inner.clone()
            )
                .prop_map(|(key, one)| json!({key: one})),
            (inner.clone(), several).prop_map(|(one, all)| json!({
                "properties": {"a": one.clone()},
                "patternProperties": {"^a": one},
                "prefixItems": all,
            })),
        ]
    });
    (node.clone(), proptest::collection::vec(node, 6)).prop_map(|(root, all)| {
        let all = all.into_iter().enumerate();
        let definitions: Map<String, Value> = all.map(|(n, it)| (format!("d{n}"), it)).collect();
        json!({"allOf": [root], "$defs": definitions})
    })
}

/// Returns a strategy for values that are nested up to 60 levels deep.
pub fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(1)),
        Just(json!("abababc")),
        Just(Value::Null),
        (0..2_000_usize).prop_map(|n| json!("ab".repeat(n))),
    ];
    leaf.prop_recursive(60, 200, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            inner.prop_map(|it| json!({"a": it.clone(), "b": it})),
        ]
    })
}

/// A task that wakes every millisecond and records the longest delay.
///
/// On a current-thread runtime this is the longest time that any task blocked the worker.
#[derive(Debug)]
pub struct Heartbeat {
    longest: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Heartbeat {
    /// Starts the task on the current runtime.
    pub fn start() -> Self {
        let longest = Arc::new(AtomicU64::new(0));
        let recorded = Arc::clone(&longest);
        let task = tokio::spawn(async move {
            let mut interval = tokio::time::interval(Duration::from_millis(1));
            let mut last = Instant::now();
            loop {
                interval.tick().await;
                let now = Instant::now();
                let delay = now.duration_since(last).as_micros();
                recorded.fetch_max(u64::try_from(delay).unwrap_or(u64::MAX), Ordering::Relaxed);
                last = now;
            }
        });
        Self { longest, task }
    }

    /// Returns the longest time between two wake-ups so far.
    pub fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Relaxed))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}
