//! All pages of a list.

use std::collections::HashSet;

use rmcp::model::{ClientRequest, PaginatedRequestParams};
use serde::Serialize;
use serde_json::Value;

use crate::features::{
    error::FeatureError,
    request::{Asker, Capability},
};

/// A server whose list is longer than this many pages has lost its way.
const MOST_PAGES: usize = 1000;

/// What a server lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing<T> {
    /// In the server's own order.
    pub items: Vec<T>,
    /// What is missing, and why: items that could not be read, and pages that did not come.
    pub problems: Vec<String>,
}

/// Asks for every page. One bad item is left out alone. Of a list that breaks off after its first page
/// what came is used, with a problem; an error is that nothing came.
pub(super) async fn all<T>(
    asker: &mut Asker<'_>,
    capability: Capability,
    // Where in a page its items are.
    key: &str,
    request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Listing<T>, FeatureError> {
    let mut items = Vec::new();
    let mut problems = Vec::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let params = cursor
            .clone()
            .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = match asker.ask(capability, request(params)).await {
            Ok(page) => page,
            Err(error) if cursor.is_none() => return Err(error),
            Err(error) => {
                problems.push(format!("the list of {key} is not complete: {error}"));
                break;
            }
        };
        match page.get(key) {
            Some(Value::Array(listed)) => {
                for item in listed {
                    match read(item) {
                        Ok(item) => items.push(item),
                        Err(why) => problems.push(format!("{why}, so it is left out")),
                    }
                }
            }
            _ if cursor.is_none() => {
                return Err(FeatureError::Malformed {
                    server: asker.server.config.name.clone(),
                    request: request(None).method().to_owned(),
                    reason: format!("its list of {key} is none"),
                });
            }
            _ => {
                problems.push(format!(
                    "the list of {key} is not complete: a page of it is none"
                ));
                break;
            }
        }
        let next = page.get("nextCursor").and_then(Value::as_str);
        let Some(next) = next.map(str::to_owned) else {
            break;
        };
        let known = cursors.len();
        if !cursors.insert(next.clone()) {
            problems.push(format!(
                "the list of {key} does not end: the same page comes again after {known} pages"
            ));
            break;
        }
        if cursors.len() == MOST_PAGES {
            problems.push(format!(
                "the list of {key} does not end: there are more than {MOST_PAGES} pages, and the rest is \
                 left out"
            ));
            break;
        }
        cursor = Some(next);
    }
    let server = asker.server;
    let problems: Vec<String> = problems
        .into_iter()
        .map(|problem| server.redactor.clean(problem))
        .collect();
    for problem in &problems {
        tracing::warn!(server = server.config.name, problem, "a list has a flaw");
    }
    Ok(Listing { items, problems })
}

/// Text, where there is some.
pub(super) fn text(item: &Value, key: &str) -> Option<String> {
    item.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Text that cannot be done without. `what` is the kind of thing, for the error.
pub(super) fn needed(item: &Value, key: &str, what: &str) -> Result<String, String> {
    text(item, key)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| format!("one {what} has no {key}"))
}

/// `_meta`, or nothing.
pub(super) fn meta(item: &Value) -> switchboard_domain::JsonObject {
    match item.get("_meta") {
        Some(Value::Object(meta)) => meta.clone(),
        _ => switchboard_domain::JsonObject::new(),
    }
}
