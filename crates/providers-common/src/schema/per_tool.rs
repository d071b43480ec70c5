//! A cache of values per tool definition, and a schema with its JSON text.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    ops::Deref,
    sync::{Arc, PoisonError, RwLock, Weak},
};

use serde::{Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use switchboard_domain::ToolDefinition;

/// Number of entries at which dead definitions are removed for the first time.
const MIN_FULL: usize = 64;

/// A cache of one value per tool definition and key.
///
/// The requests of a run share their definitions by `Arc`, so that a value is found by the
/// definition's address. An address is not reused while its entry exists, because the entry's weak
/// pointer keeps the allocation.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use switchboard_domain::ToolDefinition;
/// use switchboard_providers_common::schema::{Dialect, PerTool, Written, compile};
///
/// let compiled = PerTool::default();
/// let tool = Arc::new(ToolDefinition::new("t", "", json!({"type": "object"})));
/// let dialect = Dialect::OpenAiStrict;
/// let make = |tool: &ToolDefinition| {
///     Written::from(compile(&tool.input_schema, dialect).into_owned())
/// };
/// let first = compiled.of(&tool, dialect, make);
/// let again = compiled.of(&tool, dialect, |_| unreachable!());
/// assert!(Arc::ptr_eq(&first, &again));
/// ```
pub struct PerTool<K, V> {
    known: RwLock<Known<K, V>>,
}

struct Known<K, V> {
    /// By the definition's address, which is unique while the weak pointer exists.
    by_address: HashMap<(usize, K), (Weak<ToolDefinition>, Arc<V>)>,
    /// Number of entries at which dead definitions are removed.
    full: usize,
}

impl<K: Copy + Eq + Hash, V> PerTool<K, V> {
    /// Returns the value for `tool` under `key`, created by `make` on first use. The value must not
    /// hold the definition, or neither would ever be dropped.
    pub fn of(
        &self,
        tool: &Arc<ToolDefinition>,
        key: K,
        make: impl FnOnce(&ToolDefinition) -> V,
    ) -> Arc<V> {
        let place = (Arc::as_ptr(tool).addr(), key);
        // The map is valid after every step under the lock, also after a panic.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = known.by_address.get(&place) {
            return Arc::clone(value);
        }
        drop(known);
        // Without the lock, because compilation is slow. A duplicate does no harm.
        let value = Arc::new(make(tool));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.by_address.len() >= known.full {
            known
                .by_address
                .retain(|_, (tool, _)| tool.strong_count() > 0);
            // Doubling keeps the cost of the removal small.
            known.full = known.by_address.len().saturating_mul(2).max(MIN_FULL);
        }
        let entry = known.by_address.entry(place);
        let (_, value) = entry.or_insert_with(|| (Arc::downgrade(tool), value));
        Arc::clone(value)
    }
}

impl<K, V> Default for PerTool<K, V> {
    fn default() -> Self {
        Self {
            known: RwLock::new(Known {
                by_address: HashMap::new(),
                full: MIN_FULL,
            }),
        }
    }
}

impl<K, V> fmt::Debug for PerTool<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("PerTool")
            .field("known", &known.by_address.len())
            .finish()
    }
}

/// A schema and its JSON text, which is copied into each body. Cloning it is cheap.
#[derive(Clone)]
pub struct Written(Arc<Texted>);

struct Texted {
    value: Value,
    /// `None` if it cannot be serialized. Sending it then fails.
    text: Option<Box<RawValue>>,
}

impl From<Value> for Written {
    fn from(value: Value) -> Self {
        let text = to_raw_value(&value).ok();
        Self(Arc::new(Texted { value, text }))
    }
}

impl Deref for Written {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.text {
            Some(text) => text.serialize(serializer),
            None => self.0.value.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Arc<ToolDefinition> {
        Arc::new(ToolDefinition::new(name, "", json!({})))
    }

    #[test]
    fn a_value_is_created_once_per_definition_and_key() {
        let cache = PerTool::default();
        let (first, second) = (tool("t"), tool("t"));
        assert_eq!(*cache.of(&first, 'a', |_| 1), 1);
        assert_eq!(*cache.of(&first.clone(), 'a', |_| unreachable!()), 1);
        assert_eq!(*cache.of(&first, 'b', |_| 2), 2);
        assert_eq!(*cache.of(&second, 'a', |_| 3), 3);
    }

    #[test]
    fn a_definition_at_a_reused_address_has_its_own_value() {
        let cache = PerTool::default();
        for n in 0..10 * MIN_FULL {
            // The allocator reuses the address.
            let name = n.to_string();
            let found = cache.of(&tool(&name), (), |tool| tool.name.clone());
            assert_eq!(*found, name);
        }
    }

    #[test]
    fn a_definition_that_was_changed_in_place_has_a_new_value() {
        let cache = PerTool::default();
        let mut changed = tool("before");
        let name = |tool: &ToolDefinition| tool.name.clone();
        assert_eq!(*cache.of(&changed, (), name), "before");
        "after".clone_into(&mut Arc::make_mut(&mut changed).name);
        assert_eq!(*cache.of(&changed, (), name), "after");
    }

    #[test]
    fn entries_of_dropped_definitions_are_removed() {
        let cache = PerTool::default();
        let alive: Vec<_> = (0..2 * MIN_FULL).map(|n| tool(&n.to_string())).collect();
        for tool in &alive {
            cache.of(tool, (), |_| 0);
        }
        for _ in 0..1000 {
            cache.of(&tool("t"), (), |_| 1);
            let count = cache.known.read().unwrap().by_address.len();
            assert!(count <= 4 * MIN_FULL, "{count}");
        }
        for tool in &alive {
            assert_eq!(*cache.of(tool, (), |_| unreachable!()), 0);
        }
    }

    #[test]
    fn a_written_schema_serializes_unchanged() {
        let schema = json!({"type": "object", "z": 1, "a": [1.5, "ü\n\"", null]});
        let written = Written::from(schema.clone());
        assert_eq!(serde_json::to_string(&written).unwrap(), schema.to_string());
        assert_eq!(serde_json::to_value(&written).unwrap(), schema);
        assert_eq!(json!({ "in": written }), json!({ "in": schema }));
        assert_eq!(*written, schema);
        assert_eq!(written, Written::from(schema.clone()));
        assert_eq!(format!("{written:?}"), format!("{schema:?}"));
    }
}
