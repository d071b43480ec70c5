//! The state that all request handlers share.

use std::sync::{Arc, OnceLock};

use crate::{
    Engine, ServerOptions,
    http::concurrency_limits::ConcurrencyLimits,
    hub::RunHub,
    monitoring::{metrics::ServerMetrics, readiness::StoreCheck},
};

/// The hub, the metrics and the limits, which all request handlers share. Clones are cheap.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<SharedAppState>,
}

struct SharedAppState {
    hub: RunHub,
    metrics: ServerMetrics,
    limits: Arc<ConcurrencyLimits>,
    store_check: StoreCheck,
    document: OnceLock<String>,
}

impl App {
    pub(crate) fn new(hub: RunHub) -> Self {
        let shared = SharedAppState {
            limits: Arc::new(ConcurrencyLimits::new(hub.options())),
            metrics: ServerMetrics::new(hub.metrics_collector()),
            hub,
            store_check: StoreCheck::default(),
            document: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn hub(&self) -> &RunHub {
        &self.shared.hub
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &**self.hub().engine()
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        self.hub().options()
    }

    pub(crate) fn metrics(&self) -> &ServerMetrics {
        &self.shared.metrics
    }

    pub(crate) fn concurrency_limits(&self) -> &Arc<ConcurrencyLimits> {
        &self.shared.limits
    }

    /// Returns whether the session store can be read and written. The result may be one second old.
    pub(crate) async fn store_is_ready(&self) -> bool {
        let ping = self.hub().session_store().check_store_access();
        self.shared.store_check.is_store_ready(ping).await
    }

    /// Returns the cell that caches the JSON text of the OpenAPI document. The first request for
    /// `/openapi.json` generates the text.
    pub(crate) fn openapi_document(&self) -> &OnceLock<String> {
        &self.shared.document
    }
}
