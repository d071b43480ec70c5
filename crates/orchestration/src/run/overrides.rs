//! Settings that are changed in a run that exists already.

use std::sync::Arc;

use switchboard_domain::Delivery;

use super::Run;
use crate::policy::approval::Approvals;

/// Settings that were changed in this process. They also apply to a run that must be created again
/// because its state was never stored.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    max_steps: Option<u32>,
    approvals: Option<Box<Approvals>>,
    delivery: Option<Delivery>,
}

impl Run {
    /// Sets the maximum number of model calls, counted from the start of the run.
    pub fn limit_steps(&mut self, max_steps: u32) {
        Arc::make_mut(&mut self.state.options).limits.max_steps = max_steps;
        self.caches.overrides.max_steps = Some(max_steps);
    }

    /// Sets the approval rules for future calls. Waiting calls keep waiting.
    pub fn set_approvals(&mut self, approvals: Approvals) {
        self.caches.overrides.approvals = Some(Box::new(approvals.clone()));
        Arc::make_mut(&mut self.state.options).approval = approvals;
    }

    /// Sets the delivery of future model responses.
    pub fn set_delivery(&mut self, delivery: Delivery) {
        Arc::make_mut(&mut self.state.options).delivery = delivery;
        self.caches.overrides.delivery = Some(delivery);
    }

    pub(crate) fn take_overrides(&mut self) -> Overrides {
        std::mem::take(&mut self.caches.overrides)
    }

    /// Applies the settings that were changed in another instance of the run.
    pub(crate) fn apply_overrides(&mut self, overrides: Overrides) {
        let Overrides {
            max_steps,
            approvals,
            delivery,
        } = overrides;
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
