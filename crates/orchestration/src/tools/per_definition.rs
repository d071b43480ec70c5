//! What is made once of each tool definition: compiled schemas, fingerprints, what a model sees of it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use switchboard_domain::ToolDefinition;

/// A value for each definition that is alive. Definitions are told apart by their `Arc`: hosts hand out
/// the same one until the tool changes, so that a look-up costs no comparison of schemas.
pub(crate) struct PerDefinition<T> {
    /// By the definition's address, which is not given to another one as long as the weak pointer is here.
    made: Mutex<Made<T>>,
}

type Made<T> = HashMap<usize, (Weak<ToolDefinition>, Arc<T>)>;

impl<T> PerDefinition<T> {
    /// The value for `definition`; `make` is called if there is none yet. It must not hold the
    /// definition itself, or neither would ever go away.
    pub(crate) fn of(
        &self,
        definition: &Arc<ToolDefinition>,
        make: impl FnOnce(&ToolDefinition) -> T,
    ) -> Arc<T> {
        let address = Arc::as_ptr(definition).addr();
        if let Some((_, made)) = self.lock().get(&address) {
            return Arc::clone(made);
        }
        // Without the lock: compiling a schema takes its time, and twice the same does no harm.
        let value = Arc::new(make(definition));
        let mut known = self.lock();
        known.retain(|_, (definition, _)| definition.strong_count() > 0);
        let (_, value) = known
            .entry(address)
            .or_insert_with(|| (Arc::downgrade(definition), value));
        Arc::clone(value)
    }

    fn lock(&self) -> MutexGuard<'_, Made<T>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for PerDefinition<T> {
    fn default() -> Self {
        Self {
            made: Mutex::default(),
        }
    }
}

impl<T> fmt::Debug for PerDefinition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerDefinition")
            .field("made", &self.lock().len())
            .finish()
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
    fn a_value_is_made_once_and_again_for_another_definition_of_the_same_name() {
        let cache = PerDefinition::default();
        let (first, second) = (definition("t"), definition("t"));
        let one = cache.of(&first, |_| 1);
        assert_eq!(*one, 1);
        assert_eq!(*cache.of(&first.clone(), |_| unreachable!()), 1);
        assert_eq!(*cache.of(&second, |_| 2), 2);
    }

    #[test]
    fn definitions_that_are_gone_leave_nothing_behind() {
        let cache = PerDefinition::default();
        for n in 0..100 {
            cache.of(&definition("t"), |_| n);
        }
        assert_eq!(cache.lock().len(), 1);
    }
}
