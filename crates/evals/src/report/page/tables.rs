//! The figures as tables.

use std::collections::BTreeSet;

use super::{chart::kind_in_words, markup::Markup};
use crate::{
    report::comparison::UNKNOWN,
    report::metric::{Figure, dollars, grouped, seconds},
    report::{Counts, ModelSummary, share},
};

/// Rows of a table of tools: names that models made up have no end.
const TOOLS: usize = 1_000;

/// What a row of the table of models shows.
type Cell = fn(&ModelSummary) -> String;

/// The figures, with what they mean.
const FIGURES: [(&str, &str, Cell); 17] = [
    (
        "Runs",
        "Conversations: each scenario as often as it was repeated.",
        |it| count(it.runs),
    ),
    (
        "Passed",
        "Runs in which everything expected was done, nothing forbidden, and every answer was as it must be. Not known: of a recording, those among them with calls that are not known.",
        |it| match it.passed_unknown {
            0 => part(it.passed, it.runs),
            some => format!("{}, {} not known", part(it.passed, it.runs), count(some)),
        },
    ),
    ("Calls", "Calls of tools that the model asked for.", |it| {
        count(it.counts.calls)
    }),
    (
        "Successful",
        "The tool did its work, whether it was expected or not.",
        |it| part(it.counts.successful, it.counts.calls),
    ),
    (
        "Failed",
        "The tool or its server failed, or did not answer.",
        |it| part(it.counts.failed, it.counts.calls),
    ),
    (
        "Hallucinated",
        "Calls of tools that do not exist, with arguments that do not fit, or with other arguments than the expected ones. The last \
         of these ran, and are among the successful or failed ones too.",
        |it| part(it.counts.hallucinated, it.counts.calls),
    ),
    ("Not executed", "Denied, skipped or over a limit.", |it| {
        part(it.counts.not_executed, it.counts.calls)
    }),
    (
        "Unnecessary",
        "Nobody expected the call, or its result was there already.",
        |it| part(it.counts.unnecessary, it.counts.calls),
    ),
    (
        "Forbidden",
        "Calls of tools that must not be called.",
        |it| part(it.counts.forbidden, it.counts.calls),
    ),
    (
        "Right",
        "The right tool with the right arguments at the right place; of all calls about which something was expected, made or not.",
        |it| format!("{} of {}", count(it.counts.right), count(it.counts.judged)),
    ),
    (
        "Not known",
        "Of a recording: calls out of whose arguments a secret was struck, so that nobody can tell whether they are right. They count neither as right nor as wrong.",
        |it| count(it.counts.unknown),
    ),
    (
        "Accuracy",
        "The share of right calls. A call that is missing is not right.",
        |it| told(it.counts.accuracy().map(|it| Figure::Accuracy.text(it))),
    ),
    (
        "Turn, median",
        "From the question to the end of the answer, tools included: half of the turns took no longer.",
        |it| time(it.turn_ms.map(|it| it.0)),
    ),
    (
        "Turn, 95 % within",
        "19 of 20 turns took no longer.",
        |it| time(it.turn_ms.map(|it| it.1)),
    ),
    (
        "Input tokens",
        "Of all prompts together, as far as the provider told them.",
        |it| tokens(it, it.usage.input_tokens),
    ),
    (
        "Output tokens",
        "All that the model wrote, as far as the provider told it.",
        |it| tokens(it, it.usage.output_tokens),
    ),
    (
        "Cost",
        "US dollars; known if all prices are, and all tokens that are paid.",
        |it| told(it.cost_usd.map(dollars)),
    ),
];

/// The figures of each model.
pub(super) fn models(page: &mut Markup, summary: &[ModelSummary]) {
    page.raw("<section aria-labelledby=\"models\">\n<h2 id=\"models\">Models</h2>\n");
    if summary.is_empty() {
        page.raw("<p>No run was made.</p>\n</section>\n");
        return;
    }
    open(page, "Figures of each model");
    page.raw("<thead><tr><th scope=\"col\" class=\"name\">Figure</th>");
    for it in summary {
        page.raw("<th scope=\"col\" class=\"model\"><bdi>")
            .name(&it.model.to_string())
            .raw("</bdi></th>");
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for (name, _, cell) in FIGURES {
        page.raw("<tr><th scope=\"row\">").raw(name).raw("</th>");
        for it in summary {
            page.raw("<td>").show(cell(it)).raw("</td>");
        }
        page.raw("</tr>\n");
    }
    close(page);
    page.raw("<details class=\"terms\"><summary>What the figures mean</summary>\n<dl>\n");
    for (name, meaning, _) in FIGURES {
        page.raw("<dt>")
            .raw(name)
            .raw("</dt><dd>")
            .raw(meaning)
            .raw("</dd>\n");
    }
    page.raw("</dl></details>\n</section>\n");
}

/// The runs that passed, by kind and model.
pub(super) fn kinds(page: &mut Markup, summary: &[ModelSummary]) {
    let kinds: BTreeSet<&str> = summary
        .iter()
        .flat_map(|it| it.kinds.keys().map(String::as_str))
        .collect();
    if kinds.is_empty() {
        return;
    }
    page.raw("<section aria-labelledby=\"kinds\">\n<h2 id=\"kinds\">Kinds of scenarios</h2>\n");
    open(page, "Runs that passed, by kind of scenario");
    page.raw("<thead><tr><th scope=\"col\" class=\"name\">Kind</th>");
    for it in summary {
        page.raw("<th scope=\"col\" class=\"model\"><bdi>")
            .name(&it.model.to_string())
            .raw("</bdi></th>");
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for kind in kinds {
        page.raw("<tr><th scope=\"row\"><bdi>")
            .name(kind_in_words(kind))
            .raw("</bdi></th>");
        for it in summary {
            let cell = match it.kinds.get(kind) {
                Some((runs, passed)) => part(*passed, *runs),
                None => UNKNOWN.to_owned(),
            };
            page.raw("<td>").show(cell).raw("</td>");
        }
        page.raw("</tr>\n");
    }
    close(page);
    page.raw("</section>\n");
}

/// The calls of each tool.
pub(super) fn tools(page: &mut Markup, summary: &[ModelSummary]) {
    if summary.iter().all(|it| it.tools.is_empty()) {
        return;
    }
    page.raw("<section aria-labelledby=\"tools\">\n<h2 id=\"tools\">Tools</h2>\n");
    open(page, "Calls of each tool that were made");
    page.raw("<thead><tr><th scope=\"col\" class=\"name\">Tool</th><th scope=\"col\" class=\"name\">Model</th>");
    for head in HEADS {
        page.raw("<th scope=\"col\">").raw(head).raw("</th>");
    }
    page.raw("</tr></thead>\n<tbody>\n");
    let names: BTreeSet<&str> = summary
        .iter()
        .flat_map(|it| it.tools.keys().map(String::as_str))
        .collect();
    let rows = names.iter().flat_map(|name| {
        let of_models = summary.iter();
        of_models.filter_map(move |it| Some((name, &it.model, it.tools.get(*name)?)))
    });
    let mut left_out = 0;
    for (at, (name, model, tool)) in rows.enumerate() {
        if at >= TOOLS {
            left_out += 1;
            continue;
        }
        page.raw("<tr><th scope=\"row\"><bdi>")
            .name(name)
            .raw("</bdi></th><td class=\"name\"><bdi>");
        page.name(&model.to_string()).raw("</bdi></td>");
        for cell in cells(&tool.counts) {
            page.raw("<td>").show(cell).raw("</td>");
        }
        page.raw("<td>")
            .show(time(tool.call_ms.map(|it| it.0)))
            .raw("</td><td>");
        page.show(time(tool.call_ms.map(|it| it.1)))
            .raw("</td></tr>\n");
    }
    close(page);
    if left_out > 0 {
        page.raw("<p class=\"muted\">")
            .many(left_out, "more row is", "more rows are")
            .raw(" in the report.</p>\n");
    }
    page.raw("</section>\n");
}

const HEADS: [&str; 9] = [
    "Calls",
    "Successful",
    "Failed",
    "Hallucinated",
    "Unnecessary",
    "Forbidden",
    "Right",
    "Median",
    "95 % within",
];

fn cells(counts: &Counts) -> [String; 7] {
    [
        count(counts.calls),
        count(counts.successful),
        count(counts.failed),
        count(counts.hallucinated),
        count(counts.unnecessary),
        count(counts.forbidden),
        match counts.judged {
            0 => UNKNOWN.to_owned(),
            judged => format!("{} of {}", count(counts.right), count(judged)),
        },
    ]
}

/// Begins a table with its caption. It may be wider than a phone: its box is scrolled then, also with keys.
pub(super) fn open(page: &mut Markup, caption: &'static str) {
    page.raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"")
        .raw(caption);
    page.raw("\">\n<table>\n<caption>")
        .raw(caption)
        .raw("</caption>\n");
}

pub(super) fn close(page: &mut Markup) {
    page.raw("</tbody>\n</table>\n</div>\n");
}

pub(super) fn count(number: u64) -> String {
    grouped(&number.to_string())
}

fn part(part: u64, whole: u64) -> String {
    match share(part, whole) {
        Some(share) => format!("{} ({})", count(part), Figure::Passed.text(share)),
        None => count(part),
    }
}

fn told(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

pub(super) fn time(ms: Option<u64>) -> String {
    told(ms.and_then(|ms| share(ms, 1)).map(seconds))
}

fn tokens(it: &ModelSummary, sum: Option<u64>) -> String {
    match (sum, it.unmetered_turns) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(sum), 0) => count(sum),
        (Some(sum), some) => format!(
            "at least {}, {} of {} turns not told",
            count(sum),
            count(some),
            count(it.turns)
        ),
    }
}
