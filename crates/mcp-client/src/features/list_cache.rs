//! The cache of lists with a time to live (2026-07-28, "Caching"), and changes of lists.
//!
//! A list is valid for one connection and until the server reports a change. A host is one user for
//! a server, so private lists are cached too.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
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
    /// Notified after a change of prompts or resources.
    changed: Notify,
}

#[derive(Default)]
struct Pages {
    /// By method and cursor.
    cached: HashMap<(String, String), Page>,
    /// The number of changes. A page that was requested before a change is not cached.
    generation: u64,
    /// Changed lists that were not published yet.
    changed: BTreeSet<ListKind>,
}

struct Page {
    result: Value,
    freshness: Freshness,
}

impl ListCache {
    /// Returns a valid cached page.
    pub(crate) fn get(&self, method: &str, params: &str) -> Option<Value> {
        let pages = self.lock();
        let page = pages.cached.get(&(method.to_owned(), params.to_owned()))?;
        (!page.freshness.remaining().is_zero()).then(|| page.result.clone())
    }

    /// Returns the number of changes so far.
    pub(crate) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Caches a page that has a time to live. `requested` is the generation before the request.
    pub(crate) fn insert(&self, method: &str, params: String, result: &Value, requested: u64) {
        let hint = CacheHint::from_json(result);
        let Some(hint) = hint.filter(|hint| !hint.ttl.is_zero()) else {
            return;
        };
        let mut pages = self.lock();
        if pages.generation != requested {
            return;
        }
        pages
            .cached
            .retain(|_, page| !page.freshness.remaining().is_zero());
        if pages.cached.len() < MAX_PAGES {
            let page = Page {
                result: result.clone(),
                freshness: Freshness::new(hint),
            };
            pages.cached.insert((method.to_owned(), params), page);
        }
    }

    /// Records that a server reported a change of a list.
    pub(crate) fn mark_changed(&self, which: ListKind) {
        self.remove(|kind| kind == which);
        // The supervisor lists the tools and then publishes the change.
        if which != ListKind::Tools {
            self.lock().changed.insert(which);
            self.changed.notify_one();
        }
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
    pub(crate) fn take_changed(&self) -> BTreeSet<ListKind> {
        std::mem::take(&mut self.lock().changed)
    }

    /// Returns the validity of the cached lists. The page that expires first counts.
    pub(crate) fn status(&self) -> Vec<ListFreshness> {
        let pages = self.lock();
        let of = |list: &'static str, method: &str| {
            let pages = pages.cached.iter().filter(|((of, _), _)| of == method);
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
            .cached
            .retain(|(method, _), _| !ListKind::of_method(method).is_some_and(&which));
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
}
