//! Operations on existing runs: show, decide, cancel, continue.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde::Serialize;
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, Elicitation, ElicitationAnswer, Principal, RunRecord,
    RunState, SessionId, SessionStoreError,
};
use switchboard_orchestration::{Run, RunEventKind, RunReport, persistence::DurableRunError};
use utoipa::ToSchema;

use super::{
    ActiveRun, EventReader, LoggedEvent, RunHub, RunStatus, lock_mutex,
    resume_run::{call_not_waiting_error, client_tool_decision_error, convert_lease_error},
    spawn_and_await,
};
use crate::{Problem, openapi::schema};

/// Time limit for a decision or a cancellation to take effect. After this time, the response
/// contains the current state of the run, even if the run has not changed yet.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// A run with the tool calls that wait for approval and the elicitation requests that wait for an
/// answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunDetails)]
pub(crate) struct RunView {
    /// The record of the run: its ids, state, model and times.
    #[schema(value_type = schema::RunRecord)]
    pub(crate) run: RunRecord,
    /// Tool calls that wait for an approval decision. Decide with
    /// `POST /runs/{id}/approvals/{call_id}`, where the call id is `tool_use.id`.
    #[schema(value_type = Vec<schema::ApprovalRequest>)]
    waiting: Vec<ApprovalRequest>,
    /// Elicitation requests of MCP servers. Answer with `POST /runs/{id}/questions/{question_id}`.
    questions: Vec<QuestionDetails>,
    /// The report of the run, or `null` until the run is finished.
    #[schema(value_type = Option<schema::RunReport>)]
    report: Option<Box<RunReport>>,
}

/// An open elicitation request of an MCP server.
#[derive(Debug, Serialize, ToSchema)]
struct QuestionDetails {
    /// The id of the elicitation request, which the URL of the answer contains.
    id: String,
    /// The content of the elicitation request.
    #[schema(value_type = schema::Elicitation)]
    question: Elicitation,
}

impl RunHub {
    /// Returns the current state of a run with its waiting tool calls and elicitation requests.
    pub(crate) async fn run_view(&self, owner: &Principal, run: &str) -> Result<RunView, Problem> {
        if let Some(active) = self.find_active_run(owner, run) {
            let (waiting, report) = match active.log.run_status() {
                RunStatus::Suspended(waiting) => (waiting, None),
                RunStatus::Finished(report) => (Vec::new(), Some(report)),
                RunStatus::AwaitingInput(_) | RunStatus::Running | RunStatus::Interrupted => {
                    (active.approvals.undecided_requests(), None)
                }
            };
            let questions = self.engine().pending_questions();
            let questions = questions
                .map(|it| it.open_questions(run))
                .unwrap_or_default();
            let questions = questions.into_iter().map(|open| QuestionDetails {
                id: open.id,
                question: open.question,
            });
            return Ok(RunView {
                run: active.current_run_record(),
                waiting,
                questions: questions.collect(),
                report,
            });
        }
        let record = self.read_stored_record(owner, run).await?;
        let (waiting, report) = match record.state {
            RunState::Waiting | RunState::Interrupted => {
                (self.stored_waiting_calls(owner, run).await?, None)
            }
            RunState::Finished => (Vec::new(), self.read_run_report(owner, &record).await?),
            RunState::Running => (Vec::new(), None),
        };
        Ok(RunView {
            run: record,
            waiting,
            questions: Vec::new(),
            report,
        })
    }

    /// Returns the tool calls of a stored run that wait for approval. The list is empty if the
    /// stored state of the run is missing or cannot be read, for example because another version of
    /// the program wrote it.
    async fn stored_waiting_calls(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Vec<ApprovalRequest>, Problem> {
        let unreadable = |error: &(dyn std::error::Error + 'static)| {
            tracing::warn!(run, error, "failed to read the stored run");
            Ok(Vec::new())
        };
        let snapshot = match self.shared.runs.load_snapshot(owner, run).await {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return Ok(Vec::new()),
            Err(error @ SessionStoreError::Unreadable { .. }) => return unreadable(&error),
            Err(error) => return Err(error.into()),
        };
        match Run::from_snapshot(snapshot) {
            Ok(run) => Ok(run.pending_approvals()),
            Err(error) => unreadable(&error),
        }
    }

    /// Reads the report of a finished run from the last event of the run. Returns `None` if this
    /// event is missing or contains no report.
    async fn read_run_report(
        &self,
        owner: &Principal,
        record: &RunRecord,
    ) -> Result<Option<Box<RunReport>>, Problem> {
        let before = record.last_event.saturating_sub(1);
        let durable_runs = self.durable_runs(owner);
        let last = durable_runs.read_event_page(&record.id, before, 1).await?;
        let last = last.into_iter().next().map(LoggedEvent::from);
        let last = last.and_then(|logged| logged.parsed_event());
        Ok(last.and_then(|event| match &event.kind {
            RunEventKind::RunFinished { report } => Some(report.clone()),
            _ => None,
        }))
    }

    /// Reads the stored record of a run and removes its parameters. Fails if the run does not
    /// exist.
    async fn read_stored_record(&self, owner: &Principal, run: &str) -> Result<RunRecord, Problem> {
        let record = self.find_run_record(owner, run).await?;
        let mut record = record.ok_or_else(|| Problem::run_not_found(run))?;
        // Clients do not need the stored parameters, which may be large.
        record.parameters = None;
        Ok(record)
    }

    /// Returns a reader of the events of a run after the event numbered `after`.
    pub(crate) async fn event_reader(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
    ) -> Result<EventReader, Problem> {
        if let Some(active) = self.find_active_run(owner, run) {
            return Ok(active.event_reader(self, after));
        }
        let record = self.read_stored_record(owner, run).await?;
        Ok(self.new_event_reader(owner, &record, after))
    }

    pub(super) fn new_event_reader(
        &self,
        owner: &Principal,
        record: &RunRecord,
        after: u64,
    ) -> EventReader {
        EventReader {
            hub: self.clone(),
            owner: owner.clone(),
            run: record.id.as_str().into(),
            session: Some(record.session.clone()),
            log: None,
            after,
            is_over: record.state == RunState::Finished && record.last_event <= after,
            ends_when_waiting: false,
            is_waiting: false,
            ready: VecDeque::new(),
            has_reread: false,
        }
    }

    pub(crate) async fn find_unfinished_run(
        &self,
        owner: &Principal,
        session: &SessionId,
    ) -> Result<Option<RunRecord>, Problem> {
        let newest = self.list_session_runs(owner, session, 1).await?;
        Ok(newest.into_iter().find(|it| it.state != RunState::Finished))
    }

    /// Returns the unfinished runs among the newest `limit` runs of a principal. A run that waits
    /// for a decision or an answer of a person has the state [`RunState::Waiting`], also while this
    /// process executes it.
    pub(crate) async fn list_unfinished_runs(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<RunRecord>, Problem> {
        let mut runs = self.shared.runs.list_runs(owner, None, limit).await?;
        runs.retain(|run| run.state != RunState::Finished);
        for run in &mut runs {
            run.parameters = None;
            let active = self.find_active_run(owner, &run.id);
            let status = active.map(|active| active.log.run_status());
            if matches!(status, Some(RunStatus::AwaitingInput(_))) {
                run.state = RunState::Waiting;
            }
        }
        Ok(runs)
    }

    /// Returns at most `limit` runs of a session, newest first.
    pub(crate) async fn list_session_runs(
        &self,
        owner: &Principal,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<RunRecord>, Problem> {
        let store = &self.shared.runs;
        let mut runs = store.list_runs(owner, Some(session), limit).await?;
        // Clients do not need the stored parameters, which may be large.
        for run in &mut runs {
            run.parameters = None;
        }
        Ok(runs)
    }

    /// Applies an approval decision about a tool call. A stored run is resumed with the decision.
    /// Fails for tools that the client executes, because only the client's result decides.
    pub(crate) async fn decide_call(
        &self,
        owner: &Principal,
        run: &str,
        call: &str,
        decision: ApprovalDecision,
    ) -> Result<RunRecord, Problem> {
        if let Some(active) = self.find_active_run(owner, run)
            && active.approvals.is_client_tool_call(call)
        {
            return Err(client_tool_decision_error(run, call));
        }
        self.decide_any_tool_call(owner, run, call, decision).await
    }

    /// Applies an approval decision about any waiting tool call, including calls of client tools. A
    /// decision about a client tool's call is accepted only while this process executes the run.
    pub(crate) async fn decide_any_tool_call(
        &self,
        owner: &Principal,
        run: &str,
        call: &str,
        decision: ApprovalDecision,
    ) -> Result<RunRecord, Problem> {
        let (hub, owner) = (self.clone(), owner.clone());
        let (run, call) = (run.to_owned(), call.to_owned());
        spawn_and_await(async move {
            let lock = hub.run_lock(&run);
            let _guard = lock.lock().await;
            if let Some(active) = hub.find_active_run(&owner, &run) {
                let last = active.log.last_seq();
                if !active.approvals.submit_decision(&call, decision.clone()) {
                    let waiting = active.approvals.undecided_requests();
                    return Err(call_not_waiting_error(&call, &waiting));
                }
                if wait_until_decision_applied(&active, last, &call).await {
                    return Ok(active.current_run_record());
                }
                // The run was stored before it applied the decision, so it is resumed with the
                // decision below.
            }
            let decision = Some((call.as_str(), decision));
            let resumed = hub.resume_stored_run(&owner, &run, decision).await;
            resumed.map(|resumed| resumed.active.current_run_record())
        })
        .await
    }

    /// Answers an elicitation request. The request remains open if the answer is invalid.
    pub(crate) async fn answer_question(
        &self,
        owner: &Principal,
        run: &str,
        question: &str,
        answer: ElicitationAnswer,
    ) -> Result<RunRecord, Problem> {
        let not_open = || {
            Problem::state_conflict(format!(
                "question `{question}` is not open: it was answered, or the run continued without \
                 an answer; GET /runs/{run} lists the open questions"
            ))
        };
        let Some(active) = self.find_active_run(owner, run) else {
            self.read_stored_record(owner, run).await?;
            return Err(not_open());
        };
        let questions = self.engine().pending_questions().ok_or_else(not_open)?;
        let mut open = questions.open_questions(run).into_iter();
        let asked = open.find(|it| it.id == question).ok_or_else(not_open)?;
        asked.validate_answer(&answer).map_err(|error| {
            let detail = format!("the answer does not match the question: {error}");
            Problem::invalid_field("content", detail)
        })?;
        questions
            .answer_question(run, question, answer)
            .map_err(|_| not_open())?;
        Ok(active.current_run_record())
    }

    /// Cancels a run. A run that is already finished does not change.
    pub(crate) async fn cancel_run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<RunRecord, Problem> {
        let (hub, owner, run) = (self.clone(), owner.clone(), run.to_owned());
        spawn_and_await(async move {
            let lock = hub.run_lock(&run);
            let _guard = lock.lock().await;
            if let Some(active) = hub.find_active_run(&owner, &run) {
                active.cancel.cancel_run();
                let mut changes = active.log.subscribe_changes();
                let ended = changes.wait_for(|()| active.log.run_status().is_final());
                // Tools may react slowly to the cancellation, so the response does not wait for
                // them forever.
                let _ = tokio::time::timeout(OPERATION_TIMEOUT, ended).await;
                let is_stored = matches!(
                    active.log.run_status(),
                    RunStatus::Suspended(_) | RunStatus::Interrupted
                );
                if !(is_stored && active.is_durable) {
                    return Ok(active.current_run_record());
                }
                // The run was stored before it could react to the cancellation, so the stored run
                // is cancelled below.
            }
            let record = hub.read_stored_record(&owner, &run).await?;
            if record.state == RunState::Finished {
                return Ok(record);
            }
            let ended = hub.durable_runs(&owner).abandon_run(&run).await;
            ended.map_err(|error| convert_lease_error(error.into(), &run))?;
            hub.notify_session_change(&record.session);
            hub.read_stored_record(&owner, &run).await
        })
        .await
    }

    /// Resumes a waiting or interrupted run. A run that is already active does not change. For a
    /// finished run, the result is an error with status 409.
    pub(crate) async fn continue_run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<RunRecord, Problem> {
        let (hub, owner, run) = (self.clone(), owner.clone(), run.to_owned());
        spawn_and_await(async move {
            let lock = hub.run_lock(&run);
            let _guard = lock.lock().await;
            if let Some(active) = hub.find_active_run(&owner, &run) {
                return Ok(active.current_run_record());
            }
            let record = hub.read_stored_record(&owner, &run).await?;
            if record.state == RunState::Finished {
                return Err(Problem::state_conflict(format!(
                    "run `{run}` is finished: send a new message to its session (POST /chat with \
                     \"session_id\": \"{}\")",
                    record.session
                )));
            }
            let resumed = hub.resume_stored_run(&owner, &run, None).await;
            resumed.map(|resumed| resumed.active.current_run_record())
        })
        .await
    }

    /// Deletes a session with its messages, runs and approval decisions.
    pub(crate) async fn delete_session(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<(), Problem> {
        self.session_store().delete_session(owner, id).await?;
        self.engine().forget_session_approvals(owner, &id.0);
        self.notify_session_change(id);
        Ok(())
    }

    /// Returns the lock that prevents concurrent changes of a run, such as two resumptions.
    fn run_lock(&self, run: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = lock_mutex(&self.shared.run_locks);
        // A lock that only this map references is unused and can be removed.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(run.to_owned()).or_default())
    }
}

/// Waits until an event after the event numbered `last_event` shows that the run applied the
/// decision about `call`. Returns `false` if a durable run stopped before that, so that the stored
/// run must be resumed with the decision. Returns `true` after `OPERATION_TIMEOUT` even if the
/// decision is not applied yet.
async fn wait_until_decision_applied(active: &ActiveRun, last_event: u64, call: &str) -> bool {
    let mut changes = active.log.subscribe_changes();
    let applied = async {
        loop {
            changes.borrow_and_update();
            if active.log.has_decision_or_result_after(last_event, call) {
                return true;
            }
            if active.log.run_status().is_final() {
                return !active.is_durable;
            }
            let _ = changes.changed().await;
        }
    };
    // The wait is limited, because the run may first execute earlier tool calls.
    let applied = tokio::time::timeout(OPERATION_TIMEOUT, applied).await;
    applied.unwrap_or(true)
}

impl From<DurableRunError> for Problem {
    fn from(error: DurableRunError) -> Self {
        match error {
            DurableRunError::Store(error) => error.into(),
            DurableRunError::Unreadable { run, source } => Self::state_conflict(format!(
                "run `{run}` cannot be resumed ({source}): cancel it (POST /runs/{run}/cancel) and \
                 send the message again"
            )),
            error => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "failed to read or write a durable run");
                Self::internal_error()
            }
        }
    }
}
