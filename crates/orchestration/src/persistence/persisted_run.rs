//! Durable run as a stream of its stored events.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::{Stream, future::BoxFuture};
use futures_util::{FutureExt, StreamExt};
use switchboard_domain::{
    ApprovalRequest, Message, RunRecord, RunState, RunStore, SessionId, SessionStoreError,
    StoredEvent,
};
use tokio::sync::oneshot;

use super::{
    DurableRunError,
    checkpoint_channel::{CheckpointChannel, PendingCheckpoint},
    lease::{RunLease, retry_until_available},
};
use crate::{
    Agent, CancelHandle, Run, RunEvent, RunEventKind, RunReport, RunStream, SnapshotPosition,
    observe::audit::serialized_name,
};

/// Maximum number of emitted events that wait to be stored. The run pauses at this number.
const MAX_AHEAD: usize = 512;
/// Maximum size in bytes of emitted events that wait to be stored. The run pauses at this size.
const MAX_AHEAD_BYTES: usize = 1 << 20;

/// A stored event of a run. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct PersistedEvent {
    /// The event that the run emitted and the store has stored.
    pub event: Arc<RunEvent>,
    /// JSON object of the event, as it is stored and as `--output jsonl` prints it.
    pub json: Arc<str>,
}

impl PersistedEvent {
    pub(super) fn new(event: RunEvent) -> Result<Self, DurableRunError> {
        let json = serde_json::to_string(&event).map_err(|source| DurableRunError::Unwritable {
            run: event.run_id.to_string(),
            source,
        })?;
        let (event, json) = (Arc::new(event), json.into());
        Ok(Self { event, json })
    }

    pub(super) fn to_stored_event(&self) -> StoredEvent {
        StoredEvent {
            seq: self.event.seq,
            json: Arc::clone(&self.json),
        }
    }
}

/// How the execution of a durable run ended in this process.
#[derive(Debug)]
pub enum PersistedRunEnd {
    /// The run finished, and its messages are in the session.
    Finished(Box<RunReport>),
    /// The run is stored and waits for these approval requests. Any process can resume it.
    Waiting(Vec<ApprovalRequest>),
    /// The run was stopped because it could not be stored. It can be resumed from its stored state.
    Failed(DurableRunError),
}

/// A durable run in execution, as a stream of its events.
///
/// Polling the stream drives the run and stores its events; no task is spawned. The stream returns
/// only stored events. While a write is in progress, the run can emit up to 512 further events.
///
/// Dropping the stream stops the run and releases its lease, as with [`RunStream`]. The run is then
/// [`RunState::Interrupted`] and can be resumed. A write in progress may or may not succeed.
/// [`PersistedRun::cancel_handle`] ends the run properly instead.
#[derive(derive_more::Debug)]
#[debug("PersistedRun {{ record: {record:?}, end: {end:?}, .. }}")]
pub struct PersistedRun {
    record: RunRecord,
    cancel: CancelHandle,
    runs: Arc<dyn RunStore>,
    channel: CheckpointChannel,
    /// Event stream of the driver. `None` after the end of the run.
    stream: Option<RunStream>,
    /// Emitted events whose write has not started.
    unsaved: Vec<PersistedEvent>,
    unsaved_bytes: usize,
    /// Data of the run's end, from the moment at which the driver ends until the write starts.
    ended: Option<UnsavedRunEnd>,
    writing: Option<WriteInProgress>,
    /// Sequence number of the latest stored event.
    stored: u64,
    /// Stored events that the stream has not returned yet.
    ready: VecDeque<PersistedEvent>,
    lease: Option<RunLease>,
    end: Option<PersistedRunEnd>,
}

/// Data of the end of a run. The driver has ended the run, but the store does not contain the end.
struct UnsavedRunEnd {
    end: PersistedRunEnd,
    /// Messages that are added to the session if the run finished.
    messages: Vec<Arc<Message>>,
}

/// A write to the store that has started and not finished.
struct WriteInProgress {
    future: BoxFuture<'static, Result<(), SessionStoreError>>,
    /// Events that the stream returns after the write.
    events: Vec<PersistedEvent>,
    then: WriteContinuation,
}

/// The action of the stream after a successful write.
enum WriteContinuation {
    Continue,
    /// Notify the driver, which waits until its checkpoint is stored.
    NotifyDriver(oneshot::Sender<()>),
    /// End the stream, because the write released the run.
    End(PersistedRunEnd),
}

impl PersistedRun {
    /// Starts to execute a run. `lease` is the exclusive right of this process to execute it.
    pub(super) fn drive_leased_run(
        agent: &Agent,
        record: RunRecord,
        run: Run,
        mark: SnapshotPosition,
        resumed: bool,
        mut lease: RunLease,
    ) -> Self {
        let channel = CheckpointChannel::new(mark);
        let agent = agent.clone().with_checkpoints(Arc::new(channel.clone()));
        let stream = if resumed {
            agent.resume_run(run)
        } else {
            agent.drive_run(run)
        };
        lease.set_run_state_on_release(RunState::Interrupted);
        Self {
            cancel: stream.cancel_handle(),
            runs: lease.run_store(),
            channel,
            stream: Some(stream),
            unsaved: Vec::new(),
            unsaved_bytes: 0,
            ended: None,
            writing: None,
            stored: record.last_event,
            ready: VecDeque::new(),
            lease: Some(lease),
            end: None,
            record,
        }
    }

    /// Returns the id of the run.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Returns the id of the session of the run.
    pub fn session_id(&self) -> &SessionId {
        &self.record.session
    }

    /// Returns the stored record of the run from the time when this process started or resumed it.
    pub fn run_record(&self) -> &RunRecord {
        &self.record
    }

    /// Returns a handle that cancels the run.
    ///
    /// A cancellation gives every open tool call a result and stores the final report.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Returns how the run ended, or `None` before the end of the stream.
    pub fn run_end(&self) -> Option<&PersistedRunEnd> {
        self.end.as_ref()
    }

    /// Executes the run to its end, discards the events, and returns how the run ended.
    pub async fn run_to_end(mut self) -> PersistedRunEnd {
        loop {
            while self.next().await.is_some() {}
            // The stream ends only after `end` is set, so the outer loop does not repeat.
            if let Some(end) = self.end.take() {
                return end;
            }
        }
    }

    /// Stops the run in the same way as dropping the stream, and waits until the run is released.
    pub async fn stop_and_release(mut self) {
        if let Some(releasing) = self.begin_release() {
            releasing.await;
        }
    }

    /// Stops the driver and returns a future that releases the run, or `None` if the run is already
    /// released.
    fn begin_release(&mut self) -> Option<BoxFuture<'static, ()>> {
        // Dropping the event stream stops the driver of the run.
        self.stream = None;
        let lease = self.lease.take();
        // The last write of a run owns the lease and releases the run. In this case, `lease` is
        // `None`.
        let writing = self.writing.take().map(|writing| writing.future);
        if writing.is_none() && lease.is_none() {
            return None;
        }
        // The release waits until the write in progress is complete.
        let releasing = async move {
            if let Some(writing) = writing
                && let Err(error) = writing.await
            {
                tracing::debug!(%error, "failed to store the last events of a dropped run");
            }
            if let Some(lease) = lease {
                lease.release_run().await;
            }
        };
        Some(releasing.boxed())
    }

    /// Takes events from the driver until the driver waits, the run ends, or too many events wait
    /// to be stored.
    fn poll_driver(&mut self, context: &mut Context<'_>) {
        while let Some(stream) = &mut self.stream
            // The events about the end of the run are stored together, so `MAX_AHEAD` and
            // `MAX_AHEAD_BYTES` do not apply to them.
            && (self.unsaved.len() < MAX_AHEAD && self.unsaved_bytes < MAX_AHEAD_BYTES
                || self.channel.first_end_event().is_some())
        {
            match stream.poll_next_unpin(context) {
                Poll::Pending => return,
                Poll::Ready(Some(event)) => match PersistedEvent::new(event) {
                    Ok(persisted) => {
                        self.unsaved_bytes += persisted.json.len();
                        self.unsaved.push(persisted);
                    }
                    Err(error) => self.stop_with_error(error),
                },
                Poll::Ready(None) => {
                    let run = self.stream.take().and_then(RunStream::into_run);
                    self.ended = run.as_ref().map(UnsavedRunEnd::from_run);
                }
            }
        }
    }

    /// Creates the next write to the store, or returns `None` if there is nothing to write.
    fn prepare_next_write(&mut self) -> Option<WriteInProgress> {
        let last = self.unsaved.last();
        let last = last.map_or(self.stored, |persisted| persisted.event.seq);
        let pending = self.channel.take_pending_checkpoint(last);
        let (runs, run) = (Arc::clone(&self.runs), self.record.id.clone());
        if let Some(PendingCheckpoint {
            snapshot, stored, ..
        }) = pending
        {
            let (events, new) = self.take_unsaved_events();
            let saved = async move {
                retry_until_available(|| runs.save_snapshot_with_events(&run, &new, &snapshot))
                    .await
            };
            return Some(WriteInProgress {
                future: saved.boxed(),
                events,
                then: WriteContinuation::NotifyDriver(stored),
            });
        }
        if let Some(mut ended) = self.ended.take() {
            let events = mem::take(&mut self.unsaved);
            let new = events.iter().map(PersistedEvent::to_stored_event).collect();
            return Some(WriteInProgress {
                future: ended.store_run_end(new, self.lease.take()),
                events,
                then: WriteContinuation::End(ended.end),
            });
        }
        let (events, new) = self.take_unsaved_events();
        if events.is_empty() {
            return None;
        }
        let appended =
            async move { retry_until_available(|| runs.append_events(&run, &new)).await };
        Some(WriteInProgress {
            future: appended.boxed(),
            events,
            then: WriteContinuation::Continue,
        })
    }

    /// Takes the events that wait to be stored. Returns each event twice: for the reader of the
    /// stream, and for the store.
    ///
    /// Does not take the events about the end of the run, because they are stored together with the
    /// release of the run.
    fn take_unsaved_events(&mut self) -> (Vec<PersistedEvent>, Vec<StoredEvent>) {
        let first_end_event = self.channel.first_end_event().unwrap_or(u64::MAX);
        let is_before_end = |event: &RunEvent| {
            event.seq < first_end_event
                && !matches!(
                    event.kind,
                    RunEventKind::RunFinished { .. } | RunEventKind::RunParked { .. }
                )
        };
        let before = self.unsaved.iter();
        let before = before.take_while(|it| is_before_end(&it.event));
        let end = self.unsaved.split_off(before.count());
        self.unsaved_bytes = end.iter().map(|persisted| persisted.json.len()).sum();
        let persisted = mem::replace(&mut self.unsaved, end);
        let events = persisted.iter().map(PersistedEvent::to_stored_event);
        let events = events.collect();
        (persisted, events)
    }

    /// Stops the run because the store returned an error, and ends the stream.
    fn stop_with_error(&mut self, error: DurableRunError) {
        let run = &self.record.id;
        tracing::error!(run, %error, "failed to store a run; the run was stopped");
        self.stream = None;
        self.channel.drop_pending_checkpoint();
        self.unsaved.clear();
        self.ended = Some(UnsavedRunEnd {
            end: PersistedRunEnd::Failed(error),
            messages: Vec::new(),
        });
    }

    /// Polls the write in progress and returns whether it finished.
    fn poll_write(&mut self, context: &mut Context<'_>) -> bool {
        let Some(writing) = &mut self.writing else {
            return false;
        };
        let Poll::Ready(done) = writing.future.poll_unpin(context) else {
            return false;
        };
        match (self.writing.take(), done) {
            (None, _) => {}
            (Some(_), Err(error)) => self.stop_with_error(error.into()),
            (Some(writing), Ok(())) => {
                let events = writing.events;
                self.stored = events.last().map_or(self.stored, |last| last.event.seq);
                self.ready.extend(events);
                match writing.then {
                    WriteContinuation::Continue => {}
                    WriteContinuation::NotifyDriver(stored) => {
                        // Sending fails if a cancelled driver no longer waits for the checkpoint.
                        let _ = stored.send(());
                    }
                    WriteContinuation::End(end) => self.end = Some(end),
                }
            }
        }
        true
    }
}

impl UnsavedRunEnd {
    fn from_run(run: &Run) -> Self {
        match run.build_report() {
            Some(report) => Self {
                end: PersistedRunEnd::Finished(Box::new(report)),
                messages: run.session_messages(),
            },
            None => Self {
                end: PersistedRunEnd::Waiting(run.pending_approvals()),
                messages: Vec::new(),
            },
        }
    }

    /// Stores the last events and releases the run, in one transaction. If an earlier write failed,
    /// only releases the run.
    fn store_run_end(
        &mut self,
        events: Vec<StoredEvent>,
        lease: Option<RunLease>,
    ) -> BoxFuture<'static, Result<(), SessionStoreError>> {
        let messages = mem::take(&mut self.messages);
        let (state, outcome) = match &self.end {
            PersistedRunEnd::Finished(report) => {
                (RunState::Finished, Some(serialized_name(&report.outcome)))
            }
            PersistedRunEnd::Waiting(_) | PersistedRunEnd::Failed(_) => (RunState::Waiting, None),
        };
        let has_failed = matches!(self.end, PersistedRunEnd::Failed(_));
        async move {
            match lease {
                Some(lease) if has_failed => lease.release_run().await,
                Some(lease) => lease.finish_run(&events, state, outcome, &messages).await?,
                None => {}
            }
            Ok(())
        }
        .boxed()
    }
}

impl Stream for PersistedRun {
    type Item = PersistedEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<PersistedEvent>> {
        let this = self.get_mut();
        loop {
            if let Some(persisted) = this.ready.pop_front() {
                return Poll::Ready(Some(persisted));
            }
            if this.end.is_some() {
                return Poll::Ready(None);
            }
            this.poll_driver(context);
            if this.writing.is_none() {
                this.writing = this.prepare_next_write();
            }
            if !this.poll_write(context) {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for PersistedRun {
    fn drop(&mut self) {
        let Some(releasing) = self.begin_release() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(releasing);
        }
    }
}
