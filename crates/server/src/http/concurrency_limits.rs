//! Limits on concurrent requests and runs, in total and per principal.
//!
//! A request is open until the last byte of its response is sent or discarded, so a stream is open
//! for long. Two kinds of requests are short and must succeed under full load:
//!
//! - monitoring (`/healthz`, `/readyz`, `/metrics`): otherwise a busy server would be restarted and
//!   lose its connections;
//! - control of runs (`POST` below `/runs/`): decisions, answers and cancellations end runs and the
//!   streams that follow them. Some slots are reserved for these.
//!
//! A principal gets at most `max_requests_each` of the other slots, and 32 control requests at a
//! time. All requests except monitoring count, because any of them may wait for a run.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http_body_util::BodyExt as _;
use switchboard_domain::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    Problem, ProblemKind, ServerOptions,
    hub::run_limits::{PrincipalLimit, new_semaphore, try_acquire_permit},
};

/// The number of request slots that are reserved for requests that control runs.
const RESERVED_FOR_CONTROL: usize = 64;

/// Maximum number of concurrent control requests of one principal, so that one principal with slow
/// requests cannot occupy all reserved slots.
const MAX_CONTROL_EACH: usize = RESERVED_FOR_CONTROL / 2;

/// The class of a request, which determines the concurrency limits of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestClass {
    /// A monitoring request, which needs no slot.
    Probe,
    /// A request that controls a run, such as a cancellation. It may use a reserved slot.
    Control,
    Other,
}

impl RequestClass {
    fn from_request(request: &Request) -> Self {
        match request.uri().path() {
            "/healthz" | "/readyz" | "/metrics" => Self::Probe,
            path if path.starts_with("/runs/") && request.method() == Method::POST => Self::Control,
            _ => Self::Other,
        }
    }
}

/// The limits on concurrently open requests, in total and per principal.
pub(crate) struct ConcurrencyLimits {
    max: usize,
    total: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    each: PrincipalLimit,
    control_each: PrincipalLimit,
    request_time: Duration,
}

impl ConcurrencyLimits {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        Self {
            max: options.max_requests,
            total: new_semaphore(options.max_requests),
            reserved: new_semaphore(RESERVED_FOR_CONTROL),
            each: PrincipalLimit::new(options.max_requests_each),
            control_each: PrincipalLimit::new(MAX_CONTROL_EACH),
            request_time: options.request_time,
        }
    }

    /// Acquires a slot for a request that is not a probe. Returns `None` if all slots are in use.
    fn acquire_slot(&self, class: RequestClass) -> Option<OwnedSemaphorePermit> {
        let slot = try_acquire_permit(&self.total);
        match class {
            RequestClass::Control => slot.or_else(|| try_acquire_permit(&self.reserved)),
            _ => slot,
        }
    }

    fn principal_limit(&self, class: RequestClass) -> &PrincipalLimit {
        match class {
            RequestClass::Control => &self.control_each,
            _ => &self.each,
        }
    }
}

/// Middleware that limits the total number of open requests, and the time until a response starts.
/// A request beyond one of these limits gets the status 503.
pub(crate) async fn limit_requests(
    State(limits): State<Arc<ConcurrencyLimits>>,
    request: Request,
    next: Next,
) -> Response {
    let class = RequestClass::from_request(&request);
    let needs_slot = class != RequestClass::Probe;
    let slot = needs_slot.then(|| limits.acquire_slot(class)).flatten();
    if needs_slot && slot.is_none() {
        let detail = format!(
            "the server has {} open requests, which is the maximum: try again later",
            limits.max
        );
        return Problem::server_unavailable(detail).into_response();
    }
    // `POST` requests have no time limit, because they may wait for a run. For other requests, the
    // limit covers only the time until the response starts, because the response may be an endless
    // stream.
    let time_limit = limits.request_time;
    let response = if request.method() == Method::POST {
        next.run(request).await
    } else if let Ok(response) = tokio::time::timeout(time_limit, next.run(request)).await {
        response
    } else {
        let detail = format!(
            "the request took longer than {} s: try again",
            time_limit.as_secs_f64()
        );
        Problem::server_unavailable(detail).into_response()
    };
    hold_until_response_sent(response, slot)
}

/// Limits the number of open requests of one principal. Further requests get the status 429.
pub(crate) async fn limit_principal_requests(
    limits: &ConcurrencyLimits,
    principal: &Principal,
    request: Request,
    next: Next,
) -> Response {
    let class = RequestClass::from_request(&request);
    if class == RequestClass::Probe {
        return next.run(request).await;
    }
    let limit = limits.principal_limit(class);
    let Some(slot) = limit.acquire_slot(principal) else {
        let detail = format!(
            "you have {} open requests (streams count), which is the maximum: close one",
            limit.max
        );
        return Problem::new(ProblemKind::TooMany, detail).into_response();
    };
    hold_until_response_sent(next.run(request).await, slot)
}

/// Keeps `value` until the last byte of the response is sent or discarded, and then drops it.
pub(crate) fn hold_until_response_sent(response: Response, value: impl Send + 'static) -> Response {
    response.map(|body| {
        Body::new(body.map_err(move |error| {
            let _held = &value;
            error
        }))
    })
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
    fn requests_of_one_principal_leave_slots_for_others_and_for_control() {
        let limits = ConcurrencyLimits::new(&ServerOptions {
            max_requests: 3,
            max_requests_each: 2,
            ..ServerOptions::default()
        });
        let (ann, bob) = (principal("ann"), principal("bob"));
        let each = limits.principal_limit(RequestClass::Other);
        let slots = [(); 2].map(|()| each.acquire_slot(&ann));
        assert!(slots.iter().all(Option::is_some));
        assert!(each.acquire_slot(&ann).is_none());
        assert!(each.acquire_slot(&bob).is_some());
        let control_each = limits.principal_limit(RequestClass::Control);
        let control = [(); MAX_CONTROL_EACH].map(|()| control_each.acquire_slot(&ann));
        assert!(control.iter().all(Option::is_some));
        assert!(control_each.acquire_slot(&ann).is_none());
        assert!(control_each.acquire_slot(&bob).is_some());
        drop((slots, control));
        assert!(each.in_use.lock().unwrap().is_empty());
        assert!(each.acquire_slot(&ann).is_some());

        let all = [(); 3].map(|()| limits.acquire_slot(RequestClass::Other));
        assert!(all.iter().all(Option::is_some));
        assert!(limits.acquire_slot(RequestClass::Other).is_none());
        let control =
            [(); RESERVED_FOR_CONTROL].map(|()| limits.acquire_slot(RequestClass::Control));
        assert!(control.iter().all(Option::is_some));
        assert!(limits.acquire_slot(RequestClass::Control).is_none());
        drop((all, control));
        assert!(limits.acquire_slot(RequestClass::Other).is_some());
    }

    #[test]
    fn requests_have_the_class_of_their_route() {
        let class = |method: Method, path: &'static str| {
            let request = Request::builder().method(method).uri(path);
            RequestClass::from_request(&request.body(Body::empty()).unwrap())
        };
        for path in ["/healthz", "/readyz?x", "/metrics"] {
            assert_eq!(class(Method::GET, path), RequestClass::Probe, "{path}");
        }
        for path in [
            "/runs/a/cancel",
            "/runs/a/approvals/b",
            "/runs/a/questions/b",
        ] {
            assert_eq!(class(Method::POST, path), RequestClass::Control, "{path}");
        }
        for (method, path) in [
            (Method::GET, "/runs/a/events"),
            (Method::GET, "/healthz/x"),
            (Method::POST, "/chat"),
            (Method::POST, "/sessions/runs/a"),
        ] {
            assert_eq!(class(method, path), RequestClass::Other, "{path}");
        }
    }
}
