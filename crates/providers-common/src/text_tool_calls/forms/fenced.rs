//! A Markdown block that holds nothing but calls.

use super::{
    super::{
        call::{Found, Strictness},
        json::{self, Ending},
        known::Known,
        reader::{Reader, Stop},
    },
    cut_off,
};

const FENCE: &str = "```";
/// What may stand behind the fence.
const LANGUAGES: &[&str] = &[
    "",
    "json",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_use",
    "function_call",
];

pub(super) async fn read(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    reader.literal(FENCE).await?;
    language(reader).await?;
    reader.blanks().await;
    let read = match json::calls(reader, known, Strictness::Unmarked).await {
        Ok(read) => read,
        Err(trouble) => {
            let calls = cut_off(trouble)?;
            let end = reader.at();
            return Ok(Found { calls, end });
        }
    };
    match read.ending {
        Ending::Text => {}
        Ending::Other if reader.closer(&[FENCE]).await => {}
        // A block that says more than calls shows something.
        Ending::Other => return Err(Stop::Syntax),
        Ending::NoCall => return Err(Stop::Foreign),
    }
    Ok(Found {
        calls: read.found,
        end: reader.at(),
    })
}

async fn language(reader: &mut Reader) -> Result<(), Stop> {
    let mut language = String::new();
    loop {
        let c = reader.need().await?;
        if c.is_whitespace() || matches!(c, '{' | '[') {
            let is_known = LANGUAGES.contains(&language.as_str());
            return if is_known { Ok(()) } else { Err(Stop::Foreign) };
        }
        language.push(c.to_ascii_lowercase());
        if !LANGUAGES.iter().any(|known| known.starts_with(&language)) {
            return Err(Stop::Foreign);
        }
        reader.bump(c);
    }
}
