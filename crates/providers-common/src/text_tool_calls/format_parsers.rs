//! Parsers of tool calls in text, one per format. Each starts at the first character of the call.

mod deepseek;
mod pythonic;
mod xml_tags;

use super::{
    call_format::TextCallFormat,
    cursor::{CallParseError, Cursor},
    json_calls::{FoundCall, JsonCallReader, may_begin_call, read_call_input},
    offered_tools::OfferedTools,
};

const FENCE: &str = "```";
/// Language names of Markdown code blocks that may contain a call.
const LANGUAGES: &[&str] = &[
    "",
    "json",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_use",
    "function_call",
];
const MISTRAL_TOKEN: &str = "[TOOL_CALLS]";
const GRANITE_TOKEN: &str = "<|tool_call|>";
const PYTHON_TAG: &str = "<|python_tag|>";

/// Returns whether a text begins with the marker of a format, such as `<tool_call>`, or may do so
/// when more of the text arrives.
pub(crate) fn may_begin_format(form: TextCallFormat, text: &str, tools: &OfferedTools) -> bool {
    let opens = |markers: &[&str]| {
        let mut markers = markers.iter();
        markers.any(|marker| text.starts_with(marker) || marker.starts_with(text))
    };
    match form {
        TextCallFormat::ToolCallTag => opens(&[xml_tags::TOOL_CALL]),
        TextCallFormat::FunctionTag => opens(&[xml_tags::FUNCTION]),
        TextCallFormat::MistralToken => opens(&[MISTRAL_TOKEN]),
        TextCallFormat::DeepSeek => opens(&[deepseek::CALLS_BEGIN, deepseek::CALL_BEGIN]),
        TextCallFormat::Granite => opens(&[GRANITE_TOKEN]),
        TextCallFormat::FencedJson => match text.strip_prefix(FENCE) {
            Some(block) => may_be_fenced_calls(block),
            None => FENCE.starts_with(text),
        },
        TextCallFormat::Pythonic => match text.strip_prefix('[') {
            Some(list) => tools.may_begin_tool_name(list.trim_start(), '('),
            None => opens(pythonic::OPENERS),
        },
        TextCallFormat::BareJson if text.starts_with('<') => opens(&[PYTHON_TAG]),
        TextCallFormat::BareJson => text.starts_with(['{', '[']) && may_begin_call(text),
    }
}

fn may_be_fenced_calls(block: &str) -> bool {
    let end = block.find(|c: char| c.is_whitespace() || matches!(c, '{' | '['));
    let (language, content) = block.split_at(end.unwrap_or(block.len()));
    let language = language.to_ascii_lowercase();
    match end {
        Some(_) => LANGUAGES.contains(&language.as_str()) && may_begin_call(content),
        None => LANGUAGES.iter().any(|known| known.starts_with(&language)),
    }
}

/// Reads consecutive calls in the given format. Moves the cursor to the end of the calls.
pub(crate) fn read_format_calls(
    form: TextCallFormat,
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, CallParseError> {
    match form {
        TextCallFormat::ToolCallTag => xml_tags::read_tool_call_tag(cursor, tools),
        TextCallFormat::FunctionTag => xml_tags::read_function_tag(cursor, tools),
        TextCallFormat::MistralToken => read_mistral_calls(cursor, tools),
        TextCallFormat::DeepSeek => deepseek::read_calls(cursor, tools),
        TextCallFormat::Granite => {
            cursor.expect_text(GRANITE_TOKEN)?;
            cursor.skip_whitespace();
            read_json_after_marker(cursor, tools, &["<|/tool_call|>"])
        }
        TextCallFormat::FencedJson => read_fenced_calls(cursor, tools),
        TextCallFormat::Pythonic => pythonic::read_calls(cursor, tools),
        TextCallFormat::BareJson if cursor.skip_any(&[PYTHON_TAG]) => {
            cursor.skip_whitespace();
            read_json_after_marker(cursor, tools, &["<|eom_id|>", "<|eot_id|>"])
        }
        TextCallFormat::BareJson => bare_json_call_reader(tools).read_call_or_list(cursor),
    }
}

fn bare_json_call_reader(tools: &OfferedTools) -> JsonCallReader<'_> {
    JsonCallReader {
        tools,
        is_marked: false,
        closers: &[],
    }
}

/// Reads the JSON calls that follow a marker such as `<|tool_call|>`. Consumes one of the closing
/// marks `closers` too, if one follows the calls.
fn read_json_after_marker(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
    closers: &[&str],
) -> Result<Vec<FoundCall>, CallParseError> {
    let json = JsonCallReader {
        tools,
        is_marked: true,
        closers,
    };
    let calls = json.read_call_sequence(cursor)?;
    cursor.skip_closing_mark(closers);
    Ok(calls)
}

/// Reads a Markdown code block that contains only calls. Fails for a block with other content,
/// which stays text.
fn read_fenced_calls(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, CallParseError> {
    cursor.expect_text(FENCE)?;
    if !may_be_fenced_calls(cursor.remaining_text()) {
        return Err(CallParseError::NotACall);
    }
    cursor.skip_while(|c| !c.is_whitespace() && !matches!(c, '{' | '['));
    cursor.skip_whitespace();
    let calls = bare_json_call_reader(tools).read_call_sequence(cursor)?;
    if cursor.skip_closing_mark(&[FENCE]) || cursor.remaining_text().trim().is_empty() {
        Ok(calls)
    } else {
        Err(CallParseError::NotACall)
    }
}

/// Reads Mistral's calls: `[TOOL_CALLS]` and JSON, `name{…}` or `name[CALL_ID]id[ARGS]{…}`.
fn read_mistral_calls(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, CallParseError> {
    const ARGS: &str = "[ARGS]";
    cursor.expect_text(MISTRAL_TOKEN)?;
    cursor.skip_whitespace();
    if matches!(cursor.peek_required()?, '[' | '{') {
        return read_json_after_marker(cursor, tools, &[]);
    }
    let ends_name = |c: char| c == '{' || c == '[' || c.is_whitespace();
    let name = tools.read_tool_name(cursor, ends_name)?;
    cursor.skip_whitespace();
    if cursor.peek_required()? == '[' {
        if cursor.skip_any(&["[CALL_ID]"]) {
            cursor.read_until(&[ARGS])?;
        }
        cursor.expect_text(ARGS)?;
        cursor.skip_whitespace();
    }
    match cursor.peek_required()? {
        '{' => Ok(vec![read_call_input(name, cursor, &[MISTRAL_TOKEN])]),
        _ => Err(CallParseError::NotACall),
    }
}
