//! Recorded answers: `transcripts/<wire>/<stem>.<form>` of this crate.
//!
//! Files with the same stem contain the same answer in several forms: `two-calls.sse` as a stream
//! and `two-calls.json` as a whole body.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Server-sent events (`.sse`).
    Sse,
    /// JSON lines (`.ndjson`).
    Ndjson,
    /// A whole body (`.json`).
    Json,
}

impl Form {
    /// Returns the form that the extension of a file stands for, such as [`Self::Sse`] for `.sse`.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "sse" => Some(Self::Sse),
            "ndjson" => Some(Self::Ndjson),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Returns the media type of the form.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
            Self::Json => "application/json",
        }
    }
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The wire: the name of its folder, such as `openai-chat`.
    pub wire: String,
    /// The file's name without its extension.
    pub stem: String,
    /// The form.
    pub form: Form,
    /// The recorded bytes.
    pub bytes: Vec<u8>,
}

/// Reads one answer by its path below `transcripts/`, such as `openai-chat/text.sse`.
///
/// Fails with the path in the message if the file is missing, or if its extension is not a
/// [`Form`].
pub fn read(path: &str) -> io::Result<Transcript> {
    read_file(&folder().join(path))
}

/// Reads every stored answer, in the order of wire, stem and form.
///
/// Fails if a file is not a transcript, so that a misspelled name cannot hide one.
pub fn all() -> io::Result<Vec<Transcript>> {
    let mut transcripts = Vec::new();
    for wire in fs::read_dir(folder())? {
        for file in fs::read_dir(wire?.path())? {
            transcripts.push(read_file(&file?.path())?);
        }
    }
    transcripts.sort_by(|a, b| (&a.wire, &a.stem, a.form).cmp(&(&b.wire, &b.stem, b.form)));
    Ok(transcripts)
}

fn read_file(path: &Path) -> io::Result<Transcript> {
    let name = path.display();
    let to_text = |part: Option<&OsStr>| Some(part?.to_str()?.to_owned());
    let wire = to_text(path.parent().and_then(Path::file_name));
    let stem = to_text(path.file_stem());
    let (Some(wire), Some(stem), Some(form)) = (wire, stem, Form::of(path)) else {
        let message = format!("{name} is not a transcript: <wire>/<stem>.sse, .ndjson or .json");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    };
    let fail = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
    let bytes = fs::read(path).map_err(fail)?;
    Ok(Transcript {
        wire,
        stem,
        form,
        bytes,
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_answer_is_found_by_its_path_and_in_the_list() {
        let one = read("openai-chat/text.sse").unwrap();
        assert_eq!(
            (one.wire.as_str(), one.stem.as_str(), one.form),
            ("openai-chat", "text", Form::Sse)
        );
        assert!(one.bytes.starts_with(b"data: {"));
        let all = all().unwrap();
        assert!(all.contains(&one));
        assert!(all.is_sorted_by_key(|it| (it.wire.clone(), it.stem.clone(), it.form)));
    }

    #[test]
    fn a_missing_file_or_unknown_extension_is_named() {
        for (path, kind) in [
            ("openai-chat/no-such-thing.sse", io::ErrorKind::NotFound),
            ("openai-chat/text.txt", io::ErrorKind::InvalidInput),
        ] {
            let error = read(path).unwrap_err();
            assert_eq!(error.kind(), kind);
            let name = path.rsplit('/').next().unwrap();
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
