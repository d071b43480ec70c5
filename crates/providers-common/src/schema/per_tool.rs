//! What is made once of each tool definition, and a schema with its text.

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

/// So many entries are kept without a look at whether their definitions are still alive.
const UNCHECKED: usize = 64;

/// A value for each tool definition and key, made once for as long as the definition lives.
///
/// Requests share their definitions by `Arc`, and the same ones go out step after step: what a wire makes
/// of one is looked up by its address. Two definitions are never confused, even if one is made where the
/// other was: the memory of one that is known is not given back before its entry is gone.
///
/// ```
/// use std::sync::{Arc, LazyLock};
///
/// use serde_json::json;
/// use switchboard_domain::ToolDefinition;
/// use switchboard_providers_common::schema::{Dialect, PerTool, Written, compile};
///
/// static COMPILED: LazyLock<PerTool<Dialect, Written>> = LazyLock::new(PerTool::default);
///
/// let tool = Arc::new(ToolDefinition::new("t", "", json!({"type": "object"})));
/// let dialect = Dialect::OpenAiStrict;
/// let make = |tool: &ToolDefinition| Written::from(compile(&tool.input_schema, dialect).into_owned());
/// let first = COMPILED.of(&tool, dialect, make);
/// let again = COMPILED.of(&tool, dialect, |_| unreachable!());
/// assert!(Arc::ptr_eq(&first, &again));
/// ```
pub struct PerTool<K, V> {
    known: RwLock<Known<K, V>>,
}

struct Known<K, V> {
    /// By the definition's address, which no other one has as long as the weak pointer is here.
    by_address: HashMap<(usize, K), (Weak<ToolDefinition>, Arc<V>)>,
    /// With how many entries those of definitions that are gone are taken out again.
    full: usize,
}

impl<K: Copy + Eq + Hash, V> PerTool<K, V> {
    /// The value for `tool` under `key`; `make` is called if there is none yet. What it makes must not
    /// hold the definition, or neither would ever go away.
    pub fn of(
        &self,
        tool: &Arc<ToolDefinition>,
        key: K,
        make: impl FnOnce(&ToolDefinition) -> V,
    ) -> Arc<V> {
        let place = (Arc::as_ptr(tool).addr(), key);
        // Nothing that is done under the lock leaves it half done.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = known.by_address.get(&place) {
            return Arc::clone(value);
        }
        drop(known);
        // Without the lock: compiling a schema takes its time, and twice the same does no harm.
        let value = Arc::new(make(tool));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.by_address.len() >= known.full {
            known
                .by_address
                .retain(|_, (tool, _)| tool.strong_count() > 0);
            // The work of looking stays small beside that of making.
            known.full = known.by_address.len().saturating_mul(2).max(UNCHECKED);
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
                full: UNCHECKED,
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

/// A schema and its JSON text, which is written into each body as it is. Cloning it is cheap.
#[derive(Clone)]
pub struct Written(Arc<Texted>);

struct Texted {
    value: Value,
    /// `None` if it cannot be written, which then shows when it is to be sent.
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
    fn a_value_is_made_once_for_each_definition_and_key() {
        let kept = PerTool::default();
        let (first, second) = (tool("t"), tool("t"));
        assert_eq!(*kept.of(&first, 'a', |_| 1), 1);
        assert_eq!(*kept.of(&first.clone(), 'a', |_| unreachable!()), 1);
        assert_eq!(*kept.of(&first, 'b', |_| 2), 2);
        assert_eq!(*kept.of(&second, 'a', |_| 3), 3);
    }

    #[test]
    fn a_definition_that_is_made_where_another_was_is_another_one() {
        let kept = PerTool::default();
        for n in 0..10 * UNCHECKED {
            // The allocator gives the same place again as soon as it can.
            let name = n.to_string();
            let found = kept.of(&tool(&name), (), |tool| tool.name.clone());
            assert_eq!(*found, name);
        }
    }

    #[test]
    fn a_definition_that_is_changed_in_place_is_another_one() {
        let kept = PerTool::default();
        let mut changed = tool("before");
        let name = |tool: &ToolDefinition| tool.name.clone();
        assert_eq!(*kept.of(&changed, (), name), "before");
        "after".clone_into(&mut Arc::make_mut(&mut changed).name);
        assert_eq!(*kept.of(&changed, (), name), "after");
    }

    #[test]
    fn definitions_that_are_gone_leave_room() {
        let kept = PerTool::default();
        let alive: Vec<_> = (0..2 * UNCHECKED).map(|n| tool(&n.to_string())).collect();
        for tool in &alive {
            kept.of(tool, (), |_| 0);
        }
        for _ in 0..1000 {
            kept.of(&tool("t"), (), |_| 1);
            let count = kept.known.read().unwrap().by_address.len();
            assert!(count <= 4 * UNCHECKED, "{count}");
        }
        for tool in &alive {
            assert_eq!(*kept.of(tool, (), |_| unreachable!()), 0);
        }
    }

    #[test]
    fn a_written_schema_is_written_as_it_is() {
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
