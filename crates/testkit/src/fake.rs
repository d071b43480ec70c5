//! A fake model server: real HTTP/1.1 on loopback with scripted answers for any wire.
//!
//! A test queues [`Answer`]s, points a provider (or a whole application) at
//! [`FakeModel::base_url`], and inspects the received [`Request`]s. [`Gate`]s order events, never
//! time.
//!
//! ```
//! # use switchboard_testkit::fake::*;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let fake = FakeModel::start().await?;
//! let gate = Gate::new();
//! fake.answer(Answer::new(200).piece("data: one\n\n").gate(&gate).piece("data: two\n\n"));
//! fake.answer(Answer::openai_chat([Say::text("Hello.")]));
//! assert!(fake.base_url().starts_with("http://127.0.0.1:"));
//! // … a client sends a request: `fake.request(0).await` returns it, `gate.open()` releases the
//! // rest, and `fake.request(0).await.client_gone().await` returns when it has dropped the answer.
//! assert_eq!(fake.unused(), 2);
//! # Ok(())
//! # }
//! ```

mod answer;
mod gate;
mod request;
mod script;

use std::{
    collections::VecDeque,
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{Router, body::Body, extract::State, response::Response, serve::ListenerExt as _};
use futures_util::stream;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub use answer::Answer;
pub use gate::Gate;
pub use request::Request;
pub use script::Say;

use answer::Step;
use gate::Latch;
use request::AnswerGuard;

/// A fake model server. Dropping it aborts every unfinished answer.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// A function that creates the answer to a request. It receives the number of the request (from 0).
type Otherwise = dyn Fn(usize, &Request) -> Answer + Send + Sync;

struct Shared {
    state: Mutex<Script>,
    /// Number of received requests.
    arrived: watch::Sender<usize>,
    closing: Latch,
}

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    otherwise: Option<Arc<Otherwise>>,
    /// Pairs of a path and the answer to every request for this path.
    aside: Vec<(String, Answer)>,
    requests: Vec<Request>,
}

impl FakeModel {
    /// Starts a server on a free port of 127.0.0.1, on the current runtime.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        // Without Nagle's algorithm, each piece is sent immediately.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            arrived: watch::Sender::new(0),
            closing: Latch::default(),
        });
        let router = Router::new()
            .fallback(serve)
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // The loop ends only when the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            shared,
            server,
        })
    }

    /// Returns `http://127.0.0.1:<port>`, without a trailing slash.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues an answer. Requests take answers in order, independent of their path.
    pub fn answer(&self, answer: Answer) {
        self.shared.lock_script().answers.push_back(answer);
    }

    /// Sets a fallback for requests that find the queue empty, by number (from 0) and content.
    /// Without it such requests get status 400, which no client retries.
    pub fn otherwise(&self, answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) {
        self.shared.lock_script().otherwise = Some(Arc::new(answer));
    }

    /// Answers every request for this path with this answer and takes none from the queue. Use it
    /// for requests that only prepare a call, such as a query for a model's capabilities.
    /// [`requests`](Self::requests) does not contain them.
    pub fn aside(&self, path: impl Into<String>, answer: Answer) {
        self.shared.lock_script().aside.push((path.into(), answer));
    }

    /// Returns the requests received so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock_script().requests.clone()
    }

    /// Waits until the request with this number (from 0) has arrived with its whole body.
    pub async fn request(&self, number: usize) -> Request {
        loop {
            let mut arrived = self.shared.arrived.subscribe();
            // An error means that the sender was dropped, but `self.shared` owns it.
            let _ = arrived.wait_for(|count| *count > number).await;
            if let Some(request) = self.shared.lock_script().requests.get(number) {
                return request.clone();
            }
        }
    }

    /// Returns the number of unused answers.
    pub fn unused(&self) -> usize {
        self.shared.lock_script().answers.len()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.shared.closing.set();
        self.server.abort();
    }
}

impl Shared {
    fn lock_script(&self) -> MutexGuard<'_, Script> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and selects its answer.
    fn select_answer(&self, request: &Request) -> Answer {
        let (number, answer, otherwise) = {
            let mut script = self.lock_script();
            let aside = script.aside.iter().find(|it| it.0 == request.path());
            if let Some((_, answer)) = aside {
                return answer.clone();
            }
            script.requests.push(request.clone());
            let number = script.requests.len() - 1;
            (number, script.answers.pop_front(), script.otherwise.clone())
        };
        self.arrived.send_replace(number + 1);
        match (answer, otherwise) {
            (Some(answer), _) => answer,
            (None, Some(otherwise)) => otherwise(number, request),
            (None, None) => create_error_answer(&format!(
                "fake model: no answer is scripted for request {number}, {} {}",
                request.method(),
                request.path()
            )),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.lock_script();
        f.debug_struct("Shared")
            .field("answers", &script.answers.len())
            .field("requests", &script.requests)
            .finish_non_exhaustive()
    }
}

/// Creates an answer of status 400. Its body has the fields in which all providers' APIs report an
/// error, so that every adapter finds the message.
fn create_error_answer(message: &str) -> Answer {
    let error = json!({"type": "invalid_request_error", "message": message});
    Answer::json(400, &json!({"type": "error", "error": error}))
}

async fn serve(State(shared): State<Arc<Shared>>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
        // The client aborted its request: no answer is needed and nothing is recorded.
        return Response::default();
    };
    let request = Request::new(parts, body);
    let mut guard = request.create_answer_guard();
    let answer = shared.select_answer(&request);
    for gate in &answer.held_by {
        tokio::select! {
            () = gate.pass() => {}
            () = shared.closing.wait() => {
                guard.abandon();
                let steps = vec![Step::BreakOff];
                return Response::new(create_body(steps, guard, shared.closing.clone()));
            }
        }
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let body = create_body(answer.steps, guard, shared.closing.clone());
    response.body(body).unwrap_or_else(|error| {
        let mut response = Response::new(Body::from(format!("fake model: {error}")));
        *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
        response
    })
}

/// An error that makes the HTTP server close the connection in the middle of a body.
#[derive(Debug, thiserror::Error)]
#[error("the script ends the body early")]
struct EarlyEnd;

/// Creates a body that sends the pieces and waits at the gates. It ends early if `closing` is set.
fn create_body(steps: Vec<Step>, guard: AnswerGuard, closing: Latch) -> Body {
    let state = Some((steps.into_iter(), guard, closing));
    Body::from_stream(stream::unfold(state, |state| async move {
        let (mut steps, mut guard, closing) = state?;
        loop {
            // The connection sends the previous piece now. So the client receives each piece alone,
            // and it also receives the last piece before an abort.
            tokio::task::yield_now().await;
            match steps.next() {
                Some(Step::Piece(bytes)) => {
                    return Some((Ok(bytes), Some((steps, guard, closing))));
                }
                Some(Step::Gate(gate)) => {
                    tokio::select! {
                        () = gate.pass() => {}
                        () = closing.wait() => {
                            guard.abandon();
                            return Some((Err(EarlyEnd), None));
                        }
                    }
                }
                Some(Step::BreakOff) => {
                    guard.answered();
                    return Some((Err(EarlyEnd), None));
                }
                None => {
                    guard.answered();
                    return None;
                }
            }
        }
    }))
}
