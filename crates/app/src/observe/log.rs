//! Writes log lines to standard error or to a file, without secrets.

use std::{
    fs::File,
    io::{self, IsTerminal as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use switchboard_domain::redact::{RedactionLimits, Redactor};
use tracing::Subscriber;
use tracing_subscriber::{EnvFilter, Layer, registry::LookupSpan};

use crate::{
    config::{Config, environment::Environment},
    storage::private_file,
    terminal,
};

/// Log filter for a configured log file if the user configures no log filter.
const IN_A_FILE: &str = "info,switchboard::run=debug";

/// Default levels of log targets that the user's filter does not name. `rmcp` logs tool arguments,
/// `switchboard::genai` contains the spans for OpenTelemetry, and `switchboard::content` contains
/// inputs and outputs of models and tools.
const QUIET: [(&str, &str); 3] = [
    ("rmcp", "warn"),
    ("switchboard::genai", "off"),
    ("switchboard::content", "off"),
];

/// Returns the `tracing` layer that writes log lines. `None` if neither `SWITCHBOARD_LOG` (such as
/// `debug` or `switchboard_mcp_client=trace,warn`) nor a log file is set.
pub(super) fn build_log_layer<S>(
    config: &Config,
    environment: &Environment,
    redactor: Redactor,
    live: &Redactor,
) -> Option<Box<dyn Layer<S> + Send + Sync>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let file = match environment.get("SWITCHBOARD_LOG_FILE") {
        Some(name) => Some(environment.working_dir.join(name)),
        None => config.log_file.clone(),
    };
    let wanted = match (environment.get("SWITCHBOARD_LOG"), &file) {
        (Some(wanted), _) => wanted,
        (None, Some(_)) => IN_A_FILE,
        (None, None) => return None,
    };
    let filter = match EnvFilter::try_new(add_quiet_directives(wanted)) {
        Ok(filter) => filter,
        Err(error) => {
            terminal::print_warning(&format!(
                "SWITCHBOARD_LOG is not valid, so logging is disabled: {error}"
            ));
            return None;
        }
    };
    let hidden = redactor.with_limits(WHOLE);
    let live = live.clone();
    let (to, ansi): (Arc<Mutex<dyn io::Write + Send>>, bool) = if let Some(path) = file {
        match open_private_file(&path) {
            Ok(file) => (Arc::new(Mutex::new(file)), false),
            Err(error) => {
                terminal::print_warning(&format!(
                    "cannot write the log file {}, so logging is disabled: {error}",
                    path.display()
                ));
                return None;
            }
        }
    } else {
        let ansi = io::stderr().is_terminal() && environment.get("NO_COLOR").is_none();
        (Arc::new(Mutex::new(io::stderr())), ansi)
    };
    let writer = move || RedactingWriter {
        to: Arc::clone(&to),
        hidden: hidden.clone(),
        live: live.clone(),
    };
    let lines = tracing_subscriber::fmt::layer();
    let lines = lines.with_ansi(ansi).with_writer(writer);
    Some(lines.with_filter(filter).boxed())
}

/// Size limits of the redactor that never truncate a log line.
const WHOLE: RedactionLimits = RedactionLimits {
    text: usize::MAX,
    items: 0,
    total: 0,
};

/// A writer that redacts secrets in log lines before it writes them.
struct RedactingWriter {
    to: Arc<Mutex<dyn io::Write + Send>>,
    hidden: Redactor,
    live: Redactor,
}

impl io::Write for RedactingWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let line_text = String::from_utf8_lossy(line);
        let clean = self.hidden.redact_text(&self.live.redact_known(&line_text));
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.write_all(clean.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.flush()
    }
}

/// Adds the [`QUIET`] levels to a log filter, except for targets that the filter itself names.
fn add_quiet_directives(wanted: &str) -> String {
    let added = QUIET.iter().filter(|(target, _)| !wanted.contains(target));
    added.fold(wanted.to_owned(), |all, (target, level)| {
        format!("{all},{target}={level}")
    })
}

/// Opens a file for appending. A new file is readable by its owner only.
pub(super) fn open_private_file(path: &Path) -> io::Result<File> {
    private_file::owner_only_open_options()
        .append(true)
        .create(true)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loud_or_private_is_logged_only_if_it_is_named() {
        assert_eq!(
            add_quiet_directives("debug"),
            "debug,rmcp=warn,switchboard::genai=off,switchboard::content=off"
        );
        assert_eq!(
            add_quiet_directives("rmcp=trace,switchboard::content=trace"),
            "rmcp=trace,switchboard::content=trace,switchboard::genai=off"
        );
    }

    #[test]
    fn lines_are_written_without_secrets() {
        use std::io::Write as _;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let mut writer = RedactingWriter {
            to: Arc::clone(&lines) as _,
            hidden: Redactor::default()
                .with_secrets(["known-secret"])
                .with_limits(WHOLE),
            live: Redactor::default(),
        };
        writer.live.add_secret("of-a-client");
        let long = "x".repeat(100_000);
        writer
            .write_all(format!("a known-secret, of-a-client and token=abc {long}\n").as_bytes())
            .unwrap();
        let written = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
        assert_eq!(
            written,
            format!("a [redacted], [redacted] and token=[redacted] {long}\n")
        );
    }
}
