//! Parsers for the elements `<tool_call>` and `<function=name>`.

use serde_json::{Map, Value};

use super::{
    super::{
        cursor::{CallParseError, Cursor},
        json_calls::{FoundCall, read_call_input},
        literal::parse_literal,
        offered_tools::OfferedTools,
    },
    read_json_after_marker,
};

pub(super) const TOOL_CALL: &str = "<tool_call>";
const TOOL_CALL_END: &str = "</tool_call>";
pub(super) const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";

/// Reads a `<tool_call>` element, which contains JSON, a function element or arguments.
pub(super) fn read_tool_call_tag(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, CallParseError> {
    cursor.expect_text(TOOL_CALL)?;
    cursor.skip_whitespace();
    let calls = match cursor.peek_required()? {
        '{' | '[' => return read_json_after_marker(cursor, tools, &[TOOL_CALL_END]),
        '<' => read_function_tag(cursor, tools)?,
        _ => {
            let name = tools.read_tool_name(cursor, |c| c.is_whitespace() || c == '<')?;
            return PAIRS.read_call(name, cursor, tools);
        }
    };
    cursor.skip_closing_mark(&[TOOL_CALL_END]);
    Ok(calls)
}

/// Reads a `<function=name>` element, which contains JSON or arguments.
pub(super) fn read_function_tag(
    cursor: &mut Cursor<'_>,
    tools: &OfferedTools,
) -> Result<Vec<FoundCall>, CallParseError> {
    cursor.expect_text(FUNCTION)?;
    let name = tools.read_tool_name(cursor, |c| c == '>')?;
    cursor.expect_text(">")?;
    cursor.skip_whitespace();
    let call = match cursor.peek() {
        Some('{') => read_call_input(name, cursor, &[FUNCTION_END]),
        Some('<') => return PARAMETERS.read_call(name, cursor, tools),
        Some(_) => return Err(CallParseError::NotACall),
        None => FoundCall::new_incomplete(name, ""),
    };
    cursor.skip_closing_mark(&[FUNCTION_END]);
    Ok(vec![call])
}

/// Opening and closing marks of call arguments that are written as XML-like elements.
struct ArgumentMarks {
    key: (&'static str, &'static str),
    value: (&'static str, &'static str),
    end: &'static str,
}

/// Marks of Qwen3-Coder: `<parameter=key>value</parameter>`.
const PARAMETERS: ArgumentMarks = ArgumentMarks {
    key: ("<parameter=", ">"),
    value: ("", "</parameter>"),
    end: FUNCTION_END,
};
/// Marks of GLM 4.5 and later: `<arg_key>key</arg_key><arg_value>value</arg_value>`.
const PAIRS: ArgumentMarks = ArgumentMarks {
    key: ("<arg_key>", "</arg_key>"),
    value: ("<arg_value>", "</arg_value>"),
    end: TOOL_CALL_END,
};

impl ArgumentMarks {
    /// Reads the arguments of a call and the mark that ends the call, such as `</function>`.
    fn read_call(
        &self,
        name: &str,
        cursor: &mut Cursor<'_>,
        tools: &OfferedTools,
    ) -> Result<Vec<FoundCall>, CallParseError> {
        let mut arguments = Map::new();
        let result = self.read_arguments(&mut arguments, name, cursor, tools);
        let input = Value::Object(arguments).to_string();
        let call = match result {
            Ok(()) => FoundCall::new_complete(name, input),
            Err(CallParseError::End) => {
                cursor.advance(cursor.remaining_text().len());
                FoundCall::new_incomplete(name, input)
            }
            Err(stop) => return Err(stop),
        };
        Ok(vec![call])
    }

    fn read_arguments(
        &self,
        arguments: &mut Map<String, Value>,
        name: &str,
        cursor: &mut Cursor<'_>,
        tools: &OfferedTools,
    ) -> Result<(), CallParseError> {
        loop {
            cursor.skip_whitespace();
            match cursor.expect_text(self.end) {
                Err(CallParseError::NotACall) => {}
                result => return result,
            }
            cursor.expect_text(self.key.0)?;
            let key = cursor.read_until(&[self.key.1])?.trim();
            cursor.expect_text(self.key.1)?;
            if !self.value.0.is_empty() {
                cursor.skip_whitespace();
                cursor.expect_text(self.value.0)?;
            }
            // Models sometimes omit the mark after a value, so the beginning of the next key also
            // ends the value.
            let value = cursor.read_until(&[self.value.1, self.key.0, self.end])?;
            cursor.skip_any(&[self.value.1]);
            arguments.insert(key.to_owned(), parse_argument(tools, name, key, value));
        }
    }
}

/// Returns the value of an argument: a string if the schema of the argument allows only strings,
/// else the value of the JSON or Python literal in the text. Text that is not a literal becomes a
/// string.
fn parse_argument(tools: &OfferedTools, tool: &str, key: &str, raw: &str) -> Value {
    // The chat templates put a line break before and after each value. These line breaks are
    // removed.
    let text = raw.strip_prefix('\n').unwrap_or(raw);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let value = parse_literal(&format!("{text} ")).filter(|_| !tools.is_text_argument(tool, key));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}
