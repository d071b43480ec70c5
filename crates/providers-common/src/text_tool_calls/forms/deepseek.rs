//! The special tokens of `DeepSeek`. The bars are U+FF5C and the spaces U+2581.

use super::{
    super::{
        call::{CallState, Found, FoundCall},
        known::Known,
        reader::{Reader, Stop},
    },
    input_of,
};

const CALLS_BEGIN: &str = "<｜tool▁calls▁begin｜>";
const CALLS_END: &str = "<｜tool▁calls▁end｜>";
const CALL_BEGIN: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";
/// What V3 and R1 write before the separator.
const KIND: &str = "function";

pub(super) async fn read(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    if reader.optional(&[CALLS_BEGIN]).await {
        reader.blanks().await;
    }
    let mut calls = vec![call(reader, known).await?];
    let mut end = reader.at();
    while calls.iter().all(|call| call.state != CallState::CutOff) {
        reader.blanks().await;
        if reader.closer(&[CALLS_END]).await {
            end = reader.at();
            break;
        }
        match call(reader, known).await {
            Ok(call) => calls.push(call),
            Err(_) => break,
        }
        end = reader.at();
    }
    Ok(Found { calls, end })
}

async fn call(reader: &mut Reader, known: &Known) -> Result<FoundCall, Stop> {
    reader.literal(CALL_BEGIN).await?;
    let mut head = String::new();
    loop {
        let c = reader.need().await?;
        if c == '<' {
            break;
        }
        head.push(c);
        if !KIND.starts_with(&head) && !known.may_become(&head) {
            return Err(Stop::Foreign);
        }
        reader.bump(c);
    }
    reader.literal(SEPARATOR).await?;
    let name = if head == KIND && reader.need().await? != '{' {
        let name = known.read_name(reader, char::is_whitespace).await?;
        reader.blanks().await;
        reader.optional(&["```json"]).await;
        name
    } else if known.has(&head) {
        head
    } else {
        return Err(Stop::Foreign);
    };
    reader.blanks().await;
    let call = match reader.peek().await {
        Some('{') => input_of(name, reader, &[CALL_END]).await,
        Some(_) => return Err(Stop::Syntax),
        None => FoundCall::cut_off(name, String::new()),
    };
    if call.state != CallState::CutOff {
        let end = reader.at();
        reader.blanks().await;
        if reader.optional(&["```"]).await {
            reader.blanks().await;
        }
        if !reader.closer(&[CALL_END]).await {
            reader.back_to(end);
        }
    }
    Ok(call)
}
