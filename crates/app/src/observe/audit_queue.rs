//! The queue of audit records that wait to be written to the session store.

use std::{
    fmt::Display,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use switchboard_domain::{AuditStore, Principal};
use switchboard_orchestration::persistence::retry_until_available;

/// Number of waiting records from which on a run that adds a record waits until they are written.
const MAX_WAITING: usize = 4_096;
/// Number of records in one transaction, so that other writes to the store wait only briefly.
const BATCH: usize = 256;
/// Time during which records are collected, so that all runs of a process share a transaction.
const WRITE_DELAY: Duration = Duration::from_secs(1);

/// Queue of audit records, which a background task writes to the session store.
#[derive(derive_more::Debug)]
pub(super) struct AuditQueue {
    #[debug(skip)]
    pub(super) store: Arc<dyn AuditStore>,
    waiting: Mutex<Vec<(Principal, Arc<str>)>>,
    /// Lock of the current write. It keeps the records in order.
    writing: tokio::sync::Mutex<()>,
    pub(super) lost: LostRecords,
}

impl AuditQueue {
    pub(super) fn new(store: Arc<dyn AuditStore>) -> Self {
        Self {
            store,
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            lost: LostRecords::default(),
        }
    }

    /// Adds a record, which is written after [`WRITE_DELAY`] at the latest. If too many records
    /// wait, returns only after they are written.
    pub(super) async fn add_record(self: &Arc<Self>, owner: Principal, record: Arc<str>) {
        let count = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push((owner, record));
            waiting.len()
        };
        if count == 1 {
            let queue = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(WRITE_DELAY).await;
                queue.write_waiting().await;
            });
        } else if count >= MAX_WAITING {
            self.write_waiting().await;
        }
    }

    /// Writes the waiting records to the store. The write continues if the caller is dropped.
    pub(super) async fn write_waiting(self: &Arc<Self>) {
        let queue = Arc::clone(self);
        let written = tokio::spawn(async move {
            let _turn = queue.writing.lock().await;
            let waiting = {
                let mut waiting = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                mem::take(&mut *waiting)
            };
            for batch in waiting.chunks(BATCH) {
                let write = || queue.store.append_audit_records(batch);
                if let Err(error) = retry_until_available(write).await {
                    queue.lost.add_lost(batch.len(), &error);
                }
            }
        });
        // The task neither panics nor is aborted.
        let _ = written.await;
    }
}

/// Number of audit records that could not be written, and the last error.
#[derive(Debug, Default)]
pub(super) struct LostRecords(Mutex<Option<(usize, String)>>);

impl LostRecords {
    pub(super) fn add_lost(&self, count: usize, error: &dyn Display) {
        tracing::warn!(count, %error, "failed to write audit records");
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = lost.take().map_or(0, |(count, _)| count);
        *lost = Some((earlier + count, error.to_string()));
    }

    /// Returns an error message if records were lost since the last call.
    pub(super) fn take_lost(&self) -> Result<(), String> {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lost.take().map_or(Ok(()), |(count, error)| {
            Err(format!("{count} records were not written: {error}"))
        })
    }
}
