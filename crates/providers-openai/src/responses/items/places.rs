//! Where items stand in the list, so that an answer of many items takes no longer per item.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Address, Sort};

/// The places of items.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Items that are not complete, by each way in which an event may speak of them.
    open: HashMap<Name, BTreeSet<usize>>,
    /// Complete ones.
    done: HashSet<(Sort, Option<String>, Option<u64>)>,
}

/// A way in which an event may speak of an item.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Name {
    Id(Sort, String),
    Index(Sort, u64),
    /// By both, whatever it is.
    Both(String, Option<u64>),
    /// One of that sort.
    Any(Sort),
    /// One without a number.
    Unnumbered(Sort),
    /// One with neither a number nor an id.
    Bare(Sort),
}

/// All ways in which events may speak of an item.
fn names(sort: Sort, address: Address<'_>) -> impl Iterator<Item = Name> {
    let id = || address.id.map(str::to_owned);
    [
        id().map(|id| Name::Id(sort, id)),
        id().map(|id| Name::Both(id, address.index)),
        address.index.map(|index| Name::Index(sort, index)),
        Some(Name::Any(sort)),
        address.index.is_none().then_some(Name::Unnumbered(sort)),
        (address.index.is_none() && address.id.is_none()).then_some(Name::Bare(sort)),
    ]
    .into_iter()
    .flatten()
}

impl Places {
    /// An item begins at `at`.
    pub(super) fn begin(&mut self, at: usize, sort: Sort, address: Address<'_>) {
        for name in names(sort, address) {
            self.open.entry(name).or_default().insert(at);
        }
    }

    /// The item at `at` is complete.
    pub(super) fn end(&mut self, at: usize, sort: Sort, address: Address<'_>) {
        for name in names(sort, address) {
            if let Some(places) = self.open.get_mut(&name) {
                places.remove(&at);
                if places.is_empty() {
                    self.open.remove(&name);
                }
            }
        }
        let id = address.id.map(str::to_owned);
        self.done.insert((sort, id, address.index));
    }

    /// The item that an event is about, if it is not complete.
    pub(super) fn find(&self, address: Address<'_>, sort: Sort) -> Option<usize> {
        let by_id = || self.last(&Name::Id(sort, address.id?.to_owned()));
        let by_index = || self.last(&Name::Index(sort, address.index?));
        // Ids that change from event to event (LiteLLM, vLLM) leave the number, and without one the
        // item that is being written.
        let by_turn = || {
            self.last(&match (address.index, address.id) {
                (None, _) => Name::Any(sort),
                (Some(_), None) => Name::Unnumbered(sort),
                (Some(_), Some(_)) => Name::Bare(sort),
            })
        };
        by_id().or_else(by_index).or_else(by_turn)
    }

    /// Whether an item of exactly that address has begun and is not complete.
    pub(super) fn has_begun(&self, address: Address<'_>) -> bool {
        let both = address
            .id
            .map(|id| Name::Both(id.to_owned(), address.index));
        both.is_some_and(|both| self.open.contains_key(&both))
    }

    /// Whether the item of exactly that address is complete.
    pub(super) fn is_done(&self, address: Address<'_>, sort: Sort) -> bool {
        let id = address.id.map(str::to_owned);
        id.is_some() && self.done.contains(&(sort, id, address.index))
    }

    fn last(&self, name: &Name) -> Option<usize> {
        self.open.get(name)?.last().copied()
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
