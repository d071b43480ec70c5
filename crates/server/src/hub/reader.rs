//! Reads the events of a run, from memory and from the store, wherever it goes on.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::{Stream, future::BoxFuture};
use futures_util::FutureExt as _;
use switchboard_domain::{Principal, RunState, SessionId};
use tokio::sync::watch;

use super::{
    Hub,
    log::{Found, Logged, RunLog, Standing},
};

/// Events that are read from the store at once.
const PAGE: u32 = 256;
/// How often the store is asked about a run that another process is at work on.
const ELSEWHERE: Duration = Duration::from_millis(500);

/// The events of a run behind a position, as they come. Ends with the run, and when the server stops.
pub(crate) struct Reader {
    at: At,
    until_waiting: bool,
}

/// Where the cursor is: here, or lent to the future that moves it.
enum At {
    Here(Box<Cursor>),
    Moving(BoxFuture<'static, (Box<Cursor>, Option<Logged>)>),
    /// Only while it is moved from the one to the other.
    Nowhere,
}

struct Cursor {
    hub: Hub,
    owner: Principal,
    run: Arc<str>,
    session: Option<SessionId>,
    /// The log that the run writes in this process, while it does.
    log: Option<(Arc<RunLog>, watch::Receiver<()>)>,
    after: u64,
    ready: VecDeque<Logged>,
    until_waiting: bool,
    is_waiting: bool,
    looked_twice: bool,
    ended: bool,
}

impl Reader {
    pub(super) fn new(
        hub: Hub,
        owner: Principal,
        run: Arc<str>,
        session: Option<SessionId>,
        log: Option<&Arc<RunLog>>,
        after: u64,
    ) -> Self {
        let cursor = Cursor {
            hub,
            owner,
            run,
            session,
            log: log.map(|log| (Arc::clone(log), log.news())),
            after,
            ready: VecDeque::new(),
            until_waiting: false,
            is_waiting: false,
            looked_twice: false,
            ended: false,
        };
        Self {
            at: At::Here(Box::new(cursor)),
            until_waiting: false,
        }
    }

    /// Also ends when the run waits for a person, after everything that was told before that.
    #[must_use]
    pub(crate) fn until_waiting(mut self) -> Self {
        self.until_waiting = true;
        self
    }

    /// After its end: it ended because the run waits for a person.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.at, At::Here(cursor) if cursor.is_waiting)
    }
}

impl Stream for Reader {
    type Item = Logged;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Logged>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.at, At::Nowhere) {
                At::Here(mut cursor) => {
                    if let Some(event) = cursor.ready.pop_front() {
                        this.at = At::Here(cursor);
                        return Poll::Ready(Some(event));
                    }
                    if cursor.ended {
                        this.at = At::Here(cursor);
                        return Poll::Ready(None);
                    }
                    cursor.until_waiting = this.until_waiting;
                    this.at = At::Moving(Box::pin(async move {
                        let event = cursor.next().await;
                        cursor.ended |= event.is_none();
                        (cursor, event)
                    }));
                }
                At::Moving(mut moving) => match moving.poll_unpin(cx) {
                    Poll::Ready((cursor, event)) => {
                        this.at = At::Here(cursor);
                        return Poll::Ready(event);
                    }
                    Poll::Pending => {
                        this.at = At::Moving(moving);
                        return Poll::Pending;
                    }
                },
                At::Nowhere => return Poll::Ready(None),
            }
        }
    }
}

/// Whether there may be more.
enum More {
    Yes,
    No,
}

impl Cursor {
    async fn next(&mut self) -> Option<Logged> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let more = match self.log.take() {
                Some((log, news)) => self.read_log(log, news).await,
                None => self.read_store().await,
            };
            if matches!(more, More::No) && self.ready.is_empty() {
                return None;
            }
        }
    }

    fn take_in(&mut self, events: Vec<Logged>) {
        if let Some(last) = events.last() {
            self.after = last.seq;
        }
        self.ready.extend(events);
    }

    async fn read_log(&mut self, log: Arc<RunLog>, mut news: watch::Receiver<()>) -> More {
        // Whatever comes after this is looked at wakes us below.
        news.borrow_and_update();
        match log.after(self.after) {
            Found::Events(events) => {
                self.take_in(events);
                self.log = Some((log, news));
                More::Yes
            }
            Found::Older => {
                let more = self.page().await;
                self.log = Some((log, news));
                more
            }
            Found::Nothing(Standing::Over(_)) => More::No,
            Found::Nothing(Standing::Asking(_) | Standing::Parked(_)) if self.until_waiting => {
                self.is_waiting = true;
                More::No
            }
            // It goes on in another log.
            Found::Nothing(Standing::Parked(_) | Standing::Left) => {
                if self.session.is_some() {
                    More::Yes
                } else {
                    More::No
                }
            }
            Found::Nothing(Standing::Running | Standing::Asking(_)) => {
                let stopped = self.hub.is_cut();
                tokio::select! {
                    _ = news.changed() => {}
                    () = stopped.cancelled() => return More::No,
                }
                self.log = Some((log, news));
                More::Yes
            }
        }
    }

    /// Reads what the store has. `No` if that is nothing, or cannot be had.
    async fn page(&mut self) -> More {
        if self.session.is_none() {
            // A run that nobody keeps went on without this reader.
            return More::No;
        }
        let durable_runs = self.hub.durable_runs(&self.owner);
        match durable_runs.events(&self.run, self.after, PAGE).await {
            Ok(events) if events.is_empty() => More::No,
            Ok(events) => {
                self.take_in(events.into_iter().map(Logged::from).collect());
                More::Yes
            }
            Err(error) => {
                let run = &*self.run;
                tracing::warn!(run, %error, "the events of a run cannot be read");
                More::No
            }
        }
    }

    async fn read_store(&mut self) -> More {
        let Some(session) = self.session.clone() else {
            return More::No;
        };
        // Before the store is read: what begins after that tells of itself.
        let mut door = self.hub.door(&session);
        if let Some(log) = self.hub.log_of(&self.owner, &self.run) {
            let news = log.news();
            self.log = Some((log, news));
            return More::Yes;
        }
        if matches!(self.page().await, More::Yes) {
            return More::Yes;
        }
        let every = match self.hub.record(&self.owner, &self.run).await {
            Ok(Some(record)) => match record.state {
                // It went on between the two looks; what is not there at the second look is gone.
                RunState::Finished if record.last_event > self.after && !self.looked_twice => {
                    self.looked_twice = true;
                    return More::Yes;
                }
                RunState::Finished => return More::No,
                RunState::Running => ELSEWHERE,
                RunState::Waiting | RunState::Interrupted if self.until_waiting => {
                    self.is_waiting = record.state == RunState::Waiting;
                    return More::No;
                }
                // Somebody else may go on with it.
                RunState::Waiting | RunState::Interrupted => self.hub.options().keep_alive,
            },
            Ok(None) | Err(_) => return More::No,
        };
        let stopped = self.hub.is_stopping();
        tokio::select! {
            _ = door.changed() => More::Yes,
            () = tokio::time::sleep(every) => More::Yes,
            () = stopped.cancelled() => More::No,
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}
