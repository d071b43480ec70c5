//! Reading all pages of a list.

use std::{collections::HashSet, fmt};

use serde_json::Value;

use crate::features::list_cache::CacheHint;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 1000;

/// The items of all pages of a list.
pub(crate) struct Pages<T> {
    /// In the order of the server.
    pub(crate) items: Vec<T>,
    /// Descriptions of missing items.
    pub(crate) problems: Vec<String>,
    /// How long the list is valid. `None` if a page does not declare it.
    pub(crate) hint: Option<CacheHint>,
}

/// A list that is read page by page.
pub(crate) trait PagedList {
    type Item: Send;
    type Error: fmt::Display + Send;

    /// The field of a page that contains the items.
    const KEY: &'static str;

    /// Requests one page. `cursor` is `None` for the first one.
    fn fetch(
        &mut self,
        cursor: Option<String>,
    ) -> impl Future<Output = Result<Value, Self::Error>> + Send;

    fn parse(&self, item: &Value) -> Result<Self::Item, String>;

    /// Returns the error for an answer without items.
    fn malformed(&self, reason: String) -> Self::Error;
}

/// Reads every page of a list. Drops invalid items, and records that as problems. If a later page
/// fails, the earlier pages are returned with a problem.
pub(crate) async fn read_pages<L: PagedList + Send>(
    list: &mut L,
) -> Result<Pages<L::Item>, L::Error> {
    let key = L::KEY;
    let mut pages = Pages {
        items: Vec::new(),
        problems: Vec::new(),
        hint: None,
    };
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let is_first = cursor.is_none();
        let page = match list.fetch(cursor).await {
            Ok(page) => page,
            Err(error) if is_first => return Err(error),
            Err(error) => {
                pages.report(format!("the list of {key} is incomplete: {error}"));
                break;
            }
        };
        let Some(Value::Array(items)) = page.get(key) else {
            let reason = format!("its answer has no list of {key}");
            if is_first {
                return Err(list.malformed(reason));
            }
            pages.report(format!("the list of {key} is incomplete: {reason}"));
            break;
        };
        for item in items {
            match list.parse(item) {
                Ok(item) => pages.items.push(item),
                Err(reason) => pages.report(format!("{reason}; it is skipped")),
            }
        }
        let hint = CacheHint::from_json(&page);
        pages.hint = match (is_first, pages.hint, hint) {
            (true, _, hint) => hint,
            (false, Some(earlier), Some(hint)) => Some(earlier.min(hint)),
            _ => None,
        };
        let next = page.get("nextCursor").and_then(Value::as_str);
        let Some(next) = next.map(str::to_owned) else {
            break;
        };
        let count = cursors.len();
        if !cursors.insert(next.clone()) {
            pages.report(format!(
                "the list of {key} does not end: a page repeats after {count} pages"
            ));
            break;
        }
        if cursors.len() == MAX_PAGES {
            pages.report(format!(
                "the list of {key} does not end: only the first {MAX_PAGES} pages are used"
            ));
            break;
        }
        cursor = Some(next);
    }
    Ok(pages)
}

impl<T> Pages<T> {
    fn report(&mut self, problem: String) {
        self.problems.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Answers<'a>(std::slice::Iter<'a, Result<Value, &'static str>>);

    impl PagedList for Answers<'_> {
        type Item = i64;
        type Error = String;

        const KEY: &'static str = "n";

        async fn fetch(&mut self, _: Option<String>) -> Result<Value, String> {
            let endless = || Ok(json!({"n": [], "nextCursor": "x"}));
            let answer = self.0.next().cloned().unwrap_or_else(endless);
            answer.map_err(str::to_owned)
        }

        fn parse(&self, item: &Value) -> Result<i64, String> {
            item.as_i64().ok_or_else(|| format!("{item} is not valid"))
        }

        fn malformed(&self, reason: String) -> String {
            reason
        }
    }

    async fn read(answers: &[Result<Value, &'static str>]) -> Result<Pages<i64>, String> {
        read_pages(&mut Answers(answers.iter())).await
    }

    #[tokio::test]
    async fn all_pages_are_read_and_invalid_items_are_skipped() {
        let answers = [
            Ok(json!({"n": [1, "two"], "nextCursor": "2", "ttlMs": 10, "cacheScope": "public"})),
            Ok(json!({"n": [3], "ttlMs": 5})),
        ];
        let pages = read(&answers).await.unwrap();
        assert_eq!(pages.items, [1, 3]);
        assert_eq!(pages.problems, ["\"two\" is not valid; it is skipped"]);
        let hint = CacheHint::from_json(&json!({"ttlMs": 5}));
        assert_eq!(pages.hint, hint);
    }

    #[tokio::test]
    async fn earlier_pages_are_kept_if_a_later_page_fails() {
        for failure in [Err("down"), Ok(json!({}))] {
            let first = Ok(json!({"n": [1], "nextCursor": "2"}));
            let pages = read(&[first, failure.clone()]).await.unwrap();
            assert_eq!(pages.items, [1]);
            assert!(pages.problems[0].starts_with("the list of n is incomplete: "));
            assert!(read(&[failure]).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_list_that_does_not_end_is_cut() {
        let pages = read(&[]).await.unwrap();
        let expected = "the list of n does not end: a page repeats after 1 pages";
        assert_eq!(pages.problems, [expected]);
    }
}
