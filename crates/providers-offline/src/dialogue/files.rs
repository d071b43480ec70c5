//! A file that a question names: where it asks for what stands in it, that may answer, whatever the other words are.

use super::{Dialogue, goal::Target};
use crate::{
    catalog::Tool,
    extract::{Found, Mention, Reading},
    fill::{Filling, fill},
    intent::{Intent, is_request},
    mood::excludes,
    schema::{Kind, Param, TextKind},
    text::{Word, is_stop, stem},
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

/// Verbs that ask for what is in a file.
const VERBS: &[&str] = &[
    "read",
    "show",
    "open",
    "print",
    "quote",
    "summarise",
    "summarize",
    "review",
    "explain",
    "display",
    "cat",
    "view",
    "describe",
    "load",
    "fetch",
    "get",
    "give",
    "tell",
    "recite",
    "analyse",
    "analyze",
    "proofread",
    "inspect",
    "retrieve",
    "return",
    "repeat",
    "paste",
];
/// What may stand before them in a request.
const OPENINGS: &[&str] = &[
    "please", "can", "could", "would", "will", "you", "i", "i'd", "we", "want", "need", "like",
    "to", "let", "me", "us", "let's", "hi", "hello", "hey", "ok", "okay", "now", "and", "then",
    "so", "kindly", "also", "just", "help", "first",
];
/// What may stand between them and the file's name.
const PARTS: &[&str] = &[
    "the",
    "a",
    "an",
    "me",
    "us",
    "my",
    "our",
    "this",
    "file",
    "document",
    "text",
    "content",
    "contents",
    "of",
    "in",
    "from",
    "out",
    "up",
    "to",
    "all",
    "whole",
    "entire",
    "code",
    "function",
    "functions",
    "line",
    "lines",
    "first",
    "last",
    "top",
    "part",
    "section",
    "chapter",
    "paragraph",
    "through",
    "what",
    "what's",
    "is",
    "stands",
    "about",
    "called",
    "named",
    "at",
    "summary",
    "and",
    "rows",
    "row",
    "everything",
    "with",
    "for",
    "briefly",
    "please",
    "it",
];
/// Verbs of what a file says, after its name.
const TELLING: &[&str] = &[
    "say",
    "says",
    "contain",
    "contains",
    "hold",
    "holds",
    "do",
    "does",
    "tell",
    "tells",
    "read",
    "describe",
    "describes",
    "define",
    "defines",
    "explain",
    "explains",
    "return",
    "print",
    "mention",
    "mentions",
    "state",
    "states",
    "list",
    "lists",
    "include",
    "includes",
    "has",
    "have",
    "recommend",
    "recommends",
    "require",
    "requires",
];
/// With them a file is spoken of as a thing.
const MEANING: &[&str] = &[
    "mean",
    "means",
    "meaning",
    "size",
    "large",
    "big",
    "bytes",
    "permissions",
    "modified",
    "timestamp",
    "dangerous",
    "virus",
    "why",
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
        if !is_request(reading)
            || excludes(reading, named.start)
            || !asks_what_is_in(reading, named)
        {
            return None;
        }
        let path = named.found.as_text()?;
        let intent = Intent::of(reading);
        let mut best: Option<(i32, usize, Filling)> = None;
        for &i in &self.allowed {
            let Some(tool) = self.index.tools.get(i) else {
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
        let (Some(tool), Some(reader)) = (self.index.tools.get(i), self.index.tools.get(file.tool))
        else {
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

/// Whether a text names a file that a tool would read, and does not ask what is in it.
pub(super) fn leaves_alone(tool: &Tool, reading: &Reading<'_>) -> bool {
    let mut files = reading
        .mentions
        .iter()
        .filter(|mention| is_file(mention, false));
    files.any(|file| {
        let path = file.found.as_text().unwrap_or_default();
        reads_files(tool, path).is_some()
            && (excludes(reading, file.start)
                || !asks_what_is_in(reading, file) && !reading.text.contains(tool.id()))
    })
}

/// The text that a tool writes into a file, if it would do without: nobody means an empty file who does not say so.
pub(super) fn without_content<'t>(tool: &'t Tool, filling: &Filling) -> Option<&'t Param> {
    let into_file = tool.writes
        && tool
            .params
            .iter()
            .any(|param| param.required && is_path(param));
    let is_told = |name: &String| tool.param(name).is_some_and(|param| !param.required);
    // What is told besides the file may be a change of a passage.
    if filling.input.keys().any(is_told) {
        return None;
    }
    let mut params = tool.params.iter();
    params.find(|param| {
        let words: Vec<&str> = param.words.iter().map(String::as_str).collect();
        into_file
            && !param.required
            && matches!(
                words[..],
                ["content" | "contents" | "text" | "body" | "data"]
            )
    })
}

/// Whether the words around a file's name ask for what is in it. A file that is only spoken of is not read.
fn asks_what_is_in(reading: &Reading<'_>, file: &Mention) -> bool {
    let sentence = reading.sentence_end(file.start);
    let is_beside = |word: &&Word| reading.sentence_end(word.start) == sentence;
    let mut before: Vec<&str> = reading
        .words_before(file.start)
        .take_while(is_beside)
        .map(|word| word.lower.as_str())
        .collect();
    before.reverse();
    let after: Vec<&str> = reading
        .words_after(file.end)
        .take_while(is_beside)
        .map(|word| word.lower.as_str())
        .collect();
    let mut all = before.iter().chain(&after);
    let is_thing = all.any(|word| MEANING.contains(word));
    let says_file = before
        .iter()
        .any(|word| matches!(*word, "file" | "document"));
    let named = |word: &&&str| {
        let article = matches!(
            **word,
            "the" | "a" | "my" | "our" | "this" | "file" | "document"
        );
        !(article || says_file && matches!(**word, "named" | "called"))
    };
    // "In the file X", "according to X", "as X has it".
    let last = before.iter().rev().find(named).copied().unwrap_or_default();
    let tells = after.first().is_some_and(|word| TELLING.contains(word));
    let cites = match last {
        "in" | "inside" | "within" | "per" => true,
        "to" => before.contains(&"according"),
        "as" | "does" | "do" | "which" | "whether" | "if" | "what" => tells,
        "is" | "what's" => matches!(after.as_slice(), ["about"]),
        _ => false,
    };
    let verb = before.iter().position(|word| VERBS.contains(word));
    let is_read = verb.is_some_and(|at| {
        let (opening, rest) = before.split_at(at);
        let is_part =
            |word: &&str| PARTS.contains(word) || word.chars().all(|c| c.is_ascii_digit());
        opening.iter().all(|word| OPENINGS.contains(word)) && rest.iter().skip(1).all(is_part)
    });
    !is_thing && (cites || is_read)
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
