//! A run that is kept, as a stream of its stored events.

use std::{
    collections::VecDeque,
    fmt, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::{Stream, future::BoxFuture};
use futures_util::{FutureExt, StreamExt};
use switchboard_domain::{
    ApprovalRequest, RunRecord, RunState, RunStore, SessionId, SessionStoreError, StoredEvent,
};
use tokio::sync::oneshot;

use super::{
    JournalError,
    checkpoint_channel::{Desk, Order},
    lease::{Hold, until_available},
    outcome_word,
};
use crate::{Agent, CancelHandle, Run, RunEvent, RunEventKind, RunReport, RunStream, SnapshotMark};

/// Events that the driver may be ahead of the store.
const AHEAD: usize = 512;
/// Bytes that it may be.
const AHEAD_BYTES: usize = 1 << 20;

/// An event of a run that is stored. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The event.
    pub event: Arc<RunEvent>,
    /// The same as it is stored: one JSON object, as `--output jsonl` prints it.
    pub json: Arc<str>,
}

impl Kept {
    pub(super) fn new(event: RunEvent) -> Result<Self, JournalError> {
        match serde_json::to_string(&event) {
            Ok(json) => Ok(Self {
                json: json.into(),
                event: Arc::new(event),
            }),
            Err(source) => Err(JournalError::Unwritable {
                run: event.run_id.to_string(),
                source,
            }),
        }
    }

    pub(super) fn stored(&self) -> StoredEvent {
        StoredEvent {
            seq: self.event.seq,
            json: Arc::clone(&self.json),
        }
    }
}

/// How a kept run came to its end, as far as this process is concerned.
#[derive(Debug)]
pub enum KeptEnd {
    /// It is over, and what it said is in the session.
    Finished(Box<RunReport>),
    /// It waits for somebody's word on these; whoever has it goes on with it.
    Waiting(Vec<ApprovalRequest>),
    /// It could not be stored any further and was stopped where it was: its model and its tools were cancelled.
    /// What is stored of it can be gone on with.
    Failed(JournalError),
}

/// A run that is kept, as it happens. Polling the stream drives the run and stores it; nothing is spawned. What
/// the stream gives is stored. What is told together is stored together, and while that is on its way, the run
/// goes on, 512 events ahead at most.
///
/// Dropping it stops everything at once, as with [`RunStream`], and lets go of the run: it is
/// [`RunState::Interrupted`] and can be taken up. What was on its way to the store may be in it or not.
/// [`KeptRun::cancel_handle`] brings the run to a proper end instead.
pub struct KeptRun {
    record: RunRecord,
    cancel: CancelHandle,
    runs: Arc<dyn RunStore>,
    desk: Desk,
    /// `None` when it is over, or was stopped.
    stream: Option<RunStream>,
    /// What was told and is not yet on its way to the store.
    told: Vec<Kept>,
    told_bytes: usize,
    /// Its last event, which is shown when the run is let go of.
    last: Option<Kept>,
    /// How it ended, once it did.
    ended: Option<Ended>,
    writing: Option<Writing>,
    /// The number of the last event that is stored.
    stored: u64,
    /// What is stored and was not yet shown.
    ready: VecDeque<Kept>,
    hold: Option<Hold>,
    end: Option<KeptEnd>,
}

/// How a run ended, before the store knows.
enum Ended {
    Over {
        report: Box<RunReport>,
        messages: Vec<Arc<switchboard_domain::Message>>,
        outcome: Option<String>,
    },
    Waits(Vec<ApprovalRequest>),
    Failed(JournalError),
}

type Write = BoxFuture<'static, Result<(), SessionStoreError>>;

/// What is on its way to the store.
enum Writing {
    Events(Write, Vec<Kept>),
    /// The state, with the events before it.
    Snapshot(Write, Vec<Kept>, oneshot::Sender<()>),
    /// The last events, and that it is over.
    End(Write, Vec<Kept>, KeptEnd),
    /// After the store failed.
    LetGo(BoxFuture<'static, ()>, JournalError),
}

impl KeptRun {
    /// Drives a run that belongs to this process.
    pub(super) fn begin(
        agent: &Agent,
        record: RunRecord,
        run: Run,
        mark: SnapshotMark,
        resumed: bool,
        mut hold: Hold,
    ) -> Self {
        let desk = Desk::new(mark);
        let agent = agent.clone().with_checkpoints(Arc::new(desk.clone()));
        let stream = if resumed {
            agent.resume(run)
        } else {
            agent.drive(run)
        };
        hold.falls_back_to(RunState::Interrupted);
        let mut kept = Self::of(record, desk, hold);
        kept.cancel = stream.cancel_handle();
        kept.stream = Some(stream);
        kept
    }

    /// A run whose last event is stored already.
    pub(super) fn end_of(record: RunRecord, run: &Run, report: Box<RunReport>, hold: Hold) -> Self {
        let mut kept = Self::of(record, Desk::new(run.mark()), hold);
        kept.ended = Some(Ended::Over {
            outcome: Some(outcome_word(report.outcome)),
            messages: run.session_messages(),
            report,
        });
        kept
    }

    fn of(record: RunRecord, desk: Desk, hold: Hold) -> Self {
        Self {
            cancel: CancelHandle::of_nothing(),
            runs: hold.runs(),
            desk,
            stream: None,
            told: Vec::new(),
            told_bytes: 0,
            last: None,
            ended: None,
            writing: None,
            stored: record.last_event,
            ready: VecDeque::new(),
            hold: Some(hold),
            end: None,
            record,
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// The session it belongs to.
    pub fn session(&self) -> &SessionId {
        &self.record.session
    }

    /// What the store said of it when it was begun or taken up.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Brings it to a proper end, from elsewhere: every call has its result, the report says that it was
    /// cancelled, and all of that is stored.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// How it ended, once the stream has.
    pub fn end(&self) -> Option<&KeptEnd> {
        self.end.as_ref()
    }

    /// Drives it to its end, events unseen.
    pub async fn finish(mut self) -> KeptEnd {
        loop {
            while self.next().await.is_some() {}
            // The stream ends exactly when this is there.
            if let Some(end) = self.end.take() {
                return end;
            }
        }
    }

    /// Stops it where it is, as dropping it does, and is done once it is let go of.
    pub async fn leave(mut self) {
        if let Some(letting_go) = self.letting_go() {
            letting_go.await;
        }
    }

    /// What is to be done for somebody else to go on with it, once; `None` if that is nothing.
    fn letting_go(&mut self) -> Option<BoxFuture<'static, ()>> {
        // First of all what is under way is stopped.
        self.stream = None;
        let hold = self.hold.take();
        let writing = match self.writing.take() {
            // The last of these has the hold.
            Some(
                Writing::Events(future, _)
                | Writing::Snapshot(future, _, _)
                | Writing::End(future, _, _),
            ) => Some(future),
            Some(Writing::LetGo(future, _)) => Some(future.map(Ok).boxed()),
            None => None,
        };
        if writing.is_none() && hold.is_none() {
            return None;
        }
        // What is on its way is not broken off in the middle, and the run is let go of behind it.
        let letting_go = async move {
            if let Some(writing) = writing
                && let Err(error) = writing.await
            {
                tracing::debug!(%error, "the last of a run that was dropped was not stored");
            }
            if let Some(hold) = hold {
                hold.let_go().await;
            }
        };
        Some(letting_go.boxed())
    }

    /// The same, with all events.
    pub(super) async fn collect_all(mut self) -> Result<Vec<Kept>, JournalError> {
        let mut all = Vec::new();
        while let Some(kept) = self.next().await {
            all.push(kept);
        }
        match self.end.take() {
            Some(KeptEnd::Failed(error)) => Err(error),
            _ => Ok(all),
        }
    }

    /// Takes what the driver has to tell, until it has to wait or is too far ahead.
    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(stream) = &mut self.stream
            // What is told at the end waits for the end.
            && (self.told.len() < AHEAD && self.told_bytes < AHEAD_BYTES
                || self.desk.ending().is_some())
        {
            match stream.poll_next_unpin(context) {
                Poll::Pending => return,
                Poll::Ready(Some(event)) => match Kept::new(event) {
                    Ok(kept) => self.take(kept),
                    Err(error) => self.fail(error),
                },
                Poll::Ready(None) => {
                    let run = self.stream.take().and_then(RunStream::into_run);
                    self.ended = run.as_ref().map(Ended::of);
                }
            }
        }
    }

    fn take(&mut self, kept: Kept) {
        let is_last = matches!(
            kept.event.kind,
            RunEventKind::RunFinished { .. } | RunEventKind::RunParked { .. }
        );
        if is_last {
            self.last = Some(kept);
        } else {
            self.told_bytes += kept.json.len();
            self.told.push(kept);
        }
    }

    /// What is to be written next.
    fn next_write(&mut self) -> Option<Writing> {
        if let Some(source) = self.desk.fault() {
            let run = self.record.id.clone();
            self.fail(JournalError::Unwritable { run, source });
        }
        // A last event is stored with the end, and is no reason to wait.
        let last = self.told.last().map_or(self.stored, |kept| kept.event.seq);
        let order = self.desk.order(last + u64::from(self.last.is_some()));
        if let Some(Order { snapshot, done, .. }) = order {
            let (kept, events) = self.take_told();
            let (runs, run) = (Arc::clone(&self.runs), self.record.id.clone());
            let saved =
                async move { until_available(|| runs.save_with(&run, &events, &snapshot)).await };
            return Some(Writing::Snapshot(saved.boxed(), kept, done));
        }
        if let Some(ended) = self.ended.take() {
            self.told.extend(self.last.take());
            let (kept, events) = self.take_told();
            return Some(ended.write(events, kept, self.hold.take()));
        }
        let at_the_end = match self.desk.ending() {
            None => Vec::new(),
            Some(first) => {
                let before = self.told.partition_point(|kept| kept.event.seq < first);
                self.told.split_off(before)
            }
        };
        let (kept, events) = self.take_told();
        self.told_bytes = at_the_end.iter().map(|kept| kept.json.len()).sum();
        self.told = at_the_end;
        if kept.is_empty() {
            return None;
        }
        let (runs, run) = (Arc::clone(&self.runs), self.record.id.clone());
        let appended = async move { until_available(|| runs.append_events(&run, &events)).await };
        Some(Writing::Events(appended.boxed(), kept))
    }

    /// What was told, and the same for the store.
    fn take_told(&mut self) -> (Vec<Kept>, Vec<StoredEvent>) {
        self.told_bytes = 0;
        let kept = mem::take(&mut self.told);
        let events = kept.iter().map(Kept::stored).collect();
        (kept, events)
    }

    /// These are stored.
    fn show(&mut self, kept: Vec<Kept>) {
        self.stored = kept.last().map_or(self.stored, |last| last.event.seq);
        self.ready.extend(kept);
    }

    /// Nothing goes on unrecorded.
    fn fail(&mut self, error: JournalError) {
        let run = &self.record.id;
        tracing::error!(run, %error, "a run could not be stored and was stopped");
        self.stream = None;
        self.desk.close();
        self.told.clear();
        self.last = None;
        self.ended = Some(Ended::Failed(error));
    }

    /// Polls what is being written. Whether it is done.
    fn write(&mut self, context: &mut Context<'_>) -> bool {
        let Some(writing) = &mut self.writing else {
            return false;
        };
        let done = match writing {
            Writing::Events(future, _)
            | Writing::Snapshot(future, _, _)
            | Writing::End(future, _, _) => future.poll_unpin(context),
            Writing::LetGo(future, _) => future.poll_unpin(context).map(Ok),
        };
        let Poll::Ready(done) = done else {
            return false;
        };
        match (self.writing.take(), done) {
            (None, _) => {}
            (Some(Writing::LetGo(_, error)), _) => self.end = Some(KeptEnd::Failed(error)),
            (Some(_), Err(error)) => self.fail(error.into()),
            (Some(Writing::Events(_, kept)), Ok(())) => self.show(kept),
            (Some(Writing::Snapshot(_, kept, done)), Ok(())) => {
                self.show(kept);
                // Fails when the driver does not wait any more, since it was cancelled.
                let _ = done.send(());
            }
            (Some(Writing::End(_, kept, end)), Ok(())) => {
                self.show(kept);
                self.end = Some(end);
            }
        }
        true
    }
}

impl Ended {
    fn of(run: &Run) -> Self {
        match run.report() {
            Some(report) => Self::Over {
                outcome: Some(outcome_word(report.outcome)),
                messages: run.session_messages(),
                report: Box::new(report),
            },
            None => Self::Waits(run.pending_approvals().into_iter().cloned().collect()),
        }
    }

    /// The last events are stored and the run is let go of, in one: only then are they shown.
    fn write(self, events: Vec<StoredEvent>, kept: Vec<Kept>, hold: Option<Hold>) -> Writing {
        let (messages, outcome, end) = match self {
            Self::Failed(error) => return Writing::LetGo(let_go(hold), error),
            Self::Waits(waiting) => (Vec::new(), None, KeptEnd::Waiting(waiting)),
            Self::Over {
                report,
                messages,
                outcome,
            } => (messages, outcome, KeptEnd::Finished(report)),
        };
        let is_over = matches!(end, KeptEnd::Finished(_));
        let written = async move {
            match hold {
                Some(hold) if is_over => hold.finish(&events, outcome, &messages).await,
                Some(hold) => hold.wait(&events).await,
                None => Ok(()),
            }
        };
        Writing::End(written.boxed(), kept, end)
    }
}

fn let_go(hold: Option<Hold>) -> BoxFuture<'static, ()> {
    async move {
        if let Some(hold) = hold {
            hold.let_go().await;
        }
    }
    .boxed()
}

impl Stream for KeptRun {
    type Item = Kept;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Kept>> {
        let this = self.get_mut();
        loop {
            if let Some(kept) = this.ready.pop_front() {
                return Poll::Ready(Some(kept));
            }
            if this.end.is_some() {
                return Poll::Ready(None);
            }
            this.drive(context);
            if this.writing.is_none() {
                this.writing = this.next_write();
            }
            if !this.write(context) {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for KeptRun {
    fn drop(&mut self) {
        let Some(letting_go) = self.letting_go() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(letting_go);
        }
    }
}

impl fmt::Debug for KeptRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptRun")
            .field("record", &self.record)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
