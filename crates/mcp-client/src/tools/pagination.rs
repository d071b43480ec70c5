//! Requests for all pages of a list of tools, prompts or resources.

use std::{collections::HashSet, fmt, time::Duration};

use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Maximum number of pages requested for one list. The items on further pages are missing.
const MAX_PAGES: usize = 1000;
/// Maximum time to live of a cached list. Longer times are reduced to this maximum.
const MAX_TTL: Duration = Duration::from_hours(24);

/// Time to live of a cached list (MCP 2026-07-28, "Caching"), and when the list was received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freshness {
    pub(crate) ttl: Duration,
    received: Instant,
}

impl Freshness {
    /// Reads the time to live of a page that was just received. Returns `None` if the page declares
    /// no number. A negative number counts as zero.
    pub(crate) fn from_json(page: &Value) -> Option<Self> {
        let seconds = page.get("ttlMs")?.as_f64()? / 1000.0;
        let seconds = seconds.clamp(0.0, MAX_TTL.as_secs_f64());
        let ttl = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Some(Self {
            ttl,
            received: Instant::now(),
        })
    }

    pub(crate) fn remaining_ttl(&self) -> Duration {
        self.ttl.saturating_sub(self.received.elapsed())
    }

    /// Returns whether the list has expired. `false` for a list with a time to live of zero.
    pub(crate) fn is_list_expired(&self) -> bool {
        !self.ttl.is_zero() && self.remaining_ttl().is_zero()
    }
}

/// Creates the request for a page. Sets `params` to an object, because rmcp would send `null`,
/// which servers reject.
pub(crate) fn page_request(method: &'static str, cursor: Option<String>) -> ClientRequest {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// Items of a list after all its pages were received.
pub(crate) struct CollectedListItems<T> {
    /// Valid items in the order of the server.
    pub(crate) items: Vec<T>,
    /// Reasons why items are missing, such as invalid items.
    pub(crate) problems: Vec<String>,
    /// Time to live of the list: the shortest of all pages. `None` if a page declares none.
    pub(crate) freshness: Option<Freshness>,
}

impl<T> CollectedListItems<T> {
    pub(crate) fn new() -> Self {
        Self {
            items: Vec::new(),
            problems: Vec::new(),
            freshness: None,
        }
    }

    /// Adds the items in the array field `key` of an answer. Drops invalid items and records them
    /// as problems. Returns `false` if the answer does not have this array.
    pub(crate) fn add_items(
        &mut self,
        answer: &Value,
        key: &str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> bool {
        let items = answer.get(key).and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            match parse(item) {
                Ok(item) => self.items.push(item),
                Err(reason) => self.problems.push(format!("{reason} (skipped)")),
            }
        }
        items.is_some()
    }
}

/// Requests all pages of a list, whose items are in the field `key`. Returns an error if the first
/// page fails or has no list. `malformed` creates this error from a text such as `has no list of
/// tools`. If a later page fails, the result contains the earlier pages and a problem.
pub(crate) async fn collect_pages<T, E: fmt::Display, F: Future<Output = Result<Value, E>>>(
    key: &str,
    mut request: impl FnMut(Option<String>) -> F,
    parse: impl Fn(&Value) -> Result<T, String>,
    malformed: impl FnOnce(String) -> E,
) -> Result<CollectedListItems<T>, E> {
    let mut list = CollectedListItems::new();
    let mut cursors = HashSet::new();
    let mut cursor = None;
    loop {
        let is_first = cursor.is_none();
        let no_list = format!("has no list of {key}");
        let page = match request(cursor).await {
            Ok(page) if list.add_items(&page, key, &parse) => page,
            Ok(_) if is_first => return Err(malformed(no_list)),
            Err(error) if is_first => return Err(error),
            failed => {
                let reason = failed.err().map(|error| error.to_string());
                let reason = reason.unwrap_or_else(|| format!("the answer {no_list}"));
                let problem = format!("the list of {key} is incomplete: {reason}");
                list.problems.push(problem);
                return Ok(list);
            }
        };
        let freshness = Freshness::from_json(&page);
        list.freshness = if is_first {
            freshness
        } else {
            let both = list.freshness.zip(freshness);
            both.and_then(|(earlier, this)| [earlier, this].into_iter().min_by_key(|it| it.ttl))
        };
        let Some(next) = page.get("nextCursor").and_then(Value::as_str) else {
            return Ok(list);
        };
        let count = cursors.len();
        let problem = if !cursors.insert(next.to_owned()) {
            format!("a page repeats after {count} pages")
        } else if cursors.len() == MAX_PAGES {
            format!("only the first {MAX_PAGES} pages are used")
        } else {
            cursor = Some(next.to_owned());
            continue;
        };
        let problem = format!("the list of {key} does not end: {problem}");
        list.problems.push(problem);
        return Ok(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_live_are_parsed_leniently() {
        for (page, expected) in [
            (json!({}), None),
            (json!({"ttlMs": "soon"}), None),
            (json!({"ttlMs": 0}), Some(0)),
            (json!({"ttlMs": -5}), Some(0)),
            (json!({"ttlMs": 1500}), Some(1500)),
            (json!({"ttlMs": 1e300}), Some(86_400_000)),
        ] {
            let ttl = Freshness::from_json(&page).map(|freshness| freshness.ttl);
            assert_eq!(ttl, expected.map(Duration::from_millis), "{page}");
        }
    }

    #[test]
    fn the_parameters_of_a_page_request_are_an_object() {
        let params = |cursor: Option<&str>| {
            let request = page_request("tools/list", cursor.map(str::to_owned));
            serde_json::to_value(request).unwrap()["params"].clone()
        };
        assert_eq!(params(None), json!({}));
        assert_eq!(params(Some("2")), json!({"cursor": "2"}));
    }
}
