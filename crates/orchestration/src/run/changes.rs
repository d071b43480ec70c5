//! What is set in a run that there is already.

use std::sync::Arc;

use switchboard_domain::Delivery;

use super::Run;
use crate::policy::approval::Approvals;

/// What was set in a run after it was made. It holds also where the run has to be made anew.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    max_steps: Option<u32>,
    approvals: Option<Box<Approvals>>,
    delivery: Option<Delivery>,
}

impl Run {
    /// Sets how often its model may be asked, counted from the run's beginning.
    pub fn limit_steps(&mut self, max_steps: u32) {
        Arc::make_mut(&mut self.options).limits.max_steps = max_steps;
        self.changes.max_steps = Some(max_steps);
    }

    /// Sets what holds for the calls that its model makes from now on. Those that wait already go on
    /// waiting.
    pub fn set_approvals(&mut self, approvals: Approvals) {
        self.changes.approvals = Some(Box::new(approvals.clone()));
        Arc::make_mut(&mut self.options).approval = approvals;
    }

    /// Sets when the answers of its model are handed over from now on.
    pub fn set_delivery(&mut self, delivery: Delivery) {
        Arc::make_mut(&mut self.options).delivery = delivery;
        self.changes.delivery = Some(delivery);
    }

    /// What was set in it, in this process.
    pub(crate) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Sets what was set in another one.
    pub(crate) fn change(&mut self, changes: Changes) {
        let Changes {
            max_steps,
            approvals,
            delivery,
        } = changes;
        if let Some(max_steps) = max_steps {
            self.limit_steps(max_steps);
        }
        if let Some(approvals) = approvals {
            self.set_approvals(*approvals);
        }
        if let Some(delivery) = delivery {
            self.set_delivery(delivery);
        }
    }
}
