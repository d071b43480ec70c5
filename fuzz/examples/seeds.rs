//! Writes a seed corpus for every target: `cargo run --example seeds -- FOLDER` creates
//! `FOLDER/<target>/<seed>` from the transcripts and schemas of the workspace's tests and from the
//! calls below.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use switchboard_fuzz::input::header;
use switchboard_testkit::transcripts;

/// Stream targets and the folders of their transcripts.
const STREAMS: [(&str, &str); 5] = [
    ("anthropic_stream", "anthropic"),
    ("gemini_stream", "gemini"),
    ("ollama_stream", "ollama"),
    ("openai_chat_stream", "openai-chat"),
    ("openai_responses_stream", "openai-responses"),
];

/// Default cut of a stream.
const CUTS: [u16; 3] = [1, 77, 400];

/// Calls in every form, complete and broken, and text that resembles a call.
const TEXTS: [&str; 22] = [
    "Let me see.\n<tool_call>{\"name\": \"get_time\"}</tool_call> done",
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Pa\\\"ris\", \"days\": \
     2}}\n</tool_call>",
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>",
    "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Pa",
    "<function=get_weather>{\"city\": \"Paris\"}</function>",
    "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>",
    "[TOOL_CALLS][{\"name\": \"get_time\", \"arguments\": {}}, {\"name\": \"get_weather\", \
     \"arguments\": {\"city\": \"Kiel\"}}]",
    "[TOOL_CALLS]get_weather[CALL_ID]abc123def[ARGS]{\"city\": \"Paris\"}",
    "[TOOL_CALLS]get_time{}[TOOL_CALLS]get_time{}",
    "<|tool_call|>[{\"name\": \"get_time\", \"arguments\": {}}]",
    "[get_weather(city='Paris', days=2, detailed=True, tags=['a', \"b\"], note=None), get_time()]",
    "<|python_tag|>get_weather(city=\"Paris\")",
    "<|python_start|>[get_time()]<|python_end|>",
    "{\"name\": \"get_time\", \"arguments\": {}}",
    "{\"type\": \"function\", \"function\": {\"name\": \"crm/find.one\", \"parameters\": {\"a\": \
     [1, 2.5e3, null]}}}",
    "I call it:\n```json\n{\"name\": \"get_time\", \"arguments\": {}}\n```\nand\n```\n[{\"name\": \
     \"get_time\"}]\n```",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \
     \"Paris\"}\n```<｜tool▁call▁end｜>",
    "<think>I could <tool_call>{\"name\": \
     \"get_time\"}</tool_call></think>\n<tool_call>{\"name\": \"get_time\"}</tool_call>",
    "```json\n{\"name\": \"unknown\", \"arguments\": {}}\n``` `[1, 2]` <b>bold</b> f(x) = {x}",
    "[get_time(), unknown()]",
    "Il fait 12 °C à Kiel — 🌦️.\n\n",
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = env::args_os().nth(1).ok_or("seeds FOLDER")?.into();
    let streams = streams(&folder)?;
    let schemas = schemas(&folder.join("schema_compiler"))?;
    let texts = texts(&folder.join("text_recovery"))?;
    println!("{streams} streams, {schemas} schemas, {texts} texts");
    Ok(())
}

/// Whole bodies are seeds, too: the targets read every input both ways.
fn streams(folder: &Path) -> Result<usize, Box<dyn Error>> {
    let mut written = 0;
    for transcript in transcripts::all()? {
        let target = STREAMS.iter().find(|(_, wire)| *wire == transcript.wire);
        let Some((target, _)) = target else {
            return Err(format!("no target reads {}", transcript.wire).into());
        };
        let bytes = [header(&CUTS), transcript.bytes.to_vec()].concat();
        let name = format!("{}-{:?}", transcript.stem, transcript.form);
        write(&folder.join(target), &name, &bytes)?;
        written += 1;
    }
    Ok(written)
}

fn schemas(folder: &Path) -> Result<usize, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut written = 0;
    for file in fs::read_dir(root.join("../crates/providers-common/tests/schemas"))? {
        let path = file?.path();
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let list: Vec<Value> = serde_json::from_slice(&fs::read(&path)?)?;
        for (at, named) in list.iter().enumerate() {
            let schema = named.get("schema").ok_or("an entry without a schema")?;
            write(
                folder,
                &format!("{stem}-{at}"),
                schema.to_string().as_bytes(),
            )?;
            written += 1;
        }
    }
    Ok(written)
}

fn texts(folder: &Path) -> Result<usize, Box<dyn Error>> {
    for (at, text) in TEXTS.iter().enumerate() {
        let end = u8::try_from(at % 3)?;
        let bytes = [&[u8::MAX, end], &*header(&[3, 9, 20]), text.as_bytes()].concat();
        write(folder, &format!("text-{at}"), &bytes)?;
    }
    Ok(TEXTS.len())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(name), bytes)?;
    Ok(())
}
