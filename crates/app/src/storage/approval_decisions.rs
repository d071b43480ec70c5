//! Stores remembered approval decisions in a file of the user's data folder.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::anyhow;
use jiff::Timestamp;
use switchboard_orchestration::{SharedDecisions, policy::approval::RememberedDecisions};

use super::private_file;
use crate::config::environment::Environment;

/// The user's remembered approval decisions, loaded from a file.
#[derive(Debug)]
pub(crate) struct SavedDecisions {
    /// Current approval decisions, which the agents use and change.
    pub(crate) shared: SharedDecisions,
    path: Option<PathBuf>,
    /// Decisions that were in the file when this process last read or wrote it. Later changes are
    /// found by a comparison with them.
    before: Mutex<RememberedDecisions>,
}

impl SavedDecisions {
    /// Reads the saved decisions. Without a data folder, decisions are never saved to a file.
    pub(crate) fn load_decisions(environment: &Environment) -> anyhow::Result<Self> {
        let folder = environment.data_dir.as_ref();
        let path = folder.map(|folder| folder.join("approvals.json"));
        let mut before = match &path {
            None => RememberedDecisions::default(),
            Some(path) => read_decisions(path)?,
        };
        before.remove_expired_decisions(Timestamp::now());
        Ok(Self {
            shared: SharedDecisions::new(before.clone()),
            path,
            before: Mutex::new(before),
        })
    }

    /// Writes changed decisions to the file. Keeps decisions that another process has added to the
    /// file. Removes decisions from `shared` that another process has removed from the file.
    pub(crate) fn save_decisions(&self) -> anyhow::Result<()> {
        // The lock is held until the function returns, so that concurrent saves wait.
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let mut snapshot = self.shared.change_decisions(|decisions| {
            decisions.remove_expired_decisions(Timestamp::now());
            decisions.clone()
        });
        let (Some(path), true) = (&self.path, snapshot != *before) else {
            return Ok(());
        };
        let failed = |error| anyhow!("{}: {error}", path.display());
        // The file stays locked from reading to writing, because other processes use it.
        let _lock = private_file::lock_file(path).map_err(failed)?;
        let stored = read_decisions(path)?;
        let (known, stored) = (before.remembered_decisions(), stored.remembered_decisions());
        // Decisions that apply only to one session are removed before saving.
        let mut own = snapshot.remembered_decisions().to_vec();
        own.retain(|it| it.session.is_none());
        let unchanged = stored.iter();
        let unchanged = unchanged.filter(|it| own.contains(it) || !known.contains(it));
        let new = own.iter();
        let new = new.filter(|it| !known.contains(it) && !stored.contains(it));
        let text = serde_json::to_vec_pretty(&unchanged.chain(new).collect::<Vec<_>>())?;
        private_file::write_atomically(path, &text).map_err(failed)?;
        let own = own.iter();
        for removed in own.filter(|it| known.contains(it) && !stored.contains(it)) {
            snapshot.remove_decision(removed);
            self.shared
                .change_decisions(|decisions| decisions.remove_decision(removed));
        }
        *before = snapshot;
        Ok(())
    }
}

/// Reads the approval decisions in a file. Returns no decisions if the file does not exist, and an
/// error if its content is invalid.
fn read_decisions(path: &Path) -> anyhow::Result<RememberedDecisions> {
    let text = private_file::read_file_if_exists(path);
    let text = text.map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let decisions = text.map(|text| serde_json::from_str(&text)).transpose();
    let decisions = decisions.map_err(|error| {
        anyhow!(
            "{}: not a valid file of decisions: {error}. Remove it to start from scratch",
            path.display()
        )
    })?;
    Ok(decisions.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use switchboard_domain::{ApprovalDecision, ApprovalScope, Principal, ToolDefinition};
    use switchboard_orchestration::policy::approval::Requester;

    fn allow(decisions: &SavedDecisions, tool: &str) {
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
            .change_decisions(|it| it.remember_decision(&requester, &tool, &always, None));
        assert!(remembered);
    }

    /// Returns a data folder in an environment.
    fn data_folder() -> (tempfile::TempDir, Environment) {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::default();
        environment.data_dir = Some(folder.path().to_owned());
        (folder, environment)
    }

    fn names(decisions: &SavedDecisions) -> Vec<String> {
        let entries = decisions.shared.copy_decisions();
        entries
            .remembered_decisions()
            .iter()
            .map(|it| it.name.clone())
            .collect()
    }

    #[test]
    fn two_processes_do_not_undo_what_the_other_kept() {
        let (_folder, environment) = data_folder();
        let load = || SavedDecisions::load_decisions(&environment).unwrap();
        let first = load();
        allow(&first, "a");
        first.save_decisions().unwrap();
        let (one, other) = (load(), load());
        allow(&one, "b");
        one.save_decisions().unwrap();
        allow(&other, "c");
        let me = Principal::default();
        other
            .shared
            .change_decisions(|it| it.revoke_tool_decisions(&me, "a"));
        other.save_decisions().unwrap();
        assert_eq!(names(&load()), ["b", "c"]);
    }

    #[test]
    fn what_another_process_took_back_does_not_come_back() {
        let (_folder, environment) = data_folder();
        let load = || SavedDecisions::load_decisions(&environment).unwrap();
        // This process saves a decision. Then another process removes it from the file.
        let server = load();
        allow(&server, "a");
        server.save_decisions().unwrap();
        let other = load();
        let me = Principal::default();
        assert_eq!(
            other
                .shared
                .change_decisions(|it| it.revoke_tool_decisions(&me, "a")),
            1
        );
        other.save_decisions().unwrap();
        allow(&server, "b");
        server.save_decisions().unwrap();
        assert_eq!(names(&load()), ["b"]);
        assert_eq!(names(&server), ["b"]);
        // A new decision about the same tool is saved again.
        allow(&server, "a");
        server.save_decisions().unwrap();
        assert_eq!(names(&load()), ["b", "a"]);
    }

    #[test]
    fn answers_of_the_same_moment_are_all_kept() {
        const AT_ONCE: usize = 24;
        let (_folder, environment) = data_folder();
        let all_have_read = Barrier::new(AT_ONCE);
        std::thread::scope(|threads| {
            for n in 0..AT_ONCE {
                let (environment, all_have_read) = (&environment, &all_have_read);
                threads.spawn(move || {
                    let mine = SavedDecisions::load_decisions(environment).unwrap();
                    allow(&mine, &format!("tool-{n}"));
                    all_have_read.wait();
                    mine.save_decisions().unwrap();
                });
            }
        });
        let stored = SavedDecisions::load_decisions(&environment).unwrap();
        assert_eq!(
            stored.shared.copy_decisions().remembered_decisions().len(),
            AT_ONCE
        );
    }
}
