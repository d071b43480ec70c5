//! A run's events, read from the hub, as the body of a response.

use std::{collections::HashSet, sync::Arc};

use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use switchboard_domain::{Principal, SessionId};
use switchboard_orchestration::{RunEventKind, strategy::formatter::Form};

use crate::dialects::{
    tools::client_tools::ClientTools,
    response::state::ResponseOptions,
    response::frames::SseFrames,
    encoder::{EventEncoder, SequencedEncoder},
    response::paused_runs::{End, PausedRun, PausedRuns},
};
use crate::{
    App,
    hub::{Guard, Logged, Reader, Started},
    sse,
};

/// Names the run that a response tells of, so that it can be read again, decided about and stopped.
const RUN: HeaderName = HeaderName::from_static("x-switchboard-run-id");
/// Names its session, if it is in one.
const SESSION: HeaderName = HeaderName::from_static("x-switchboard-session-id");

/// What a response says when it ends before a run that is in a session.
const INTERRUPTED: &str =
    "the server stopped before the run was over; what is kept can be continued";

/// The same of a run that is not.
const GONE: &str =
    "the server stopped before the run was over: send the request again when it is back";

/// A response under way.
pub(crate) struct RunResponse<P> {
    app: App,
    principal: Principal,
    run: Arc<str>,
    session: Option<SessionId>,
    /// There, but for the moment in which it is told to end earlier.
    reader: Option<Reader>,
    told: SequencedEncoder<P>,
    /// The client knows the events up to this number.
    seen: u64,
    /// The number of the last event that was read.
    last: u64,
    /// Ends where the run waits for a person.
    until_waiting: bool,
    /// Calls about which somebody has just had a word of which nothing was heard yet.
    decided: HashSet<String>,
    is_audible: bool,
    out: SseFrames,
    /// Stops the run when this is dropped.
    guard: Option<Guard>,
    /// The tools that run at the client, and where the run waits for it.
    client: Option<(Arc<ClientTools>, PausedRuns)>,
    /// The form that the answer is to have.
    form: Option<Arc<Form>>,
}

impl<P> RunResponse<P> {
    /// All of a run that has just begun, or of one that somebody comes back to.
    pub(crate) fn all(
        app: App,
        principal: Principal,
        run: Arc<str>,
        session: Option<SessionId>,
        reader: Reader,
        projection: P,
    ) -> Self {
        Self {
            app,
            principal,
            run,
            session,
            reader: Some(reader),
            told: SequencedEncoder::new(projection),
            seen: 0,
            last: 0,
            until_waiting: false,
            decided: HashSet::new(),
            is_audible: true,
            out: SseFrames::new(),
            guard: None,
            client: None,
            form: None,
        }
    }

    /// All of a run that was just started.
    pub(crate) fn of(app: App, principal: Principal, started: &Started, projection: P) -> Self {
        let (run, session) = (Arc::clone(&started.run), started.session.clone());
        Self::all(app, principal, run, session, started.reader(), projection)
    }

    /// The same, told in another way. Nothing of it may have been told yet.
    pub(crate) fn by<Q>(self, projection: Q) -> RunResponse<Q> {
        RunResponse {
            app: self.app,
            principal: self.principal,
            run: self.run,
            session: self.session,
            reader: self.reader,
            told: SequencedEncoder::new(projection),
            seen: self.seen,
            last: self.last,
            until_waiting: self.until_waiting,
            decided: self.decided,
            is_audible: self.is_audible,
            out: self.out,
            guard: self.guard,
            client: self.client,
            form: self.form,
        }
    }

    /// What comes after the events that the client knows, once these calls have got their word.
    #[must_use]
    pub(crate) fn after(mut self, seen: u64, decided: HashSet<String>) -> Self {
        self.seen = seen;
        self.decided = decided;
        self.is_audible = seen == 0;
        self
    }

    /// The response ends when the run waits for a person: the answer comes with another request.
    #[must_use]
    pub(crate) fn until_waiting(mut self) -> Self {
        self.until_waiting = true;
        if self.decided.is_empty() {
            self.ends_where_it_waits();
        }
        self
    }

    /// The run is stopped when the client goes away.
    #[must_use]
    pub(crate) fn stopped_by(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// The run has tools that run at the client: where it waits for one, the response ends, and the run is kept.
    #[must_use]
    pub(crate) fn with_client(mut self, tools: Option<Arc<ClientTools>>, waiting: PausedRuns) -> Self {
        if let Some(tools) = tools {
            self.client = Some((tools, waiting));
            return self.until_waiting();
        }
        self
    }

    /// The answer is to have this form.
    #[must_use]
    pub(crate) fn in_form(mut self, form: Option<Arc<Form>>) -> Self {
        self.form = form;
        self
    }

    fn ends_where_it_waits(&mut self) {
        self.reader = self.reader.take().map(Reader::until_waiting);
    }
}

impl RunResponse<()> {
    /// What comes of a run that waited for its client, which has given its results.
    pub(crate) fn of_held(app: App, held: PausedRun, reader: Reader, waiting: PausedRuns) -> Self {
        let run = held.run.as_str().into();
        let mut telling = Self::all(app, held.owner, run, None, reader, ());
        telling.last = held.seen;
        telling.decided = held.calls.into_iter().map(|(_, call)| call).collect();
        if let End::Dropped(guard) = held.end {
            telling.guard = Some(guard);
        }
        telling
            .with_client(Some(held.tools), waiting)
            .in_form(held.form)
    }

    /// What the response is to be like.
    pub(crate) fn terms(&self) -> ResponseOptions {
        ResponseOptions {
            seen: (self.last > 0).then_some(self.last),
            form: self.form.clone(),
        }
    }
}

impl<P: EventEncoder> RunResponse<P> {
    /// Reads to the end of the response, which is what the projection made of it.
    pub(crate) async fn finish(mut self) -> P {
        while self.next().await.is_some() {}
        self.told.into_words()
    }

    /// The response.
    pub(crate) fn response(self) -> Response {
        let (run, session) = (Arc::clone(&self.run), self.session.clone());
        let keep_alive = self.app.options().keep_alive;
        let frames = stream::unfold(self, |mut telling| async move {
            let frames = telling.next().await?;
            Some((frames, telling))
        });
        let mut response = sse::response(frames, keep_alive);
        name_run(&mut response, &run, session.as_ref());
        response
    }

    /// What there is to send next; all that is there already goes together.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.told.is_closed() {
            match self.reader.as_mut()?.next().await {
                Some(logged) => {
                    self.take(&logged);
                    while !self.told.is_closed()
                        && let Some(Some(logged)) = self.reader.as_mut()?.next().now_or_never()
                    {
                        self.take(&logged);
                    }
                }
                None => self.ended().await,
            }
            if !self.out.is_empty() {
                return Some(self.out.take());
            }
        }
        None
    }

    fn take(&mut self, logged: &Logged) {
        self.last = logged.seq;
        let Some(event) = logged.event() else {
            return;
        };
        let event = &*event;
        let is_end = matches!(event.kind, RunEventKind::RunFinished { .. });
        // How the run ended is said also to a client that knows it: a response without an end is none.
        if logged.seq <= self.seen && !is_end {
            // Only so that the projection is where it was when the client read this.
            self.told.event(event, &mut self.out);
            let _ = self.out.take();
            return;
        }
        self.becomes_audible();
        if let RunEventKind::ToolApproved { id, .. }
        | RunEventKind::ToolDenied { id, .. }
        | RunEventKind::ToolFinished { id, .. } = &event.kind
        {
            self.decided.remove(id);
        }
        self.told.event(event, &mut self.out);
        if self.until_waiting && self.decided.is_empty() {
            self.ends_where_it_waits();
        }
    }

    fn becomes_audible(&mut self) {
        if !std::mem::replace(&mut self.is_audible, true) {
            self.told.waits(&mut self.out);
            let _ = self.out.take();
            self.told.goes_on(&mut self.out);
        }
    }

    /// The reader has no more.
    async fn ended(&mut self) {
        self.becomes_audible();
        if !self.reader.as_ref().is_some_and(Reader::is_waiting) {
            let why = if self.session.is_some() {
                INTERRUPTED
            } else {
                GONE
            };
            return self.told.breaks(why, &mut self.out);
        }
        if self.told.asks() {
            self.told.waits(&mut self.out);
            return self.keep_for_client();
        }
        // It waits for a word or an answer that is given elsewhere while this response stays open.
        let hub = self.app.hub();
        match hub.reader(&self.principal, &self.run, self.last).await {
            Ok(reader) => self.reader = Some(reader),
            Err(problem) => self.told.breaks(&problem.detail, &mut self.out),
        }
    }

    fn keep_for_client(&mut self) {
        let calls = self.told.client_calls();
        // Where the run waits for a person alone, it is kept as well: it may call the client's tools later.
        if let Some((tools, waiting)) = self.client.take() {
            let end = match self.guard.take() {
                Some(guard) => End::Dropped(guard),
                None => End::Cancelled(self.app.hub().clone()),
            };
            let held = PausedRun {
                run: self.run.to_string(),
                tools,
                seen: self.last,
                calls,
                end,
                owner: self.principal.clone(),
                form: self.form.take(),
            };
            waiting.put(held, self.app.options().approval_time);
        }
    }
}

/// Names a run in the headers of a response.
pub(crate) fn name_run(response: &mut Response, run: &str, session: Option<&SessionId>) {
    let headers = response.headers_mut();
    if let Ok(run) = HeaderValue::from_str(run) {
        headers.insert(RUN, run);
    }
    if let Some(Ok(session)) = session.map(|id| HeaderValue::from_str(&id.0)) {
        headers.insert(SESSION, session);
    }
}
