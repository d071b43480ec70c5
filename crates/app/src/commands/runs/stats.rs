//! Command `runs stats`: prints statistics of the audit records.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use clap::Args;
use jiff::{Span, Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::{Value, json};
use switchboard_domain::{AuditStore as _, Principal, SessionStoreError};
use switchboard_orchestration::{
    observe::audit::AuditRecord,
    observe::metrics::{Histogram, Metrics, ToolCallCounts},
};

use crate::{
    config::{environment::Environment, remove_os_error_code},
    observe::AuditLog,
    run_session::{
        arguments::GlobalArgs,
        context::Context,
        failure::{Code, Failure},
    },
    storage::sessions::OpenSessionStore,
    terminal::{
        output::{self, ListFormat},
        print_note, print_warning,
    },
};

/// Command-line arguments of `switchboard runs stats`.
#[derive(Debug, Args)]
#[command(
    after_help = "A call is unnecessary if the same call already had a result in the same run. \
                  The accuracy of a tool or model is the share of its calls that were successful \
                  and necessary. The audit stores inputs without secrets and shortened, so calls \
                  that differ only in the omitted parts count as the same. Costs are estimated \
                  from list prices, where they are known."
)]
pub(crate) struct StatsArgs {
    /// Audit files to read instead of the session store and the configured file
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Count records since a date or time in UTC (2026-11-21, 2026-11-21T08:00) or a duration (7d,
    /// 12h)
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListFormat,
}

/// Parses the value of `--since`: a date, a time or a duration before now.
fn parse_time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    // A time without an offset is in UTC. A date without a time means the start of that day.
    if let Ok(moment) = text.parse::<DateTime>() {
        let time = TimeZone::UTC.to_timestamp(moment);
        return time.map_err(|error| error.to_string());
    }
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let ago = text.parse::<Span>().ok();
    ago.and_then(|ago| now.checked_sub(ago).ok())
        .map(|then| then.timestamp())
        .ok_or_else(|| "not a date, a time or a duration such as 7d or 12h".to_owned())
}

/// Number of records that are read from the store at a time.
const PAGE: u32 = 1_000;

/// Statistics of models and tools, computed from audit records.
#[derive(Debug, Default)]
struct AuditStatistics {
    metrics: Metrics,
    files: Vec<PathBuf>,
    records: u64,
    /// Numbers of lines and stored records that are not audit records of this program version.
    unreadable: u64,
    /// Event numbers of the records in files, by run. The store may contain the same records.
    in_files: HashMap<String, HashSet<u64>>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

pub(crate) async fn print_run_statistics(
    args: &StatsArgs,
    global: &GlobalArgs,
    environment: Environment,
) -> Result<Code, Failure> {
    let mut read = AuditStatistics::default();
    if args.files.is_empty() {
        let context = Context::load_context(global, environment)?;
        let (config, environment) = (&context.config, &context.environment);
        if AuditLog::is_off(config, environment) {
            return Err(Failure::usage_error(anyhow!(
                "the audit is disabled (`audit: false`): give an audit file to read"
            )));
        }
        if let Some(file) = AuditLog::audit_path(config, environment)
            && file.exists()
        {
            read.read_audit_file(&file, args.since)?;
        }
        let opened = OpenSessionStore::open_if_exists(config, environment).await;
        if let Some(sessions) = opened.map_err(Failure::usage_error)? {
            let stored = read.read_stored_records(&sessions, args.since).await;
            sessions.close_store().await;
            stored?;
        }
        if read.records == 0 {
            print_note("no audit records found");
        }
    }
    for file in &args.files {
        read.read_audit_file(file, args.since)?;
    }
    output::print_json_or_text(args.output, &read.statistics_to_json(), || {
        read.format_statistics()
    })?;
    read.print_omission_warnings();
    Ok(Code::Success)
}

impl AuditStatistics {
    fn read_audit_file(&mut self, file: &Path, since: Option<Timestamp>) -> Result<(), Failure> {
        let unreadable = |error| {
            let error = remove_os_error_code(error);
            Failure::usage_error(anyhow!("{}: {error}", file.display()))
        };
        let lines = BufReader::new(File::open(file).map_err(unreadable)?);
        self.files.push(file.to_owned());
        for line in lines.split(b'\n') {
            let line = line.map_err(unreadable)?;
            if !line.trim_ascii().is_empty() {
                let record = serde_json::from_slice::<AuditRecord>(&line);
                if let Ok(AuditRecord { run_id, seq, .. }) = &record {
                    let events = self.in_files.entry(run_id.clone()).or_default();
                    events.insert(*seq);
                }
                self.count_audit_record(record, since);
            }
        }
        Ok(())
    }

    /// Reads the records of the terminal user from the store. Omits records that were already read
    /// from files.
    async fn read_stored_records(
        &mut self,
        sessions: &OpenSessionStore,
        since: Option<Timestamp>,
    ) -> Result<(), SessionStoreError> {
        let (store, owner, mut after) = (&sessions.store, Principal::default(), String::new());
        loop {
            let page = store.load_audit_records_after(&owner, &after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after.clone_from(&last.id);
            for stored in page {
                let record = serde_json::from_value::<AuditRecord>(stored.record);
                let is_counted = record.as_ref().is_ok_and(|record| {
                    let events = self.in_files.get(&record.run_id);
                    events.is_some_and(|events| events.contains(&record.seq))
                });
                if !is_counted {
                    self.count_audit_record(record, since);
                }
            }
        }
    }

    fn count_audit_record(
        &mut self,
        record: serde_json::Result<AuditRecord>,
        since: Option<Timestamp>,
    ) {
        let Ok(record) = record else {
            self.unreadable += 1;
            return;
        };
        let time = record.time;
        if since.is_none_or(|since| time >= since) {
            self.records += 1;
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = self.last.max(Some(time));
            self.metrics.count_audit_record(&record);
        }
    }

    fn format_statistics(&self) -> String {
        let counted = self.metrics.take_snapshot();
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return String::new();
        };
        let ends = [
            (counted.runs_completed, "completed"),
            (counted.runs_limited, "limited"),
            (counted.runs_failed, "failed"),
            (counted.runs_cancelled, "cancelled"),
            (self.metrics.parked_run_count() as u64, "waiting"),
            (self.metrics.unfinished_run_count() as u64, "unfinished"),
        ];
        let ends = ends.iter().filter(|(count, _)| *count > 0);
        let mut ends: Vec<String> = ends.map(|(count, end)| format!("{count} {end}")).collect();
        if ends.is_empty() {
            ends.push("none".to_owned());
        }
        let ends = ends.join(", ");
        format!(
            "runs: {ends} ({first:.0} to {last:.0})\n\n{}",
            counted.to_text_table()
        )
    }

    /// Prints warnings about lines that are not audit records and about tool calls without an end.
    /// The statistics do not include these lines and calls.
    fn print_omission_warnings(&self) {
        let unreadable = self.unreadable;
        if unreadable > 0 {
            print_warning(&format!(
                "not counted: {unreadable} entries that are not audit records of this version"
            ));
        }
        let open = self.metrics.unfinished_call_count();
        if open > 0 {
            print_note(&format!(
                "unfinished tool calls, not counted: {open}. They are still running, or the \
                 program ended before they returned a result"
            ));
        }
    }

    /// Returns the statistics as JSON for `--output json`.
    fn statistics_to_json(&self) -> Value {
        let counted = self.metrics.take_snapshot();
        let models = counted.models.iter().map(|model| {
            json!({
                "model": model.model.to_string(),
                "requests": model.requests,
                "latency": latency_to_json(&model.latency),
                "tokens": model.tokens,
                // The cost is `null` if no request has a known price.
                "cost_usd": (model.requests.successful > model.unpriced).then_some(model.cost_usd),
                "unpriced": model.unpriced,
                "tool_calls": call_counts_to_json(&model.tool_calls),
            })
        });
        let tools = counted.tools.iter().map(|tool| {
            json!({
                "server": tool.server,
                "tool": tool.tool,
                "calls": call_counts_to_json(&tool.calls),
                "latency": latency_to_json(&tool.latency),
            })
        });
        json!({
            "files": self.files,
            "records": self.records,
            "unreadable_lines": self.unreadable,
            "first": self.first,
            "last": self.last,
            "runs": {
                "started": counted.runs_started,
                "completed": counted.runs_completed,
                "limited": counted.runs_limited,
                "failed": counted.runs_failed,
                "cancelled": counted.runs_cancelled,
                "waiting": self.metrics.parked_run_count(),
                "unfinished": self.metrics.unfinished_run_count(),
            },
            "unfinished_calls": self.metrics.unfinished_call_count(),
            "tools": tools.collect::<Vec<_>>(),
            "models": models.collect::<Vec<_>>(),
        })
    }
}

/// Returns the numbers of tool calls and their accuracy as JSON.
fn call_counts_to_json(counts: &ToolCallCounts) -> Value {
    let mut calls = json!(counts);
    calls["accuracy"] = json!(counts.accuracy());
    calls
}

/// Returns call durations in milliseconds as JSON. Percentiles are estimated from the histogram.
fn latency_to_json(histogram: &Histogram) -> Value {
    json!({
        "count": histogram.count,
        "mean_ms": histogram.mean_ms(),
        "p50_ms": histogram.quantile_ms(0.5),
        "p95_ms": histogram.quantile_ms(0.95),
        "max_ms": (histogram.count > 0).then_some(histogram.max_ms),
    })
}
