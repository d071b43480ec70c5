//! What comes in, read as it is: the API's own pieces, which are kept whole.

use serde_json::{Map, Value};
use switchboard_domain::{Media, Part};

use super::parts::SIGNATURE;

/// Fields of a piece that say something about its data field.
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

/// The field of a piece that holds its data.
pub(crate) fn data_field(piece: &Map<String, Value>) -> Option<&str> {
    let mut fields = piece.iter();
    let data =
        fields.find(|(name, value)| !ABOUT_DATA.contains(&name.as_str()) && !value.is_null());
    data.map(|(name, _)| name.as_str())
}

/// A text field that says something.
pub(crate) fn text_of(object: &Map<String, Value>, name: &str) -> Option<String> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A medium that the model made.
pub(crate) fn medium(blob: &Map<String, Value>) -> Option<Part> {
    let media = Media::base64(text_of(blob, "mimeType")?, text_of(blob, "data")?);
    match media.media_type.split('/').next() {
        Some("image") => Some(Part::Image(media)),
        Some("audio") => Some(Part::Audio(media)),
        _ => None,
    }
}

/// What a person may read of a provider's own piece.
pub(crate) fn readable(name: &str, data: Option<&Value>) -> Option<String> {
    let data = data?.as_object()?;
    match name {
        "executableCode" => text_of(data, "code"),
        "codeExecutionResult" => text_of(data, "output"),
        "inlineData" => Some(format!("[{}]", text_of(data, "mimeType")?)),
        "fileData" => text_of(data, "fileUri"),
        _ => None,
    }
}

/// Titles and addresses of what an answer was grounded on.
pub(crate) fn sources(grounding: &Value) -> Option<String> {
    let chunks = grounding.get("groundingChunks")?.as_array()?;
    let lines: Vec<String> = chunks
        .iter()
        .filter_map(|chunk| {
            let source = chunk.as_object()?.values().find_map(Value::as_object)?;
            let address = text_of(source, "uri")?;
            Some(match text_of(source, "title") {
                Some(title) => format!("{title}: {address}"),
                None => address,
            })
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
