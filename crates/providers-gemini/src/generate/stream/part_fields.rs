//! Reads the fields of parts in a response.

use serde_json::{Map, Value};
use switchboard_domain::{Media, Part};

use crate::generate::content::parts::SIGNATURE;

/// Metadata fields of a part. Any other field, such as `text` or `inlineData`, is its content.
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

/// Returns the name of the field that contains the content of a part, such as `inlineData`. Returns
/// `None` for a part without content.
pub(crate) fn find_data_field_name(piece: &Map<String, Value>) -> Option<&str> {
    let mut fields = piece.iter();
    let data =
        fields.find(|(name, value)| !ABOUT_DATA.contains(&name.as_str()) && !value.is_null());
    data.map(|(name, _)| name.as_str())
}

/// Returns a string field of an object, or `None` if it is missing, empty or not a string.
pub(crate) fn string_field(object: &Map<String, Value>, name: &str) -> Option<String> {
    let text = object.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Converts `inlineData` of an answer to an image or audio part. Returns `None` for other media
/// types, and if the media type or the data is missing.
pub(crate) fn parse_media_part(blob: &Map<String, Value>) -> Option<Part> {
    let media = Media::from_base64(string_field(blob, "mimeType")?, string_field(blob, "data")?);
    match media.media_type.split('/').next() {
        Some("image") => Some(Part::Image(media)),
        Some("audio") => Some(Part::Audio(media)),
        _ => None,
    }
}
