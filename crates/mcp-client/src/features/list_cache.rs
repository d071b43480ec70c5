//! The cache of lists with a time to live (2026-07-28, "Caching"), and changes of lists.
//!
//! A list is valid for one connection and until the server reports a change. A host is one user for
//! a server, so private lists are cached too.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use crate::server::status::{CacheScope, ListFreshness};

/// The longest time to live.
const MAX_TTL: Duration = Duration::from_hours(24);
/// Maximum number of cached pages of one server.
const MAX_PAGES: usize = 512;

/// The kind of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
            "tools/list" => Some(Self::Tools),
            "prompts/list" => Some(Self::Prompts),
            "resources/list" | "resources/templates/list" => Some(Self::Resources),
            _ => None,
        }
    }
}

/// How long a list is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheHint {
    pub(crate) ttl: Duration,
    pub(crate) scope: CacheScope,
}

impl CacheHint {
    /// Reads the hint of a result. Returns `None` without a number; a negative number is zero.
    pub(crate) fn from_json(result: &Value) -> Option<Self> {
        let ttl = result.get("ttlMs")?.as_f64()?;
        let ttl = if ttl >= MAX_TTL.as_secs_f64() * 1000.0 {
            MAX_TTL
        } else {
            Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or_default()
        };
        let scope = match result.get("cacheScope").and_then(Value::as_str) {
            Some("public") => CacheScope::Public,
            _ => CacheScope::Private,
        };
        Some(Self { ttl, scope })
    }

    /// Returns the stricter values of two pages of a list.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.min(other.ttl),
            scope: match (self.scope, other.scope) {
                (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }
}

/// The validity of a cached list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freshness {
    hint: CacheHint,
    created: Instant,
}

impl Freshness {
    pub(crate) fn new(hint: CacheHint) -> Self {
        Self {
            hint,
            created: Instant::now(),
        }
    }

    /// Returns the remaining time.
    pub(crate) fn remaining(&self) -> Duration {
        self.hint.ttl.saturating_sub(self.created.elapsed())
    }

    /// Returns whether a time to live was set and has passed.
    pub(crate) fn has_expired(&self) -> bool {
        !self.hint.ttl.is_zero() && self.remaining().is_zero()
    }

    pub(crate) fn status(&self, list: &'static str) -> ListFreshness {
        ListFreshness {
            list,
            ttl_ms: milliseconds(self.hint.ttl),
            fresh_for_ms: milliseconds(self.remaining()),
            scope: self.hint.scope,
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The cached lists of one server. The supervisor keeps the list of tools for models, regardless of
/// its validity.
#[derive(Default)]
pub(crate) struct ListCache {
    pages: Mutex<Pages>,
    /// Notified when one of the flags below is set.
    changed: Notify,
    prompts_changed: AtomicBool,
    resources_changed: AtomicBool,
}

#[derive(Default)]
struct Pages {
    /// By method and cursor.
    pages: HashMap<(String, String), Page>,
    /// The number of changes. A page that was requested before a change is not cached.
    generation: u64,
}

struct Page {
    result: Value,
    freshness: Freshness,
}

/// The state of the cache when a page was requested.
#[derive(Clone, Copy)]
pub(crate) struct Generation(u64);

impl ListCache {
    /// Returns a valid cached page.
    pub(crate) fn get(&self, method: &str, params: &str) -> Option<Value> {
        let pages = self.lock();
        let page = pages.pages.get(&(method.to_owned(), params.to_owned()))?;
        (!page.freshness.remaining().is_zero()).then(|| page.result.clone())
    }

    pub(crate) fn generation(&self) -> Generation {
        Generation(self.lock().generation)
    }

    /// Caches a page that has a time to live. `requested` is the generation before the request.
    pub(crate) fn insert(
        &self,
        method: &str,
        params: String,
        result: &Value,
        requested: Generation,
    ) {
        let hint = CacheHint::from_json(result).filter(|hint| !hint.ttl.is_zero());
        let (Some(hint), Some(_)) = (hint, ListKind::of_method(method)) else {
            return;
        };
        let mut pages = self.lock();
        if pages.generation != requested.0 {
            return;
        }
        pages
            .pages
            .retain(|_, page| !page.freshness.remaining().is_zero());
        if pages.pages.len() < MAX_PAGES {
            let page = Page {
                result: result.clone(),
                freshness: Freshness::new(hint),
            };
            pages.pages.insert((method.to_owned(), params), page);
        }
    }

    /// Records that a server reported a change of a list.
    pub(crate) fn mark_changed(&self, which: ListKind) {
        self.remove(|kind| kind == which);
        match which {
            ListKind::Prompts => self.prompts_changed.store(true, Ordering::Relaxed),
            ListKind::Resources => self.resources_changed.store(true, Ordering::Relaxed),
            // The supervisor lists the tools and then publishes the change.
            ListKind::Tools => return,
        }
        self.changed.notify_one();
    }

    /// Removes all pages.
    pub(crate) fn clear(&self) {
        self.remove(|_| true);
    }

    /// Waits for a change of prompts or resources.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns and resets the changed lists.
    pub(crate) fn take_changed(&self) -> impl Iterator<Item = ListKind> {
        let prompts = self.prompts_changed.swap(false, Ordering::Relaxed);
        let resources = self.resources_changed.swap(false, Ordering::Relaxed);
        let prompts = prompts.then_some(ListKind::Prompts);
        prompts
            .into_iter()
            .chain(resources.then_some(ListKind::Resources))
    }

    /// Returns the validity of the cached lists. The page that expires first counts.
    pub(crate) fn status(&self) -> Vec<ListFreshness> {
        let pages = self.lock();
        let of = |list: &'static str, method: &str| {
            let pages = pages.pages.iter().filter(|((of, _), _)| of == method);
            let fresh = pages.map(|(_, page)| page.freshness.status(list));
            fresh
                .filter(|list| list.fresh_for_ms > 0)
                .min_by_key(|list| list.fresh_for_ms)
        };
        [
            of("prompts", "prompts/list"),
            of("resources", "resources/list"),
            of("resource_templates", "resources/templates/list"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn remove(&self, which: impl Fn(ListKind) -> bool) {
        let mut pages = self.lock();
        pages.generation += 1;
        pages
            .pages
            .retain(|(method, _), _| !ListKind::of_method(method).is_some_and(&which));
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    fn hint(ttl: u64, scope: CacheScope) -> CacheHint {
        let ttl = Duration::from_millis(ttl);
        CacheHint { ttl, scope }
    }

    #[test]
    fn cache_hints_are_parsed_leniently() {
        use CacheScope::{Private, Public};
        for (result, expected) in [
            (json!({}), None),
            (json!({"ttlMs": "soon"}), None),
            (json!({"ttlMs": 0}), Some(hint(0, Private))),
            (
                json!({"ttlMs": -5, "cacheScope": "public"}),
                Some(hint(0, Public)),
            ),
            (
                json!({"ttlMs": 1500, "cacheScope": "shared"}),
                Some(hint(1500, Private)),
            ),
            (
                json!({"ttlMs": 1e300, "cacheScope": 7}),
                Some(hint(86_400_000, Private)),
            ),
        ] {
            assert_eq!(CacheHint::from_json(&result), expected, "{result}");
        }
        assert_eq!(hint(9, Public).min(hint(3, Private)), hint(3, Private));
    }

    fn page() -> Value {
        json!({"prompts": [], "ttlMs": 1000, "cacheScope": "public"})
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_cached_for_its_time_to_live() {
        let lists = ListCache::default();
        lists.insert("prompts/list", "1".to_owned(), &page(), lists.generation());
        // A page without a time to live and a result that is not a list are not cached.
        lists.insert(
            "resources/list",
            "1".to_owned(),
            &json!({"ttlMs": 0}),
            lists.generation(),
        );
        lists.insert("prompts/get", "1".to_owned(), &page(), lists.generation());
        assert_eq!(lists.get("prompts/list", "1"), Some(page()));
        assert_eq!(lists.get("prompts/list", "2"), None);
        assert_eq!(lists.get("resources/list", "1"), None);
        assert_eq!(lists.get("prompts/get", "1"), None);
        advance(Duration::from_millis(400)).await;
        let status = ListFreshness {
            list: "prompts",
            ttl_ms: 1000,
            fresh_for_ms: 600,
            scope: CacheScope::Public,
        };
        assert_eq!(lists.status(), [status]);
        advance(Duration::from_millis(600)).await;
        assert_eq!(lists.get("prompts/list", "1"), None);
        assert_eq!(lists.status(), []);
    }

    #[test]
    fn a_change_invalidates_cached_and_requested_pages() {
        let lists = ListCache::default();
        let requested = lists.generation();
        lists.insert("prompts/list", String::new(), &page(), requested);
        lists.insert("resources/list", String::new(), &page(), requested);
        lists.mark_changed(ListKind::Prompts);
        assert_eq!(lists.get("prompts/list", ""), None);
        assert!(lists.get("resources/list", "").is_some());
        lists.insert("prompts/list", String::new(), &page(), requested);
        assert_eq!(lists.get("prompts/list", ""), None);
        assert_eq!(
            lists.take_changed().collect::<Vec<_>>(),
            [ListKind::Prompts]
        );
        assert_eq!(lists.take_changed().count(), 0);
        lists.clear();
        assert_eq!(lists.get("resources/list", ""), None);
    }
}
