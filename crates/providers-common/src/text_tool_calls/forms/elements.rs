//! `<tool_call>` and `<function=name>`.

use serde_json::{Map, Value};

use super::{
    super::{
        call::{CallState, Found, FoundCall},
        known::Known,
        python,
        reader::{Reader, Stop},
    },
    input_of, marked_json,
};

const CLOSE_CALL: &str = "</tool_call>";
const CLOSE_FUNCTION: &str = "</function>";

/// `<tool_call>` and any of what models write in it.
pub(super) async fn tool_call(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    reader.literal("<tool_call>").await?;
    reader.blanks().await;
    match reader.need().await? {
        '{' | '[' => marked_json(reader, known, &[CLOSE_CALL]).await,
        '<' => {
            let mut found = function(reader, known).await?;
            if found.calls.iter().all(|it| it.state != CallState::CutOff) {
                reader.blanks().await;
                if reader.closer(&[CLOSE_CALL]).await {
                    found.end = reader.at();
                }
            }
            Ok(found)
        }
        _ => pairs(reader, known).await,
    }
}

/// `name`, and `<arg_key>key</arg_key><arg_value>value</arg_value>` for each argument (GLM).
async fn pairs(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    let name = known
        .read_name(reader, |c| c.is_whitespace() || c == '<')
        .await?;
    let mut arguments = Map::new();
    let ending = pairs_into(&mut arguments, &name, reader, known).await;
    found(name, arguments, ending, reader)
}

async fn pairs_into(
    arguments: &mut Map<String, Value>,
    name: &str,
    reader: &mut Reader,
    known: &Known,
) -> Result<(), Stop> {
    const KEY: [&str; 2] = ["<arg_key>", "</arg_key>"];
    const VALUE: [&str; 2] = ["<arg_value>", "</arg_value>"];
    loop {
        reader.blanks().await;
        // Both begin with `<`: what the next character tells is which.
        if reader.optional(&[CLOSE_CALL]).await {
            return Ok(());
        }
        reader.literal(KEY[0]).await?;
        let key = reader.until(&[KEY[1]]).await?;
        reader.literal(KEY[1]).await?;
        reader.blanks().await;
        reader.literal(VALUE[0]).await?;
        let value = reader.until(&[VALUE[1]]).await?;
        reader.literal(VALUE[1]).await?;
        let key = key.trim();
        arguments.insert(key.to_owned(), argument(known, name, key, &value));
    }
}

/// `<function=name>` with JSON or `<parameter=key>` elements in it.
pub(super) async fn function(reader: &mut Reader, known: &Known) -> Result<Found, Stop> {
    reader.literal("<function=").await?;
    let name = known.read_name(reader, |c| c == '>').await?;
    reader.expect('>').await?;
    reader.blanks().await;
    match reader.peek().await {
        Some('{') => {
            let call = input_of(name, reader, &[CLOSE_FUNCTION]).await;
            let mut end = reader.at();
            if call.state != CallState::CutOff {
                reader.blanks().await;
                if reader.closer(&[CLOSE_FUNCTION]).await {
                    end = reader.at();
                }
            }
            let calls = vec![call];
            Ok(Found { calls, end })
        }
        Some('<') => {
            let mut arguments = Map::new();
            let ending = parameters_into(&mut arguments, &name, reader, known).await;
            found(name, arguments, ending, reader)
        }
        Some(_) => Err(Stop::Syntax),
        None => found(name, Map::new(), Err(Stop::End), reader),
    }
}

async fn parameters_into(
    arguments: &mut Map<String, Value>,
    name: &str,
    reader: &mut Reader,
    known: &Known,
) -> Result<(), Stop> {
    const OPEN: &str = "<parameter=";
    const CLOSE: &str = "</parameter>";
    loop {
        reader.blanks().await;
        if reader.optional(&[CLOSE_FUNCTION]).await {
            return Ok(());
        }
        reader.literal(OPEN).await?;
        let key = reader.until(&[">"]).await?;
        reader.expect('>').await?;
        // The end of a parameter is forgotten now and then.
        let value = reader.until(&[CLOSE, OPEN, CLOSE_FUNCTION]).await?;
        reader.optional(&[CLOSE]).await;
        let key = key.trim();
        arguments.insert(key.to_owned(), argument(known, name, key, &value));
    }
}

fn found(
    name: String,
    arguments: Map<String, Value>,
    ending: Result<(), Stop>,
    reader: &Reader,
) -> Result<Found, Stop> {
    let input = Value::Object(arguments).to_string();
    let call = match ending {
        Ok(()) => FoundCall::whole(name, input),
        Err(Stop::End) => FoundCall::cut_off(name, input),
        Err(stop) => return Err(stop),
    };
    Ok(Found {
        calls: vec![call],
        end: reader.at(),
    })
}

/// The value of an argument that stands between marks: text if the tool says that it is text,
/// else what it reads like.
fn argument(known: &Known, tool: &str, key: &str, raw: &str) -> Value {
    // The templates put each value on lines of its own.
    let text = raw.strip_prefix('\n').unwrap_or(raw);
    let text = text.strip_suffix('\n').unwrap_or(text);
    if !known.is_text(tool, key) {
        let value = text.trim();
        if let Ok(value) = serde_json::from_str(value) {
            return value;
        }
        if let Some(value) = python::literal_of(value) {
            return value;
        }
    }
    Value::String(text.to_owned())
}
