//! `[TOOL_CALLS]`.

use super::{
    super::{
        call::Found,
        known::Known,
        reader::{Reader, Stop},
    },
    input_of, marked_json,
};

const TOKEN: &str = "[TOOL_CALLS]";
const CALL_ID: &str = "[CALL_ID]";
const ARGS: &str = "[ARGS]";

pub(super) async fn read(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    reader.literal(TOKEN).await?;
    reader.blanks().await;
    // Nothing closes the list but its bracket.
    if matches!(reader.need().await?, '[' | '{') {
        return marked_json(reader, known, &[]).await;
    }
    let name = known
        .read_name(reader, |c| c == '{' || c == '[' || c.is_whitespace())
        .await?;
    reader.blanks().await;
    if reader.need().await? == '[' {
        if reader.optional(&[CALL_ID]).await {
            reader.until(&[ARGS]).await?;
        }
        reader.literal(ARGS).await?;
        reader.blanks().await;
    }
    if reader.need().await? != '{' {
        return Err(Stop::Syntax);
    }
    let call = input_of(name, reader, &[TOKEN]).await;
    Ok(Found {
        calls: vec![call],
        end: reader.at(),
    })
}
