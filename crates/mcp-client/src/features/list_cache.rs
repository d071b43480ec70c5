//! Lists that a server said to be good for a while (2026-07-28, "Caching"), and what it says of their changes.
//!
//! Kept is what came on the connection of now; a change that is told, and another connection, end it at once.
//! One host is one person to a server, so what is private may be kept as well as what is public.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::model::CacheScope as McpScope;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use crate::server::status::{CacheScope, ListFreshness};

/// No list is good for longer, whatever its server says.
const LONGEST: Duration = Duration::from_hours(24);
/// Pages kept of one server.
const MOST_PAGES: usize = 512;

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    /// Also that of their templates.
    Resources,
}

impl ListKind {
    /// Which list a request asks for, if it is one that is kept.
    fn of(method: &str) -> Option<Self> {
        match method {
            "tools/list" => Some(Self::Tools),
            "prompts/list" => Some(Self::Prompts),
            "resources/list" | "resources/templates/list" => Some(Self::Resources),
            _ => None,
        }
    }
}

/// How long a list is good for, as its server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) ttl: Duration,
    pub(crate) scope: CacheScope,
}

impl Hint {
    /// Of a result as JSON. What is no number counts as not said; what is below zero is zero.
    pub(crate) fn of(result: &Value) -> Option<Self> {
        let ttl = result.get("ttlMs")?.as_f64()?;
        // Also what is no number of ours: NaN is not longer than anything.
        let ttl = if ttl >= LONGEST.as_secs_f64() * 1000.0 {
            LONGEST
        } else {
            Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or_default()
        };
        let scope = match result.get("cacheScope").and_then(Value::as_str) {
            Some("public") => CacheScope::Public,
            _ => CacheScope::Private,
        };
        Some(Self { ttl, scope })
    }

    pub(crate) fn new(ttl_ms: Option<u64>, scope: Option<McpScope>) -> Option<Self> {
        Some(Self {
            ttl: Duration::from_millis(ttl_ms?).min(LONGEST),
            scope: match scope {
                Some(McpScope::Public) => CacheScope::Public,
                _ => CacheScope::Private,
            },
        })
    }

    /// Of a list of several pages: as good as its worst page.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.min(other.ttl),
            scope: match (self.scope, other.scope) {
                (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }
}

/// Something that is good for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freshness {
    hint: Hint,
    since: Instant,
}

impl Freshness {
    /// From now on.
    pub(crate) fn new(hint: Hint) -> Self {
        let since = Instant::now();
        Self { hint, since }
    }

    /// How much longer it is good.
    pub(crate) fn left(&self) -> Duration {
        self.hint.ttl.saturating_sub(self.since.elapsed())
    }

    /// Whether it was good once and is no more.
    pub(crate) fn is_over(&self) -> bool {
        !self.hint.ttl.is_zero() && self.left().is_zero()
    }

    pub(crate) fn status(&self, list: &'static str) -> ListFreshness {
        ListFreshness {
            list,
            ttl_ms: milliseconds(self.hint.ttl),
            fresh_for_ms: milliseconds(self.left()),
            scope: self.hint.scope,
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The lists of one server, but for that of the tools for models, which its task keeps whether or not it is
/// fresh.
#[derive(Default)]
pub(crate) struct Lists {
    pages: Mutex<Pages>,
    /// Somebody is to be told that one of these has changed.
    told: Notify,
    prompts_changed: AtomicBool,
    resources_changed: AtomicBool,
}

#[derive(Default)]
struct Pages {
    /// By method and parameters.
    kept: HashMap<(String, String), Kept>,
    /// What was asked for before a change is not kept after it.
    age: u64,
}

struct Kept {
    result: Value,
    freshness: Freshness,
}

/// When a page was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Age(u64);

impl Lists {
    /// A page that is still good.
    pub(crate) fn get(&self, method: &str, params: &str) -> Option<Value> {
        let pages = self.lock();
        let kept = pages.kept.get(&(method.to_owned(), params.to_owned()))?;
        (!kept.freshness.left().is_zero()).then(|| kept.result.clone())
    }

    pub(crate) fn age(&self) -> Age {
        Age(self.lock().age)
    }

    /// Keeps what came, if its server says that it is good for a while. `asked` is of before the request.
    pub(crate) fn keep(&self, method: &str, params: String, result: &Value, asked: Age) {
        let hint = Hint::of(result).filter(|hint| !hint.ttl.is_zero());
        let (Some(hint), Some(_)) = (hint, ListKind::of(method)) else {
            return;
        };
        let mut pages = self.lock();
        if pages.age != asked.0 {
            return;
        }
        pages
            .kept
            .retain(|_, kept| !kept.freshness.left().is_zero());
        if pages.kept.len() < MOST_PAGES {
            let kept = Kept {
                result: result.clone(),
                freshness: Freshness::new(hint),
            };
            pages.kept.insert((method.to_owned(), params), kept);
        }
    }

    /// A server says that a list is another one.
    pub(crate) fn changed(&self, which: ListKind) {
        self.forget(|kind| kind == which);
        match which {
            ListKind::Prompts => self.prompts_changed.store(true, Ordering::Relaxed),
            ListKind::Resources => self.resources_changed.store(true, Ordering::Relaxed),
            // Its task asks for them anew, and tells then.
            ListKind::Tools => return,
        }
        self.told.notify_one();
    }

    /// All of them may be others.
    pub(crate) fn all_changed(&self) {
        self.forget(|_| true);
    }

    /// Waits for a change to be told.
    pub(crate) async fn heard(&self) {
        self.told.notified().await;
    }

    /// What changed since this was asked last.
    pub(crate) fn take_changed(&self) -> impl Iterator<Item = ListKind> {
        let prompts = self.prompts_changed.swap(false, Ordering::Relaxed);
        let resources = self.resources_changed.swap(false, Ordering::Relaxed);
        let prompts = prompts.then_some(ListKind::Prompts);
        prompts
            .into_iter()
            .chain(resources.then_some(ListKind::Resources))
    }

    /// Those that are good for a while yet; of several pages, as the worst of them.
    pub(crate) fn status(&self) -> Vec<ListFreshness> {
        let pages = self.lock();
        let of = |list: &'static str, method: &str| {
            let kept = pages.kept.iter().filter(|((of, _), _)| of == method);
            let fresh = kept.map(|(_, kept)| kept.freshness.status(list));
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

    fn forget(&self, which: impl Fn(ListKind) -> bool) {
        let mut pages = self.lock();
        pages.age += 1;
        pages
            .kept
            .retain(|(method, _), _| !ListKind::of(method).is_some_and(&which));
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

    fn hint(ttl: u64, scope: CacheScope) -> Hint {
        let ttl = Duration::from_millis(ttl);
        Hint { ttl, scope }
    }

    #[test]
    fn what_a_server_says_of_a_list_is_read_leniently() {
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
            assert_eq!(Hint::of(&result), expected, "{result}");
        }
        let worst = Hint::new(Some(u64::MAX), Some(McpScope::Public)).unwrap();
        let worst = worst.and(hint(3, Private));
        assert_eq!(worst, hint(3, Private));
        assert_eq!(Hint::new(None, Some(McpScope::Public)), None);
    }

    fn page() -> Value {
        json!({"prompts": [], "ttlMs": 1000, "cacheScope": "public"})
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_kept_as_long_as_it_is_good() {
        let lists = Lists::default();
        lists.keep("prompts/list", "1".to_owned(), &page(), lists.age());
        // Neither what is not good for any time nor what is no list.
        lists.keep(
            "resources/list",
            "1".to_owned(),
            &json!({"ttlMs": 0}),
            lists.age(),
        );
        lists.keep("prompts/get", "1".to_owned(), &page(), lists.age());
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
    fn a_change_ends_what_is_kept_and_what_is_on_its_way() {
        let lists = Lists::default();
        let asked = lists.age();
        lists.keep("prompts/list", String::new(), &page(), asked);
        lists.keep("resources/list", String::new(), &page(), asked);
        lists.changed(ListKind::Prompts);
        assert_eq!(lists.get("prompts/list", ""), None);
        assert!(lists.get("resources/list", "").is_some());
        lists.keep("prompts/list", String::new(), &page(), asked);
        assert_eq!(lists.get("prompts/list", ""), None);
        assert_eq!(
            lists.take_changed().collect::<Vec<_>>(),
            [ListKind::Prompts]
        );
        assert_eq!(lists.take_changed().count(), 0);
        lists.all_changed();
        assert_eq!(lists.get("resources/list", ""), None);
    }
}
