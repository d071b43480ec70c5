//! Every run, with the whole course of its turns.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use switchboard_domain::Usage;
use switchboard_orchestration::Outcome;

use super::{
    chart::kind_in_words,
    markup::Markup,
    tables::{count, time},
};
use crate::{
    report::metric::dollars,
    report::transcript::{Call, CallResult, Entry, Event, Excerpt, Piece, Transcript},
    report::{Report, RunResult, TurnResult},
    scoring::{CallEnd, JudgedCall, Worth},
};

/// Bytes of a page beyond which no more transcripts come.
const MOST: usize = 64 << 20;

/// Bytes of an input or result that is shown without being opened.
const BRIEF: usize = 1_500;

/// What can be filtered by, with its number.
struct Choices<'a> {
    models: BTreeMap<String, usize>,
    kinds: BTreeMap<&'a str, usize>,
}

pub(super) fn section(page: &mut Markup, report: &Report) {
    let mut choices = Choices {
        models: BTreeMap::new(),
        kinds: BTreeMap::new(),
    };
    for run in &report.runs {
        let next = choices.models.len();
        choices.models.entry(run.model.to_string()).or_insert(next);
        let next = choices.kinds.len();
        choices.kinds.entry(&run.kind).or_insert(next);
    }
    page.raw("<section aria-labelledby=\"all-runs\">\n<h2 id=\"all-runs\">Runs</h2>\n");
    let failing = report.runs.iter().filter(|run| !run.passed).count();
    page.raw("<p>")
        .many(report.runs.len() as u64, "run", "runs")
        .raw(", of which ")
        .show(count(failing as u64))
        .raw(" failed. Each opens to its whole course.</p>\n");
    filter(page, &choices);
    page.raw("<ol id=\"runs\">\n");
    for (at, run) in report.runs.iter().enumerate() {
        one(page, at + 1, run, &choices);
    }
    page.raw("</ol>\n</section>\n");
}

/// What the script brings to life; without it, all runs are there.
fn filter(page: &mut Markup, choices: &Choices<'_>) {
    page.raw("<form id=\"filter\" hidden>\n<label>Model<select name=\"model\"><option value=\"\">all</option>");
    for (model, number) in &choices.models {
        option(page, *number, model);
    }
    page.raw("</select></label>\n<label>Kind<select name=\"kind\"><option value=\"\">all</option>");
    for (kind, number) in &choices.kinds {
        option(page, *number, kind_in_words(kind));
    }
    page.raw("</select></label>\n<label class=\"check\"><input type=\"checkbox\" name=\"failing\">only failing</label>\n");
    page.raw("<button type=\"button\" name=\"open\">Open or close all</button>\n<span id=\"count\" role=\"status\"></span>\n</form>\n");
}

fn option(page: &mut Markup, number: usize, name: &str) {
    page.raw("<option value=\"")
        .show(number)
        .raw("\">")
        .name(name)
        .raw("</option>");
}

fn one(page: &mut Markup, number: usize, run: &RunResult, choices: &Choices<'_>) {
    let model = run.model.to_string();
    let index = |found: Option<&usize>| found.copied().unwrap_or_default();
    page.raw("<li data-model=\"")
        .show(index(choices.models.get(&model)));
    page.raw("\" data-kind=\"")
        .show(index(choices.kinds.get(run.kind.as_str())));
    page.raw(if run.passed {
        "\" data-passed=\"yes\">"
    } else {
        "\" data-passed=\"no\">"
    });
    page.raw("<details class=\"run\" id=\"run-")
        .show(number)
        .raw("\"><summary>");
    page.raw(if run.passed {
        "<span class=\"mark good\">✓ passed</span> "
    } else {
        "<span class=\"mark bad\">✗ failed</span> "
    });
    page.raw("<strong><bdi>")
        .name(&run.scenario)
        .raw("</bdi></strong> <span class=\"facts\">");
    page.raw("<bdi>")
        .name(kind_in_words(&run.kind))
        .raw("</bdi> · <bdi>")
        .name(&model);
    page.raw("</bdi> · repetition ").show(run.repetition);
    if let Some(recipe) = &run.recipe {
        page.raw(" · recipe <bdi>").name(recipe).raw("</bdi>");
    }
    let took = run
        .turns
        .iter()
        .map(|turn| turn.duration_ms)
        .fold(0, u64::saturating_add);
    page.raw(" · ")
        .show(time(Some(took)))
        .raw("</span></summary>\n<div>\n");
    if let Some(error) = &run.error {
        page.raw("<p class=\"bad\"><strong>It could not be run to its end:</strong> ")
            .text(error)
            .raw("</p>\n");
    }
    if page.len() > MOST {
        page.raw(
            "<p>The page is long enough: the turns are in the report.</p>\n</div></details></li>\n",
        );
        return;
    }
    for (at, it) in run.turns.iter().enumerate() {
        turn(page, at + 1, it);
    }
    if let Some(it) = &run.broken_off {
        page.raw("<section>\n<h3>Turn ")
            .show(run.turns.len() + 1)
            .raw(", without an end</h3>\n");
        page.raw("<ol class=\"course\">\n");
        said(page, &it.said);
        course(page, &it.transcript, &[]);
        page.raw("</ol>\n</section>\n");
    }
    if !run.not_reached.is_empty() {
        page.raw("<p>Calls that were expected and not reached:</p>\n<ul class=\"faults\">\n");
        for call in &run.not_reached {
            page.raw("<li>").text(call).raw("</li>\n");
        }
        page.raw("</ul>\n");
    }
    page.raw("</div></details></li>\n");
}

fn turn(page: &mut Markup, number: usize, turn: &TurnResult) {
    page.raw("<section>\n<h3>Turn ")
        .show(number)
        .raw("</h3>\n<p class=\"facts\">");
    page.raw(match turn.outcome {
        Outcome::Completed => "completed",
        Outcome::Limited => "ended at a limit",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    });
    page.raw(" · ")
        .many(
            u64::from(turn.steps),
            "call of the model",
            "calls of the model",
        )
        .raw(" · ")
        .show(time(Some(turn.duration_ms)));
    usage(page, &turn.usage);
    if turn.unmetered > 0 {
        let unmetered = u64::from(turn.unmetered);
        page.raw(" · tokens of ")
            .many(unmetered, "answer", "answers")
            .raw(" not told");
    }
    if let Some(cost) = turn.cost_usd {
        page.raw(" · ").show(dollars(cost));
    }
    page.raw("</p>\n");
    if let Some(error) = &turn.error {
        page.raw("<p class=\"bad\">").text(error).raw("</p>\n");
    }
    if turn.faults.is_empty() {
        page.raw("<p class=\"good\">As expected.</p>\n");
    } else {
        page.raw("<ul class=\"faults\">\n");
        for fault in &turn.faults {
            page.raw("<li>").text(fault).raw("</li>\n");
        }
        page.raw("</ul>\n");
    }
    page.raw("<ol class=\"course\">\n");
    said(page, &turn.said);
    let calls = &turn.judgement.calls;
    let is_course_shown = course(page, &turn.transcript, calls);
    let (mut told, mut is_told) = (HashSet::new(), false);
    for Entry { event, .. } in &turn.transcript.entries {
        match event {
            Event::Call(call) => told.extend(call.judged),
            Event::Text(text) => is_told |= text.text.trim() == turn.answer.trim(),
            _ => {}
        }
    }
    for (at, call) in calls.iter().enumerate() {
        if !told.contains(&at) {
            judged_only(page, call);
        }
    }
    let is_new = !is_told || !is_course_shown;
    if is_new && !turn.answer.trim().is_empty() {
        page.raw("<li class=\"says\"><span class=\"who\">Answer</span><div class=\"text\">")
            .text(&turn.answer);
        page.raw("</div></li>\n");
    }
    page.raw("</ol>\n</section>\n");
}

fn usage(page: &mut Markup, usage: &Usage) {
    for (tokens, words) in [
        (usage.input_tokens, " tokens in"),
        (usage.output_tokens, " tokens out"),
        (usage.cache_read_tokens, " of them from a cache"),
    ] {
        if let Some(tokens) = tokens.filter(|tokens| *tokens > 0) {
            page.raw(" · ").show(count(tokens)).raw(words);
        }
    }
}

fn said(page: &mut Markup, text: &str) {
    page.raw("<li class=\"person\"><span class=\"who\">Person</span><div class=\"text\">")
        .text(text);
    page.raw("</div></li>\n");
}

/// Whether the course is shown, for which there must be room.
fn course(page: &mut Markup, transcript: &Transcript, calls: &[JudgedCall]) -> bool {
    if page.len() > MOST {
        page.raw("<li class=\"small\">The page is long enough: the rest of this turn is in the report.</li>\n");
        return false;
    }
    for Entry { at_ms, event } in &transcript.entries {
        entry(page, *at_ms, event, calls);
    }
    if transcript.left_out > 0 {
        page.raw("<li class=\"small\">")
            .many(transcript.left_out, "more entry was", "more entries were")
            .raw(" left out.</li>\n");
    }
    true
}

fn entry(page: &mut Markup, at_ms: u64, event: &Event, calls: &[JudgedCall]) {
    match event {
        Event::Asked { model, tools, .. } => {
            page.raw("<li class=\"small\">");
            at(page, at_ms);
            page.raw("<bdi>")
                .name(&model.to_string())
                .raw("</bdi> is asked, with ")
                .many(*tools as u64, "tool", "tools");
            page.raw("</li>\n");
        }
        Event::Reasoning(text) => block(page, at_ms, "thinks", "Thinks", None, text),
        Event::Text(text) => block(page, at_ms, "says", "Says", None, text),
        Event::Provider { kind, text } => block(page, at_ms, "note", "Provider:", Some(kind), text),
        Event::Note { about, text } => {
            let about = about.replace('_', " ");
            block(page, at_ms, "note warn", "", Some(&about), text);
        }
        Event::Answered {
            reason, usage: it, ..
        } => {
            page.raw("<li class=\"small\">");
            at(page, at_ms);
            page.raw("answered: <bdi>")
                .name(&reason.replace('_', " "))
                .raw("</bdi>");
            usage(page, it);
            page.raw("</li>\n");
        }
        Event::Call(call) => {
            let judged = call.judged.and_then(|at| calls.get(at));
            whole_call(page, at_ms, call, judged);
        }
        Event::Unknown => {
            page.raw("<li class=\"small\">Something that this program does not know.</li>\n");
        }
    }
}

fn at(page: &mut Markup, at_ms: u64) {
    page.raw("<span class=\"at\">+")
        .show(time(Some(at_ms)))
        .raw("</span>");
}

fn block(
    page: &mut Markup,
    at_ms: u64,
    class: &'static str,
    who: &'static str,
    what: Option<&str>,
    text: &Excerpt,
) {
    page.raw("<li class=\"").raw(class).raw("\">");
    at(page, at_ms);
    page.raw("<span class=\"who\">").raw(who);
    if let Some(what) = what {
        page.raw(" <bdi>").name(what).raw("</bdi>");
    }
    page.raw("</span>");
    if !text.text.is_empty() || text.left_out > 0 {
        page.raw("<div class=\"text\">")
            .excerpt(&text.text, text.left_out)
            .raw("</div>");
    }
    page.raw("</li>\n");
}

fn whole_call(page: &mut Markup, at_ms: u64, call: &Call, judged: Option<&JudgedCall>) {
    begin_call(
        page,
        Some(at_ms),
        call.server.as_deref(),
        &call.tool,
        judged,
    );
    let pretty = serde_json::from_str::<Value>(&call.input.text).ok();
    let pretty = pretty.and_then(|value| serde_json::to_string_pretty(&value).ok());
    page.raw("<p class=\"facts\">input</p>");
    detail(
        page,
        "Input",
        pretty.as_deref().unwrap_or(&call.input.text),
        call.input.left_out,
    );
    for note in &call.course {
        page.raw("<p class=\"facts\">");
        at(page, note.at_ms);
        page.name(&note.about.replace('_', " "));
        if !note.text.text.is_empty() {
            page.raw(": ").excerpt(&note.text.text, note.text.left_out);
        }
        page.raw("</p>");
    }
    match &call.result {
        Some(it) => result(page, it),
        None => {
            page.raw("<p class=\"facts\">It has no result.</p>");
        }
    }
    page.raw("</li>\n");
}

fn result(page: &mut Markup, result: &CallResult) {
    page.raw("<p class=\"facts\">");
    at(page, result.at_ms);
    page.raw(match (result.is_error, result.attempts) {
        (true, 0) => "did not run",
        (true, _) => "failed",
        (false, _) => "result",
    });
    if let Some(failure) = &result.failure {
        page.raw(": ").name(&failure.replace('_', " "));
    }
    if result.cached {
        page.raw(" · from the cache");
    }
    if result.attempts > 1 {
        page.raw(" · ").show(result.attempts).raw(" attempts");
    }
    page.raw(" · ")
        .show(time(Some(result.duration_ms)))
        .raw("</p>");
    for piece in &result.content {
        match piece {
            Piece::Text(text) => detail(page, "Result", &text.text, text.left_out),
            Piece::Bytes {
                kind,
                media_type,
                address,
                bytes,
            } => {
                page.raw("<p class=\"facts\">[").name(kind);
                if let Some(media_type) = media_type {
                    page.raw(" ").name(media_type);
                }
                if let Some(bytes) = bytes {
                    page.raw(", ").show(count(*bytes)).raw(" bytes");
                }
                if let Some(address) = address {
                    page.raw(", ").excerpt(&address.text, address.left_out);
                }
                page.raw("]</p>");
            }
            Piece::Unknown => {
                page.raw("<p class=\"facts\">[something that this program does not know]</p>");
            }
        }
    }
    if result.left_out > 0 {
        page.raw("<p class=\"facts\">")
            .many(result.left_out, "more piece was", "more pieces were")
            .raw(" left out.</p>");
    }
}

/// A call of which there is no more than the judgement.
fn judged_only(page: &mut Markup, call: &JudgedCall) {
    begin_call(page, None, call.server.as_deref(), &call.tool, Some(call));
    let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
    page.raw("<p class=\"facts\">input</p>");
    detail(page, "Input", &input, 0);
    page.raw("<p class=\"facts\">result</p>");
    detail(page, "Result", &call.result, 0);
    page.raw("</li>\n");
}

fn begin_call(
    page: &mut Markup,
    at_ms: Option<u64>,
    server: Option<&str>,
    tool: &str,
    judged: Option<&JudgedCall>,
) {
    let verdict = judged.map(|it| (it.worth, it.end));
    page.raw(match verdict {
        Some((Worth::Right, _)) => "<li class=\"call ok\">",
        Some((Worth::Unjudged, CallEnd::Successful) | (Worth::Unknown, _)) | None => {
            "<li class=\"call\">"
        }
        Some(_) => "<li class=\"call wrong\">",
    });
    if let Some(at_ms) = at_ms {
        at(page, at_ms);
    }
    page.raw("<span class=\"who\">Calls</span> <code><bdi>");
    if let Some(server) = server {
        page.name(server).raw("/");
    }
    page.name(tool).raw("</bdi></code>");
    if let Some(call) = judged {
        page.raw(" ")
            .raw(in_words(call.worth))
            .raw(", ")
            .raw(match call.end {
                CallEnd::Successful => "successful",
                CallEnd::Failed => "failed",
                CallEnd::Hallucinated => "invalid",
                CallEnd::NotExecuted => "not executed",
            });
        if let Some(why) = &call.why {
            page.raw(": ").text(why);
        }
    }
}

fn in_words(worth: Worth) -> &'static str {
    match worth {
        Worth::Right => "<strong class=\"good\">✓ right</strong>",
        Worth::WrongOrder => "<strong class=\"bad\">✗ at the wrong place</strong>",
        Worth::WrongInput => "<strong class=\"bad\">✗ wrong arguments</strong>",
        Worth::Hallucinated => "<strong class=\"bad\">✗ hallucinated</strong>",
        Worth::Forbidden => "<strong class=\"bad\">✗ forbidden</strong>",
        Worth::Unnecessary => "<strong class=\"bad\">✗ unnecessary</strong>",
        Worth::Unknown => "<strong class=\"muted\">? not known</strong>",
        Worth::Unjudged => "<strong class=\"muted\">not judged</strong>",
    }
}

/// An input or a result, closed if it is long.
fn detail(page: &mut Markup, what: &'static str, text: &str, left_out: u64) {
    if text.is_empty() && left_out == 0 {
        return;
    }
    let is_long = text.len() > BRIEF;
    if is_long {
        let size = (text.len() as u64).saturating_add(left_out);
        page.raw("<details><summary class=\"facts\">")
            .raw(what)
            .raw(", ");
        page.many(size, "byte", "bytes").raw("</summary>");
    }
    page.raw("<div class=\"json\">")
        .excerpt(text, left_out)
        .raw("</div>");
    if is_long {
        page.raw("</details>");
    }
}
