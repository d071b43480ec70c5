//! A file that a question names: what stands in it may answer, whatever the other words are.

use super::{Dialogue, goal::Target};
use crate::{
    catalog::Tool,
    extract::{Found, Mention, Reading},
    fill::{Filling, fill},
    intent::{Intent, is_request},
    schema::{Kind, Param, TextKind},
    text::{is_stop, stem},
    thesaurus::same,
};

/// Words of tools that give what a file holds.
const READING: &[&str] = &[
    "read", "load", "open", "get", "fetch", "show", "view", "cat", "display", "retrieve", "print",
    "return",
];
/// Words of tools that say something else about files.
const OTHERWISE: &[&str] = &[
    "list",
    "search",
    "find",
    "tree",
    "info",
    "stat",
    "stats",
    "metadata",
    "size",
    "exists",
    "hash",
    "diff",
    "status",
    "count",
    "directory",
    "folder",
    "glob",
    "grep",
    "log",
    "history",
    "watch",
];
/// What is read.
const FILES: &[&str] = &["file", "document", "text", "content"];
/// What is no text.
const MEDIA: &[&str] = &["image", "audio", "media", "video", "picture"];
/// Endings of files that are no endings of addresses and products: "notes.txt" is a file, "node.js" may not be.
const ENDINGS: &[&str] = &[
    "md", "txt", "rst", "log", "csv", "tsv", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg",
    "conf", "xml", "html", "css", "rs", "py", "java", "cpp", "sql", "pdf", "docx", "xlsx",
];

/// Endings of files that are text whatever else they are, so that a tool for records has no advantage.
const TEXTS: &[&str] = &["md", "txt", "json", "yaml", "yml", "xml", "toml", "html"];

impl Dialogue {
    /// The tool that reads the file which a question names.
    pub(super) fn named_file(&self, reading: &Reading<'_>) -> Option<Target> {
        let says_file = reading
            .words
            .iter()
            .any(|word| matches!(word.lower.as_str(), "file" | "document"));
        let named = reading
            .mentions
            .iter()
            .find(|mention| is_file(mention, says_file))?;
        if !is_request(reading) {
            return None;
        }
        let path = named.found.as_text()?;
        let intent = Intent::of(reading);
        let mut best: Option<(i32, usize, Filling)> = None;
        for &i in &self.allowed {
            let Some(tool) = self.tools.get(i) else {
                continue;
            };
            let Some((param, points)) = reads_files(tool, path) else {
                continue;
            };
            // "Delete the file" is no wish to read it.
            let unwanted = intent.as_ref().is_some_and(|it| it.against(tool) >= 1.0);
            if unwanted || best.as_ref().is_some_and(|(most, ..)| points <= *most) {
                continue;
            }
            let mut filling = fill(tool, reading);
            // The question is about what stands in the file: a number in it is none of a line, unless it says so.
            filling.input.retain(|name, _| {
                let param = tool.param(name).filter(|param| !param.required);
                param.is_none_or(|param| is_spoken_of(param, reading))
            });
            let takes_it = filling.input.get(&param.name).is_some_and(|it| it == path);
            if takes_it && filling.is_complete() && filling.left_over.is_empty() {
                best = Some((points, i, filling));
            }
        }
        let (_, tool, filling) = best?;
        Some(Target {
            tool,
            filling,
            text: reading.text.to_owned(),
            said: reading.text.to_owned(),
            reply: false,
            again: false,
            quotes: true,
        })
    }

    /// Whether a tool leaves the file aside that a question names.
    pub(super) fn leaves_out_the_file(&self, i: usize, filling: &Filling, file: &Target) -> bool {
        let (Some(tool), Some(reader)) = (self.tools.get(i), self.tools.get(file.tool)) else {
            return false;
        };
        let path = reader.params.iter().find(|param| is_path(param));
        let path = path.and_then(|param| file.filling.input.get(&param.name));
        let takes_it = filling.input.values().any(|value| {
            let within = value.as_str().zip(path.and_then(|path| path.as_str()));
            within.is_some_and(|(value, path)| value.contains(path))
                || value
                    .as_array()
                    .zip(path)
                    .is_some_and(|(items, path)| items.contains(path))
        });
        !tool.writes && !takes_it
    }
}

/// The parameter for the path, and how surely a tool gives what is in such a file; `None` if it does something else.
fn reads_files<'t>(tool: &'t Tool, path: &str) -> Option<(&'t Param, i32)> {
    let mut required = tool.params.iter().filter(|param| param.required);
    let param = required.next().filter(|param| is_path(param))?;
    let has = |words: &[String], list: &[&str]| {
        words
            .iter()
            .any(|word| list.iter().any(|own| stem(own) == *word))
    };
    let begins = tool
        .about
        .get(..tool.about.len().min(8))
        .unwrap_or_default();
    let verb = has(&tool.name, READING);
    let noun = has(&tool.name, FILES);
    let told = has(begins, READING) || has(&tool.title, READING);
    let otherwise = has(&tool.name, OTHERWISE);
    if required.next().is_some() || tool.writes || !tool.reads && !verb || otherwise {
        return None;
    }
    if !(verb || told) || !(noun || has(begins, FILES) || has(&tool.title, FILES)) {
        return None;
    }
    let ending = ending(path).unwrap_or_default().to_lowercase();
    let is_for_it = !TEXTS.contains(&ending.as_str()) && tool.about.contains(&stem(&ending));
    let is_media = has(&tool.name, MEDIA);
    let points = 2 * i32::from(verb)
        + 2 * i32::from(noun)
        + i32::from(has(&tool.about, &["text"]))
        + 5 * i32::from(is_for_it)
        - 4 * i32::from(is_media)
        - 4 * i32::from(tool.deprecated);
    Some((param, points))
}

fn is_spoken_of(param: &Param, reading: &Reading<'_>) -> bool {
    let telling = param.stems.iter().zip(&param.words);
    let mut telling = telling.filter(|(_, word)| !is_stop(word));
    telling.any(|(stem, _)| reading.words.iter().any(|word| same(stem, &word.stem)))
}

fn is_path(param: &Param) -> bool {
    param.kind == Kind::Text(TextKind::Path) && param.choices.is_empty()
}

fn is_file(mention: &Mention, says_file: bool) -> bool {
    let (Found::Path(path) | Found::Quoted(path)) = &mention.found else {
        return false;
    };
    let is_pattern = path.contains(|c: char| c.is_whitespace() || matches!(c, '*' | '?'));
    let is_folder = path.ends_with(['/', '\\']);
    let in_folders = path.contains(['/', '\\']);
    let known = |ending: &str| ENDINGS.contains(&ending.to_lowercase().as_str());
    !is_pattern
        && !is_folder
        && match ending(path) {
            Some(ending) => in_folders || says_file || known(ending),
            None => in_folders && says_file && matches!(mention.found, Found::Path(_)),
        }
}

/// What stands after the last dot of a file's name.
fn ending(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let (before, ending) = name.rsplit_once('.')?;
    let is_one = (1..=5).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    (is_one && !before.is_empty()).then_some(ending)
}
