//! Reading of parts that are kept unchanged: media and server tools.

use serde_json::{Map, Value};
use switchboard_domain::{Media, Part};

use super::parts::{GROUNDING, PAGES, SIGNATURE};

/// Fields of a part beside its data field.
const ABOUT_DATA: [&str; 10] = [
    "thought",
    SIGNATURE,
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
    "mediaProcessing",
    "speechMetadata",
    "documentMetadata",
    "spreadsheetMetadata",
    "audioMetadata",
];

/// Returns the name of a part's data field.
pub(crate) fn data_field(piece: &Map<String, Value>) -> Option<&str> {
    let mut fields = piece.iter();
    let data =
        fields.find(|(name, value)| !ABOUT_DATA.contains(&name.as_str()) && !value.is_null());
    data.map(|(name, _)| name.as_str())
}

/// Returns a string field that is not empty.
pub(crate) fn text_of(object: &Map<String, Value>, name: &str) -> Option<String> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Converts media of the model.
pub(crate) fn medium(blob: &Map<String, Value>) -> Option<Part> {
    let media = Media::base64(text_of(blob, "mimeType")?, text_of(blob, "data")?);
    match media.media_type.split('/').next() {
        Some("image") => Some(Part::Image(media)),
        Some("audio") => Some(Part::Audio(media)),
        _ => None,
    }
}

/// Maximum number of characters of a part's text.
const MAX_WORDS: usize = 2_000;

/// Returns the text of an opaque part for the user and for other models: queries, code, results and
/// errors, without bytes.
pub(crate) fn readable(name: &str, data: Option<&Value>) -> Option<String> {
    let data = data?.as_object()?;
    let text = match name {
        "executableCode" => text_of(data, "code"),
        "codeExecutionResult" => ran(data),
        "inlineData" => Some(format!("[{}]", text_of(data, "mimeType")?)),
        "fileData" => text_of(data, "fileUri"),
        "toolCall" => Some(called(data)),
        "toolResponse" => lines(|lines| found(data.get("response"), lines)),
        GROUNDING => lines(|lines| grounded(data, lines)),
        PAGES => lines(|lines| read(data, lines)),
        _ => None,
    };
    text.map(bounded)
}

fn lines(collect: impl FnOnce(&mut Vec<String>)) -> Option<String> {
    let mut lines = Vec::new();
    collect(&mut lines);
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the output of code. The outcome is included if it is an error or there is no output.
fn ran(result: &Map<String, Value>) -> Option<String> {
    let outcome = text_of(result, "outcome");
    match (text_of(result, "output"), outcome.as_deref()) {
        (Some(output), None | Some("OUTCOME_OK")) => Some(output),
        (Some(output), Some(outcome)) => Some(format!("{}\n[{outcome}]", output.trim_end())),
        (None, outcome) => outcome.map(|outcome| format!("[{outcome}]")),
    }
}

/// Returns a tool's name and arguments.
fn called(call: &Map<String, Value>) -> String {
    let kind = text_of(call, "toolType").unwrap_or_else(|| "tool".to_owned());
    let args = call.get("args").and_then(Value::as_object);
    let mut said = Vec::new();
    for arg in args.into_iter().flat_map(Map::values) {
        match arg {
            Value::String(text) => said.push(text.clone()),
            Value::Array(list) if list.iter().all(Value::is_string) => {
                said.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            other => said.push(other.to_string()),
        }
    }
    if said.is_empty() {
        format!("[{kind}]")
    } else {
        format!("[{kind}: {}]", said.join("; "))
    }
}

/// Collects titles, addresses and texts of a tool's result.
fn found(response: Option<&Value>, lines: &mut Vec<String>) {
    match response {
        Some(Value::Array(list)) => list.iter().for_each(|it| found(Some(it), lines)),
        Some(Value::Object(fields)) => {
            lines.extend(source(fields));
            for name in ["text", "snippet", "content", "output", "error"] {
                lines.extend(text_of(fields, name));
            }
            let inner = fields.values().filter(|it| it.is_object() || it.is_array());
            inner.for_each(|it| found(Some(it), lines));
        }
        _ => {}
    }
}

/// Collects the queries, titles and addresses of an answer's sources.
fn grounded(grounding: &Map<String, Value>, lines: &mut Vec<String>) {
    for kind in ["webSearchQueries", "imageSearchQueries", "retrievalQueries"] {
        let queries = grounding.get(kind).and_then(Value::as_array);
        let queries = queries.into_iter().flatten().filter_map(Value::as_str);
        lines.extend(queries.map(|query| format!("[search: {query}]")));
    }
    let chunks = grounding.get("groundingChunks").and_then(Value::as_array);
    for chunk in chunks.into_iter().flatten().filter_map(Value::as_object) {
        let source_of = chunk.values().find_map(Value::as_object);
        lines.extend(source_of.and_then(source));
    }
}

/// Collects the pages that were read or failed.
fn read(pages: &Map<String, Value>, lines: &mut Vec<String>) {
    let pages = pages.get("urlMetadata").and_then(Value::as_array);
    for page in pages.into_iter().flatten().filter_map(Value::as_object) {
        let Some(address) = text_of(page, "retrievedUrl") else {
            continue;
        };
        let status = text_of(page, "urlRetrievalStatus");
        lines.push(match status.as_deref() {
            None | Some("URL_RETRIEVAL_STATUS_SUCCESS") => address,
            Some(status) => format!("{address} [{status}]"),
        });
    }
}

/// Returns the title and address of a source.
fn source(source: &Map<String, Value>) -> Option<String> {
    let mut addresses = ["uri", "url", "sourceUri", "imageUri"].into_iter();
    let address = addresses.find_map(|name| text_of(source, name));
    match (text_of(source, "title"), address) {
        (Some(title), Some(address)) => Some(format!("{title}: {address}")),
        (title, address) => title.or(address),
    }
}

fn bounded(mut text: String) -> String {
    if text.char_indices().nth(MAX_WORDS).is_some() {
        let end = text.char_indices().nth(MAX_WORDS - 1).map(|(at, _)| at);
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
