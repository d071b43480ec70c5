//! Tool calls as models write them, for each format. Sources: chat templates, the tests of vLLM and
//! llama.cpp, and answers of a local Qwen2.5-Coder-1.5B.

use super::*;
use TextCallFormat::{
    BareJson, DeepSeek, FencedJson, FunctionTag, Granite, MistralToken, Pythonic, ToolCallTag,
};

/// A text with calls in one format, the text that remains without the calls, and the calls.
struct Case {
    form: TextCallFormat,
    text: &'static str,
    said: &'static str,
    calls: Vec<(&'static str, Value)>,
}

fn case(
    form: TextCallFormat,
    text: &'static str,
    said: &'static str,
    calls: impl IntoIterator<Item = (&'static str, Value)>,
) -> Case {
    let calls = calls.into_iter().collect();
    Case {
        form,
        text,
        said,
        calls,
    }
}

fn paris() -> (&'static str, Value) {
    ("get_weather", json!({"city": "Paris"}))
}

fn time() -> (&'static str, Value) {
    ("get_time", json!({}))
}

fn malformed(name: &'static str) -> (&'static str, Value) {
    (name, json!("malformed"))
}

#[rustfmt::skip]
fn tags() -> Vec<Case> {
    vec![
        // Hermes 2 Pro writes the arguments first.
        case(ToolCallTag, "<tool_call>\n{\"arguments\": {\"city\": \"Paris\"}, \"name\": \"get_weather\"}\n</tool_call>", "", [paris()]),
        case(ToolCallTag, "I look it up.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>", "I look it up.\n", [paris()]),
        case(ToolCallTag, "\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>\n\n", "", [paris(), time()]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call> Done.", " Done.", [paris()]),
        // Qwen2.5 writes doubled braces, because its chat template shows them.
        case(ToolCallTag, "<tool_call>\n{{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}}\n</tool_call>", "", [paris()]),
        case(BareJson, "{{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}}", "", [paris()]),
        case(BareJson, "{{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\nDone.", "\nDone.", [paris()]),
        case(FencedJson, "```json\n{{\"name\": \"get_time\", \"arguments\": {}}}\n```", "", [time()]),
        case(BareJson, "{{\"name\": \"get_weather\", \"arguments\": {\"ci", "", [malformed("get_weather")]),
        case(BareJson, "{{\"name\": \"somebody\", \"arguments\": {}}}", "{{\"name\": \"somebody\", \"arguments\": {}}}", []),
        // The closing tag is missing or incomplete.
        case(ToolCallTag, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n<tool_call>\n{\"name\": \"get_time\"}", "", [paris(), time()]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_time\"}</tool_", "", [time()]),
        // Granite 3.1 writes a list without a closing tag.
        case(ToolCallTag, "<tool_call>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, {\"name\": \"get_time\", \"arguments\": {}}]", "", [paris(), time()]),
        case(ToolCallTag, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n{\"name\": \"get_time\"}\n</tool_call>", "", [paris(), time()]),
        // A call as in OpenAI's API: in the key `function`, with the arguments as a string.
        case(ToolCallTag, "<tool_call>{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Paris\\\"}\"}}</tool_call>", "", [paris()]),
        // A Python dictionary as the arguments, and a line break in a string.
        case(ToolCallTag, "<tool_call>\n{'name': 'get_weather', 'arguments': {'city': 'Paris', 'detailed': True, 'note': None}}\n</tool_call>", "", [("get_weather", json!({"city": "Paris", "detailed": true, "note": null}))]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"note\": \"a\nb\\\n\tc\"}}</tool_call>", "", [("get_weather", json!({"note": "a\nb\\\n\tc"}))]),
        // A closing tag within a string does not end the call.
        case(ToolCallTag, "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"note\": \"}</tool_call>\"}}</tool_call>", "", [("get_weather", json!({"note": "}</tool_call>"}))]),
        // A second call that names no offered tool is text.
        case(ToolCallTag, "<tool_call>{\"name\": \"get_time\"}\n{\"name\": \"get_tide\"}</tool_call>", "\n{\"name\": \"get_tide\"}</tool_call>", [time()]),
        // Truncated calls and calls with invalid JSON are malformed.
        case(ToolCallTag, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Par", "", [malformed("get_weather")]),
        case(ToolCallTag, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}", "", [malformed("get_weather")]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_time\"}{\"name\": \"get_weather\", ", "", [time(), malformed("get_weather")]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_weather\", \"arguments\": {city: Paris}}</tool_call> Done.", " Done.", [malformed("get_weather")]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"days\": 01}}</tool_call>", "", [malformed("get_weather")]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_weather\", \"arguments\": [1]}</tool_call>", "", [malformed("get_weather")]),
        case(ToolCallTag, "<tool_call>{\"name\": \"get_weather\", oops", "", [malformed("get_weather")]),
        // Qwen3-Coder.
        case(ToolCallTag, "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=detailed>\nTrue\n</parameter>\n<parameter=tags>\n[\"a\"]\n</parameter>\n</function>\n</tool_call>", "",
            [("get_weather", json!({"city": "Paris", "days": 3, "detailed": true, "tags": ["a"]}))]),
        case(ToolCallTag, "<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n<parameter=units>\nc\n<parameter=note>\nline\n\n  indented\n</function>\n</tool_call>", "",
            [("get_weather", json!({"city": "12", "units": "c", "note": "line\n\n  indented"}))]),
        case(ToolCallTag, "<tool_call>\n<function=get_weather>\n<parameter=city>\nPa", "", [malformed("get_weather")]),
        // GLM 4.5 and 4.7.
        case(ToolCallTag, "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", "",
            [("get_weather", json!({"city": "Paris", "days": 3}))]),
        case(ToolCallTag, "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call><tool_call>get_time</tool_call>", "", [paris(), time()]),
        case(ToolCallTag, "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<", "", [malformed("get_weather")]),
        // The answer ends directly after the name, which may be truncated, so this is not a call.
        case(ToolCallTag, "<tool_call>get_time", "<tool_call>get_time", []),
    ]
}

#[rustfmt::skip]
fn marks() -> Vec<Case> {
    vec![
        case(FunctionTag, "<function=get_weather>{\"city\": \"Paris\"}</function>", "", [paris()]),
        case(FunctionTag, "Ok <function=get_weather>{\"city\": \"Paris\"}</function><function=get_time>{}</function>", "Ok ", [paris(), time()]),
        case(FunctionTag, "<function=get_time>\n</function>", "", [time()]),
        case(FunctionTag, "<function=crm/find.one>{\"id\": 1}", "", [("crm/find.one", json!({"id": 1}))]),
        case(FunctionTag, "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>", "", [paris()]),
        case(FunctionTag, "<function=get_weather>{'city': 'Paris'}</function>", "", [paris()]),
        case(FunctionTag, "<function=get_weather>{city}</function>.", ".", [malformed("get_weather")]),
        case(FunctionTag, "<function=get_weather>{\"city\": \"Paris\"", "", [malformed("get_weather")]),
        case(FunctionTag, "<function=get_weather>", "", [malformed("get_weather")]),
        // Mistral with the tokenizer versions up to v7, v11 and v13.
        case(MistralToken, "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}, \"id\": \"VvvODy9mT\"}]", "", [paris()]),
        case(MistralToken, "Sure.[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, {\"name\": \"get_time\", \"arguments\": {}}]", "Sure.", [paris(), time()]),
        case(MistralToken, "[TOOL_CALLS]get_weather{\"city\": \"Paris\"}[TOOL_CALLS]get_time{}", "", [paris(), time()]),
        case(MistralToken, "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\"}", "", [paris()]),
        case(MistralToken, "[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{\"city\": \"Paris\"}", "", [paris()]),
        case(MistralToken, "[TOOL_CALLS] [{'name': 'get_weather', 'arguments': {'city': 'Paris'}}]", "", [paris()]),
        case(MistralToken, "[TOOL_CALLS] [{\"name\": \"get_time\", \"arguments\": {}}, {\"name\": \"get_weather\", \"arguments\": {\"ci", "", [time(), malformed("get_weather")]),
        case(MistralToken, "[TOOL_CALLS]get_weather{\"city\": ", "", [malformed("get_weather")]),
        case(MistralToken, "[TOOL_CALLS] []", "[TOOL_CALLS] []", []),
        // Granite 3.0 and Phi-4-mini.
        case(Granite, "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]", "", [paris()]),
        case(Granite, "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]<|/tool_call|>", "", [paris()]),
        // DeepSeek V3, R1 and V3.1.
        case(DeepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", [paris(), time()]),
        case(DeepSeek, "Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜> And.", "Well. And.", [paris(), time()]),
        case(DeepSeek, "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}", "", [paris()]),
        case(DeepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Pa", "", [malformed("get_weather")]),
        case(DeepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_tide<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_tide<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []),
        // Llama 3.1.
        case(BareJson, "<|python_tag|>{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}; {\"name\": \"get_time\", \"parameters\": {}}<|eom_id|>", "", [paris(), time()]),
    ]
}

#[rustfmt::skip]
fn unmarked() -> Vec<Case> {
    vec![
        // Qwen2.5-Coder.
        case(FencedJson, "```json\n{\n  \"name\": \"get_weather\",\n  \"arguments\": {\n    \"city\": \"Paris\"\n  }\n}\n```", "", [paris()]),
        case(FencedJson, "```json {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}} ```", "", [paris()]),
        case(FencedJson, "```\n[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, {\"name\": \"get_time\", \"arguments\": {}}]\n```", "", [paris(), time()]),
        case(FencedJson, "```tool_call\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\n{\"name\": \"get_time\", \"parameters\": {}}\n```", "", [paris(), time()]),
        case(FencedJson, "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n", "", [paris()]),
        case(FencedJson, "```json\n{\n  \"name\": \"get_weather\",\n  \"arguments\": {\n    \"city\": \"Paris\"\n  }\n}\n```\n\n```json\n{\n  \"name\": \"get_time\",\n  \"arguments\": {}\n}\n```\n\n```json\n", "", [paris(), time()]),
        case(FencedJson, "```json\n", "```json\n", []),
        case(FencedJson, "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Par", "", [malformed("get_weather")]),
        case(FencedJson, "```json\n{\"name\": \"get_time\", \"arguments\": {}}\nand more\n```", "```json\n{\"name\": \"get_time\", \"arguments\": {}}\nand more\n```", []),
        case(FencedJson, "```python\nprint({\"name\": \"get_time\", \"arguments\": {}})\n```", "```python\nprint({\"name\": \"get_time\", \"arguments\": {}})\n```", []),
        // Llama 3.1 and 3.2.
        case(BareJson, "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}", "", [paris()]),
        case(BareJson, "{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}; {\"name\": \"get_time\", \"parameters\": {}}", "", [paris(), time()]),
        case(BareJson, "I call it:\n\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n\nWait.", "I call it:\n\n\n\nWait.", [paris()]),
        case(BareJson, "[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]", "", [paris()]),
        case(BareJson, "{\"tool\": \"get_time\", \"args\": {}}", "", [time()]),
        case(BareJson, "{\"name\": \"get_weather\", \"arguments\": {\"city\"", "", [malformed("get_weather")]),
        // JSON within a line, a code block or other JSON is an example and not a call.
        case(BareJson, "Write {\"name\": \"get_time\", \"arguments\": {}}", "Write {\"name\": \"get_time\", \"arguments\": {}}", []),
        case(BareJson, "```\n{\"name\": \"get_time\", \"arguments\": {}}\n```", "```\n{\"name\": \"get_time\", \"arguments\": {}}\n```", []),
        case(BareJson, "{\"examples\": [\n{\"name\": \"get_time\", \"arguments\": {}},\n{\"name\": \"get_time\", \"arguments\": {}}\n]}", "{\"examples\": [\n{\"name\": \"get_time\", \"arguments\": {}},\n{\"name\": \"get_time\", \"arguments\": {}}\n]}", []),
        // The description of a tool is not a call, and neither is data with the name of a tool.
        case(BareJson, "{\"name\": \"get_time\", \"description\": \"The time.\", \"parameters\": {}}", "{\"name\": \"get_time\", \"description\": \"The time.\", \"parameters\": {}}", []),
        case(BareJson, "{\"name\": \"get_weather\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}}}}", "{\"name\": \"get_weather\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}}}}", []),
        case(BareJson, "{\"name\": \"get_time\"}", "{\"name\": \"get_time\"}", []),
        case(BareJson, "{\"name\": \"get_time\", \"arguments\": 5}", "{\"name\": \"get_time\", \"arguments\": 5}", []),
        case(BareJson, "[{\"name\": \"get_time\", \"arguments\": {}}, {\"name\": \"get_tide\", \"arguments\": {}}]", "[{\"name\": \"get_time\", \"arguments\": {}}, {\"name\": \"get_tide\", \"arguments\": {}}]", []),
        // Llama 3.2, Llama 4 and LFM 2.
        case(Pythonic, "[get_weather(city=\"Paris\")]", "", [paris()]),
        case(Pythonic, "[get_weather(city='Paris', days=3, detailed=False, tags=['a', 'b'], note=None), get_time()]", "",
            [("get_weather", json!({"city": "Paris", "days": 3, "detailed": false, "tags": ["a", "b"], "note": null})), time()]),
        case(Pythonic, "<|python_start|>[get_weather(city=\"Paris\")]<|python_end|>", "", [paris()]),
        case(Pythonic, "<|tool_call_start|>[get_weather(city=\"Paris\")]<|tool_call_end|>Checking.", "Checking.", [paris()]),
        case(Pythonic, "[get_weather(city=\"P\\u00e4ris\\n\\\"\", units={\"a\": (1, -2.5)})]", "", [("get_weather", json!({"city": "Päris\n\"", "units": {"a": [1, -2.5]}}))]),
        case(Pythonic, "[crm/find.one(id=1)]", "", [("crm/find.one", json!({"id": 1}))]),
        case(Pythonic, "[get_time(), get_weather(city=\"Par", "", [time(), malformed("get_weather")]),
        case(Pythonic, "[get_weather(Paris)]", "[get_weather(Paris)]", []),
        case(Pythonic, "[get_weather](https://example.org)", "[get_weather](https://example.org)", []),
        case(Pythonic, "a list [get_time()]", "a list [get_time()]", []),
    ]
}

fn cases() -> Vec<Case> {
    [tags(), marks(), unmarked()]
        .into_iter()
        .flatten()
        .collect()
}

fn only(form: TextCallFormat) -> CallRecoverySettings {
    CallRecoverySettings::for_request(&request(), TextCallFormats::from_forms(&[form]))
}

#[test]
fn every_form_is_read_as_models_write_it() {
    for case in cases() {
        let response = read(&only(case.form), case.text, FinishReason::Stop);
        let calls: Vec<_> = response
            .message
            .tool_uses()
            .map(|it| (it.name.as_str(), input(it)))
            .collect();
        assert_eq!(calls, case.calls, "{:?} {}", case.form, case.text);
        assert_eq!(
            response.message.text(),
            case.said,
            "{:?} {}",
            case.form,
            case.text
        );
    }
}

#[test]
fn selecting_more_forms_does_not_change_the_result() {
    for case in cases() {
        let single = read(&only(case.form), case.text, FinishReason::Stop);
        if single.message.tool_uses().next().is_none() {
            // The text is not a call in this format, but may be one in another format.
            continue;
        }
        let combined = read(&all(), case.text, FinishReason::Stop);
        assert_eq!(
            combined.message, single.message,
            "{:?} {}",
            case.form, case.text
        );
    }
}

#[test]
fn forms_that_are_not_selected_are_text() {
    let with_calls = cases().into_iter().filter(|case| !case.calls.is_empty());
    for case in with_calls {
        for form in TextCallFormat::ALL
            .into_iter()
            .filter(|it| *it != case.form)
        {
            let response = read(&only(form), case.text, FinishReason::Stop);
            // Calls in the format `case.form` contain calls in the format `form`.
            let is_part = matches!(
                (case.form, form),
                (ToolCallTag, FunctionTag) | (ToolCallTag | MistralToken | Granite, BareJson)
            );
            if !is_part {
                assert_eq!(response.message.text(), case.text, "{form:?}");
                assert_eq!(
                    response.message.tool_uses().count(),
                    0,
                    "{form:?} {}",
                    case.text
                );
            }
        }
    }
}

/// A truncated call must never be executed. If an answer is truncated anywhere, each of its calls
/// is either a call of the whole answer or malformed.
#[test]
fn no_beginning_of_an_answer_makes_another_call() {
    for case in cases() {
        let whole = read(&all(), case.text, FinishReason::Stop);
        let whole: Vec<_> = whole
            .message
            .tool_uses()
            .map(|it| (&it.name, input(it)))
            .collect();
        let whole: Vec<_> = whole
            .iter()
            .map(|(name, input)| (name.as_str(), input))
            .collect();
        for (at, _) in case.text.char_indices() {
            let part = read(&all(), &case.text[..at], FinishReason::Length);
            for (tool_use, expected) in part.message.tool_uses().zip(&whole) {
                let input = input(tool_use);
                let fits = input == "malformed" || *expected == (tool_use.name.as_str(), &input);
                assert!(fits, "{input} of {:?}", &case.text[..at]);
            }
        }
    }
}

#[test]
fn calls_in_thinking_are_ignored() {
    for (begin, end) in [("<think>", "</think>"), ("[THINK]", "[/THINK]")] {
        let thought = format!("{begin}\nMaybe {CALL}?\n{end}");
        let response = read(&all(), &thought, FinishReason::Stop);
        assert_eq!(response.message.text(), thought);
        let text = format!("{thought}\n{CALL}");
        let response = read(&all(), &text, FinishReason::Stop);
        assert_eq!(response.message.tool_uses().count(), 1);
        assert_eq!(response.message.text(), format!("{thought}\n"));
    }
}
