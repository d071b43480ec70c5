//! Limits the number of active runs, and counts the slots that each principal uses.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use switchboard_domain::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::lock_mutex;
use crate::{Problem, ProblemKind, ServerOptions};

/// Number of run or request slots in use by each principal. A principal without slots has no entry.
type SlotsInUse = Arc<Mutex<HashMap<Principal, usize>>>;

/// A limit on the number of slots, for runs or requests, that each principal may use at a time.
pub(crate) struct PrincipalLimit {
    pub(crate) max: usize,
    pub(crate) in_use: SlotsInUse,
}

/// A slot for a run or request, which counts for one principal until this value is dropped.
pub(crate) struct PrincipalSlot {
    in_use: SlotsInUse,
    principal: Principal,
}

impl PrincipalLimit {
    pub(crate) fn new(max: usize) -> Self {
        let in_use = SlotsInUse::default();
        Self { max, in_use }
    }

    /// Acquires a slot for a principal. Returns `None` if all slots of the principal are in use.
    pub(crate) fn acquire_slot(&self, principal: &Principal) -> Option<PrincipalSlot> {
        let mut in_use = lock_mutex(&self.in_use);
        let slots = in_use.get(principal).copied().unwrap_or_default();
        if slots >= self.max {
            return None;
        }
        in_use.insert(principal.clone(), slots + 1);
        Some(PrincipalSlot {
            in_use: Arc::clone(&self.in_use),
            principal: principal.clone(),
        })
    }
}

impl Drop for PrincipalSlot {
    fn drop(&mut self) {
        let mut in_use = lock_mutex(&self.in_use);
        if let Some(slots) = in_use.get_mut(&self.principal) {
            *slots -= 1;
            if *slots == 0 {
                in_use.remove(&self.principal);
            }
        }
    }
}

pub(crate) fn new_semaphore(slots: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS)))
}

pub(crate) fn try_acquire_permit(slots: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(slots).try_acquire_owned().ok()
}

/// The limits on active runs, in total and per principal.
pub(crate) struct RunLimits {
    max: usize,
    total: Arc<Semaphore>,
    each: PrincipalLimit,
}

/// The slots of one run, released on drop.
pub(crate) type RunSlots = (OwnedSemaphorePermit, PrincipalSlot);

impl RunLimits {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        Self {
            max: options.max_runs,
            total: new_semaphore(options.max_runs),
            each: PrincipalLimit::new(options.max_runs_each),
        }
    }

    /// Acquires the slots for one more run of the principal. Fails with status 429 if all slots of
    /// the principal are in use, and with status 503 if all slots of the server are in use.
    pub(crate) fn acquire_slots(&self, principal: &Principal) -> Result<RunSlots, Problem> {
        let own = self.each.acquire_slot(principal).ok_or_else(|| {
            Problem::new(ProblemKind::TooMany, format!(
                "you have {} active runs, which is the maximum: wait until one ends, or cancel one \
                 (POST /runs/{{id}}/cancel)",
                self.each.max
            ))
        })?;
        let slot = try_acquire_permit(&self.total).ok_or_else(|| {
            Problem::server_unavailable(format!(
                "the server has {} active runs, which is the maximum: try again later",
                self.max
            ))
        })?;
        Ok((slot, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(user: &str) -> Principal {
        Principal {
            user: user.to_owned(),
            ..Principal::default()
        }
    }

    #[test]
    fn a_run_slot_can_be_used_again_after_its_release() {
        let limits = |max_runs, max_runs_each| {
            RunLimits::new(&ServerOptions {
                max_runs,
                max_runs_each,
                ..ServerOptions::default()
            })
        };
        let (ann, bob) = (principal("ann"), principal("bob"));
        let of_three = limits(3, 2);
        let status = |limits: &RunLimits, principal| {
            let problem = limits.acquire_slots(principal).err();
            problem.map(|problem| problem.status.as_u16())
        };
        let first = of_three.acquire_slots(&ann).unwrap();
        let _second = of_three.acquire_slots(&ann).unwrap();
        assert_eq!(status(&of_three, &ann), Some(429));
        let _third = of_three.acquire_slots(&bob).unwrap();
        assert_eq!(status(&of_three, &bob), Some(503));
        drop(first);
        assert_eq!(status(&of_three, &ann), None);
        assert_eq!(status(&limits(0, 1), &ann), Some(503));
    }
}
