//! Prometheus' text form, version 0.0.4.

use std::fmt::{self, Display, Write as _};

use super::{BOUNDS_MS, CallCounts, Histogram, Snapshot};

impl Snapshot {
    /// What was counted in the text form that Prometheus reads (version 0.0.4, served as
    /// `text/plain; version=0.0.4`). Times are in seconds, cost in US dollars.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        family(
            text,
            "switchboard_runs_started_total",
            "counter",
            "Runs that began or were taken up.",
        )?;
        sample(
            text,
            "switchboard_runs_started_total",
            &[],
            self.runs_started,
        )?;
        family(
            text,
            "switchboard_runs_total",
            "counter",
            "Runs that ended, by outcome.",
        )?;
        for (outcome, count) in [
            ("completed", self.runs_completed),
            ("limited", self.runs_limited),
            ("failed", self.runs_failed),
            ("cancelled", self.runs_cancelled),
        ] {
            sample(
                text,
                "switchboard_runs_total",
                &[("outcome", outcome)],
                count,
            )?;
        }
        self.write_tools(text)?;
        self.write_models(text)
    }

    fn write_tools(&self, text: &mut String) -> fmt::Result {
        let labels: Vec<_> = self
            .tools
            .iter()
            .map(|tool| {
                let server = tool.server.as_deref().unwrap_or_default();
                [("server", server), ("tool", tool.tool.as_str())]
            })
            .collect();
        let counts: Vec<_> = self.tools.iter().map(|tool| &tool.calls).collect();
        write_calls(
            text,
            "switchboard_tool_calls",
            "Calls of tools",
            &labels,
            &counts,
        )?;
        let latencies = self.tools.iter().map(|tool| &tool.latency);
        histograms(
            text,
            "switchboard_tool_call_duration_seconds",
            "How long calls took that ran.",
            labels.iter().map(<[Label<'_>; 2]>::as_slice).zip(latencies),
        )
    }

    fn write_models(&self, text: &mut String) -> fmt::Result {
        let labels: Vec<_> = self
            .models
            .iter()
            .map(|model| {
                let id = &model.model;
                [
                    ("provider", id.provider.as_ref()),
                    ("model", id.name.as_ref()),
                ]
            })
            .collect();
        let name = "switchboard_model_requests_total";
        family(text, name, "counter", "Calls of models, by how they ended.")?;
        for (model, labels) in self.models.iter().zip(&labels) {
            for (result, count) in [
                ("successful", model.requests.successful),
                ("failed", model.requests.failed),
                ("cancelled", model.requests.cancelled),
            ] {
                sample(text, name, &with(labels, "result", result), count)?;
            }
        }
        let name = "switchboard_model_tokens_total";
        family(
            text,
            name,
            "counter",
            "Tokens; those of caches are part of the input, reasoning of the output.",
        )?;
        for (model, labels) in self.models.iter().zip(&labels) {
            for (kind, count) in [
                ("input", model.tokens.input),
                ("output", model.tokens.output),
                ("cache_read", model.tokens.cache_read),
                ("cache_write", model.tokens.cache_write),
                ("reasoning", model.tokens.reasoning),
            ] {
                sample(text, name, &with(labels, "type", kind), count)?;
            }
        }
        let name = "switchboard_model_cost_dollars_total";
        family(
            text,
            name,
            "counter",
            "What calls cost whose price is known, in US dollars.",
        )?;
        for (model, labels) in self.models.iter().zip(&labels) {
            sample(text, name, labels, model.cost_usd)?;
        }
        let name = "switchboard_model_unpriced_requests_total";
        family(text, name, "counter", "Answers whose price is not known.")?;
        for (model, labels) in self.models.iter().zip(&labels) {
            sample(text, name, labels, model.unpriced)?;
        }
        let counts: Vec<_> = self.models.iter().map(|model| &model.tool_calls).collect();
        write_calls(
            text,
            "switchboard_model_tool_calls",
            "Calls of tools that models asked for",
            &labels,
            &counts,
        )?;
        let latencies = self.models.iter().map(|model| &model.latency);
        histograms(
            text,
            "switchboard_model_request_duration_seconds",
            "How long answers took, from the request to their end.",
            labels.iter().map(<[Label<'_>; 2]>::as_slice).zip(latencies),
        )
    }
}

type Label<'a> = (&'a str, &'a str);

fn with<'a>(labels: &[Label<'a>], name: &'a str, value: &'a str) -> Vec<Label<'a>> {
    let mut all = labels.to_vec();
    all.push((name, value));
    all
}

/// Which of the counts.
type Count = fn(&CallCounts) -> u64;

fn write_calls(
    text: &mut String,
    prefix: &str,
    what: &str,
    labels: &[[Label<'_>; 2]],
    counts: &[&CallCounts],
) -> fmt::Result {
    let name = format!("{prefix}_total");
    family(
        text,
        &name,
        "counter",
        &format!("{what}, by how they ended."),
    )?;
    for (labels, calls) in labels.iter().zip(counts) {
        for (result, count) in [
            ("successful", calls.successful),
            ("failed", calls.failed),
            ("hallucinated", calls.hallucinated),
            ("not_executed", calls.not_executed),
        ] {
            sample(text, &name, &with(labels, "result", result), count)?;
        }
    }
    let further: [(&str, &str, Count); 3] = [
        ("unnecessary", "whose result was there already", |calls| {
            calls.unnecessary
        }),
        (
            "useful",
            "that were successful and necessary; divided by all it is the accuracy",
            |calls| calls.useful,
        ),
        ("cached", "that were answered from a cache", |calls| {
            calls.cached
        }),
    ];
    for (word, meaning, count) in further {
        let name = format!("{prefix}_{word}_total");
        family(text, &name, "counter", &format!("{what} {meaning}."))?;
        for (labels, calls) in labels.iter().zip(counts) {
            sample(text, &name, labels, count(calls))?;
        }
    }
    Ok(())
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}")?;
    writeln!(text, "# TYPE {name} {kind}")
}

fn sample(text: &mut String, name: &str, labels: &[Label<'_>], value: impl Display) -> fmt::Result {
    text.push_str(name);
    for (position, (label, value)) in labels.iter().enumerate() {
        text.push(if position == 0 { '{' } else { ',' });
        write!(text, "{label}=\"")?;
        for c in value.chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    if !labels.is_empty() {
        text.push('}');
    }
    writeln!(text, " {value}")
}

fn histograms<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    all: impl Iterator<Item = (&'a [Label<'a>], &'a Histogram)>,
) -> fmt::Result {
    family(text, name, "histogram", help)?;
    let (bucket, sum, count) = (
        format!("{name}_bucket"),
        format!("{name}_sum"),
        format!("{name}_count"),
    );
    for (labels, histogram) in all {
        let mut up_to = 0;
        for (bound, in_bucket) in BOUNDS_MS.iter().zip(histogram.buckets) {
            up_to += in_bucket;
            let bound = seconds(*bound);
            sample(text, &bucket, &with(labels, "le", &bound), up_to)?;
        }
        sample(text, &bucket, &with(labels, "le", "+Inf"), histogram.count)?;
        sample(text, &sum, labels, seconds(histogram.sum_ms))?;
        sample(text, &count, labels, histogram.count)?;
    }
    Ok(())
}

/// Milliseconds as seconds, exactly.
fn seconds(milliseconds: u64) -> String {
    let (whole, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    let text = format!("{whole}.{rest:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
