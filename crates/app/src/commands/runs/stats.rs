//! Command `runs stats`: prints statistics of the audit records.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use clap::Args;
use jiff::{Span, Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::{Value, json};
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
    /// Audit files to read instead of the configured one
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

/// Statistics of models and tools, computed from audit records.
#[derive(Debug, Default)]
struct AuditStatistics {
    metrics: Metrics,
    files: Vec<PathBuf>,
    records: u64,
    /// Number of lines in the audit files that are not audit records of this program version.
    unreadable: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

pub(crate) fn print_run_statistics(
    args: &StatsArgs,
    global: &GlobalArgs,
    environment: Environment,
) -> Result<Code, Failure> {
    let mut read = AuditStatistics::default();
    if args.files.is_empty() {
        let context = Context::load_context(global, environment)?;
        let Some(file) = AuditLog::audit_path(&context.config, &context.environment) else {
            return Err(Failure::usage_error(anyhow!(
                "the audit is disabled (`audit: false`): give an audit file to read"
            )));
        };
        if file.exists() {
            read.read_audit_file(&file, args.since)?;
        } else {
            print_note(&format!("no records yet in {}", file.display()));
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
                self.count_audit_line(&line, since);
            }
        }
        Ok(())
    }

    fn count_audit_line(&mut self, line: &[u8], since: Option<Timestamp>) {
        let Ok(record) = serde_json::from_slice::<AuditRecord>(line) else {
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
        if self.unreadable > 0 {
            print_warning(&format!(
                "not counted: {} lines that are not audit records of this version",
                self.unreadable
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
