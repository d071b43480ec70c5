//! Operations on existing runs: read, decide, cancel, resume.

use std::{sync::Arc, time::Duration};

use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ElicitationAnswer, Principal, RunRecord, RunState,
    SessionId, SessionStoreError,
};
use switchboard_orchestration::{
    Run, RunEventKind, RunReport, persistence::DurableRunError, questions::OpenQuestion,
};

use super::{
    Active, Hub, Logged, Reader, Standing, lock,
    start::{not_open, of_client},
    unhindered,
};
use crate::Problem;

/// Time limit for an operation. After it, the response contains the current state.
const PATIENCE: Duration = Duration::from_secs(5);

/// An unfinished run of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    /// The id.
    pub(crate) run: Arc<str>,
    /// The state.
    pub(crate) state: RunState,
}

/// A run with its waiting calls and questions.
pub(crate) struct RunView {
    /// The run.
    pub(crate) run: RunRecord,
    /// The calls that wait for a decision.
    pub(crate) waiting: Vec<ApprovalRequest>,
    /// The elicitation requests of servers.
    pub(crate) questions: Vec<OpenQuestion>,
    /// The report of a finished run.
    pub(crate) report: Option<Box<RunReport>>,
}

impl Hub {
    /// Returns the current state of a run.
    pub(crate) async fn view(&self, owner: &Principal, run: &str) -> Result<RunView, Problem> {
        if let Some(active) = self.active_run(owner, run) {
            let (waiting, report) = match active.log.standing() {
                Standing::Parked(waiting) => (waiting, None),
                Standing::Over(report) => (Vec::new(), Some(report)),
                Standing::Asking(_) | Standing::Running | Standing::Left => {
                    (active.desk.waiting(), None)
                }
            };
            let questions = self.engine().questions();
            return Ok(RunView {
                run: active.record(),
                waiting,
                questions: questions.map(|it| it.open(run)).unwrap_or_default(),
                report,
            });
        }
        let record = self.known(owner, run).await?;
        let waiting = match record.state {
            RunState::Waiting | RunState::Interrupted => self.stored_waiting(owner, run).await?,
            RunState::Running | RunState::Finished => Vec::new(),
        };
        let report = match record.state {
            RunState::Finished => self.report(owner, &record).await?,
            _ => None,
        };
        Ok(RunView {
            run: record,
            waiting,
            questions: Vec::new(),
            report,
        })
    }

    /// Returns the waiting calls of a stored run. A run that this version cannot read has none.
    async fn stored_waiting(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Vec<ApprovalRequest>, Problem> {
        let snapshot = match self.shared.runs.snapshot(owner, run).await {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return Ok(Vec::new()),
            Err(error @ SessionStoreError::Unreadable { .. }) => {
                tracing::warn!(run, %error, "a stored run cannot be read");
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        match Run::restore(snapshot) {
            Ok(run) => Ok(run.pending_approvals().into_iter().cloned().collect()),
            Err(error) => {
                tracing::warn!(run, %error, "a stored run cannot be read");
                Ok(Vec::new())
            }
        }
    }

    /// Returns the report of a finished run.
    async fn report(
        &self,
        owner: &Principal,
        record: &RunRecord,
    ) -> Result<Option<Box<RunReport>>, Problem> {
        let before = record.last_event.saturating_sub(1);
        let last = self
            .durable_runs(owner)
            .events(&record.id, before, 1)
            .await?;
        let last = last.into_iter().next().map(Logged::from);
        let last = last.and_then(|logged| logged.event());
        Ok(last.and_then(|event| match &event.kind {
            RunEventKind::RunFinished { report } => Some(report.clone()),
            _ => None,
        }))
    }

    async fn known(&self, owner: &Principal, run: &str) -> Result<RunRecord, Problem> {
        let record = self.record(owner, run).await?;
        let mut record = record.ok_or_else(|| Problem::no_run(run))?;
        // Only this program and its store need the parameters.
        record.parameters = None;
        Ok(record)
    }

    /// Returns a reader of the events after a position, for active and finished runs.
    pub(crate) async fn reader(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
    ) -> Result<Reader, Problem> {
        if let Some(active) = self.active_run(owner, run) {
            return Ok(active.reader(self, after));
        }
        let record = self.known(owner, run).await?;
        Ok(self.reader_of(owner, &record, after))
    }

    pub(super) fn reader_of(&self, owner: &Principal, record: &RunRecord, after: u64) -> Reader {
        let session = Some(record.session.clone());
        let id = record.id.as_str().into();
        Reader::new(self.clone(), owner.clone(), id, session, None, after)
    }

    /// Returns the unfinished run of a session.
    pub(crate) async fn open_run(
        &self,
        owner: &Principal,
        session: &SessionId,
    ) -> Result<Option<Open>, Problem> {
        let newest = self.shared.runs.runs(owner, Some(session), 1).await?;
        let open = newest.into_iter().find(|it| it.state != RunState::Finished);
        Ok(open.map(|record| Open {
            run: record.id.as_str().into(),
            state: record.state,
        }))
    }

    /// Returns the runs of a session, newest first.
    pub(crate) async fn runs_of(
        &self,
        owner: &Principal,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<RunRecord>, Problem> {
        let mut runs = self.shared.runs.runs(owner, Some(session), limit).await?;
        // Only this program and its store need the parameters.
        for run in &mut runs {
            run.parameters = None;
        }
        Ok(runs)
    }

    /// Decides about a waiting call. A stored run is resumed with the decision. Nobody else may
    /// decide about a call that the client makes itself.
    pub(crate) async fn decide(
        &self,
        owner: &Principal,
        run: &str,
        call: &str,
        word: ApprovalDecision,
    ) -> Result<RunRecord, Problem> {
        if let Some(active) = self.active_run(owner, run)
            && active.desk.is_of_client(call)
        {
            return Err(of_client(run, call));
        }
        self.decide_for_client(owner, run, call, word).await
    }

    /// Applies the result of a call that the client has made.
    pub(crate) async fn decide_for_client(
        &self,
        owner: &Principal,
        run: &str,
        call: &str,
        word: ApprovalDecision,
    ) -> Result<RunRecord, Problem> {
        let (hub, owner) = (self.clone(), owner.clone());
        let (run, call) = (run.to_owned(), call.to_owned());
        unhindered(async move { hub.decide_now(&owner, &run, &call, word).await }).await
    }

    async fn decide_now(
        &self,
        owner: &Principal,
        run: &str,
        call: &str,
        word: ApprovalDecision,
    ) -> Result<RunRecord, Problem> {
        let turn = self.turn(run);
        let _turn = turn.lock().await;
        if let Some(active) = self.active_run(owner, run) {
            let seen = active.log.last();
            if !active.desk.leave(call, word.clone()) {
                let asked = active.desk.waiting();
                let asked = asked.iter().map(|request| request.tool_use.id.as_str());
                return Err(not_open(call, asked));
            }
            if self.is_taken(&active, seen, call).await {
                return Ok(active.record());
            }
            // The run was stored meanwhile, without the decision.
        }
        let started = self.resume(owner, run, Some((call, word))).await;
        let started = started.map_err(|problem| elsewhere(problem, run))?;
        Ok(started.active.record())
    }

    /// Returns whether the decision was or will be applied. `false` if the run ended without it.
    async fn is_taken(&self, active: &Active, seen: u64, call: &str) -> bool {
        let mut news = active.log.news();
        let taken = async {
            loop {
                news.borrow_and_update();
                if active.log.settled_after(seen, call) {
                    return true;
                }
                if active.log.standing().is_final() {
                    return !active.is_kept;
                }
                let _ = news.changed().await;
            }
        };
        // Earlier calls may take long, and the decision waits for them.
        tokio::time::timeout(PATIENCE, taken).await.unwrap_or(true)
    }

    /// Answers an elicitation request. An invalid answer leaves it open.
    pub(crate) fn answer(
        &self,
        owner: &Principal,
        run: &str,
        question: &str,
        answer: ElicitationAnswer,
    ) -> Result<RunRecord, Problem> {
        let gone = || {
            Problem::conflict(format!(
                "the question `{question}` is not open: it was answered, or the run went on without; GET \
                 /runs/{run} shows those that are"
            ))
        };
        let active = self.active_run(owner, run).ok_or_else(gone)?;
        let questions = self.engine().questions().ok_or_else(gone)?;
        let mut open = questions.open(run).into_iter();
        let asked = open.find(|it| it.id == question).ok_or_else(gone)?;
        asked.check(&answer).map_err(|why| {
            let detail = format!("the answer does not fit what is asked: {why}");
            Problem::invalid("content", detail)
        })?;
        questions
            .answer(run, question, answer)
            .map_err(|_| gone())?;
        Ok(active.record())
    }

    /// Returns whether a run is finished and has no later event.
    pub(crate) async fn is_over(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
    ) -> Result<bool, Problem> {
        if self.active_run(owner, run).is_some() {
            return Ok(false);
        }
        let record = self.record(owner, run).await?;
        Ok(record.is_some_and(|it| it.state == RunState::Finished && it.last_event <= after))
    }

    /// Checks that the run exists.
    pub(crate) async fn check(&self, owner: &Principal, run: &str) -> Result<(), Problem> {
        if self.active_run(owner, run).is_some() {
            return Ok(());
        }
        self.known(owner, run).await.map(|_| ())
    }

    /// Cancels a run. A finished run does not change.
    pub(crate) async fn cancel(&self, owner: &Principal, run: &str) -> Result<RunRecord, Problem> {
        let (hub, owner, run) = (self.clone(), owner.clone(), run.to_owned());
        unhindered(async move { hub.cancel_now(&owner, &run).await }).await
    }

    async fn cancel_now(&self, owner: &Principal, run: &str) -> Result<RunRecord, Problem> {
        let turn = self.turn(run);
        let _turn = turn.lock().await;
        if let Some(active) = self.active_run(owner, run) {
            active.cancel.cancel();
            let mut news = active.log.news();
            let ended = async {
                while !active.log.standing().is_final() {
                    let _ = news.changed().await;
                }
            };
            // A tool may be slow to react to the cancellation.
            let _ = tokio::time::timeout(PATIENCE, ended).await;
            let is_stored = matches!(active.log.standing(), Standing::Parked(_) | Standing::Left);
            if !(is_stored && active.is_kept) {
                return Ok(active.record());
            }
            // The run was stored, or released after a fault, before the cancellation.
        }
        let record = self.known(owner, run).await?;
        if record.state == RunState::Finished {
            return Ok(record);
        }
        let ended = self.durable_runs(owner).abandon(run).await;
        ended.map_err(|error| elsewhere(error.into(), run))?;
        self.tell(&record.session);
        self.known(owner, run).await
    }

    /// Resumes a waiting or interrupted run. An active run does not change.
    pub(crate) async fn go_on(&self, owner: &Principal, run: &str) -> Result<RunRecord, Problem> {
        let (hub, owner, run) = (self.clone(), owner.clone(), run.to_owned());
        unhindered(async move { hub.go_on_now(&owner, &run).await }).await
    }

    async fn go_on_now(&self, owner: &Principal, run: &str) -> Result<RunRecord, Problem> {
        let turn = self.turn(run);
        let _turn = turn.lock().await;
        if let Some(active) = self.active_run(owner, run) {
            return Ok(active.record());
        }
        let record = self.known(owner, run).await?;
        if record.state == RunState::Finished {
            return Err(Problem::conflict(format!(
                "run `{run}` is over: ask anew in its session (POST /chat with \"session_id\": \"{}\")",
                record.session
            )));
        }
        let started = self.resume(owner, run, None).await;
        let started = started.map_err(|problem| elsewhere(problem, run))?;
        Ok(started.active.record())
    }

    /// Deletes a session.
    pub(crate) async fn delete(&self, owner: &Principal, id: &SessionId) -> Result<(), Problem> {
        let deleted = self.sessions().delete(owner, id).await;
        deleted.map_err(|error| match &error {
            SessionStoreError::Busy { session, run } => Problem::busy(&session.0, run),
            _ => error.into(),
        })?;
        self.engine().forget(owner, &id.0);
        self.tell(id);
        Ok(())
    }

    /// Waits for the exclusive right to act on an inactive run. Its holder may resume the run.
    fn turn(&self, run: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut taking = lock(&self.shared.taking);
        // The holder and each waiting task have a reference.
        taking.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(taking.entry(run.to_owned()).or_default())
    }
}

/// Returns the error for a run that another process executes.
fn elsewhere(problem: Problem, run: &str) -> Problem {
    if problem.kind != "session-busy" {
        return problem;
    }
    Problem {
        run: Some(run.into()),
        ..Problem::conflict(format!(
            "another process is at work on run `{run}`: do it there, or end that process; its events can be read \
             here (GET /runs/{run}/events)"
        ))
    }
}

impl From<DurableRunError> for Problem {
    fn from(error: DurableRunError) -> Self {
        match error {
            DurableRunError::Store(error) => error.into(),
            DurableRunError::Unreadable { run, source } => Self::conflict(format!(
                "run `{run}` cannot be resumed ({source}): end it (POST /runs/{run}/cancel) and ask anew"
            )),
            error => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "failed to read or write a durable run");
                Self::internal()
            }
        }
    }
}
