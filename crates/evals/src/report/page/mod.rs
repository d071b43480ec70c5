//! Renders a report as one self-contained HTML page. The page loads nothing from the network: its
//! style and script are embedded, and its security policy forbids all others. Only the filter for
//! runs needs the script. All text of models, tools and reports is escaped, see `html_escape`.

mod chart;
mod html_escape;

use std::collections::BTreeSet;

use minijinja::{Environment, Value, context};

use super::{
    Report,
    comparison::{Change, ModelComparison, ReportComparison},
    compute_share,
    metric::{self, Metric},
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Content security policy that allows only the embedded style and script, by their SHA-256 hashes.
/// A test checks the hashes.
const POLICY: &str = "default-src 'none'; \
    style-src 'sha256-z/RsGm2Qhxhs8n1ZI0CoufHRSPRV/ZSZA9UGN1jq7AA='; \
    script-src 'sha256-2Myznxb+U4L9k0v/L/gkAlJ4lAeAvb8ObyrqpR9iPlU='; \
    base-uri 'none'; form-action 'none'";

/// Maximum size in bytes of the HTML of all runs. When the HTML is larger, the remaining runs are
/// shown without their turns.
const MAX_RUNS_BYTES: usize = 64 << 20;

/// Maximum size in bytes of one text on the page. Longer texts are cut.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Maximum length in characters of a name on the page. Longer names are cut.
const MAX_NAME_CHARS: usize = 200;

/// An error while the page of a report is rendered.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the report as a page: {0}")]
pub struct ReportPageError(#[from] minijinja::Error);

/// Renders a report as an HTML page. If `earlier` is set, the page compares both reports.
///
/// Texts on the page are cut at 64 KiB. After 64 MiB of runs, the turns of further runs are
/// omitted.
pub fn render_html(report: &Report, earlier: Option<&Report>) -> Result<String, ReportPageError> {
    let environment = build_template_environment()?;
    let summary = report.summarize_models();
    let kinds: BTreeSet<&String> = summary.iter().flat_map(|it| it.kinds.keys()).collect();
    let kinds: Vec<&String> = kinds.into_iter().collect();
    let metrics = Metric::ALL.map(|metric| {
        let values = summary.iter().map(|model| metric.format_in_summary(model));
        (metric.display_name(), values.collect::<Vec<_>>())
    });
    let tools = summary.iter().flat_map(|model| {
        let tools = model.tools.iter();
        tools.map(|(name, tool)| (name, model.model.to_string(), tool))
    });
    let mut tools: Vec<_> = tools.collect();
    tools.sort_by_key(|(name, ..)| *name);
    let context = context! {
        policy => Value::from_safe_string(POLICY.to_owned()),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        title => report.title,
        created_at => report.created_at,
        program => report.program,
        no_tools => report.no_tools,
        not_run => report.not_run,
        thresholds => report.thresholds,
        missed => report.list_unmet_requirements(),
        summary => summary,
        models => summary.iter().map(|it| it.model.to_string()).collect::<Vec<_>>(),
        metrics => metrics.as_slice(),
        kinds => kinds,
        tools => tools,
        passed_bars => chart::passed_run_bars(&summary, &kinds),
        call_bars => summary.iter().map(chart::call_outcome_bar).collect::<Vec<_>>(),
        duration_bars => chart::turn_duration_bars(&summary),
        comparison => earlier.map(|earlier| build_comparison(earlier, report)),
        run_count => report.runs.len(),
        failed_count => report.runs.iter().filter(|run| !run.passed).count(),
        runs => Value::from_safe_string(render_runs(&environment, report)?),
    };
    Ok(environment.get_template("page.html")?.render(context)?)
}

fn build_template_environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("page.html"))?;
    environment.add_template("run.html", include_str!("run.html"))?;
    environment.set_formatter(html_escape::write_escaped_value);
    environment.add_filter("name", |text: &str| {
        match text.char_indices().nth(MAX_NAME_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        }
    });
    environment.add_filter("kind", |kind: &str| scenario_kind_name(kind).to_owned());
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
        metric::add_thousands_separators(&number.to_string())
    });
    environment.add_filter("plural", |number: u64, one: &str, many: &str| {
        let count = metric::add_thousands_separators(&number.to_string());
        format!("{count} {}", if number == 1 { one } else { many })
    });
    environment.add_filter("percent", |share: f64| Metric::Passed.format_value(share));
    environment.add_filter("share", compute_share);
    environment.add_filter("duration", metric::format_milliseconds);
    environment.add_filter("dollars", metric::format_dollars);
    Ok(environment)
}

/// Returns the name that the page shows for a kind of scenario: `(none)` for an empty kind.
fn scenario_kind_name(kind: &str) -> &str {
    match kind.trim() {
        "" => "(none)",
        kind => kind,
    }
}

/// Returns the beginning of a text, followed by a note with the number of omitted bytes.
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

/// Returns the template values for the comparison of both reports.
fn build_comparison(earlier: &Report, later: &Report) -> Value {
    let found = ReportComparison::compare_reports(earlier, later);
    let models = found.models.iter().map(|model| {
        let metrics = model.metrics.iter().map(|it| {
            let (before, now) = (it.format_earlier_result(), it.format_later_result());
            let (name, difference) = (it.metric.display_name(), it.format_result_difference());
            (name, before, now, difference, it.change)
        });
        let scenarios = model.scenarios.iter();
        let changed = scenarios.filter(|it| it.change != Change::Same).map(|it| {
            let run =
                (it.change == Change::Worse).then(|| failed_run_number(later, model, &it.scenario));
            let (before, now) = (it.format_earlier_result(), it.format_later_result());
            (&it.scenario, before, now, it.change, run.flatten())
        });
        let changed: Vec<_> = changed.collect();
        context! {
            name => model.model.to_string(),
            is_common => model.has_common_scenarios(),
            partial => model.partial,
            unchanged => model.scenarios.len() - changed.len(),
            metrics => metrics.collect::<Vec<_>>(),
            changed => changed,
        }
    });
    context! {
        created_at => earlier.created_at,
        program => earlier.program,
        no_tools => earlier.no_tools,
        is_unfinished => earlier.is_unfinished(),
        is_empty => found.is_empty(),
        worse => found.list_regressions(),
        only_earlier => found.only_earlier,
        only_later => found.only_later,
        models => models.collect::<Vec<_>>(),
    }
}

/// Returns the number under which the page shows the first failed run of the model and the
/// scenario. The first run of the report has number 1. Returns `None` if no such run failed.
fn failed_run_number(report: &Report, model: &ModelComparison, scenario: &str) -> Option<usize> {
    let position = report
        .runs
        .iter()
        .position(|run| run.model == model.model && run.scenario == scenario && !run.passed);
    Some(position? + 1)
}

/// Renders all runs of the report with their transcripts.
fn render_runs(environment: &Environment<'_>, report: &Report) -> Result<String, minijinja::Error> {
    let template = environment.get_template("run.html")?;
    let mut html = String::new();
    for (position, run) in report.runs.iter().enumerate() {
        html.push_str(&template.render(context! {
            number => position + 1,
            run => run,
            made_up_values => run.count_made_up_values(),
            is_omitted => html.len() > MAX_RUNS_BYTES,
        })?);
    }
    Ok(html)
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
