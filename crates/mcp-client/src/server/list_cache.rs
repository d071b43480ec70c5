//! Cache of `…/list` results with a time to live (MCP 2026-07-28, "Caching"), and list changes.
//!
//! A cached list is valid until it expires, the connection ends or the server reports a change.
//! Private lists are cached too, because the host is a single user of the server.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};

use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    primitives::sync::lock_mutex, server::status::ListFreshness, tools::pagination::Freshness,
};

/// Maximum number of cached list pages per server. Further pages are not cached.
const MAX_PAGES: usize = 512;

/// Kind of a list that an MCP server offers. The server reports changes per kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    /// Lists of resources and of resource templates, which change together.
    Resources,
}

impl ListKind {
    /// Returns the list kind for a method such as `prompts/list`. `None` for lists without a cache.
    fn from_method(method: &str) -> Option<Self> {
        match method {
            "prompts/list" => Some(Self::Prompts),
            "resources/list" | "resources/templates/list" => Some(Self::Resources),
            _ => None,
        }
    }
}

/// Cache of the prompt and resource lists of one server. The tools are part of the server state
/// instead, because they are used even after their list has expired.
#[derive(Default)]
pub(crate) struct ListCache {
    pages: Mutex<CachedPages>,
    /// Signal that the server reported a change of its prompts or resources.
    pub(crate) changed: Notify,
}

/// Cache key of a list page: the request method and the page cursor.
pub(crate) type PageKey = (&'static str, Option<String>);

#[derive(Default)]
struct CachedPages {
    cached: HashMap<PageKey, (Value, Freshness)>,
    /// Number of list changes so far. A page is not cached if this number has changed since the
    /// request for the page.
    generation: u64,
    /// Lists that the server reported as changed, until the supervisor publishes the changes.
    changed: BTreeSet<ListKind>,
}

impl ListCache {
    /// Returns a page from the cache. Returns `None` if the page is not cached or has expired.
    pub(crate) fn get(&self, key: &PageKey) -> Option<Value> {
        let pages = lock_mutex(&self.pages);
        let (page, freshness) = pages.cached.get(key)?;
        (!freshness.remaining_ttl().is_zero()).then(|| page.clone())
    }

    pub(crate) fn generation(&self) -> u64 {
        lock_mutex(&self.pages).generation
    }

    /// Caches a page that declares a time to live above zero. `requested` is the generation at the
    /// time of the request for the page. If the server has reported a list change since then, the
    /// page is not cached.
    pub(crate) fn insert(&self, key: PageKey, page: &Value, requested: u64) {
        let Some(freshness) = Freshness::from_json(page) else {
            return;
        };
        let mut pages = lock_mutex(&self.pages);
        if pages.generation != requested {
            return;
        }
        let is_fresh = |freshness: &Freshness| !freshness.remaining_ttl().is_zero();
        pages.cached.retain(|_, (_, freshness)| is_fresh(freshness));
        if is_fresh(&freshness) && pages.cached.len() < MAX_PAGES {
            pages.cached.insert(key, (page.clone(), freshness));
        }
    }

    /// Records that the server reported a changed list, and removes its pages from the cache.
    pub(crate) fn mark_list_changed(&self, which: ListKind) {
        self.remove(|kind| kind == which);
        // The supervisor publishes a change of the tools itself, after it has listed the tools
        // again.
        if which != ListKind::Tools {
            lock_mutex(&self.pages).changed.insert(which);
            self.changed.notify_one();
        }
    }

    pub(crate) fn clear(&self) {
        self.remove(|_| true);
    }

    /// Returns the changed lists and clears the record of changes.
    pub(crate) fn take_changed_lists(&self) -> BTreeSet<ListKind> {
        std::mem::take(&mut lock_mutex(&self.pages).changed)
    }

    /// Returns the time to live of each list that has unexpired pages in the cache. For a list with
    /// several pages, this is the time to live of the page that expires first.
    pub(crate) fn list_freshness(&self) -> Vec<ListFreshness> {
        let pages = lock_mutex(&self.pages);
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
        let mut pages = lock_mutex(&self.pages);
        pages.generation += 1;
        let is_removed = |method| ListKind::from_method(method).is_some_and(&which);
        pages.cached.retain(|(method, _), _| !is_removed(method));
    }
}
