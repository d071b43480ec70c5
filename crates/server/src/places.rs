//! Limits on the number of open requests, in total and per principal.
//!
//! A request is open until the last byte of its response is sent or discarded, so a stream is open
//! for long. Two kinds of requests are short and must succeed under full load:
//!
//! - monitoring (`/healthz`, `/readyz`, `/metrics`): otherwise a busy server would be restarted and
//!   lose its connections;
//! - control of runs (`POST` below `/runs/`): decisions, answers and cancellations end runs and the
//!   streams that follow them. Some slots are reserved for these.
//!
//! A principal gets at most its share of the other slots, and 32 control requests at a time. All
//! requests count, because any request may wait for a run.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::{
    body::Body,
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use hyper::body::{Frame, SizeHint};
use switchboard_domain::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::{App, Problem, ServerOptions};

/// The number of slots that are reserved for control of runs.
const FOR_WORDS: usize = 64;

/// Maximum number of concurrent control requests of one principal. A control request with a slow
/// body holds its slot as long as a body may take.
const WORDS_OF_ONE: usize = FOR_WORDS / 2;

/// The class of a request for the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sort {
    /// Needs no slot.
    Probe,
    /// May use a reserved slot.
    Word,
    Other,
}

impl Sort {
    fn of(request: &Request) -> Self {
        match request.uri().path() {
            "/healthz" | "/readyz" | "/metrics" => Self::Probe,
            path if path.starts_with("/runs/") && request.method() == Method::POST => Self::Word,
            _ => Self::Other,
        }
    }
}

/// The slots for requests.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    for_words: Arc<Semaphore>,
    each: Arc<Each>,
    most_each: usize,
}

/// The number of slots in use by each principal, for principals that have any.
#[derive(Default)]
struct Each(Mutex<HashMap<(Principal, Sort), usize>>);

impl Each {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Principal, Sort), usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot of a principal, released on drop.
pub(crate) struct Share {
    each: Arc<Each>,
    whose: (Principal, Sort),
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut each = self.each.lock();
        if let Some(open) = each.get_mut(&self.whose) {
            *open -= 1;
            if *open == 0 {
                each.remove(&self.whose);
            }
        }
    }
}

impl Places {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        let all = options.max_requests.min(Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(all)),
            for_words: Arc::new(Semaphore::new(FOR_WORDS)),
            each: Arc::default(),
            most_each: options.max_requests_each,
        }
    }

    /// Acquires a slot of the total. `Err` if there is none, `None` if none is needed.
    fn take(&self, sort: Sort) -> Result<Option<OwnedSemaphorePermit>, TryAcquireError> {
        if sort == Sort::Probe {
            return Ok(None);
        }
        let place = Arc::clone(&self.all).try_acquire_owned();
        let place = match place {
            Err(_) if sort == Sort::Word => Arc::clone(&self.for_words).try_acquire_owned(),
            place => place,
        };
        place.map(Some)
    }

    fn most_of_one(&self, sort: Sort) -> usize {
        match sort {
            Sort::Word => WORDS_OF_ONE,
            _ => self.most_each,
        }
    }

    fn take_for(&self, principal: &Principal, sort: Sort) -> Option<Share> {
        let whose = (principal.clone(), sort);
        let mut each = self.each.lock();
        let open = each.get(&whose).copied().unwrap_or(0);
        if open >= self.most_of_one(sort) {
            return None;
        }
        each.insert(whose.clone(), open + 1);
        Some(Share {
            each: Arc::clone(&self.each),
            whose,
        })
    }
}

/// Limits the number of open requests.
pub(crate) async fn limit(State(app): State<App>, request: Request, next: Next) -> Response {
    let Ok(place) = app.places().take(Sort::of(&request)) else {
        let most = app.options().max_requests;
        let detail =
            format!("{most} requests are open, and the server takes no more at once: try again");
        return Problem::unavailable(detail, None).into_response();
    };
    // Only `POST` waits for runs. The limit ends when the response begins, because it may be a
    // stream.
    let most = app.options().request_time;
    let response = if request.method() == Method::POST {
        next.run(request).await
    } else if let Ok(response) = tokio::time::timeout(most, next.run(request)).await {
        response
    } else {
        let detail = format!("this took longer than {} s: try again", most.as_secs_f64());
        Problem::unavailable(detail, None).into_response()
    };
    held(response, place)
}

/// Limits the number of open requests of one principal.
pub(crate) async fn limit_each(
    app: &App,
    principal: &Principal,
    request: Request,
    next: Next,
) -> Response {
    let sort = Sort::of(&request);
    if sort == Sort::Probe {
        return next.run(request).await;
    }
    let Some(share) = app.places().take_for(principal, sort) else {
        let most = app.places().most_of_one(sort);
        return Problem::too_many(format!(
            "{most} requests of yours are open, streams among them, and more are not taken: end one"
        ))
        .into_response();
    };
    held(next.run(request).await, share)
}

/// Attaches a value to the response that is dropped after the last byte of the body is sent or
/// discarded.
pub(crate) fn held(response: Response, hold: impl Send + Unpin + 'static) -> Response {
    response.map(|body| Body::new(Held { body, _hold: hold }))
}

struct Held<T> {
    body: Body,
    _hold: T,
}

impl<T: Unpin> hyper::body::Body for Held<T> {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(user: &str) -> Principal {
        Principal {
            user: user.to_owned(),
            ..Principal::default()
        }
    }

    #[test]
    fn nobody_takes_what_is_anothers_or_kept_for_words() {
        let places = Places::new(&ServerOptions {
            max_requests: 3,
            max_requests_each: 2,
            ..ServerOptions::default()
        });
        let (ann, bob) = (principal("ann"), principal("bob"));
        let hers = [(); 2].map(|()| places.take_for(&ann, Sort::Other));
        assert!(hers.iter().all(Option::is_some));
        assert!(places.take_for(&ann, Sort::Other).is_none());
        assert!(
            places.take_for(&bob, Sort::Other).is_some(),
            "given back at once"
        );
        let words = [(); WORDS_OF_ONE].map(|()| places.take_for(&ann, Sort::Word));
        assert!(words.iter().all(Option::is_some), "beside the others");
        assert!(places.take_for(&ann, Sort::Word).is_none());
        assert!(places.take_for(&bob, Sort::Word).is_some());
        drop((hers, words));
        assert!(
            places.each.lock().is_empty(),
            "nothing is kept of those who left"
        );
        assert!(places.take_for(&ann, Sort::Other).is_some());

        let all: Vec<_> = (0..3).map(|_| places.take(Sort::Other).unwrap()).collect();
        assert!(places.take(Sort::Other).is_err());
        assert!(places.take(Sort::Probe).unwrap().is_none(), "it needs none");
        let words: Vec<_> = (0..FOR_WORDS)
            .map(|_| places.take(Sort::Word).unwrap())
            .collect();
        assert!(places.take(Sort::Word).is_err(), "they have an end as well");
        drop((all, words));
        assert!(places.take(Sort::Other).is_ok());
    }

    #[test]
    fn only_what_is_short_gets_in_beside_the_others() {
        let sort = |method: Method, path: &'static str| {
            let request = Request::builder().method(method).uri(path);
            Sort::of(&request.body(Body::empty()).unwrap())
        };
        for probe in ["/healthz", "/readyz?x", "/metrics"] {
            assert_eq!(sort(Method::GET, probe), Sort::Probe, "{probe}");
        }
        for word in [
            "/runs/a/cancel",
            "/runs/a/approvals/b",
            "/runs/a/questions/b",
        ] {
            assert_eq!(sort(Method::POST, word), Sort::Word, "{word}");
        }
        for (method, path) in [
            (Method::GET, "/runs/a/events"),
            (Method::GET, "/healthz/x"),
            (Method::POST, "/chat"),
            (Method::POST, "/sessions/runs/a"),
        ] {
            assert_eq!(sort(method, path), Sort::Other, "{path}");
        }
    }
}
