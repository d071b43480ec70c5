//! The events of a run, read from the hub, as the body of a response.

use std::{collections::HashSet, sync::Arc};

use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use switchboard_domain::{Principal, SessionId};
use switchboard_orchestration::{RunEventKind, strategy::formatter::Form};

use crate::{
    App,
    dialects::{
        encoder::{EventEncoder, SequencedEncoder},
        response::{
            frames::SseFrames,
            paused_runs::{OnTimeout, PausedRun, PausedRuns},
            state::ResponseOptions,
        },
        tools::client_tools::ClientTools,
    },
    http::{run_headers::set_run_headers, sse},
    hub::{CancelOnDrop, EventReader, LoggedEvent, StartedRun},
};

/// Reason of a response that ends before a durable run.
const INTERRUPTED: &str = "the server stopped before the run finished; the run can be continued";

/// Reason of a response that ends before an ephemeral run.
const LOST: &str =
    "the server stopped before the run finished: send the request again when the server is back";

/// A response in progress.
pub(crate) struct RunResponse<E> {
    app: App,
    principal: Principal,
    run: Arc<str>,
    session: Option<SessionId>,
    /// `None` only while it is replaced.
    reader: Option<EventReader>,
    encoder: SequencedEncoder<E>,
    /// The number of the last event that the client received in an earlier response.
    last_seen: u64,
    /// The number of the last event that was read.
    last_read: u64,
    /// Whether the response ends when the run waits.
    ends_when_waiting: bool,
    /// Decided calls whose decision did not appear as an event yet.
    decided: HashSet<String>,
    /// Whether events are written. Those up to `last_seen` only update the encoder.
    is_writing: bool,
    out: SseFrames,
    /// Cancels the run when it is dropped.
    guard: Option<CancelOnDrop>,
    /// The client's tools, and where the run is put while it waits for the client.
    client: Option<(Arc<ClientTools>, PausedRuns)>,
    answer_form: Option<Arc<Form>>,
}

impl<E> RunResponse<E> {
    /// Creates a response with all events of a run.
    pub(crate) fn new(
        app: App,
        principal: Principal,
        run: Arc<str>,
        session: Option<SessionId>,
        reader: EventReader,
        encoder: E,
    ) -> Self {
        Self {
            app,
            principal,
            run,
            session,
            reader: Some(reader),
            encoder: SequencedEncoder::new(encoder),
            last_seen: 0,
            last_read: 0,
            ends_when_waiting: false,
            decided: HashSet::new(),
            is_writing: true,
            out: SseFrames::new(),
            guard: None,
            client: None,
            answer_form: None,
        }
    }

    /// Creates a response with all events of a run that just started.
    pub(crate) fn of_started(
        app: App,
        principal: Principal,
        started: &StartedRun,
        encoder: E,
    ) -> Self {
        let (run, session) = (Arc::clone(&started.run), started.session.clone());
        Self::new(app, principal, run, session, started.reader(), encoder)
    }

    /// Replaces the encoder, before anything was encoded.
    pub(crate) fn with_encoder<F>(self, encoder: F) -> RunResponse<F> {
        RunResponse {
            encoder: SequencedEncoder::new(encoder),
            app: self.app,
            principal: self.principal,
            run: self.run,
            session: self.session,
            reader: self.reader,
            last_seen: self.last_seen,
            last_read: self.last_read,
            ends_when_waiting: self.ends_when_waiting,
            decided: self.decided,
            is_writing: self.is_writing,
            out: self.out,
            guard: self.guard,
            client: self.client,
            answer_form: self.answer_form,
        }
    }

    /// Omits the events that the client received, and waits for the events of these decisions.
    #[must_use]
    pub(crate) fn after(mut self, last_seen: u64, decided: HashSet<String>) -> Self {
        self.last_seen = last_seen;
        self.decided = decided;
        self.is_writing = last_seen == 0;
        self
    }

    /// Ends the response when the run waits, because the decision comes with another request.
    #[must_use]
    pub(crate) fn ending_when_waiting(mut self) -> Self {
        self.ends_when_waiting = true;
        if self.decided.is_empty() {
            self.read_until_waiting();
        }
        self
    }

    /// Cancels the run when the client disconnects.
    #[must_use]
    pub(crate) fn cancelled_by(mut self, guard: CancelOnDrop) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Adds tools of the client: when the run waits for one, the response ends and the run pauses.
    #[must_use]
    pub(crate) fn with_client_tools(
        mut self,
        tools: Option<Arc<ClientTools>>,
        paused_runs: PausedRuns,
    ) -> Self {
        if let Some(tools) = tools {
            self.client = Some((tools, paused_runs));
            return self.ending_when_waiting();
        }
        self
    }

    #[must_use]
    pub(crate) fn with_answer_form(mut self, form: Option<Arc<Form>>) -> Self {
        self.answer_form = form;
        self
    }

    fn read_until_waiting(&mut self) {
        self.reader = self.reader.take().map(EventReader::until_waiting);
    }
}

impl RunResponse<()> {
    /// Creates the response of a run that waited for its client and received its results.
    pub(crate) fn of_paused(
        app: App,
        paused: PausedRun,
        reader: EventReader,
        paused_runs: PausedRuns,
    ) -> Self {
        let run = paused.run.as_str().into();
        let mut response = Self::new(app, paused.owner, run, None, reader, ());
        response.last_read = paused.last_seen;
        response.decided = paused.calls.into_iter().map(|(_, call)| call).collect();
        if let OnTimeout::Drop(guard) = paused.on_timeout {
            response.guard = Some(guard);
        }
        response
            .with_client_tools(Some(paused.tools), paused_runs)
            .with_answer_form(paused.answer_form)
    }

    pub(crate) fn options(&self) -> ResponseOptions {
        ResponseOptions {
            last_seen: (self.last_read > 0).then_some(self.last_read),
            answer_form: self.answer_form.clone(),
        }
    }
}

impl<E: EventEncoder> RunResponse<E> {
    /// Reads to the end of the response and returns the encoder.
    pub(crate) async fn collect(mut self) -> E {
        while self.next().await.is_some() {}
        self.encoder.into_encoder()
    }

    /// Returns the response as a stream.
    pub(crate) fn into_stream(self) -> Response {
        let (run, session) = (Arc::clone(&self.run), self.session.clone());
        let keep_alive = self.app.options().keep_alive;
        let frames = stream::unfold(self, |mut response| async move {
            let frames = response.next().await?;
            Some((frames, response))
        });
        let mut response = sse::response(frames, keep_alive);
        set_run_headers(&mut response, &run, session.as_ref());
        response
    }

    /// Returns the next bytes. All events that are available now are sent together.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.encoder.is_closed() {
            match self.reader.as_mut()?.next().await {
                Some(logged) => {
                    self.encode(&logged);
                    while !self.encoder.is_closed()
                        && let Some(Some(logged)) = self.reader.as_mut()?.next().now_or_never()
                    {
                        self.encode(&logged);
                    }
                }
                None => self.handle_end_of_reader().await,
            }
            if !self.out.is_empty() {
                return Some(self.out.take());
            }
        }
        None
    }

    fn encode(&mut self, logged: &LoggedEvent) {
        self.last_read = logged.seq;
        let Some(event) = logged.event() else {
            return;
        };
        let event = &*event;
        let is_end = matches!(event.kind, RunEventKind::RunFinished { .. });
        // The end of the run is repeated, because every response needs an end.
        if logged.seq <= self.last_seen && !is_end {
            self.encoder.event(event, &mut self.out);
            let _ = self.out.take();
            return;
        }
        self.start_writing();
        if let RunEventKind::ToolApproved { id, .. }
        | RunEventKind::ToolDenied { id, .. }
        | RunEventKind::ToolFinished { id, .. } = &event.kind
        {
            self.decided.remove(id);
        }
        self.encoder.event(event, &mut self.out);
        if self.ends_when_waiting && self.decided.is_empty() {
            self.read_until_waiting();
        }
    }

    fn start_writing(&mut self) {
        if !std::mem::replace(&mut self.is_writing, true) {
            self.encoder.pause(&mut self.out);
            let _ = self.out.take();
            self.encoder.resume(&mut self.out);
        }
    }

    async fn handle_end_of_reader(&mut self) {
        self.start_writing();
        if !self.reader.as_ref().is_some_and(EventReader::is_waiting) {
            let is_durable = self.session.is_some();
            let reason = if is_durable { INTERRUPTED } else { LOST };
            return self.encoder.interrupt(reason, &mut self.out);
        }
        if self.encoder.needs_request() {
            self.encoder.pause(&mut self.out);
            return self.pause_run();
        }
        // The decision comes through another route while this response stays open.
        let hub = self.app.hub();
        match hub.reader(&self.principal, &self.run, self.last_read).await {
            Ok(reader) => self.reader = Some(reader),
            Err(problem) => self.encoder.interrupt(&problem.detail, &mut self.out),
        }
    }

    /// Keeps a run with client tools, also if it waits only for an approval, because it may call
    /// client tools later.
    fn pause_run(&mut self) {
        let calls = self.encoder.client_calls();
        if let Some((tools, paused_runs)) = self.client.take() {
            let on_timeout = match self.guard.take() {
                Some(guard) => OnTimeout::Drop(guard),
                None => OnTimeout::Cancel(self.app.hub().clone()),
            };
            let paused = PausedRun {
                run: self.run.to_string(),
                tools,
                last_seen: self.last_read,
                calls,
                on_timeout,
                owner: self.principal.clone(),
                answer_form: self.answer_form.take(),
            };
            paused_runs.insert(paused, self.app.options().approval_time);
        }
    }
}
