//! The identity of one call.

use std::sync::Arc;

use rmcp::model::{JsonObject, RequestMetaObject};

/// The key in `_meta` of a call for its idempotency key, which is the same for every attempt. The
/// protocol has no name for it, so it has a prefix of its own.
pub(crate) const IDEMPOTENCY_KEY: &str = "switchboard/idempotency-key";

/// A call, or another request during which a server may send requests. All attempts share it.
/// Contexts are compared by address.
#[derive(Debug, Default)]
pub(crate) struct CallContext {
    /// The idempotency key of the call. An elicitor finds the run of the call by it.
    pub(crate) idempotency_key: Option<String>,
}

impl CallContext {
    pub(crate) fn new(idempotency_key: Option<String>) -> Arc<Self> {
        Arc::new(Self { idempotency_key })
    }

    /// Returns the `_meta` that every request of the call has.
    pub(crate) fn request_meta(&self) -> Option<RequestMetaObject> {
        let key = self.idempotency_key.as_deref()?;
        let mut meta = JsonObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
        Some(RequestMetaObject::from(meta))
    }
}
