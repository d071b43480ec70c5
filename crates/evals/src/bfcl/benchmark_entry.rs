//! Converts an entry of the benchmark data to a scenario.

use std::fmt;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{BfclError, schema};
use crate::suite::{
    AnswerCheck, BfclParameter, BfclType, DeclaredTool, EarlierMessage, ExpectedCall, MessageRole,
    Scenario, ScoringRules, Turn,
};

/// An entry of a question file of the Berkeley Function Calling Leaderboard (BFCL). Fields that
/// occur only in unsupported categories are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct BenchmarkQuestion {
    pub(super) id: String,
    /// Messages of the question, as one list for each turn. The last message of a turn must be from
    /// the user.
    #[serde(rename = "question")]
    turns: Vec<Vec<QuestionMessage>>,
    /// Functions that the model may call. `None` if the entry has no functions, as in some
    /// unsupported categories.
    #[serde(rename = "function")]
    functions: Option<Vec<FunctionDefinition>>,
}

#[derive(Debug, Deserialize)]
struct QuestionMessage {
    role: MessageRole,
    content: String,
}

#[derive(Debug, Deserialize)]
struct FunctionDefinition {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Map<String, Value>,
}

/// An entry of an answer file of the benchmark: the right calls for one question, with the accepted
/// values of each argument.
#[derive(Debug, Deserialize)]
pub(super) struct BenchmarkAnswer {
    pub(super) id: String,
    ground_truth: Vec<Map<String, Value>>,
}

/// Category of a benchmark question. It determines how many calls the model must make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BenchmarkCategory {
    /// The question has one function, which the model must call once.
    Simple,
    /// The question has several functions, and the model must call one of them once.
    Multiple,
    /// The model must call functions several times, in any order.
    Parallel,
    /// The model must not call a function, because no function fits the question.
    Irrelevance,
}

const CATEGORIES: [(&str, BenchmarkCategory); 11] = [
    ("simple", BenchmarkCategory::Simple),
    ("simple_python", BenchmarkCategory::Simple),
    ("live_simple", BenchmarkCategory::Simple),
    ("multiple", BenchmarkCategory::Multiple),
    ("live_multiple", BenchmarkCategory::Multiple),
    ("parallel", BenchmarkCategory::Parallel),
    ("live_parallel", BenchmarkCategory::Parallel),
    ("parallel_multiple", BenchmarkCategory::Parallel),
    ("live_parallel_multiple", BenchmarkCategory::Parallel),
    ("irrelevance", BenchmarkCategory::Irrelevance),
    ("live_irrelevance", BenchmarkCategory::Irrelevance),
];

/// List of the supported categories for error messages. Omits `simple`, an older name of
/// `simple_python`.
const SUPPORTED: &str = "simple_python, multiple, parallel, parallel_multiple, irrelevance, \
    live_simple, live_multiple, live_parallel, live_parallel_multiple, live_irrelevance";

/// Parses the entries of a benchmark file, which contains JSON Lines or a JSON array. Returns an
/// error for a file without entries. `file` is the kind of file in error messages, such as
/// `question`.
pub(super) fn parse_benchmark_entries<T: DeserializeOwned>(
    text: &str,
    file: &'static str,
) -> Result<Vec<T>, BfclError> {
    let invalid = |number: usize, error: serde_json::Error| {
        BfclError(format!("entry {number} of the {file} file: {error}"))
    };
    let text = text.trim_start_matches('\u{feff}');
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter() {
        match value.map_err(|error| invalid(values.len() + 1, error))? {
            Value::Array(entries) => values.extend(entries),
            entry => values.push(entry),
        }
    }
    let entries = values.into_iter().zip(1..).map(|(entry, number)| {
        serde_json::from_value(entry).map_err(|error| invalid(number, error))
    });
    let entries = entries.collect::<Result<Vec<T>, _>>()?;
    if entries.is_empty() {
        return Err(BfclError(format!("the {file} file has no entries")));
    }
    Ok(entries)
}

impl BenchmarkQuestion {
    fn question_functions(&self) -> &[FunctionDefinition] {
        self.functions.as_deref().unwrap_or_default()
    }

    pub(super) fn entry_error(&self, reason: impl fmt::Display) -> BfclError {
        BfclError(format!("`{}`: {reason}", self.id))
    }

    pub(super) fn to_scenario(
        &self,
        answer: Option<&BenchmarkAnswer>,
    ) -> Result<Scenario, BfclError> {
        // The id of an entry is its category, `_` and a number, such as `simple_python_0`.
        let kind = self.id.rsplit_once('_').map_or("", |(kind, _)| kind);
        let Some((_, category)) = CATEGORIES.iter().find(|(name, _)| *name == kind) else {
            let id = &self.id;
            return Err(BfclError(format!(
                "`{id}` has the unsupported category `{kind}`; supported: {SUPPORTED}"
            )));
        };
        if self.functions.is_none() {
            return Err(self.entry_error("it has no `function`"));
        }
        let [messages] = self.turns.as_slice() else {
            return Err(self.entry_error("it has several turns, but only one turn is supported"));
        };
        let Some((last, before)) = messages.split_last() else {
            return Err(self.entry_error("it has no message"));
        };
        if last.role != MessageRole::User || last.content.trim().is_empty() {
            return Err(self.entry_error("its last message must be a user message with text"));
        }
        let calls = match (category, answer) {
            (BenchmarkCategory::Irrelevance, _) => Vec::new(),
            (category, Some(answer)) => self.build_expected_calls(*category, answer)?,
            (_, None) => {
                return Err(BfclError(format!(
                    "`{}` has no answer: `{kind}` needs the file of the same name in \
                     `possible_answer`",
                    self.id
                )));
            }
        };
        let before = before.iter().map(|message| EarlierMessage {
            role: message.role,
            text: message.content.clone(),
        });
        let tools = self
            .question_functions()
            .iter()
            .map(|function| DeclaredTool {
                name: function.name.clone(),
                description: function.description.clone() + schema::PYTHON_NOTE,
                input_schema: schema::convert_parameters(&function.parameters),
                result: Value::from("done"),
            });
        let mut parameters = Map::new();
        parameters.insert("max_steps".to_owned(), json!(1));
        Ok(Scenario {
            name: self.id.clone(),
            kind: kind.to_owned(),
            recipe: None,
            servers: None,
            fresh_servers: false,
            tools: tools.collect(),
            parameters,
            before: before.collect(),
            turns: vec![Turn {
                say: last.content.clone(),
                calls: Some(calls),
                any_order: *category == BenchmarkCategory::Parallel,
                forbidden: Vec::new(),
                answer: AnswerCheck::default(),
                scoring: ScoringRules::Bfcl,
            }],
        })
    }

    fn build_expected_calls(
        &self,
        category: BenchmarkCategory,
        answer: &BenchmarkAnswer,
    ) -> Result<Vec<ExpectedCall>, BfclError> {
        if category != BenchmarkCategory::Parallel && answer.ground_truth.len() != 1 {
            return Err(self.entry_error("its answer must have exactly one call"));
        }
        let mut calls = Vec::with_capacity(answer.ground_truth.len());
        for call in &answer.ground_truth {
            let mut named = call.iter();
            let (Some((name, Value::Object(arguments))), None) = (named.next(), named.next())
            else {
                return Err(self.entry_error("a call must have one function with its arguments"));
            };
            let function = match category {
                // The question has only one function, so the function name in the answer is
                // ignored, as in the benchmark.
                BenchmarkCategory::Simple => self.question_functions().first(),
                _ => self.question_functions().iter().find(|it| it.name == *name),
            };
            let function = function.ok_or_else(|| {
                self.entry_error(format!("the answer calls the unknown function `{name}`"))
            })?;
            calls.push(self.build_expected_call(function, arguments)?);
        }
        Ok(calls)
    }

    fn build_expected_call(
        &self,
        function: &FunctionDefinition,
        arguments: &Map<String, Value>,
    ) -> Result<ExpectedCall, BfclError> {
        let declared = function.parameters.get("properties");
        let required = function
            .parameters
            .get("required")
            .and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let required: Vec<&str> = required.collect();
        let mut input = Map::new();
        let mut expect = |name: &str, parameter: &BfclParameter| {
            input.insert(name.to_owned(), json!({ "$bfcl": parameter }));
        };
        for (name, allowed) in arguments {
            let Value::Array(allowed) = allowed else {
                return Err(self.entry_error(format!("the values of `{name}` must be a list")));
            };
            let property = declared.and_then(|it| it.get(name));
            let of = |place: &str| self.parse_type(name, property?.pointer(place)?).transpose();
            let declared = of("/type").transpose()?;
            let items = match declared {
                Some(BfclType::Array | BfclType::Tuple) => {
                    Some(of("/items/type").transpose()?.ok_or_else(|| {
                        self.entry_error(format!("the items of `{name}` have no type"))
                    })?)
                }
                _ => None,
            };
            if property.is_some() && declared.is_none() {
                return Err(self.entry_error(format!("`{name}` has no type")));
            }
            let parameter = BfclParameter {
                declared,
                items,
                allowed: allowed.clone(),
                required: required.contains(&name.as_str()),
            };
            expect(name, &parameter);
        }
        // If the answer lists no values for a required parameter, no call is right. Therefore this
        // parameter gets a matcher that accepts nothing.
        for name in required.iter().filter(|it| !arguments.contains_key(**it)) {
            let parameter = BfclParameter {
                declared: None,
                items: None,
                allowed: Vec::new(),
                required: true,
            };
            expect(name, &parameter);
        }
        Ok(ExpectedCall {
            tool: function.name.clone(),
            server: None,
            input,
            exactly: true,
            optional: false,
            or: Vec::new(),
        })
    }

    fn parse_type(&self, name: &str, value: &Value) -> Result<Option<BfclType>, BfclError> {
        let read = BfclType::deserialize(value).map(Some);
        read.map_err(|_| self.entry_error(format!("`{name}` has the unknown type {value}")))
    }
}
