//! Fills the arguments of a tool from a question.

use std::ops::RangeInclusive;

use serde_json::{Map, Number, Value, json};
use switchboard_domain::{JsonObject, ToolDefinition, json_schema::SchemaValidator};

use crate::{
    schema::{Parameter, parameters},
    text::{label, words},
    values::{Group, Values},
};

/// Maximum number of calls for one list of values.
const MAX_INPUTS: usize = 20;

/// Words that precede the topic of a request.
const TOPIC_WORDS: &[&str] = &["about", "named", "called", "titled", "saying", "to", "in"];

/// The arguments that a question contains for one tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arguments {
    /// One input for each call. Several ids make several inputs.
    pub(crate) inputs: Vec<JsonObject>,
    /// Names of required parameters without a value.
    pub(crate) missing: Vec<String>,
}

/// Returns the arguments for a tool. `known` values take precedence over the question.
pub(crate) fn fill(
    tool: &ToolDefinition,
    question: &str,
    values: &Values,
    known: &JsonObject,
) -> Arguments {
    let mut filler = Filler {
        tool,
        values,
        used_numbers: Vec::new(),
        used_text: Vec::new(),
    };
    let mut input = json_object_in(question).unwrap_or_default();
    let mut list: Option<(String, Vec<Value>)> = None;
    let mut missing = Vec::new();
    let parameters = parameters(&tool.input_schema);
    // Parameters with a clear match take their values before the others.
    for only_clear in [true, false] {
        for parameter in &parameters {
            if input.contains_key(&parameter.name)
                || list
                    .as_ref()
                    .is_some_and(|(name, _)| *name == parameter.name)
            {
                continue;
            }
            if let Some(value) = known.get(&parameter.name) {
                input.insert(parameter.name.clone(), value.clone());
                continue;
            }
            let mut found = filler.find(parameter, only_clear);
            if found.len() > 1 && list.is_none() {
                list = Some((parameter.name.clone(), found));
            } else if !found.is_empty() {
                input.insert(parameter.name.clone(), found.swap_remove(0));
            }
        }
    }
    for parameter in &parameters {
        let is_listed = list
            .as_ref()
            .is_some_and(|(name, _)| *name == parameter.name);
        if input.contains_key(&parameter.name) || is_listed || !parameter.is_required {
            continue;
        }
        if let Some(default) = parameter.schema.get("default") {
            input.insert(parameter.name.clone(), default.clone());
        } else {
            missing.push(parameter.name.clone());
        }
    }
    let inputs = match list {
        None => vec![input],
        Some((name, values)) => values
            .into_iter()
            .take(MAX_INPUTS)
            .map(|value| {
                let mut input = input.clone();
                input.insert(name.clone(), value);
                input
            })
            .collect(),
    };
    Arguments { inputs, missing }
}

/// Returns why an input does not fit the schema of its tool, or `None` if it fits.
pub(crate) fn fault(tool: &ToolDefinition, input: &JsonObject) -> Option<String> {
    let Ok(validator) = SchemaValidator::compile(&tool.input_schema) else {
        return Some(format!("the input schema of `{}` is not valid", tool.name));
    };
    let value = Value::Object(input.clone());
    match validator.errors(&value) {
        Ok(errors) => errors.first().map(|error| {
            let path = error.instance_path().to_string();
            format!("`{}`: {error}", path.trim_start_matches('/'))
        }),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns the JSON object that a question contains.
fn json_object_in(question: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(question.get(json_range(question)?)?).ok()
}

/// Returns the question without the JSON object in it.
pub(crate) fn without_json(question: &str) -> String {
    let mut words = question.to_owned();
    if json_object_in(question).is_some()
        && let Some(range) = json_range(question)
    {
        words.replace_range(range, " ");
    }
    words
}

/// Returns the range from the first opening to the last closing brace.
fn json_range(question: &str) -> Option<RangeInclusive<usize>> {
    let range = question.find('{')?..=question.rfind('}')?;
    (range.start() < range.end()).then_some(range)
}

struct Filler<'a> {
    tool: &'a ToolDefinition,
    values: &'a Values,
    /// Indices of the number groups that a parameter already uses.
    used_numbers: Vec<usize>,
    used_text: Vec<String>,
}

impl Filler<'_> {
    /// Finds the values for a parameter. A list of ids returns several values. `only_clear` leaves
    /// out values that any parameter of the type could take.
    fn find(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Vec<Value> {
        if !parameter.options().is_empty() {
            return self.option(parameter).into_iter().collect();
        }
        match parameter.kind() {
            "integer" | "number" => self.number(parameter, only_clear),
            "boolean" => self.switch(parameter).into_iter().collect(),
            "array" => self.array(parameter, only_clear).into_iter().collect(),
            "string" => self.text(parameter, only_clear),
            _ => Vec::new(),
        }
    }

    /// Returns the enum value whose words are in the question.
    fn option(&self, parameter: &Parameter<'_>) -> Option<Value> {
        let asked: Vec<String> = self
            .values
            .tokens
            .iter()
            .flat_map(|token| words(&token.text))
            .collect();
        let is_named = |option: &&Value| {
            option.as_str().map(words).is_some_and(|words| {
                !words.is_empty() && asked.windows(words.len()).any(|window| window == words)
            })
        };
        parameter.options().iter().find(is_named).cloned()
    }

    /// Returns `true` if the question contains all words of the parameter's name.
    fn switch(&self, parameter: &Parameter<'_>) -> Option<Value> {
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

    fn number(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Vec<Value> {
        let is_limit = parameter.is_named(&["limit", "count", "max", "number", "top", "size"]);
        let fits = |group: &Group<f64>| {
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
            return self.number_of_list(at, parameter);
        }
        self.used_numbers.push(at);
        let number = |value: &f64| json_number(*value, parameter.kind() == "integer");
        group.values.iter().filter_map(number).collect()
    }

    /// Returns the number for a parameter from a list that several numeric parameters share, as in
    /// "the sum of 19 and 23".
    fn number_of_list(&mut self, at: usize, parameter: &Parameter<'_>) -> Vec<Value> {
        let parameters = parameters(&self.tool.input_schema);
        let numeric = parameters
            .iter()
            .filter(|other| other.is_required && matches!(other.kind(), "integer" | "number"));
        let numeric: Vec<&str> = numeric.map(|other| other.name.as_str()).collect();
        let values = &self.values.numbers[at].values;
        let is_integer = parameter.kind() == "integer";
        if numeric.len() < 2 {
            self.used_numbers.push(at);
            return values
                .iter()
                .filter_map(|value| json_number(*value, is_integer))
                .collect();
        }
        let position = numeric.iter().position(|name| *name == parameter.name);
        let value = position.and_then(|position| values.get(position));
        value
            .and_then(|value| json_number(*value, is_integer))
            .into_iter()
            .collect()
    }

    fn array(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Option<Value> {
        if only_clear || !parameter.is_required {
            return None;
        }
        let items = &parameter.schema["items"];
        let is_integer = items["type"] == "integer";
        let values: Vec<Value> = if is_integer || items["type"] == "number" {
            let all = self.values.numbers.iter().flat_map(|group| &group.values);
            all.filter_map(|value| json_number(*value, is_integer))
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

    fn text(&mut self, parameter: &Parameter<'_>, only_clear: bool) -> Vec<Value> {
        let found = if only_clear {
            self.clear_text(parameter)
        } else if parameter.is_required {
            self.any_text().into_iter().collect()
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

    /// Returns text that matches the format or name of the parameter.
    fn clear_text(&self, parameter: &Parameter<'_>) -> Vec<String> {
        let values = self.values;
        let token = |test: &dyn Fn(&str) -> bool| {
            let mut texts = values.tokens.iter().map(|token| token.text.clone());
            texts.find(|text| test(text)).into_iter().collect()
        };
        let dates = ["date", "day", "since", "until", "due"];
        if matches!(parameter.format(), "date" | "date-time") || parameter.is_named(&dates) {
            let unused = values
                .dates
                .iter()
                .filter(|date| !self.used_text.contains(date));
            return unused.take(1).cloned().collect();
        }
        if parameter.format() == "email" || parameter.is_named(&["email"]) {
            return token(&|text| text.contains('@') && text.contains('.'));
        }
        if parameter.format() == "uri" || parameter.is_named(&["url", "uri", "link"]) {
            return token(&|text| text.contains("://"));
        }
        if parameter.is_named(&["path", "file", "directory", "folder"]) {
            return token(&|text| text.contains('/') || text.contains('.') || text == "~");
        }
        let named_before = |group: &&Group<String>| parameter.stems.contains(&group.before);
        let is_id = parameter.is_named(&["id", "sku", "code", "key", "number"]);
        if let Some(group) = values.ids.iter().find(|group| is_id || named_before(group)) {
            return group.values.clone();
        }
        // "with subject test": the parameter's name is followed by its value.
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
                values.phrase_from(at + 1).into_iter().collect()
            }
            Some(at) if is_topic && !values.quoted.is_empty() && values.tokens.len() == at + 1 => {
                values.quoted.iter().take(1).cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns text for a required parameter without a clear match: a quotation, a name or a topic.
    fn any_text(&self) -> Option<String> {
        let values = self.values;
        let unused = |text: &&String| !self.used_text.contains(text);
        let mut candidates = values.quoted.iter().chain(&values.names).filter(unused);
        if let Some(text) = candidates.next() {
            return Some(text.clone());
        }
        values
            .phrase_after(TOPIC_WORDS)
            .or_else(|| self.after_tool_name())
            .filter(|text| unused(&text))
    }

    /// Returns the text after the tool's name: "echo hello world".
    fn after_tool_name(&self) -> Option<String> {
        let name = label(&self.tool.name);
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

/// Returns a JSON number, or `None` for a fraction where an integer is needed.
fn json_number(value: f64, is_integer: bool) -> Option<Value> {
    // The largest integers that a double represents exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
        let integer = value as i64;
        return Some(json!(integer));
    }
    let number = Number::from_f64(value).map(Value::Number);
    number.filter(|_| !is_integer)
}
