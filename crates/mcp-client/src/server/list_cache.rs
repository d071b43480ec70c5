//! The cache of lists with a time to live (2026-07-28, "Caching"), and changes of lists.
//!
//! A list is valid for one connection and until the server reports a change. A host is one user for
//! a server, so private lists are cached too.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};

use serde_json::Value;
use tokio::sync::Notify;

use crate::{common::sync::lock, server::status::ListFreshness, tools::pagination::Freshness};

/// Maximum number of cached pages of one server.
const MAX_PAGES: usize = 512;

/// The kind of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    /// Resources and resource templates.
    Resources,
}

impl ListKind {
    /// Returns the list that a request reads.
    fn of_method(method: &str) -> Option<Self> {
        match method {
            "prompts/list" => Some(Self::Prompts),
            "resources/list" | "resources/templates/list" => Some(Self::Resources),
            _ => None,
        }
    }
}

/// The cached lists of one server. The supervisor keeps the list of tools for models, regardless of
/// its validity.
#[derive(Default)]
pub(crate) struct ListCache {
    pages: Mutex<Pages>,
    /// Notified after a change of prompts or resources.
    pub(crate) changed: Notify,
}

/// A page of a list: the method and the cursor.
pub(crate) type PageKey = (&'static str, Option<String>);

#[derive(Default)]
struct Pages {
    cached: HashMap<PageKey, (Value, Freshness)>,
    /// The number of changes. A page that was requested before a change is not cached.
    generation: u64,
    /// Changed lists that were not published yet.
    changed: BTreeSet<ListKind>,
}

impl ListCache {
    /// Returns a valid cached page.
    pub(crate) fn get(&self, key: &PageKey) -> Option<Value> {
        let pages = lock(&self.pages);
        let (page, freshness) = pages.cached.get(key)?;
        (!freshness.remaining().is_zero()).then(|| page.clone())
    }

    /// Returns the number of changes so far.
    pub(crate) fn generation(&self) -> u64 {
        lock(&self.pages).generation
    }

    /// Caches a page that has a time to live. `requested` is the generation before the request.
    pub(crate) fn insert(&self, key: PageKey, page: &Value, requested: u64) {
        let Some(freshness) = Freshness::from_json(page) else {
            return;
        };
        let mut pages = lock(&self.pages);
        if pages.generation != requested {
            return;
        }
        let is_fresh = |freshness: &Freshness| !freshness.remaining().is_zero();
        pages.cached.retain(|_, (_, freshness)| is_fresh(freshness));
        if is_fresh(&freshness) && pages.cached.len() < MAX_PAGES {
            pages.cached.insert(key, (page.clone(), freshness));
        }
    }

    /// Records that a server reported a change of a list.
    pub(crate) fn mark_changed(&self, which: ListKind) {
        self.remove(|kind| kind == which);
        // The supervisor lists the tools and then publishes the change.
        if which != ListKind::Tools {
            lock(&self.pages).changed.insert(which);
            self.changed.notify_one();
        }
    }

    /// Removes all pages.
    pub(crate) fn clear(&self) {
        self.remove(|_| true);
    }

    /// Returns and resets the changed lists.
    pub(crate) fn take_changed(&self) -> BTreeSet<ListKind> {
        std::mem::take(&mut lock(&self.pages).changed)
    }

    /// Returns the validity of the cached lists. The page that expires first counts.
    pub(crate) fn status(&self) -> Vec<ListFreshness> {
        let pages = lock(&self.pages);
        let lists = [
            ("prompts", "prompts/list"),
            ("resources", "resources/list"),
            ("resource_templates", "resources/templates/list"),
        ];
        let status = lists.into_iter().filter_map(|(list, method)| {
            let pages = pages.cached.iter().filter(|((of, _), _)| *of == method);
            let fresh = pages.map(|(_, (_, freshness))| ListFreshness::new(list, *freshness));
            let fresh = fresh.filter(|list| list.fresh_for_ms > 0);
            fresh.min_by_key(|list| list.fresh_for_ms)
        });
        status.collect()
    }

    fn remove(&self, which: impl Fn(ListKind) -> bool) {
        let mut pages = lock(&self.pages);
        pages.generation += 1;
        let is_removed = |method| ListKind::of_method(method).is_some_and(&which);
        pages.cached.retain(|(method, _), _| !is_removed(method));
    }
}
