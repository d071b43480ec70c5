//! One call, as those see it who count the questions within it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use switchboard_domain::ToolDefinition;

use crate::tools::list::own_name;

/// A call, or another request within which a server may ask something. The same one for all its attempts.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// The call's idempotency key, which says to others whose it is.
    pub(crate) key: Option<String>,
    definition: Option<Arc<ToolDefinition>>,
    over: AtomicBool,
}

impl Caller {
    /// A call of this tool.
    pub(crate) fn of(definition: &Arc<ToolDefinition>, key: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            key,
            definition: Some(Arc::clone(definition)),
            over: AtomicBool::new(false),
        })
    }

    /// The tool's own name, if it is a call.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.definition.as_deref().map(own_name)
    }

    /// Nobody waits for it any more.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}
