//! A cache of values that are computed from tool definitions, such as compiled schemas.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use switchboard_domain::ToolDefinition;

/// A cache with one value for each live tool definition.
///
/// The key is the address of the definition's `Arc`. Tool hosts return the same `Arc` until the
/// tool changes, so a lookup does not compare definitions.
#[derive(Debug)]
pub(crate) struct DefinitionCache<T> {
    /// Cached values by the address of the tool definition. The weak pointers keep the memory of
    /// dropped definitions allocated, so that no other definition gets the same address.
    values: Mutex<Values<T>>,
}

type Values<T> = HashMap<usize, (Weak<ToolDefinition>, Arc<T>)>;

impl<T> DefinitionCache<T> {
    /// Returns the cached value of `definition`, or creates it with `make`. The value must not
    /// contain the definition's `Arc`; otherwise neither is ever dropped.
    pub(crate) fn get_or_create(
        &self,
        definition: &Arc<ToolDefinition>,
        make: impl FnOnce(&ToolDefinition) -> T,
    ) -> Arc<T> {
        let address = Arc::as_ptr(definition).addr();
        if let Some((_, value)) = self.lock_values().get(&address) {
            return Arc::clone(value);
        }
        // The value is created without the lock, because compiling a schema is slow. Creating a
        // value twice is harmless.
        let value = Arc::new(make(definition));
        let mut values = self.lock_values();
        values.retain(|_, (definition, _)| definition.strong_count() > 0);
        let (_, value) = values
            .entry(address)
            .or_insert_with(|| (Arc::downgrade(definition), value));
        Arc::clone(value)
    }

    fn lock_values(&self) -> MutexGuard<'_, Values<T>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for DefinitionCache<T> {
    fn default() -> Self {
        Self {
            values: Mutex::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(name: &str) -> Arc<ToolDefinition> {
        Arc::new(ToolDefinition::new(name, "", json!({})))
    }

    #[test]
    fn each_definition_has_its_own_value() {
        let cache = DefinitionCache::default();
        let (first, second) = (definition("t"), definition("t"));
        let one = cache.get_or_create(&first, |_| 1);
        assert_eq!(*one, 1);
        assert_eq!(*cache.get_or_create(&first.clone(), |_| unreachable!()), 1);
        assert_eq!(*cache.get_or_create(&second, |_| 2), 2);
    }

    #[test]
    fn values_of_dropped_definitions_are_removed() {
        let cache = DefinitionCache::default();
        for n in 0..100 {
            cache.get_or_create(&definition("t"), |_| n);
        }
        assert_eq!(cache.lock_values().len(), 1);
    }
}
