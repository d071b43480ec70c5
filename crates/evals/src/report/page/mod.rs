//! A report as one HTML page that needs nothing beside it.
//!
//! The page asks no network for anything: style and script are in it, the charts are drawn here, and its own policy
//! forbids all else. Without its script it is complete; the script filters runs. It follows the reader's choice of a
//! dark or light scheme, and can be printed: what is open is printed with it.
//!
//! What models and tools said is text wherever it stands, and so are names from the report: `markup` sees to that.

mod changes;
mod chart;
mod markup;
mod runs;
mod tables;

use super::{ModelSummary, Report, comparison::Comparison, metric::Figure};
use markup::Markup;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The only style and script that run, by their SHA-256. A test holds them against what is in the files.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    style-src 'sha256-rIw96nO+3h6TielCfSss+Z/rKRk7WLBGqOcz5QHuLlU='; \
    script-src 'sha256-aPGNVALmKMzDfcZ8XaPDW9AGFai94BSWkbTh8SCqAUc='; \
    base-uri 'none'; form-action 'none'\">\n";

/// A report as a page, beside an earlier one if there is one.
///
/// Its size grows with what the report holds: some kilobytes for each run and its transcripts. Texts are cut at 64 KiB,
/// and transcripts are left out beyond 64 MiB, which the page says; the report has them all.
pub fn html(report: &Report, earlier: Option<&Report>) -> String {
    let summary = report.summary();
    let mut page = Markup::default();
    head(&mut page, report);
    page.raw("<main>\n");
    tables::models(&mut page, &summary);
    charts(&mut page, &summary);
    tables::kinds(&mut page, &summary);
    tables::tools(&mut page, &summary);
    if let Some(earlier) = earlier {
        changes::section(&mut page, &Comparison::of(earlier, report), earlier, report);
    }
    runs::section(&mut page, report);
    page.raw("</main>\n<footer><p>Made by ")
        .name(&report.program);
    page.raw(". This page asks nobody for anything; all that is in it was in the report.</p></footer>\n<script>");
    page.raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
    page.into_string()
}

fn title(report: &Report) -> &str {
    match report.title.trim() {
        "" => "Evaluation",
        title => title,
    }
}

fn head(page: &mut Markup, report: &Report) {
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw(POLICY);
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    page.name(title(report)).raw("</title>\n<style>").raw(STYLE);
    page.raw("</style>\n</head>\n<body>\n<header>\n<h1><bdi>")
        .name(title(report));
    page.raw("</bdi></h1>\n<p class=\"muted\">Made ")
        .name(&report.made)
        .raw(" by ")
        .name(&report.program);
    page.raw("</p>\n");
    verdict(page, report);
    page.raw("</header>\n");
}

/// What was to be reached, and whether it was.
fn verdict(page: &mut Markup, report: &Report) {
    if report.is_unfinished() {
        page.raw("<div class=\"box open\"><p><strong>Unfinished.</strong> ")
            .many(report.not_run, "planned run was", "planned runs were");
        page.raw(" not made: the evaluation was stopped.</p></div>\n");
    }
    let thresholds = report.thresholds;
    let asked = [
        ("passed at least ", thresholds.passed, Figure::Passed),
        ("accuracy at least ", thresholds.accuracy, Figure::Accuracy),
        (
            "hallucinated at most ",
            thresholds.hallucinated,
            Figure::Hallucinated,
        ),
        (
            "unnecessary at most ",
            thresholds.unnecessary,
            Figure::Unnecessary,
        ),
    ];
    let asked: Vec<String> = asked
        .into_iter()
        .filter_map(|(what, share, figure)| Some(format!("{what}{}", figure.text(share?))))
        .collect();
    let missed = report.missed();
    if asked.is_empty() && missed.is_empty() {
        page.raw("<div class=\"box\"><p>No threshold was asked for.</p></div>\n");
        return;
    }
    let asked = if asked.is_empty() {
        "No threshold was asked for.".to_owned()
    } else {
        format!("Asked for, of each model: {}.", asked.join(", "))
    };
    if missed.is_empty() {
        page.raw("<div class=\"box held\"><p><strong class=\"good\">✓ All held.</strong> ")
            .show(asked);
        page.raw("</p></div>\n");
        return;
    }
    page.raw("<div class=\"box missed\"><p><strong class=\"bad\">✗ Missed.</strong> ")
        .show(asked);
    page.raw("</p><ul>\n");
    for sentence in &missed {
        page.raw("<li>").text(sentence).raw("</li>\n");
    }
    page.raw("</ul></div>\n");
}

fn charts(page: &mut Markup, summary: &[ModelSummary]) {
    if summary.is_empty() {
        return;
    }
    page.raw("<section aria-labelledby=\"charts\">\n<h2 id=\"charts\">At a glance</h2>\n<div class=\"charts\">\n");
    chart::passed(page, summary);
    chart::calls(page, summary);
    chart::latency(page, summary);
    page.raw("</div>\n</section>\n");
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
