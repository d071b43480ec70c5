//! A fake model server: real HTTP/1.1 on loopback, scripted answers, no wire of its own.
//!
//! A test queues [`Answer`]s, points a provider (or a whole application) at
//! [`FakeModel::base_url`], and looks at the [`Request`]s that arrived. What has to happen in a
//! certain order is ordered by [`Gate`]s, never by time.
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
//! // … a client asks; `fake.request(0).await` is what it sent, `gate.open()` lets it have the rest,
//! // and `fake.request(0).await.client_gone().await` ends when it has dropped the answer.
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

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    response::Response,
    serve::ListenerExt as _,
};
use futures_util::stream;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub use answer::Answer;
pub use gate::Gate;
pub use request::Request;
pub use script::Say;

use answer::Step;
use gate::Latch;
use request::Watch;

/// The server. Dropping it cuts every answer that is still under way.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// Makes the answer to a request of this number.
type Otherwise = dyn Fn(usize, &Request) -> Answer + Send + Sync;

struct Shared {
    state: Mutex<Script>,
    /// How many requests have arrived.
    arrived: watch::Sender<usize>,
    closing: Latch,
}

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    otherwise: Option<Arc<Otherwise>>,
    /// Answers to what a client asks on the way, by path.
    aside: Vec<(String, Answer)>,
    requests: Vec<Request>,
}

impl FakeModel {
    /// Starts a server on a free port of 127.0.0.1, on the current runtime.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        // Pieces leave when they are written.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            arrived: watch::Sender::new(0),
            closing: Latch::new(),
        });
        let router = Router::new()
            .fallback(serve)
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // Never ends by itself.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            shared,
            server,
        })
    }

    /// `http://127.0.0.1:<port>`, without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues an answer: the first is for the first request, whatever its path, and so on.
    pub fn answer(&self, answer: Answer) {
        self.shared.script().answers.push_back(answer);
    }

    /// Answers requests that find the queue empty, by their number (from 0) and content. Without
    /// it they get status 400, which no client tries again.
    pub fn otherwise(&self, answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) {
        self.shared.script().otherwise = Some(Arc::new(answer));
    }

    /// Answers every request for this path so, whatever is queued. For what a client asks on its way
    /// to a model, such as what a model can do: such a request is not counted among
    /// [`requests`](Self::requests).
    pub fn aside(&self, path: impl Into<String>, answer: Answer) {
        self.shared.script().aside.push((path.into(), answer));
    }

    /// The requests that have arrived so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.script().requests.clone()
    }

    /// Waits until the request of this number, counted from 0, has arrived with its whole body.
    pub async fn request(&self, number: usize) -> Request {
        loop {
            let mut arrived = self.shared.arrived.subscribe();
            // The sender is ours, so it cannot be gone.
            let _ = arrived.wait_for(|count| *count > number).await;
            if let Some(request) = self.shared.script().requests.get(number) {
                return request.clone();
            }
        }
    }

    /// How many queued answers nobody has asked for.
    pub fn unused(&self) -> usize {
        self.shared.script().answers.len()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.shared.closing.set();
        self.server.abort();
    }
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and finds its answer.
    fn take(&self, request: &Request) -> Answer {
        let (number, answer, otherwise) = {
            let mut script = self.script();
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
            (None, None) => refusal(&format!(
                "fake model: no answer is scripted for request {number}, {} {}",
                request.method(),
                request.path()
            )),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let script = self.script();
        f.debug_struct("Shared")
            .field("answers", &script.answers.len())
            .field("requests", &script.requests)
            .finish_non_exhaustive()
    }
}

/// In a form that error mappings of every wire find something in.
fn refusal(message: &str) -> Answer {
    let error = json!({"type": "invalid_request_error", "message": message});
    Answer::json(400, &json!({"type": "error", "error": error}))
}

async fn serve(State(shared): State<Arc<Shared>>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
        // The client broke off while it asked: there is nobody to answer and nothing to note.
        return Response::default();
    };
    let request = Request::new(parts, body);
    let mut watch = request.watch();
    let answer = shared.take(&request);
    for gate in &answer.held_by {
        tokio::select! {
            () = gate.pass() => {}
            () = shared.closing.wait() => {
                watch.abandon();
                return Response::new(broken());
            }
        }
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let body = scripted(answer.steps, watch, shared.closing.clone());
    response.body(body).unwrap_or_else(|error| {
        let mut response = Response::new(Body::from(format!("fake model: {error}")));
        *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
        response
    })
}

/// Why a body ends early.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks off here")]
struct Broken;

fn broken() -> Body {
    Body::from_stream(stream::iter([Err::<Bytes, Broken>(Broken)]))
}

fn scripted(steps: Vec<Step>, watch: Watch, closing: Latch) -> Body {
    let state = Some((steps.into_iter(), watch, closing));
    Body::from_stream(stream::unfold(state, |state| async move {
        let (mut steps, mut watch, closing) = state?;
        loop {
            // Lets the connection write out what it has: each piece alone, and all before a break.
            tokio::task::yield_now().await;
            match steps.next() {
                Some(Step::Piece(bytes)) => {
                    return Some((Ok(bytes), Some((steps, watch, closing))));
                }
                Some(Step::Gate(gate)) => {
                    tokio::select! {
                        () = gate.pass() => {}
                        () = closing.wait() => {
                            watch.abandon();
                            return Some((Err(Broken), None));
                        }
                    }
                }
                Some(Step::BreakOff) => {
                    watch.answered();
                    return Some((Err(Broken), None));
                }
                None => {
                    watch.answered();
                    return None;
                }
            }
        }
    }))
}
