//! What the user decided about tools for good: a file in the user's data folder.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;
use serde_json::Value;
use switchboard_orchestration::{
    SharedDecisions,
    policy::approval::{Decisions, RememberedDecision},
};

use crate::{environment::Environment, private_file};

/// The decisions of this user, and the file that keeps them.
#[derive(Debug)]
pub struct KeptDecisions {
    /// To be shared with agents.
    pub shared: SharedDecisions,
    path: Option<PathBuf>,
    /// As they were read or kept last.
    before: Mutex<Decisions>,
}

/// Why decisions cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum DecisionsError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not what was written. Nothing is taken for decided then.
    #[error("{}: holds no decisions: {source}. Remove it to begin anew", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl KeptDecisions {
    /// Reads them. Without a place to keep them they hold for this process.
    pub fn load(environment: &Environment) -> Result<Self, DecisionsError> {
        let path = environment
            .data_dir
            .as_ref()
            .map(|folder| folder.join("approvals.json"));
        let mut before = match &path {
            None => Decisions::default(),
            Some(path) => read(path)?,
        };
        before.prune(Timestamp::now());
        Ok(Self {
            shared: SharedDecisions::new(before.clone()),
            path,
            before: Mutex::new(before),
        })
    }

    /// Keeps them, if they are others than before. What another process kept meanwhile stays: only what
    /// this one decided or took back is changed. What another one took back is forgotten here as well.
    pub fn keep(&self) -> Result<(), DecisionsError> {
        // To the end of it: of two who keep at the same moment the later one knows what the other one kept.
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let mut snapshot = self.shared.change(|decisions| {
            decisions.prune(Timestamp::now());
            decisions.clone()
        });
        let (Some(path), true) = (&self.path, snapshot != *before) else {
            return Ok(());
        };
        let failed = |source| DecisionsError::File {
            path: path.clone(),
            source,
        };
        // From reading what is there to writing it with ours.
        let _lock = private_file::lock(path).map_err(failed)?;
        let unreadable = |source| DecisionsError::Unreadable {
            path: path.clone(),
            source,
        };
        let entries = |decisions: &Decisions| -> Result<Vec<Value>, DecisionsError> {
            let value = serde_json::to_value(decisions).map_err(unreadable)?;
            serde_json::from_value(value).map_err(unreadable)
        };
        let (known, mut now) = (entries(&before)?, entries(&snapshot)?);
        // What was said for a session ends with it: this one is a process.
        now.retain(|entry| entry.get("session").is_none());
        let mut kept = entries(&read(path)?)?;
        let taken_back = |entry: &Value| known.contains(entry) && !kept.contains(entry);
        let gone: Vec<Value> = now.iter().filter(|it| taken_back(it)).cloned().collect();
        kept.retain(|entry| now.contains(entry) || !known.contains(entry));
        let new = now.into_iter().filter(|entry| !known.contains(entry));
        for entry in new {
            if !kept.contains(&entry) {
                kept.push(entry);
            }
        }
        let text = serde_json::to_vec_pretty(&kept).map_err(unreadable)?;
        private_file::write(path, &text).map_err(failed)?;
        let gone: Vec<RememberedDecision> =
            serde_json::from_value(gone.into()).map_err(unreadable)?;
        for entry in &gone {
            snapshot.remove(entry);
            self.shared.change(|decisions| decisions.remove(entry));
        }
        *before = snapshot;
        Ok(())
    }
}

fn read(path: &Path) -> Result<Decisions, DecisionsError> {
    let text = private_file::read(path).map_err(|source| DecisionsError::File {
        path: path.to_owned(),
        source,
    })?;
    match text {
        None => Ok(Decisions::default()),
        Some(text) => serde_json::from_str(&text).map_err(|source| DecisionsError::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use switchboard_domain::{ApprovalDecision, ApprovalScope, Principal, ToolDefinition};
    use switchboard_orchestration::policy::approval::Requester;

    fn allow(decisions: &KeptDecisions, tool: &str) {
        let principal = Principal::default();
        let requester = Requester {
            principal: &principal,
            session: "s",
        };
        let tool = ToolDefinition::new(tool, "", serde_json::json!({"type": "object"}));
        let always = ApprovalDecision::Allow {
            input: None,
            scope: ApprovalScope::Always,
        };
        let remembered = decisions
            .shared
            .change(|it| it.remember(&requester, &tool, &always, None));
        assert!(remembered);
    }

    #[test]
    fn two_processes_do_not_undo_what_the_other_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::default();
        environment.data_dir = Some(folder.path().to_owned());
        let names = |decisions: &KeptDecisions| -> Vec<String> {
            let entries = decisions.shared.snapshot();
            entries
                .entries()
                .iter()
                .map(|entry| entry.name.clone())
                .collect()
        };
        let first = KeptDecisions::load(&environment).unwrap();
        allow(&first, "a");
        first.keep().unwrap();
        let (one, other) = (
            KeptDecisions::load(&environment).unwrap(),
            KeptDecisions::load(&environment).unwrap(),
        );
        allow(&one, "b");
        one.keep().unwrap();
        allow(&other, "c");
        other
            .shared
            .change(|it| it.revoke(&Principal::default(), "a"));
        other.keep().unwrap();
        let now = KeptDecisions::load(&environment).unwrap();
        assert_eq!(names(&now), ["b", "c"]);
    }

    #[test]
    fn what_another_process_took_back_does_not_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::default();
        environment.data_dir = Some(folder.path().to_owned());
        let names = |decisions: &KeptDecisions| -> Vec<String> {
            let entries = decisions.shared.snapshot();
            entries.entries().iter().map(|it| it.name.clone()).collect()
        };
        // Decided here, kept, and taken back by another process while this one goes on.
        let server = KeptDecisions::load(&environment).unwrap();
        allow(&server, "a");
        server.keep().unwrap();
        let other = KeptDecisions::load(&environment).unwrap();
        let me = Principal::default();
        assert_eq!(other.shared.change(|it| it.revoke(&me, "a")), 1);
        other.keep().unwrap();
        allow(&server, "b");
        server.keep().unwrap();
        assert_eq!(names(&KeptDecisions::load(&environment).unwrap()), ["b"]);
        assert_eq!(names(&server), ["b"], "nor does it hold here");
        // Said again, it holds again.
        allow(&server, "a");
        server.keep().unwrap();
        let now = KeptDecisions::load(&environment).unwrap();
        assert_eq!(names(&now), ["b", "a"]);
    }

    #[test]
    fn answers_of_the_same_moment_are_all_kept() {
        const AT_ONCE: usize = 24;
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::default();
        environment.data_dir = Some(folder.path().to_owned());
        let all_have_read = Barrier::new(AT_ONCE);
        std::thread::scope(|threads| {
            for n in 0..AT_ONCE {
                let (environment, all_have_read) = (&environment, &all_have_read);
                threads.spawn(move || {
                    let mine = KeptDecisions::load(environment).unwrap();
                    allow(&mine, &format!("tool-{n}"));
                    all_have_read.wait();
                    mine.keep().unwrap();
                });
            }
        });
        let kept = KeptDecisions::load(&environment).unwrap();
        assert_eq!(kept.shared.snapshot().entries().len(), AT_ONCE);
    }
}
