//! Errors of HTTP attempts that failed without a complete response.

use std::{error::Error, io, time::Duration};

use switchboard_domain::{ModelError, ModelErrorKind, TimeoutPhase};

/// Sets the retry hint of an error: a retry is advised if the error is transient.
pub(super) fn add_default_retry_hint(error: ModelError) -> ModelError {
    let (is_transient, pause) = (error.is_transient(), error.retry_after());
    error.with_retry_hint(is_transient, pause)
}

/// Converts an error of reqwest into the error of a request that got no answer, or whose answer
/// ended before its first byte.
pub(super) fn connection_error(
    provider: &str,
    address: &str,
    connect_timeout: Duration,
    error: reqwest::Error,
) -> ModelError {
    let cause = root_cause(&error);
    let kind = if error.is_builder() {
        ModelErrorKind::Configuration
    } else if error.is_connect() && error.is_timeout() {
        ModelErrorKind::Timeout {
            phase: TimeoutPhase::Connect,
            after: connect_timeout,
        }
    } else {
        ModelErrorKind::Connection
    };
    // An untrusted certificate or a port without TLS is a permanent error, so it is not retried.
    let refused_by_tls = error.is_connect() && is_tls_data_error(&error);
    let message = match kind {
        ModelErrorKind::Timeout { .. } => address.to_owned(),
        _ => format!("{address}: {cause}"),
    };
    let error = ModelError::new(provider, kind, message).with_source(error.without_url());
    if refused_by_tls {
        error.with_retry_hint(false, None)
    } else {
        add_default_retry_hint(error)
    }
}

/// Returns the message of the innermost cause, because the outer messages of reqwest and hyper are
/// too general.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if cause.is::<reqwest::Error>() {
        // The error's own text is not used, because it has the whole address with its secrets.
        return "the request failed".to_owned();
    }
    cause.to_string()
}

/// Returns whether TLS rejected the server's data. rustls reports rejected data as `InvalidData`.
fn is_tls_data_error(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        cause = match error.downcast_ref::<io::Error>() {
            Some(io) if io.kind() == io::ErrorKind::InvalidData => return true,
            // `io::Error::source` does not return the error inside, so it is read with `get_ref`.
            Some(io) => io.get_ref().map(|inner| inner as _),
            None => error.source(),
        };
    }
    false
}
