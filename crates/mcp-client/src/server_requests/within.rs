//! Within which request a server asks, and for whose deadline that counts.

use std::sync::Arc;

use rmcp::model::RequestId;
use tokio::sync::watch;

use crate::{
    calls::context::Caller,
    transport::open_requests::{OpenRequests, Unplaced},
};

/// How many questions of one server may wait for an answer at once. Further ones are cancelled unasked: no
/// honest server has so many.
pub(super) const MOST_QUESTIONS: usize = 16;
/// The same where it is known within which calls they are asked: those may be of many people.
const MOST_QUESTIONS_OF_CALLS: usize = 256;

/// Within which request a server asks.
#[derive(Clone)]
pub(crate) enum Within {
    /// This one.
    Known {
        /// `None` where whoever waits for the answer to it asks, and asks no more when it is given up.
        request: Option<RequestId>,
        caller: Arc<Caller>,
    },
    /// The server does not say.
    Unplaced(Unplaced),
}

impl Within {
    /// What a server wants to know by its answer.
    pub(crate) fn call(caller: &Arc<Caller>) -> Self {
        Self::Known {
            request: None,
            caller: Arc::clone(caller),
        }
    }

    /// Waits until nobody has a use for an answer.
    pub(crate) async fn over(&self, requests: &OpenRequests) {
        match self {
            Self::Known {
                request: Some(request),
                ..
            } => requests.ended(request).await,
            Self::Known { request: None, .. } => std::future::pending().await,
            Self::Unplaced(question) => question.over().await,
        }
    }

    /// Within what it is asked, if that is certain.
    pub(super) fn sole(&self) -> Option<Arc<Caller>> {
        match self {
            Self::Known { caller, .. } => Some(Arc::clone(caller)),
            Self::Unplaced(question) => question.sole(),
        }
    }
}

/// The questions of a server that wait for an answer.
#[derive(Default)]
pub(crate) struct Asking {
    open: Vec<Waiting>,
    questions: u64,
}

struct Waiting {
    number: u64,
    callers: Vec<Arc<Caller>>,
    certain: bool,
}

/// Whether a question is open within a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// It may as well be within another one.
    Perhaps,
    Certainly,
}

impl Asking {
    /// Whether the server asks within this call.
    pub(crate) fn within(&self, caller: &Arc<Caller>) -> Asked {
        let mut of_it = self
            .open
            .iter()
            .filter(|it| it.callers.iter().any(|it| Arc::ptr_eq(it, caller)));
        match of_it.next() {
            None => Asked::Nothing,
            Some(first) if first.certain || of_it.any(|it| it.certain) => Asked::Certainly,
            Some(_) => Asked::Perhaps,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Counts a question within one of these until what this gives is dropped.
    #[cfg(test)]
    pub(crate) fn test_question<'a>(
        asking: &'a watch::Sender<Self>,
        callers: &[&Arc<Caller>],
    ) -> impl Drop + use<'a> {
        let open = OpenRequests::default();
        for (id, caller) in (0..).zip(callers) {
            open.begin(RequestId::Number(id), Some(Arc::clone(caller)));
        }
        count(asking, &Within::Unplaced(open.question(false))).unwrap()
    }
}

/// Counts a question within `within` until what this gives is dropped; `None` if there are too many.
pub(super) fn count<'a>(asking: &'a watch::Sender<Asking>, within: &Within) -> Option<Counted<'a>> {
    let sole = within.sole();
    let certain = sole.is_some();
    let callers = match (sole, within) {
        (Some(sole), _) => vec![sole],
        (None, Within::Unplaced(question)) => question.callers(),
        (None, Within::Known { .. }) => Vec::new(),
    };
    let most = if certain {
        MOST_QUESTIONS_OF_CALLS
    } else {
        MOST_QUESTIONS
    };
    let mut counted = None;
    asking.send_if_modified(|asking| {
        let alike = asking.open.iter().filter(|it| it.certain == certain);
        if alike.count() >= most {
            return false;
        }
        let number = asking.questions;
        asking.questions += 1;
        asking.open.push(Waiting {
            number,
            callers,
            certain,
        });
        counted = Some(number);
        true
    });
    counted.map(|number| Counted { asking, number })
}

/// A question that waits for an answer. Dropped with the future that asks.
pub(super) struct Counted<'a> {
    asking: &'a watch::Sender<Asking>,
    number: u64,
}

impl Counted<'_> {
    /// It has turned out within what it is asked.
    pub(super) fn is_within(&self, caller: &Arc<Caller>) {
        self.asking.send_modify(|asking| {
            let mut open = asking.open.iter_mut();
            if let Some(it) = open.find(|it| it.number == self.number) {
                it.callers = vec![Arc::clone(caller)];
                it.certain = true;
            }
        });
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.asking
            .send_modify(|asking| asking.open.retain(|it| it.number != self.number));
    }
}
