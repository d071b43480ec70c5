//! A report as one self-contained HTML page.
//!
//! The page loads nothing from the network. Its style and script are in it, and its security
//! policy forbids all others. It is complete without its script, which filters runs. All text of
//! models, tools and reports is escaped, see `escape`.

mod chart;
mod escape;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Environment, Value, context};
use serde::Serialize;
use switchboard_domain::ModelId;

use super::{
    Report, TurnResult,
    comparison::Comparison,
    metric::{self, Metric},
    transcript::Event,
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Content security policy that allows only the embedded style and script, by their SHA-256. A test
/// compares the hashes.
const POLICY: &str = "default-src 'none'; \
    style-src 'sha256-z/RsGm2Qhxhs8n1ZI0CoufHRSPRV/ZSZA9UGN1jq7AA='; \
    script-src 'sha256-aPGNVALmKMzDfcZ8XaPDW9AGFai94BSWkbTh8SCqAUc='; \
    base-uri 'none'; form-action 'none'";

/// Maximum size of all rendered runs in bytes. The turns of further runs are omitted.
const MAX_RUNS_BYTES: usize = 64 << 20;

/// Maximum size of one text on the page, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum length of a name on the page, in characters.
const MAX_NAME_CHARS: usize = 200;

/// Maximum number of regressions that the page lists.
const MAX_ITEMS: usize = 500;

/// An error while rendering a report page.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the report as a page: {0}")]
pub struct PageError(#[from] minijinja::Error);

/// Renders a report as an HTML page. Compares it with `earlier` if there is an earlier report.
///
/// A run and its transcript need some kilobytes. Texts are cut at 64 KiB, and transcripts are
/// omitted after 64 MiB.
pub fn html(report: &Report, earlier: Option<&Report>) -> Result<String, PageError> {
    let environment = template_environment()?;
    let summary = report.summary();
    let metrics = Metric::ALL.map(|metric| (metric.title(), metric.explanation()));
    let models = number_names(report.runs.iter().map(|run| run.model.to_string()));
    let kinds = number_names(report.runs.iter().map(|run| run.kind.clone()));
    let runs = render_runs(&environment, report, &models, &kinds)?;
    let comparison = earlier.map(|earlier| create_comparison_view(earlier, report));
    let context = context! {
        policy => Value::from_safe_string(POLICY.to_owned()),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        title => match report.title.trim() {
            "" => "Evaluation",
            title => title,
        },
        report => context! { created_at => report.created_at, program => report.program },
        status => create_status_boxes(report),
        models => table::model_metrics_table(&summary),
        metrics => metrics.as_slice(),
        charts => chart::create_charts(&summary).as_slice(),
        kinds => table::scenario_kinds_table(&summary),
        tools => table::tool_calls_table(&summary),
        comparison => comparison,
        run_count => report.runs.len(),
        failed_count => report.runs.iter().filter(|run| !run.passed).count(),
        filter_models => models.keys().collect::<Vec<_>>(),
        filter_kinds => kinds.keys().map(|kind| table::kind_display_name(kind)).collect::<Vec<_>>(),
        runs => Value::from_safe_string(runs),
    };
    Ok(environment.get_template("page.html")?.render(context)?)
}

fn template_environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("page.html"))?;
    environment.add_template("run.html", include_str!("run.html"))?;
    environment.set_formatter(escape::format_value);
    environment.add_filter("name", |text: &str| {
        match text.char_indices().nth(MAX_NAME_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        }
    });
    environment.add_filter("excerpt", format_excerpt);
    environment.add_filter("size", |text: &str, omitted: Option<u64>| {
        (text.len() as u64).saturating_add(omitted.unwrap_or(0))
    });
    environment.add_filter("words", |text: &str| text.replace('_', " "));
    environment.add_filter("pretty", |text: &str| {
        let value = serde_json::from_str::<serde_json::Value>(text).ok();
        let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
        pretty.unwrap_or_else(|| text.to_owned())
    });
    environment.add_filter("count", |number: u64| {
        metric::group_thousands(&number.to_string())
    });
    environment.add_filter("plural", |number: u64, one: &str, many: &str| {
        let count = metric::group_thousands(&number.to_string());
        format!("{count} {}", if number == 1 { one } else { many })
    });
    environment.add_filter("duration", metric::format_duration);
    environment.add_filter("dollars", metric::format_dollars);
    Ok(environment)
}

/// Returns the beginning of a text, followed by the number of omitted bytes.
fn format_excerpt(text: &str, omitted: Option<u64>) -> String {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    let omitted = omitted
        .unwrap_or(0)
        .saturating_add((text.len() - end) as u64);
    match omitted {
        0 => text.to_owned(),
        omitted => format!("{}… ({omitted} more bytes)", &text[..end]),
    }
}

/// Assigns a number to each distinct name, in alphabetical order.
fn number_names(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let names: BTreeSet<String> = names.collect();
    names.into_iter().zip(0..).collect()
}

/// A status box at the top of the page, such as the result of the thresholds.
#[derive(Serialize)]
struct StatusBox {
    class: &'static str,
    mark_class: &'static str,
    title: &'static str,
    text: String,
    items: Vec<String>,
}

impl StatusBox {
    fn new(class: &'static str, title: &'static str, text: String) -> Self {
        Self {
            class,
            mark_class: match class {
                "held" => "good",
                "missed" => "bad",
                _ => "",
            },
            title,
            text,
            items: Vec::new(),
        }
    }

    fn with_items(mut self, items: Vec<String>) -> Self {
        self.items = items;
        self
    }
}

/// Creates the status boxes: whether the report is complete and meets its thresholds.
fn create_status_boxes(report: &Report) -> Vec<StatusBox> {
    let mut boxes = Vec::new();
    if report.is_unfinished() {
        let text = format!("Runs that were not made: {}.", report.not_run);
        boxes.push(StatusBox::new("open", "Interrupted.", text));
    }
    let thresholds = report.thresholds;
    let thresholds = [
        ("passed at least", thresholds.passed, Metric::Passed),
        ("accuracy at least", thresholds.accuracy, Metric::Accuracy),
        (
            "hallucinated at most",
            thresholds.hallucinated,
            Metric::Hallucinated,
        ),
        (
            "unnecessary at most",
            thresholds.unnecessary,
            Metric::Unnecessary,
        ),
    ];
    let thresholds = thresholds
        .into_iter()
        .filter_map(|(name, share, metric)| Some(format!("{name} {}", metric.text(share?))));
    let thresholds: Vec<String> = thresholds.collect();
    let text = match thresholds.as_slice() {
        [] => "The suite has no thresholds.".to_owned(),
        thresholds => format!("Thresholds for each model: {}.", thresholds.join(", ")),
    };
    let missed = report.missed();
    boxes.push(if !missed.is_empty() {
        StatusBox::new("missed", "✗ Missed.", text).with_items(missed)
    } else if thresholds.is_empty() {
        StatusBox::new("", "", text)
    } else {
        StatusBox::new("held", "✓ All thresholds are met.", text)
    });
    boxes
}

#[derive(Serialize)]
struct ComparisonView<'a> {
    created_at: &'a str,
    program: &'a str,
    is_unfinished: bool,
    status: StatusBox,
    notes: Vec<String>,
    models: Vec<ModelView>,
}

#[derive(Serialize)]
struct ModelView {
    name: String,
    note: String,
    tables: Vec<table::Table>,
}

fn create_comparison_view<'a>(earlier: &'a Report, later: &Report) -> ComparisonView<'a> {
    let found = Comparison::of(earlier, later);
    let status = if found.is_empty() {
        let text = "The reports have no scenario of a model in common.".to_owned();
        StatusBox::new("open", "", text)
    } else if found.is_worse() {
        let mut worse = found.worse();
        worse.truncate(MAX_ITEMS);
        StatusBox::new("missed", "✗ Worse.", String::new()).with_items(worse)
    } else {
        StatusBox::new("held", "✓ Nothing is worse.", String::new())
    };
    let names = |text: &str, models: &[ModelId]| {
        let names: Vec<String> = models.iter().map(ToString::to_string).collect();
        (!names.is_empty()).then(|| format!("{text}: {}.", names.join(", ")))
    };
    let notes = [
        names("Only in the earlier report", &found.only_earlier),
        names("Only in this report", &found.only_later),
    ];
    let models = found.models.iter().map(|model| {
        let name = model.model.to_string();
        if !model.has_both() {
            let note = "The reports have no scenario of this model in common.".to_owned();
            let tables = Vec::new();
            return ModelView { name, note, tables };
        }
        let changes = model.scenarios.iter().filter(|it| it.is_changed()).count();
        let same = model.scenarios.len() - changes;
        let mut note = format!("Unchanged scenarios: {same}.");
        if model.partial {
            note.push_str(" The metrics are of the scenarios that both reports have.");
        }
        let tables = table::comparison_tables(model, later);
        ModelView { name, note, tables }
    });
    ComparisonView {
        created_at: &earlier.created_at,
        program: &earlier.program,
        is_unfinished: earlier.is_unfinished(),
        status,
        notes: notes.into_iter().flatten().collect(),
        models: models.collect(),
    }
}

#[derive(Serialize)]
struct TurnView<'a> {
    #[serde(flatten)]
    turn: &'a TurnResult,
    /// Whether the answer must be shown separately because the transcript does not contain it.
    has_unlisted_answer: bool,
}

impl<'a> TurnView<'a> {
    fn new(turn: &'a TurnResult) -> Self {
        let answer = turn.answer.trim();
        let mut entries = turn.transcript.entries.iter();
        let is_listed = entries
            .any(|entry| matches!(&entry.event, Event::Text(text) if text.text.trim() == answer));
        Self {
            turn,
            has_unlisted_answer: !answer.is_empty() && !is_listed,
        }
    }
}

/// Renders all runs of the report with their transcripts.
fn render_runs(
    environment: &Environment<'_>,
    report: &Report,
    models: &BTreeMap<String, usize>,
    kinds: &BTreeMap<String, usize>,
) -> Result<String, minijinja::Error> {
    let template = environment.get_template("run.html")?;
    let names = context! {
        verdicts => context! {
            right => "right",
            wrong_order => "wrong position",
            wrong_input => "wrong arguments",
            hallucinated => "hallucinated",
            forbidden => "forbidden",
            unnecessary => "unnecessary",
            unknown => "not known",
            unjudged => "not judged",
        },
        outcomes => context! {
            successful => "successful",
            failed => "failed",
            hallucinated => "invalid",
            not_executed => "not executed",
        },
        run_outcomes => context! {
            completed => "completed",
            limited => "stopped at a limit",
            failed => "failed",
            cancelled => "cancelled",
        },
    };
    let mut html = String::new();
    for (position, run) in report.runs.iter().enumerate() {
        let is_omitted = html.len() > MAX_RUNS_BYTES;
        let turns: Vec<TurnView<'_>> = if is_omitted {
            Vec::new()
        } else {
            run.turns.iter().map(TurnView::new).collect()
        };
        let durations = run.turns.iter().map(|turn| turn.duration_ms);
        let run_fields = context! {
            passed => run.passed,
            scenario => run.scenario,
            model => run.model,
            repetition => run.repetition,
            recipe => run.recipe,
            error => run.error,
            unfinished_turn => run.unfinished_turn,
            not_reached => run.not_reached,
        };
        html.push_str(&template.render(context! {
            number => position + 1,
            run => run_fields,
            kind => table::kind_display_name(&run.kind),
            model_index => models.get(&run.model.to_string()),
            kind_index => kinds.get(&run.kind),
            duration_ms => durations.fold(0, u64::saturating_add),
            is_omitted => is_omitted,
            turns => turns,
            ..names.clone()
        })?);
    }
    Ok(html)
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
