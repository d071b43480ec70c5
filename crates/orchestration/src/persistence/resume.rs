//! Resumption and abandonment of stored runs.

use std::{collections::HashMap, sync::Arc};

use switchboard_domain::{ModelId, RunRecord, RunState, SessionStoreError, StoredEvent};

use super::{
    DurableRunError, DurableRuns,
    lease::RunLease,
    no_such_run_error,
    persisted_run::{PersistedEvent, PersistedRun},
};
use crate::{
    Agent, RestoreError, Run, RunEvent, RunEventKind, RunOptions, SnapshotPosition,
    observe::audit::serialized_name,
};

/// Maximum number of events that one read from the store returns.
const MAX_PAGE_EVENTS: u32 = 1_000;

/// A stored run that this process has the exclusive right (lease) to execute.
/// [`DurableRuns::resume_run`] resumes it.
///
/// Dropping it releases the run.
#[derive(derive_more::Debug)]
#[debug("LeasedRun {{ record: {record:?}, .. }}")]
pub struct LeasedRun {
    record: RunRecord,
    stored: RestoredRun,
    lease: RunLease,
}

/// Data of a run that was read from the store.
struct RestoredRun {
    run: Box<Run>,
    /// Position in the run's messages. All messages before this position are in the store.
    mark: SnapshotPosition,
    /// Whether the run has no stored state, because its process ended before the first checkpoint.
    /// The run then starts again, with the settings of the agent that resumes it.
    is_stateless: bool,
    /// Published text of a model response that was interrupted because the process of the run
    /// ended. Empty if no response was interrupted.
    partial_text: String,
}

impl LeasedRun {
    /// Returns the stored record of the run.
    pub fn run_record(&self) -> &RunRecord {
        &self.record
    }

    /// Returns the restored run with its model, recipe, options and open approval requests.
    ///
    /// If the process ended before the first checkpoint, only the model and the conversation are
    /// restored.
    pub fn restored_run(&self) -> &Run {
        &self.stored.run
    }

    /// Returns the restored run, so that the caller can change its settings.
    ///
    /// If no state of the run was stored, only three changes have an effect: the step limit, the
    /// approval rules and the response delivery. All other settings come from the agent that
    /// resumes the run.
    pub fn restored_run_mut(&mut self) -> &mut Run {
        &mut self.stored.run
    }

    /// Releases the run without changing it. Errors of the store are only logged.
    pub async fn release_run(self) {
        self.lease.release_run().await;
    }

    /// Returns `true` if only the model and the conversation of the run were stored. The approvals
    /// and limits of the run are then unknown.
    pub fn lacks_run_settings(&self) -> bool {
        self.stored.is_stateless
    }
}

impl DurableRuns {
    /// Leases a run that waits for a person or whose process ended. Returns
    /// [`SessionStoreError::Busy`] while a process executes the run.
    ///
    /// [`LeasedRun::restored_run`] describes the run, so that the caller can create its agent.
    pub async fn acquire_run(&self, run: &str) -> Result<LeasedRun, DurableRunError> {
        let (record, lease) = self.acquire_lease(run).await?;
        match self.restore_run(&record).await {
            Ok(stored) => Ok(LeasedRun {
                record,
                stored,
                lease,
            }),
            Err(error) => {
                lease.release_run().await;
                Err(error)
            }
        }
    }

    /// Resumes a leased run with the models, tools and approver of `agent`.
    pub fn resume_run(&self, agent: &Agent, taken: LeasedRun) -> PersistedRun {
        let LeasedRun {
            record,
            stored,
            lease,
        } = taken;
        let (mut run, mark) = (stored.run, stored.mark);
        if stored.is_stateless {
            let (owner, session) = (self.owner.clone(), Some(record.session.0.clone()));
            let messages = run.messages().to_vec();
            let mut created = agent.create_run(record.id.clone(), messages, owner, session);
            created.set_next_event_number(run.next_event_number());
            created.copy_non_default_settings(&run);
            *run = created;
        }
        let resumed = !stored.is_stateless || record.last_event > 0;
        PersistedRun::drive_leased_run(agent, record, *run, mark, resumed, lease)
    }

    /// Ends a waiting or interrupted run without resuming it.
    ///
    /// Open tool calls get a result that states the end, and the messages go into the session. The
    /// last events are stored and returned. A run whose stored data cannot be read is only marked
    /// as ended.
    pub async fn abandon_run(&self, run: &str) -> Result<Vec<PersistedEvent>, DurableRunError> {
        let (record, lease) = self.acquire_lease(run).await?;
        let stored = match self.restore_run(&record).await {
            Ok(stored) => stored,
            Err(DurableRunError::Unreadable { source, .. }) => {
                let error = &source as &dyn std::error::Error;
                tracing::warn!(
                    run,
                    error,
                    "abandoning a run whose stored form cannot be read"
                );
                let mut run = self.new_run_from_conversation(&record, Vec::new());
                run.resume_event_numbering(record.last_event, []);
                RestoredRun {
                    run,
                    mark: SnapshotPosition::default(),
                    is_stateless: true,
                    partial_text: String::new(),
                }
            }
            Err(error) => {
                lease.release_run().await;
                return Err(error);
            }
        };
        self.end_run(record, stored, lease).await
    }

    async fn acquire_lease(&self, run: &str) -> Result<(RunRecord, RunLease), DurableRunError> {
        let before = self.runs.find_run(&self.owner, run).await?;
        let before = before.ok_or_else(|| no_such_run_error(run))?;
        // The session does not change before the end of the run, so it can be read before the lease
        // of the run is acquired.
        let session = self.sessions.find_session(&self.owner, &before.session);
        let session = session.await?;
        let session = session.ok_or_else(|| SessionStoreError::NotFound {
            id: before.session.clone(),
        })?;
        let (durable_runs, run) = (self.clone(), run.to_owned());
        let release_state = match before.state {
            RunState::Waiting => RunState::Waiting,
            _ => RunState::Interrupted,
        };
        let taking = async move {
            let local = durable_runs.local_runs.find_or_add_run(&run);
            let _transition = local.lock_lease_changes().await;
            let (runs, owner) = (&durable_runs.runs, &durable_runs.owner);
            let taken = runs.acquire_run(owner, &run).await;
            // If another task of this process has leased the run, `acquire_run` failed without
            // leasing it. A release here would take the run from that task.
            let is_unleased = !local.is_leased();
            match taken {
                Err(error @ SessionStoreError::Storage { .. }) if is_unleased => {
                    // The store may have leased the run despite the error. The new lease is dropped
                    // here, and the drop releases the run.
                    let mut lease = durable_runs.new_lease(&run, session.messages);
                    lease.set_run_state_on_release(release_state);
                    Err(error.into())
                }
                Err(error) => Err(error.into()),
                Ok(record) => {
                    let mut lease = durable_runs.new_lease(&run, session.messages);
                    lease.set_run_state_on_release(release_state);
                    Ok((record, lease))
                }
            }
        };
        // The spawned task completes even if the caller's future is dropped. Otherwise the store
        // could record this process as the owner of the run without a `RunLease` that releases the
        // run.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return taking.await;
        };
        match runtime.spawn(taking).await {
            Ok(taken) => taken,
            Err(error) => Err(SessionStoreError::Storage {
                operation: "acquire a run",
                source: Box::new(error),
            }
            .into()),
        }
    }

    /// Reads the data of a leased run from the store. Returns [`DurableRunError::Unreadable`] if
    /// the data cannot be read.
    async fn restore_run(&self, record: &RunRecord) -> Result<RestoredRun, DurableRunError> {
        let restored = self.restore_stored_run(record).await;
        restored.map_err(|error| match error {
            // This version cannot read the stored data, so a retry does not help. The error becomes
            // `DurableRunError::Unreadable`, for which `abandon_run` can still end the run.
            DurableRunError::Store(error @ SessionStoreError::Unreadable { .. }) => {
                unreadable_run_error(&record.id, RestoreError::Stored(error))
            }
            error => error,
        })
    }

    async fn restore_stored_run(&self, record: &RunRecord) -> Result<RestoredRun, DurableRunError> {
        let snapshot = self.runs.load_snapshot(&self.owner, &record.id).await?;
        let is_stateless = snapshot.is_none();
        let (mut run, mark) = if let Some(snapshot) = snapshot {
            let run = Run::from_snapshot(snapshot).and_then(|run| run.verify_run_id(&record.id));
            let run = run.map_err(|source| unreadable_run_error(&record.id, source))?;
            let mark = run.snapshot_position();
            // The owner and the session come from the record in the store. The owner and session in
            // the stored state of the run are ignored.
            let session = Some(record.session.0.clone());
            let run = run.with_principal(self.owner.clone(), session);
            (Box::new(run), mark)
        } else {
            let messages = self.sessions.load_messages(&self.owner, &record.session, 0);
            let run = self.new_run_from_conversation(record, messages.await?);
            (run, SnapshotPosition::default())
        };
        let from = run.next_event_number().min(record.last_event + 1);
        let stored = self.read_events(record, from - 1).await?;
        let partial_text = find_interrupted_text(&stored);
        let stored = stored.iter().map(|event| &event.kind);
        run.resume_event_numbering(record.last_event, stored);
        Ok(RestoredRun {
            run,
            mark,
            is_stateless,
            partial_text,
        })
    }

    /// Creates a run that has only the id, the model and the conversation. Used if the state of the
    /// run was never stored or cannot be read.
    fn new_run_from_conversation(
        &self,
        record: &RunRecord,
        messages: Vec<Arc<switchboard_domain::Message>>,
    ) -> Box<Run> {
        let model = record.model.parse();
        let model = model.unwrap_or_else(|_| ModelId::new("unknown", record.model.clone()));
        let run = Run::new(record.id.clone(), model, messages, RunOptions::default());
        let session = Some(record.session.0.clone());
        Box::new(run.with_principal(self.owner.clone(), session))
    }

    /// Reads all stored events of a run with numbers above `after`.
    async fn read_events(
        &self,
        record: &RunRecord,
        mut after: u64,
    ) -> Result<Vec<RunEvent>, DurableRunError> {
        let mut events = Vec::new();
        while after < record.last_event {
            let (owner, run) = (&self.owner, &record.id);
            let page = self.runs.load_events(owner, run, after, MAX_PAGE_EVENTS);
            let page = page.await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for stored in page {
                let event = serde_json::from_str(&stored.json);
                events.push(event.map_err(|error| {
                    let error: serde_json::Error = error;
                    unreadable_run_error(&record.id, error.into())
                })?);
            }
        }
        Ok(events)
    }

    /// Cancels a restored run, stores its last events and messages, and releases the run. Returns
    /// the events.
    async fn end_run(
        &self,
        record: RunRecord,
        stored: RestoredRun,
        lease: RunLease,
    ) -> Result<Vec<PersistedEvent>, DurableRunError> {
        let mut run = stored.run;
        let time = jiff::Timestamp::now();
        let mut kinds = run.take_unemitted_events();
        // A person may have read the interrupted answer, so the conversation must contain it.
        run.set_partial_answer(stored.partial_text);
        kinds.extend(run.cancel_run(None, &HashMap::new()));
        let report = run.build_report().map(Box::new);
        kinds.extend(report.map(|report| RunEventKind::RunFinished { report }));
        let run_id: Arc<str> = record.id.as_str().into();
        let events = (run.next_event_number()..).zip(kinds);
        let events = events.map(|(seq, kind)| RunEvent {
            run_id: Arc::clone(&run_id),
            seq,
            time,
            kind,
        });
        let persisted: Result<Vec<PersistedEvent>, _> = events.map(PersistedEvent::new).collect();
        let persisted = persisted?;
        let stored = persisted.iter().map(PersistedEvent::to_stored_event);
        let stored: Vec<StoredEvent> = stored.collect();
        let outcome = run.outcome().map(|outcome| serialized_name(&outcome));
        let messages = run.session_messages();
        let finished = lease.finish_run(&stored, RunState::Finished, outcome, &messages);
        finished.await?;
        Ok(persisted)
    }
}

fn unreadable_run_error(run: &str, source: RestoreError) -> DurableRunError {
    DurableRunError::Unreadable {
        run: run.to_owned(),
        source,
    }
}

/// Returns the published text of the model response that is incomplete at the end of `events`.
/// Returns an empty text if the last response is complete.
fn find_interrupted_text(events: &[RunEvent]) -> String {
    let mut partial_text = String::new();
    for event in events {
        match &event.kind {
            RunEventKind::RunStarted { .. }
            | RunEventKind::ModelCallStarted { .. }
            | RunEventKind::ModelCallFinished { .. } => partial_text.clear(),
            RunEventKind::TextDelta { text } => partial_text.push_str(text),
            _ => {}
        }
    }
    partial_text
}
