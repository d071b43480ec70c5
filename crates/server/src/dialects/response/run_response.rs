//! Writes the events of a run from the hub into the body of an HTTP response.

use std::{collections::HashSet, sync::Arc};

use axum::{
    Json,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use switchboard_domain::{Principal, SessionId};
use switchboard_orchestration::{RunEventKind, RunReport, strategy::formatter::AnswerSchema};

use crate::{
    App,
    dialects::{
        event_encoder::{EventEncoder, SequencedEncoder},
        response::{
            collected_response::CollectedResponse,
            paused_runs::{PausedRun, PausedRuns},
            response_state::ResponseState,
            run_failure::RunFailure,
            sse_frames::SseFrames,
        },
        tools::client_tools::ClientTools,
    },
    http::{run_headers::set_run_headers, sse},
    hub::{CancelRunOnDrop, EventReader, LoggedEvent, StartedRun},
};

/// The error message of a response that ends because the server stops during a durable run.
const INTERRUPTED: &str = "the server stopped before the run finished; the run can be continued";

/// The error message of a response that ends because the server stops during an ephemeral run.
const LOST: &str =
    "the server stopped before the run finished: send the request again when the server is back";

/// A response with the events of a run. An encoder of a client protocol writes these events.
pub(crate) struct RunResponse {
    app: App,
    principal: Principal,
    run: Arc<str>,
    session: Option<SessionId>,
    reader: EventReader,
    /// The sequence number of the last event that an earlier response contained. Events up to this
    /// number update the encoder, but are not sent.
    pub(crate) last_seen: u64,
    /// The sequence number of the last event that was read from the run.
    last_read: u64,
    /// Whether the response ends when the run waits for a decision or a result.
    ends_when_waiting: bool,
    /// Ids of tool calls with a decision or result that the run has not applied yet.
    pub(crate) decided: HashSet<String>,
    /// A guard that cancels an ephemeral run when the response is dropped.
    pub(crate) guard: Option<CancelRunOnDrop>,
    /// The client's tools, and the collection that stores the run while it waits for the client.
    client: Option<(Arc<ClientTools>, PausedRuns)>,
    pub(crate) answer_form: Option<Arc<AnswerSchema>>,
}

impl RunResponse {
    /// Creates a response that begins with the next event of `reader`.
    pub(crate) fn new(
        app: App,
        principal: Principal,
        run: Arc<str>,
        session: Option<SessionId>,
        reader: EventReader,
    ) -> Self {
        Self {
            app,
            principal,
            run,
            session,
            reader,
            last_seen: 0,
            last_read: 0,
            ends_when_waiting: false,
            decided: HashSet::new(),
            guard: None,
            client: None,
            answer_form: None,
        }
    }

    /// Creates a response that begins with the first event of a run that was just started.
    pub(crate) fn from_started_run(app: App, principal: Principal, started: &StartedRun) -> Self {
        let (run, session) = (Arc::clone(&started.run), started.session.clone());
        Self::new(app, principal, run, session, started.event_reader())
    }

    /// Creates the response of an ephemeral run that received results from its client.
    pub(crate) fn from_paused_run(
        app: App,
        paused: PausedRun,
        reader: EventReader,
        paused_runs: PausedRuns,
    ) -> Self {
        let run = paused.run.as_str().into();
        let mut response = Self::new(app, paused.owner, run, None, reader);
        response.last_read = paused.last_seen;
        response.decided = paused.calls.into_iter().map(|(_, call)| call).collect();
        response.guard = paused.guard;
        response.answer_form = paused.answer_form;
        response.with_client_tools(Some(paused.tools), paused_runs)
    }

    /// Makes the response end when the run waits for an approval decision or a client's result,
    /// because both arrive with a new request.
    #[must_use]
    pub(crate) fn end_when_run_waits(mut self) -> Self {
        self.ends_when_waiting = true;
        self.end_reader_when_run_waits();
        self
    }

    /// Adds tools that the client executes. The response then ends when the run waits for a result.
    /// `None` changes nothing.
    #[must_use]
    pub(crate) fn with_client_tools(
        mut self,
        tools: Option<Arc<ClientTools>>,
        paused_runs: PausedRuns,
    ) -> Self {
        if let Some(tools) = tools {
            self.client = Some((tools, paused_runs));
            return self.end_when_run_waits();
        }
        self
    }

    fn end_reader_when_run_waits(&mut self) {
        self.reader.ends_when_waiting |= self.ends_when_waiting && self.decided.is_empty();
    }

    /// Builds the response. If `is_streamed` is `true`, it is a stream of the events that `encoder`
    /// encodes. Otherwise the method waits until the run ends or waits for the client, and the
    /// response is one JSON value. `answer` creates this value from the collected response and the
    /// run report, which is `None` while the run waits for the client. `error` creates the response
    /// for a failed run.
    pub(crate) async fn build_response<E: EventEncoder>(
        self,
        is_streamed: bool,
        encoder: impl FnOnce(ResponseState) -> E,
        answer: impl FnOnce(&CollectedResponse, Option<&RunReport>) -> Value,
        error: impl FnOnce(&RunFailure<'_>) -> Response,
    ) -> Response {
        let state = ResponseState {
            last_seen: (self.last_read > 0).then_some(self.last_read),
            answer_form: self.answer_form.clone(),
            ..ResponseState::default()
        };
        if is_streamed {
            return self.into_stream(encoder(state));
        }
        let run = Arc::clone(&self.run);
        let mut run_events = EncodedRunStream::new(self, CollectedResponse::new(state));
        while run_events.next().await.is_some() {}
        let collected = run_events.encoder.encoder;
        let mut response = match collected.run_report() {
            Ok(report) => Json(answer(&collected, report)).into_response(),
            Err(failure) => {
                let mut response = error(&failure);
                failure.set_retry_after(&mut response);
                response
            }
        };
        set_run_headers(&mut response, &run, None);
        response
    }

    /// Streams the events of the run as server-sent events.
    pub(crate) fn into_stream(self, encoder: impl EventEncoder) -> Response {
        let (run, session) = (Arc::clone(&self.run), self.session.clone());
        let keep_alive = self.app.options().keep_alive;
        let run_events = EncodedRunStream::new(self, encoder);
        let frames = stream::unfold(run_events, |mut run_events| async move {
            let frames = run_events.next().await?;
            Some((frames, run_events))
        });
        let mut response = sse::stream_response(frames, keep_alive);
        set_run_headers(&mut response, &run, session.as_ref());
        response
    }
}

/// The stream of encoded run events in a response.
struct EncodedRunStream<E> {
    response: RunResponse,
    encoder: SequencedEncoder<E>,
    /// Whether encoded events are sent. `false` while the reader repeats events that earlier
    /// responses contained.
    is_writing: bool,
    out: SseFrames,
}

impl<E: EventEncoder> EncodedRunStream<E> {
    fn new(response: RunResponse, encoder: E) -> Self {
        Self {
            encoder: SequencedEncoder::new(encoder),
            is_writing: response.last_seen == 0,
            out: SseFrames::default(),
            response,
        }
    }

    /// Encodes all available events and returns their bytes, or `None` at the end of the response.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.encoder.is_closed() {
            match self.response.reader.next().await {
                Some(logged) => {
                    self.encode_event(&logged);
                    while !self.encoder.is_closed()
                        && let Some(logged) = self.response.reader.next_ready_event()
                    {
                        self.encode_event(&logged);
                    }
                }
                None => self.handle_event_stream_end().await,
            }
            if !self.out.is_empty() {
                return Some(self.out.take_bytes());
            }
        }
        None
    }

    fn encode_event(&mut self, logged: &LoggedEvent) {
        self.response.last_read = logged.seq;
        let Some(event) = logged.parsed_event() else {
            return;
        };
        let is_end = matches!(event.kind, RunEventKind::RunFinished { .. });
        // Every response needs an end, so the last event is sent even if the client already has it.
        if logged.seq <= self.response.last_seen && !is_end {
            self.encoder.encode_event(&event, &mut self.out);
            let _ = self.out.take_bytes();
            return;
        }
        self.start_sending_events();
        if let RunEventKind::ToolApproved { id, .. }
        | RunEventKind::ToolDenied { id, .. }
        | RunEventKind::ToolFinished { id, .. } = &event.kind
        {
            self.response.decided.remove(id);
        }
        self.encoder.encode_event(&event, &mut self.out);
        self.response.end_reader_when_run_waits();
    }

    fn start_sending_events(&mut self) {
        if !std::mem::replace(&mut self.is_writing, true) {
            self.encoder.encode_run_pause(&mut self.out);
            let _ = self.out.take_bytes();
            self.encoder.encode_run_resume(&mut self.out);
        }
    }

    async fn handle_event_stream_end(&mut self) {
        self.start_sending_events();
        let response = &mut self.response;
        if !response.reader.is_waiting {
            let is_durable = response.session.is_some();
            let reason = if is_durable { INTERRUPTED } else { LOST };
            return self.encoder.encode_run_interruption(reason, &mut self.out);
        }
        if self.encoder.waits_for_client_request() {
            self.encoder.encode_run_pause(&mut self.out);
            return self.store_paused_run();
        }
        // The decision arrives at `POST /runs/{id}/approvals/{call}`, so the response continues.
        let hub = response.app.hub();
        let reader = hub.event_reader(&response.principal, &response.run, response.last_read);
        match reader.await {
            Ok(reader) => response.reader = reader,
            Err(problem) => self
                .encoder
                .encode_run_interruption(&problem.detail, &mut self.out),
        }
    }

    /// Stores a run with client tools in memory until the client's next request. A run that waits
    /// only for an approval is stored too, because it may call client tools later.
    fn store_paused_run(&mut self) {
        let response = &mut self.response;
        if let Some((tools, paused_runs)) = response.client.take() {
            let paused = PausedRun {
                hub: response.app.hub().clone(),
                run: response.run.to_string(),
                tools,
                last_seen: response.last_read,
                calls: self.encoder.waiting_client_calls(),
                guard: response.guard.take(),
                owner: response.principal.clone(),
                answer_form: response.answer_form.take(),
            };
            paused_runs.insert(paused, response.app.options().approval_time);
        }
    }
}
