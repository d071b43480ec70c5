//! Reading all pages of a list.

use std::{collections::HashSet, fmt, time::Duration};

use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Maximum number of pages that are read of a list.
const MAX_PAGES: usize = 1000;
/// Maximum time to live of a list.
const MAX_TTL: Duration = Duration::from_hours(24);

/// Time to live of a list (MCP 2026-07-28, "Caching").
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freshness {
    pub(crate) ttl: Duration,
    received: Instant,
}

impl Freshness {
    /// Reads the time to live of a page that was just received. Returns `None` if it is not a
    /// number. A negative number counts as zero.
    pub(crate) fn from_json(page: &Value) -> Option<Self> {
        let seconds = page
            .get("ttlMs")?
            .as_f64()?
            .clamp(0.0, MAX_TTL.as_secs_f64() * 1000.0)
            / 1000.0;
        let ttl = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Some(Self {
            ttl,
            received: Instant::now(),
        })
    }

    /// Returns the remaining time to live.
    pub(crate) fn remaining(&self) -> Duration {
        self.ttl.saturating_sub(self.received.elapsed())
    }

    /// Returns whether a time to live was set and has passed.
    pub(crate) fn has_expired(&self) -> bool {
        !self.ttl.is_zero() && self.remaining().is_zero()
    }
}

/// Creates the request for a page. Sets `params` to an object, because rmcp would send `null`,
/// which servers reject.
pub(crate) fn page_request(method: &'static str, cursor: Option<String>) -> ClientRequest {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// Items of all pages of a list.
pub(crate) struct Pages<T> {
    /// Field of a page that contains the items.
    key: &'static str,
    /// Items in the order of the server.
    pub(crate) items: Vec<T>,
    /// Reasons why items are missing.
    pub(crate) problems: Vec<String>,
    /// Time to live of the list: the shortest of all pages. `None` if no page declares one.
    pub(crate) freshness: Option<Freshness>,
    is_first: bool,
    cursors: HashSet<String>,
}

/// Reason why the first page of a list cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageError<E> {
    Request(E),
    /// The answer contains no list of items. The text is a clause for a message.
    Malformed(String),
}

impl<T> Pages<T> {
    pub(crate) fn new(key: &'static str) -> Self {
        Self {
            key,
            items: Vec::new(),
            problems: Vec::new(),
            freshness: None,
            is_first: true,
            cursors: HashSet::new(),
        }
    }

    /// Adds the answer to a page request and returns the cursor of the next page. Drops invalid
    /// items and records them as problems. If a later page fails, the earlier pages are kept with a
    /// problem.
    pub(crate) fn add<E: fmt::Display>(
        &mut self,
        page: Result<Value, E>,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<Option<String>, PageError<E>> {
        let key = self.key;
        let is_first = std::mem::take(&mut self.is_first);
        let page = match page {
            Ok(page) => page,
            Err(error) if is_first => return Err(PageError::Request(error)),
            Err(error) => return Ok(self.incomplete(error)),
        };
        let Some(Value::Array(items)) = page.get(key) else {
            let reason = format!("has no list of {key}");
            if is_first {
                return Err(PageError::Malformed(reason));
            }
            return Ok(self.incomplete(format!("its answer {reason}")));
        };
        for item in items {
            match parse(item) {
                Ok(item) => self.items.push(item),
                Err(reason) => self.problems.push(format!("{reason}; it is skipped")),
            }
        }
        let freshness = Freshness::from_json(&page);
        self.freshness = if is_first {
            freshness
        } else {
            let both = self.freshness.zip(freshness);
            both.map(|(earlier, this)| {
                if this.ttl < earlier.ttl {
                    this
                } else {
                    earlier
                }
            })
        };
        let Some(next) = page.get("nextCursor").and_then(Value::as_str) else {
            return Ok(None);
        };
        let count = self.cursors.len();
        let problem = if !self.cursors.insert(next.to_owned()) {
            format!("a page repeats after {count} pages")
        } else if self.cursors.len() == MAX_PAGES {
            format!("only the first {MAX_PAGES} pages are used")
        } else {
            return Ok(Some(next.to_owned()));
        };
        self.problems
            .push(format!("the list of {key} does not end: {problem}"));
        Ok(None)
    }

    fn incomplete(&mut self, reason: impl fmt::Display) -> Option<String> {
        let key = self.key;
        self.problems
            .push(format!("the list of {key} is incomplete: {reason}"));
        None
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
