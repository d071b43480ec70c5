//! Finds values for the parameters of a tool in the text of a question.

use std::ops::RangeInclusive;

use serde_json::{Map, Number, Value, json};
use switchboard_domain::{JsonObject, ToolDefinition, json_schema::SchemaValidator};

use crate::{
    question_values::{QuestionValues, ValueGroup},
    tool_parameters::{Parameter, read_parameters},
    word_stems::{identifier_to_label, split_words, stem_all_words},
};

/// Maximum number of tool calls for one list of values in a question, such as "customers 42, 43 and
/// 7". Each value gets its own call. Further values are ignored.
const MAX_INPUTS: usize = 20;

/// Words that precede the topic of a question, as in "a note about cats".
const TOPIC_WORDS: &[&str] = &["about", "named", "called", "titled", "saying", "to", "in"];

/// The arguments for the calls of one tool, as far as the question and earlier tool results contain
/// them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolArguments {
    /// Input objects, one for each tool call. A list of values in the question, such as "customers
    /// 42 and 43", gives one input per value.
    pub(crate) inputs: Vec<JsonObject>,
    /// Names of required parameters that have neither a value nor a default in the schema.
    pub(crate) missing: Vec<String>,
}

/// Finds arguments for `tool` in a question. A JSON object in the question has priority over
/// `known` (values from tool results), and `known` has priority over the words of the question.
pub(crate) fn fill_arguments(
    tool: &ToolDefinition,
    question: &str,
    values: &QuestionValues,
    known: &JsonObject,
) -> ToolArguments {
    let mut filler = ArgumentFiller {
        tool,
        values,
        used_numbers: Vec::new(),
        used_text: Vec::new(),
    };
    let mut input = find_json_object(question).unwrap_or_default();
    // A list of values in the question and the name of the parameter that it belongs to.
    let (mut list_name, mut list): (Option<&String>, Vec<Value>) = (None, Vec::new());
    let mut missing = Vec::new();
    let parameters = read_parameters(&tool.input_schema);
    // The first pass accepts only values that match a parameter's name or format. The second pass
    // also assigns the remaining numbers and texts of the question to required parameters.
    for only_clear in [true, false] {
        for parameter in &parameters {
            if input.contains_key(&parameter.name) || list_name == Some(&parameter.name) {
                continue;
            }
            if let Some(value) = known.get(&parameter.name) {
                input.insert(parameter.name.clone(), value.clone());
                continue;
            }
            let mut found = filler.find_argument_values(parameter, only_clear);
            if found.len() > 1 && list_name.is_none() {
                (list_name, list) = (Some(&parameter.name), found);
            } else if !found.is_empty() {
                input.insert(parameter.name.clone(), found.swap_remove(0));
            }
        }
    }
    for parameter in &parameters {
        let is_listed = list_name == Some(&parameter.name);
        if input.contains_key(&parameter.name) || is_listed || !parameter.is_required {
            continue;
        }
        if let Some(default) = parameter.schema.get("default") {
            input.insert(parameter.name.clone(), default.clone());
        } else {
            missing.push(parameter.name.clone());
        }
    }
    let inputs = match list_name {
        None => vec![input],
        Some(name) => list
            .into_iter()
            .take(MAX_INPUTS)
            .map(|value| {
                let mut input = input.clone();
                input.insert(name.clone(), value);
                input
            })
            .collect(),
    };
    ToolArguments { inputs, missing }
}

/// Returns the reason why an input does not match the tool's schema, or `None` if it matches.
pub(crate) fn find_schema_violation(tool: &ToolDefinition, input: &JsonObject) -> Option<String> {
    let Ok(validator) = SchemaValidator::compile(&tool.input_schema) else {
        return Some(format!("the input schema of `{}` is not valid", tool.name));
    };
    let value = Value::Object(input.clone());
    match validator.list_errors(&value) {
        Ok(errors) => errors.first().map(|error| {
            let path = error.instance_path().to_string();
            format!("`{}`: {error}", path.trim_start_matches('/'))
        }),
        Err(error) => Some(error.to_string()),
    }
}

/// Parses the text from the first `{` to the last `}` of a question. Returns `None` if this text
/// does not exist or is not a JSON object.
fn find_json_object(question: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(question.get(find_json_range(question)?)?).ok()
}

/// Returns the question with a space in place of its JSON object. A question without a JSON object
/// does not change.
pub(crate) fn remove_json_object(question: &str) -> String {
    let mut words = question.to_owned();
    if find_json_object(question).is_some()
        && let Some(range) = find_json_range(question)
    {
        words.replace_range(range, " ");
    }
    words
}

/// Returns the byte range from the first opening brace to the last closing brace of a question.
fn find_json_range(question: &str) -> Option<RangeInclusive<usize>> {
    let range = question.find('{')?..=question.rfind('}')?;
    (range.start() < range.end()).then_some(range)
}

struct ArgumentFiller<'a> {
    tool: &'a ToolDefinition,
    values: &'a QuestionValues,
    /// Indices of the groups in `values.numbers` whose numbers already belong to a parameter.
    used_numbers: Vec<usize>,
    used_text: Vec<String>,
}

impl ArgumentFiller<'_> {
    /// Finds values for a parameter in the question. A list such as "customers 42 and 43" gives
    /// several values. The result is empty if nothing matches. With `only_clear`, numbers and texts
    /// must match the parameter's name or format.
    fn find_argument_values(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Vec<Value> {
        if !parameter.enum_values().is_empty() {
            return self.find_enum_value(parameter).into_iter().collect();
        }
        match parameter.json_type() {
            "integer" | "number" => self.find_number_values(parameter, only_clear),
            "boolean" => self.find_boolean_value(parameter).into_iter().collect(),
            "array" => match parameter.schema["items"]["enum"].as_array() {
                Some(options) => self.find_enum_items(options).into_iter().collect(),
                None => self.find_array(parameter, only_clear).into_iter().collect(),
            },
            "string" => self.find_text_values(parameter, only_clear),
            _ => Vec::new(),
        }
    }

    /// Returns the first value of the parameter's `enum` whose words occur one after the other in
    /// the question, or `None`. The comparison ignores case.
    fn find_enum_value(&self, parameter: &Parameter<'_>) -> Option<Value> {
        let asked: Vec<String> = self
            .values
            .tokens
            .iter()
            .flat_map(|token| split_words(&token.text))
            .collect();
        let is_named = |option: &&Value| {
            option.as_str().map(split_words).is_some_and(|words| {
                !words.is_empty() && asked.windows(words.len()).any(|window| window == words)
            })
        };
        parameter.enum_values().iter().find(is_named).cloned()
    }

    /// Returns those `options` whose words occur one after the other in the question, not counting
    /// a prefix such as `biolink:`. If there are none, returns the options whose first word occurs.
    fn find_enum_items(&self, options: &[Value]) -> Option<Value> {
        let asked: Vec<&str> = self
            .values
            .tokens
            .iter()
            .map(|it| it.stem.as_str())
            .collect();
        let named = |max_words: usize| -> Vec<Value> {
            let is_named = |option: &&Value| {
                let name = option.as_str().unwrap_or_default();
                let name = name.rsplit(':').next().unwrap_or_default();
                let mut words = stem_all_words(name);
                words.truncate(max_words);
                !words.is_empty() && asked.windows(words.len()).any(|window| window == words)
            };
            options.iter().filter(is_named).cloned().collect()
        };
        let mut found = named(usize::MAX);
        if found.is_empty() {
            found = named(1);
        }
        (!found.is_empty()).then_some(Value::Array(found))
    }

    /// Returns `true` if the question contains every word of the parameter's name, otherwise
    /// `None`. Words such as "is" and "show" in the name need not occur in the question.
    fn find_boolean_value(&self, parameter: &Parameter<'_>) -> Option<Value> {
        let is_asked = |stem: &String| {
            ["is", "has", "includ", "with", "show"].contains(&stem.as_str())
                || self.values.tokens.iter().any(|token| token.stem == *stem)
        };
        parameter
            .stems
            .iter()
            .all(is_asked)
            .then_some(Value::Bool(true))
    }

    fn find_number_values(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Vec<Value> {
        let is_limit =
            parameter.name_contains_any(&["limit", "count", "max", "number", "top", "size"]);
        let fits = |group: &ValueGroup<f64>| {
            let named_before = parameter.stems.contains(&group.before);
            let counts = is_limit && !group.after.is_empty();
            named_before || counts || (!only_clear && parameter.is_required && !is_limit)
        };
        let mut groups = self.values.numbers.iter().enumerate();
        let found = groups.find(|(at, group)| !self.used_numbers.contains(at) && fits(group));
        let Some((at, group)) = found else {
            return Vec::new();
        };
        if !only_clear && group.values.len() > 1 {
            return self.take_number_from_list(at, parameter);
        }
        self.used_numbers.push(at);
        let number = |value: &f64| to_json_number(*value, parameter.json_type() == "integer");
        group.values.iter().filter_map(number).collect()
    }

    /// Returns the numbers for `parameter` from the list `values.numbers[at]`: all numbers of the
    /// list. If the tool has several required numeric parameters, each gets only the number at its
    /// own position, as in "the sum of 19 and 23".
    fn take_number_from_list(&mut self, at: usize, parameter: &Parameter<'_>) -> Vec<Value> {
        let parameters = read_parameters(&self.tool.input_schema);
        let numeric = parameters
            .iter()
            .filter(|other| other.is_required && matches!(other.json_type(), "integer" | "number"));
        let numeric: Vec<&str> = numeric.map(|other| other.name.as_str()).collect();
        let mut values = self.values.numbers[at].values.as_slice();
        if numeric.len() < 2 {
            self.used_numbers.push(at);
        } else {
            let position = numeric.iter().position(|name| *name == parameter.name);
            values = position.map_or(&[][..], |at| values.get(at..=at).unwrap_or_default());
        }
        let number = |value: &f64| to_json_number(*value, parameter.json_type() == "integer");
        values.iter().filter_map(number).collect()
    }

    fn find_array(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Option<Value> {
        if only_clear || !parameter.is_required {
            return None;
        }
        let items = &parameter.schema["items"];
        let is_integer = items["type"] == "integer";
        let values: Vec<Value> = if is_integer || items["type"] == "number" {
            let all = self.values.numbers.iter().flat_map(|group| &group.values);
            all.filter_map(|value| to_json_number(*value, is_integer))
                .collect()
        } else if items["type"] == "string" {
            let ids = self.values.ids.iter().flat_map(|group| group.values.iter());
            let mut all: Vec<&String> = self.values.quoted.iter().chain(ids).collect();
            if all.is_empty() {
                all.extend(&self.values.names);
            }
            all.into_iter().map(|text| json!(text)).collect()
        } else {
            Vec::new()
        };
        (!values.is_empty()).then_some(Value::Array(values))
    }

    fn find_text_values(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Vec<Value> {
        let found = if only_clear {
            self.find_matching_text(parameter)
        } else if parameter.is_required {
            self.find_fallback_text().into_iter().collect()
        } else {
            Vec::new()
        };
        let unused = found
            .into_iter()
            .filter(|text| !self.used_text.contains(text));
        let found: Vec<String> = unused.collect();
        self.used_text.extend(found.iter().cloned());
        found.into_iter().map(Value::String).collect()
    }

    /// Returns the texts of the question that match the parameter's format or name, such as an
    /// address for `email`. The result is empty if no text matches.
    fn find_matching_text(&self, parameter: &Parameter<'_>) -> Vec<String> {
        let values = self.values;
        let token = |test: &dyn Fn(&str) -> bool| {
            let mut texts = values.tokens.iter().map(|token| token.text.clone());
            texts.find(|text| test(text)).into_iter().collect()
        };
        let dates = ["date", "day", "since", "until", "due"];
        if matches!(parameter.schema_format(), "date" | "date-time")
            || parameter.name_contains_any(&dates)
        {
            let unused = values
                .dates
                .iter()
                .filter(|date| !self.used_text.contains(date));
            return unused.take(1).cloned().collect();
        }
        if parameter.schema_format() == "email" || parameter.name_contains_any(&["email"]) {
            return token(&|text| text.contains('@') && text.contains('.'));
        }
        if parameter.schema_format() == "uri"
            || parameter.name_contains_any(&["url", "uri", "link"])
        {
            return token(&|text| text.contains("://"));
        }
        if parameter.name_contains_any(&["path", "file", "directory", "folder"]) {
            return token(&|text| text.contains('/') || text.contains('.') || text == "~");
        }
        let named_before = |group: &&ValueGroup<String>| parameter.stems.contains(&group.before);
        let is_id = parameter.name_contains_any(&["id", "sku", "code", "key", "number"]);
        if let Some(group) = values.ids.iter().find(|group| is_id || named_before(group)) {
            return group.values.clone();
        }
        // In a phrase like "with subject test", the value "test" follows the name of the parameter
        // `subject`.
        let name = parameter.stems.last();
        let at = values
            .tokens
            .iter()
            .rposition(|token| Some(&token.stem) == name);
        let is_topic = at.is_some_and(|at| {
            let before = at
                .checked_sub(1)
                .and_then(|before| values.tokens.get(before));
            before.is_some_and(|token| matches!(token.text.as_str(), "with" | "the" | "and"))
        });
        match at {
            Some(at) if is_topic && !values.tokens[at].ends_phrase => {
                values.phrase_from_token(at + 1).into_iter().collect()
            }
            Some(at) if is_topic && !values.quoted.is_empty() && values.tokens.len() == at + 1 => {
                values.quoted.iter().take(1).cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns a text for a required parameter that nothing in the question matches clearly: a
    /// quotation, a name, a topic ("a note about cats"), or the words after the tool's name. A text
    /// that another parameter already uses is never returned.
    fn find_fallback_text(&self) -> Option<String> {
        let values = self.values;
        let unused = |text: &&String| !self.used_text.contains(text);
        let mut candidates = values.quoted.iter().chain(&values.names).filter(unused);
        if let Some(text) = candidates.next() {
            return Some(text.clone());
        }
        // "what file" and "which file" ask for the value.
        values
            .phrase_after_word(TOPIC_WORDS)
            .filter(|text| !text.starts_with("which ") && !text.starts_with("what "))
            .or_else(|| self.text_after_tool_name())
            .filter(|text| unused(&text))
    }

    /// Returns the text after the tool's name, such as "hello world" in "echo hello world". Returns
    /// `None` if the question does not start with the tool's name or ends after it.
    fn text_after_tool_name(&self) -> Option<String> {
        let name = identifier_to_label(&self.tool.name);
        let name: Vec<&str> = name.split(' ').collect();
        let tokens = self.values.tokens.iter().take(name.len());
        let starts_with_name = tokens
            .map(|token| token.text.to_lowercase())
            .eq(name.iter().copied());
        let rest = self.values.tokens.get(name.len()..)?;
        let rest: Vec<&str> = rest.iter().map(|token| token.text.as_str()).collect();
        (starts_with_name && !rest.is_empty()).then(|| rest.join(" "))
    }
}

/// Returns `value` as a JSON number. Returns `None` for an integer parameter if `value` is a
/// fraction or larger than 2^53.
fn to_json_number(value: f64, is_integer: bool) -> Option<Value> {
    // The largest integer, 2^53, up to which a double represents every integer exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
        let integer = value as i64;
        return Some(json!(integer));
    }
    let number = Number::from_f64(value).map(Value::Number);
    number.filter(|_| !is_integer)
}
