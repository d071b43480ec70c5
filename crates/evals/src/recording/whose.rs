//! Whose answers a conversation gets, of several that went on at once.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::Matching;

/// Whose answers are given.
#[derive(Debug, Clone, Default)]
pub(super) enum Whose {
    /// Anybody's.
    #[default]
    All,
    /// Those of this track, and what was recorded for none.
    Named(Arc<str>),
    /// Those of the track that it turns out to be by what is asked. Clones are the same conversation.
    Found(Arc<Mutex<Option<Arc<str>>>>),
}

/// Where is looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everywhere.
    All,
    /// In this track, and in what was recorded for none.
    Track(Arc<str>),
    /// In tracks that no conversation turned out to be yet, and in what was recorded for none.
    Free,
}

impl Whose {
    /// What somebody called it.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::All | Self::Found(_) => None,
        }
    }

    /// Whether it is one that is to be found, and has not been.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Found(found) if lock(found).is_none())
    }

    /// Where is looked first, and where then.
    pub(super) fn scopes(&self, matching: Matching) -> Vec<Scope> {
        match self {
            Self::All => vec![Scope::All],
            Self::Named(name) => vec![Scope::Track(Arc::clone(name))],
            Self::Found(found) => match (lock(found).clone(), matching) {
                // Whatever is asked would take the answers of the others.
                (Some(name), Matching::Order) => vec![Scope::Track(name)],
                (None, Matching::Order) => vec![Scope::Free],
                // Where another client decides otherwise, what follows may stand in another track.
                (Some(name), Matching::Exact) => vec![Scope::Track(name), Scope::Free, Scope::All],
                (None, Matching::Exact) => vec![Scope::Free, Scope::All],
            },
        }
    }

    /// It got something of this track.
    pub(super) fn is_of(&self, track: Option<&Arc<str>>, taken: &mut HashSet<Arc<str>>) {
        if let (Self::Found(found), Some(track)) = (self, track) {
            taken.insert(Arc::clone(track));
            *lock(found) = Some(Arc::clone(track));
        }
    }
}

fn lock(found: &Mutex<Option<Arc<str>>>) -> MutexGuard<'_, Option<Arc<str>>> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scope {
    /// Whether what was recorded for this track is in it.
    pub(super) fn has(&self, track: Option<&str>, taken: &HashSet<Arc<str>>) -> bool {
        match (self, track) {
            (Self::All, _) | (_, None) => true,
            (Self::Track(mine), Some(its)) => **mine == *its,
            (Self::Free, Some(its)) => !taken.contains(its),
        }
    }
}
