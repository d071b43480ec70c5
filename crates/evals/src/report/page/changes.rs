//! What is better and what is worse than in an earlier report.

use switchboard_domain::ModelId;

use super::{markup::Markup, tables};
use crate::{
    report::Report,
    report::comparison::{Change, Comparison, ModelComparison},
};

/// Scenarios that are listed for each model.
const SCENARIOS: usize = 500;

pub(super) fn section(page: &mut Markup, found: &Comparison, earlier: &Report, later: &Report) {
    page.raw("<section aria-labelledby=\"changes\">\n<h2 id=\"changes\">Beside an earlier report</h2>\n<p>That one was made ");
    page.name(&earlier.made)
        .raw(" by ")
        .name(&earlier.program)
        .raw(if earlier.is_unfinished() {
            ", and was not finished.</p>\n"
        } else {
            ".</p>\n"
        });
    if found.is_empty() {
        page.raw(
            "<div class=\"box open\"><p>The two have no scenario of a model in common.</p></div>\n",
        );
    } else if found.is_worse() {
        page.raw("<div class=\"box missed\"><p><strong class=\"bad\">✗ Worse.</strong></p><ul>\n");
        for sentence in found.worse().iter().take(SCENARIOS) {
            page.raw("<li>").text(sentence).raw("</li>\n");
        }
        page.raw("</ul></div>\n");
    } else {
        page.raw("<div class=\"box held\"><p><strong class=\"good\">✓ Nothing is worse.</strong></p></div>\n");
    }
    for (words, models) in [
        ("Only in the earlier report: ", &found.only_earlier),
        ("Only in this report: ", &found.only_later),
    ] {
        list(page, words, models);
    }
    for model in &found.models {
        figures(page, model);
        scenarios(page, model, later);
    }
    page.raw("</section>\n");
}

fn list(page: &mut Markup, words: &'static str, models: &[ModelId]) {
    if models.is_empty() {
        return;
    }
    page.raw("<p>").raw(words);
    for (at, model) in models.iter().enumerate() {
        page.raw(if at == 0 { "<bdi>" } else { ", <bdi>" })
            .name(&model.to_string())
            .raw("</bdi>");
    }
    page.raw(".</p>\n");
}

fn figures(page: &mut Markup, model: &ModelComparison) {
    page.raw("<h3><bdi>")
        .name(&model.model.to_string())
        .raw("</bdi></h3>\n");
    if !model.has_both() {
        page.raw("<p class=\"muted\">The reports share no scenario of this model.</p>\n");
        return;
    }
    if model.partial {
        page.raw(
            "<p class=\"muted\">The figures are of the scenarios that both reports have.</p>\n",
        );
    }
    let name = model.model.to_string();
    begin(page, "Figures, before and now: ", &name);
    page.raw("<thead><tr><th scope=\"col\" class=\"name\">Figure</th><th scope=\"col\">Before</th><th scope=\"col\">Now</th>");
    page.raw(
        "<th scope=\"col\">Difference</th><th scope=\"col\">It is</th></tr></thead>\n<tbody>\n",
    );
    for it in &model.figures {
        page.raw("<tr><th scope=\"row\">")
            .raw(it.figure.title())
            .raw("</th><td>")
            .show(it.earlier_text());
        page.raw("</td><td>")
            .show(it.later_text())
            .raw("</td><td>")
            .show(it.difference_text());
        page.raw("</td>");
        change(page, it.change);
        page.raw("</tr>\n");
    }
    tables::close(page);
}

fn scenarios(page: &mut Markup, model: &ModelComparison, later: &Report) {
    let changed = || {
        model
            .scenarios
            .iter()
            .filter(|it| it.change != Change::Same)
    };
    let same = model.scenarios.len() - changed().count();
    if changed().next().is_some() {
        begin(page, "Scenarios that changed: ", &model.model.to_string());
        page.raw("<thead><tr><th scope=\"col\" class=\"name\">Scenario</th><th scope=\"col\">Passed before</th>");
        page.raw(
            "<th scope=\"col\">Passed now</th><th scope=\"col\">It is</th></tr></thead>\n<tbody>\n",
        );
        for it in changed().take(SCENARIOS) {
            page.raw("<tr><th scope=\"row\">");
            // Leads to the run that shows it, if there is one.
            let failing = later.runs.iter().position(|run| {
                run.model == model.model && run.scenario == it.scenario && !run.passed
            });
            match failing.filter(|_| it.change == Change::Worse) {
                Some(at) => page
                    .raw("<a href=\"#run-")
                    .show(at + 1)
                    .raw("\"><bdi>")
                    .name(&it.scenario)
                    .raw("</bdi></a>"),
                None => page.raw("<bdi>").name(&it.scenario).raw("</bdi>"),
            };
            page.raw("</th><td>")
                .show(it.earlier_text())
                .raw("</td><td>")
                .show(it.later_text());
            page.raw("</td>");
            change(page, it.change);
            page.raw("</tr>\n");
        }
        tables::close(page);
    }
    page.raw("<p class=\"muted\">")
        .many(same as u64, "scenario", "scenarios")
        .raw(" went as before.</p>\n");
}

fn begin(page: &mut Markup, caption: &'static str, model: &str) {
    page.raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"")
        .raw(caption)
        .name(model);
    page.raw("\">\n<table>\n<caption>")
        .raw(caption)
        .raw("<bdi>")
        .name(model)
        .raw("</bdi></caption>\n");
}

fn change(page: &mut Markup, change: Change) {
    let (class, sign) = match change {
        Change::Better => ("<td class=\"good\">", "▲ "),
        Change::Worse => ("<td class=\"bad\">", "▼ "),
        Change::Same | Change::Changed | Change::New | Change::Gone => ("<td class=\"muted\">", ""),
    };
    page.raw(class).raw(sign).raw(change.as_str()).raw("</td>");
}
