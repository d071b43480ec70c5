//! Reading all pages of a list.

use std::{collections::HashSet, fmt};

use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::{Value, json};

use crate::features::list_cache::CacheHint;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 1000;

/// Creates the request for a page. Its `params` are an object in any case: rmcp would send `null`,
/// which servers reject.
pub(crate) fn page_request(method: &'static str, cursor: Option<String>) -> ClientRequest {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// The items of all pages of a list.
pub(crate) struct Pages<T> {
    /// The field of a page that contains the items.
    key: &'static str,
    /// In the order of the server.
    pub(crate) items: Vec<T>,
    /// Descriptions of missing items.
    pub(crate) problems: Vec<String>,
    /// How long the list is valid. `None` if a page does not declare it.
    pub(crate) hint: Option<CacheHint>,
    is_first: bool,
    cursors: HashSet<String>,
}

/// Why the first page of a list cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageError<E> {
    Request(E),
    /// The answer has no items.
    Malformed(String),
}

impl<T> Pages<T> {
    pub(crate) fn new(key: &'static str) -> Self {
        Self {
            key,
            items: Vec::new(),
            problems: Vec::new(),
            hint: None,
            is_first: true,
            cursors: HashSet::new(),
        }
    }

    /// Adds the answer to the request for a page, and returns the cursor of the next page. Drops
    /// invalid items, and records that as problems. If a later page fails, the earlier pages stay,
    /// with a problem.
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
            let reason = format!("its answer has no list of {key}");
            if is_first {
                return Err(PageError::Malformed(reason));
            }
            return Ok(self.incomplete(reason));
        };
        for item in items {
            match parse(item) {
                Ok(item) => self.items.push(item),
                Err(reason) => self.problems.push(format!("{reason}; it is skipped")),
            }
        }
        let hint = CacheHint::from_json(&page);
        self.hint = match (is_first, self.hint, hint) {
            (true, _, hint) => hint,
            (false, Some(earlier), Some(hint)) => Some(earlier.min(hint)),
            _ => None,
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
    fn the_parameters_of_a_page_request_are_an_object() {
        let params = |cursor: Option<&str>| {
            let request = page_request("tools/list", cursor.map(str::to_owned));
            serde_json::to_value(request).unwrap()["params"].clone()
        };
        assert_eq!(params(None), json!({}));
        assert_eq!(params(Some("2")), json!({"cursor": "2"}));
    }
}
