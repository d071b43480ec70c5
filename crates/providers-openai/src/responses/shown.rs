//! What a person, or another provider's model, may read of an item of a tool that the provider runs.
//!
//! Kinds and fields are those of the SDK's `ResponseOutputItem`. Other servers have kinds of their own,
//! of which the fields that such items have in common are read.

use serde_json::Value;
use switchboard_domain::JsonObject;

use super::members::{json_text, objects, text};

/// Characters of an item that are shown at most.
const MAX_SHOWN: usize = 2_000;
/// Characters of one finding, such as a passage of a file.
const MAX_FOUND: usize = 300;
/// Longer runs of the characters of base64 are data. Words, paths and addresses have others among them.
const MAX_RUN: usize = 200;

/// What may be read of an item that is no message: what was asked, then what came of it. At most
/// 2,000 characters, and none of it data. `None` if it says nothing.
pub(crate) fn shown(item: &JsonObject) -> Option<String> {
    let kind = text(item, "type").unwrap_or_default();
    let mut lines = Lines::default();
    match kind {
        "web_search_call" | "file_search_call" => search(item, &mut lines),
        "code_interpreter_call" | "program" => {
            lines.add(text(item, "code"));
            outputs(item, "outputs", &mut lines);
        }
        "computer_call" => computer(item, &mut lines),
        "image_generation_call" => image(item, &mut lines),
        "local_shell_call" => lines.add(action(item).and_then(|it| listed(it, "command", " "))),
        "shell_call" => lines.add(action(item).and_then(|it| listed(it, "commands", "\n"))),
        "apply_patch_call" => patch(item, &mut lines),
        "mcp_list_tools" | "tool_search_output" | "additional_tools" => tools(item, &mut lines),
        "mcp_approval_response" => {
            let approved = item.get("approve").and_then(Value::as_bool);
            lines.add(approved.map(|yes| if yes { "approved" } else { "declined" }));
            lines.add(text(item, "reason"));
        }
        // Encrypted, and for nobody to read.
        "compaction" => {}
        _ => {
            called(item, &mut lines);
            search(item, &mut lines);
            for field in ["output", "outputs"] {
                outputs(item, field, &mut lines);
            }
            lines.add(text(item, "result"));
            lines.add(text(item, "text"));
        }
    }
    error(item, &mut lines);
    lines.shown()
}

/// Lines of which each says something.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn add(&mut self, line: Option<impl Into<String>>) {
        let line = line.map(Into::into);
        self.0.extend(line.filter(|line| !line.trim().is_empty()));
    }

    fn shown(self) -> Option<String> {
        let text = without_data(&self.0.join("\n"));
        (!text.is_empty()).then(|| cut(&text, MAX_SHOWN))
    }
}

/// A tool and what it was given.
fn called(item: &JsonObject, lines: &mut Lines) {
    let input = ["arguments", "input"];
    let input = input.iter().find_map(|it| item.get(*it));
    let input = input.map(json_text).unwrap_or_default();
    lines.add(match text(item, "name") {
        Some(name) => Some(format!("{name}({input})")),
        None => Some(input),
    });
}

/// What was looked for, and what was found.
fn search(item: &JsonObject, lines: &mut Lines) {
    for asked in [Some(item), action(item)].into_iter().flatten() {
        let queries = listed(asked, "queries", ", ");
        lines.add(queries.or_else(|| text(asked, "query").map(str::to_owned)));
        let url = address(asked);
        lines.add(match (text(asked, "pattern"), url) {
            (Some(pattern), Some(url)) => Some(format!("\u{201c}{pattern}\u{201d} in {url}")),
            (Some(pattern), None) => Some(pattern.to_owned()),
            (None, url) => url.map(str::to_owned),
        });
        for list in ["sources", "results"] {
            for found in objects(asked, list) {
                lines.add(finding(found));
            }
        }
    }
}

/// One thing that was found.
fn finding(found: &JsonObject) -> Option<String> {
    let titles = ["title", "filename"];
    let title = titles.iter().find_map(|it| text(found, it));
    let passages = ["text", "snippet"];
    let passage = passages.iter().find_map(|it| text(found, it));
    let passage = passage.map(|it| {
        cut(
            &it.split_whitespace().collect::<Vec<_>>().join(" "),
            MAX_FOUND,
        )
    });
    let pieces: Vec<String> = [
        title.map(str::to_owned),
        address(found).map(str::to_owned),
        passage,
    ]
    .into_iter()
    .flatten()
    .collect();
    (!pieces.is_empty()).then(|| format!("- {}", pieces.join(": ")))
}

/// What came out: a text, or a list of texts, streams of a shell, logs and images.
fn outputs(item: &JsonObject, field: &str, lines: &mut Lines) {
    match item.get(field) {
        Some(Value::String(output)) => lines.add(Some(output.trim_end())),
        Some(Value::Object(output)) => self::output(output, lines),
        Some(Value::Array(list)) => {
            for output in list {
                match output {
                    Value::String(text) => lines.add(Some(text.as_str())),
                    Value::Object(output) => self::output(output, lines),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn output(output: &JsonObject, lines: &mut Lines) {
    for field in ["text", "logs", "stdout", "stderr"] {
        lines.add(text(output, field).map(str::trim_end));
    }
    let kind = text(output, "type").unwrap_or_default();
    if kind.contains("image") || kind.contains("screenshot") || kind.contains("file") {
        let what = kind
            .trim_start_matches("input_")
            .trim_start_matches("computer_");
        let named = text(output, "filename").or_else(|| address(output));
        lines.add(Some(match named {
            Some(name) => format!("[{what} {name}]"),
            None => format!("[{what}]"),
        }));
    }
    let outcome = output.get("outcome").and_then(Value::as_object);
    if let Some(outcome) = outcome {
        let code = outcome.get("exit_code").and_then(Value::as_i64);
        let failed = code.filter(|code| *code != 0);
        lines.add(failed.map(|code| format!("[exit code: {code}]")));
        let timed_out = text(outcome, "type").filter(|it| *it == "timeout");
        lines.add(timed_out.map(|_| "[timed out]"));
    }
}

/// What was done on a screen, and what there is to be careful about.
fn computer(item: &JsonObject, lines: &mut Lines) {
    let many = objects(item, "actions");
    for action in action(item).into_iter().chain(many) {
        let what = text(action, "type").unwrap_or("action");
        let details = action.iter().filter(|(name, _)| *name != "type");
        let details = details.filter(|(_, value)| !value.is_null());
        let details: Vec<String> = details
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        lines.add(Some(if details.is_empty() {
            what.to_owned()
        } else {
            format!("{what} ({})", details.join(", "))
        }));
    }
    for check in objects(item, "pending_safety_checks") {
        let message = text(check, "message").or_else(|| text(check, "code"));
        lines.add(message.map(|it| format!("[safety check: {it}]")));
    }
}

/// What was drawn. The image itself is for its provider.
fn image(item: &JsonObject, lines: &mut Lines) {
    lines.add(text(item, "revised_prompt"));
    if text(item, "result").is_some() {
        let about = ["output_format", "size"];
        let about = about.iter().filter_map(|it| text(item, it));
        let words: Vec<&str> = std::iter::once("image").chain(about).collect();
        lines.add(Some(format!("[{}]", words.join(" "))));
    }
}

fn patch(item: &JsonObject, lines: &mut Lines) {
    let operation = item.get("operation").and_then(Value::as_object);
    let Some(operation) = operation else { return };
    let what = ["type", "path"];
    let what: Vec<&str> = what.iter().filter_map(|it| text(operation, it)).collect();
    lines.add(Some(what.join(" ")));
    lines.add(text(operation, "diff"));
}

/// The names of tools that were found.
fn tools(item: &JsonObject, lines: &mut Lines) {
    let tools = objects(item, "tools").into_iter();
    let name = |tool| text(tool, "name").or_else(|| text(tool, "type"));
    let names: Vec<&str> = tools.filter_map(name).collect();
    if names.is_empty() {
        return;
    }
    let names = names.join(", ");
    lines.add(Some(match text(item, "server_label") {
        Some(label) => format!("{label}: {names}"),
        None => names,
    }));
}

/// Why it failed: in words, or as an object with a message, or what a tool said of it.
fn error(item: &JsonObject, lines: &mut Lines) {
    let told = match item.get("error") {
        Some(Value::String(error)) => Some(error.clone()),
        Some(Value::Object(error)) => {
            let message = text(error, "message").map(str::to_owned);
            let content = || error.get("content").map(json_text);
            let kind = || text(error, "type").map(str::to_owned);
            message.or_else(content).or_else(kind)
        }
        _ => None,
    };
    let told = told.filter(|told| !told.is_empty());
    lines.add(told.map(|told| format!("[error: {told}]")));
}

fn action(item: &JsonObject) -> Option<&JsonObject> {
    item.get("action").and_then(Value::as_object)
}

/// An address that is none of data.
fn address(object: &JsonObject) -> Option<&str> {
    let fields = ["url", "image_url", "file_url"];
    let mut urls = fields.iter().filter_map(|it| text(object, it));
    urls.find(|url| !url.starts_with("data:"))
}

fn listed(object: &JsonObject, field: &str, separator: &str) -> Option<String> {
    let list = object.get(field).and_then(Value::as_array)?;
    let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    (!texts.is_empty()).then(|| texts.join(separator))
}

/// The first characters of a text.
fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['\u{2026}']).collect()
}

/// The text with `[data]` where it holds some, as in an image that a tool gave.
fn without_data(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_data =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-');
        let end = rest.find(|c| !is_data(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        kept.push_str(if run.len() > MAX_RUN { "[data]" } else { run });
        let end = after.find(is_data).unwrap_or(after.len());
        let (other, after) = after.split_at(end);
        kept.push_str(other);
        rest = after;
    }
    kept
}

#[cfg(test)]
#[path = "shown_tests.rs"]
mod tests;
