//! The positions of items in the list, so that many items need linear time.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{ItemAddress, ItemType};

/// The positions of items.
#[derive(Debug, Default)]
pub(super) struct ItemIndex {
    /// The positions of open items, by every key of an event that may refer to them.
    open: HashMap<ItemKey, BTreeSet<usize>>,
    /// The complete items.
    complete: HashSet<(ItemType, Option<String>, Option<u64>)>,
}

/// A key by which an event may refer to an item.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ItemKey {
    Id(ItemType, String),
    Index(ItemType, u64),
    /// The id and the index, for any type.
    IdAndIndex(String, Option<u64>),
    Type(ItemType),
    TypeWithoutIndex(ItemType),
    TypeWithoutIndexAndId(ItemType),
}

/// Returns all keys of an item.
fn keys(item_type: ItemType, address: ItemAddress<'_>) -> impl Iterator<Item = ItemKey> {
    let id = || address.id.map(str::to_owned);
    let without_index = address.index.is_none();
    let without_both = without_index && address.id.is_none();
    [
        id().map(|id| ItemKey::Id(item_type, id)),
        id().map(|id| ItemKey::IdAndIndex(id, address.index)),
        address.index.map(|index| ItemKey::Index(item_type, index)),
        Some(ItemKey::Type(item_type)),
        without_index.then_some(ItemKey::TypeWithoutIndex(item_type)),
        without_both.then_some(ItemKey::TypeWithoutIndexAndId(item_type)),
    ]
    .into_iter()
    .flatten()
}

impl ItemIndex {
    /// Adds an open item at position `at`.
    pub(super) fn insert(&mut self, at: usize, item_type: ItemType, address: ItemAddress<'_>) {
        for key in keys(item_type, address) {
            self.open.entry(key).or_default().insert(at);
        }
    }

    /// Marks the item at position `at` as complete.
    pub(super) fn complete(&mut self, at: usize, item_type: ItemType, address: ItemAddress<'_>) {
        for key in keys(item_type, address) {
            if let Some(positions) = self.open.get_mut(&key) {
                positions.remove(&at);
                if positions.is_empty() {
                    self.open.remove(&key);
                }
            }
        }
        let id = address.id.map(str::to_owned);
        self.complete.insert((item_type, id, address.index));
    }

    /// Returns the open item of an event.
    pub(super) fn find(&self, address: ItemAddress<'_>, item_type: ItemType) -> Option<usize> {
        let by_id = || self.last(&ItemKey::Id(item_type, address.id?.to_owned()));
        let by_index = || self.last(&ItemKey::Index(item_type, address.index?));
        // Some servers (LiteLLM, vLLM) send a new id in each event. Then the index decides, and
        // without an index the current item of the type.
        let current = || {
            self.last(&match (address.index, address.id) {
                (None, _) => ItemKey::Type(item_type),
                (Some(_), None) => ItemKey::TypeWithoutIndex(item_type),
                (Some(_), Some(_)) => ItemKey::TypeWithoutIndexAndId(item_type),
            })
        };
        by_id().or_else(by_index).or_else(current)
    }

    /// Returns whether there is an open item with exactly this address.
    pub(super) fn is_open(&self, address: ItemAddress<'_>) -> bool {
        let id = address.id.map(str::to_owned);
        let key = id.map(|id| ItemKey::IdAndIndex(id, address.index));
        key.is_some_and(|key| self.open.contains_key(&key))
    }

    /// Returns whether there is a complete item with exactly this address.
    pub(super) fn is_complete(&self, address: ItemAddress<'_>, item_type: ItemType) -> bool {
        let id = address.id.map(str::to_owned);
        id.is_some() && self.complete.contains(&(item_type, id, address.index))
    }

    fn last(&self, key: &ItemKey) -> Option<usize> {
        self.open.get(key)?.last().copied()
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
