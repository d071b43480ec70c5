//! One entry, and the scenario it is.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{BfclError, Parameter, Type, schema};
use crate::suite::{
    AnswerCheck, DeclaredTool, ExpectedCall, Said, Scenario, Scoring, Speaker, Turn,
};

/// A line of a question file. Its further fields are of other categories.
#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) id: String,
    /// The messages of each turn.
    #[serde(rename = "question")]
    turns: Vec<Vec<Message>>,
    /// Not in entries of some categories, which are told of by their names.
    #[serde(rename = "function")]
    functions: Option<Vec<Function>>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: Speaker,
    content: String,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Map<String, Value>,
}

/// A line of an answer file: by function, what each argument may be.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) id: String,
    ground_truth: Vec<Map<String, Value>>,
}

/// What is judged how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Category {
    /// One call of the first function.
    Simple,
    /// One call of one of the functions.
    Multiple,
    /// Several calls.
    Parallel,
    /// No call.
    Irrelevance,
}

const CATEGORIES: [(&str, Category); 11] = [
    ("simple", Category::Simple),
    ("simple_python", Category::Simple),
    ("live_simple", Category::Simple),
    ("multiple", Category::Multiple),
    ("live_multiple", Category::Multiple),
    ("parallel", Category::Parallel),
    ("live_parallel", Category::Parallel),
    ("parallel_multiple", Category::Parallel),
    ("live_parallel_multiple", Category::Parallel),
    ("irrelevance", Category::Irrelevance),
    ("live_irrelevance", Category::Irrelevance),
];

/// The same for people; `simple` is what older versions call `simple_python`.
pub(super) const KNOWN: &str = "simple_python, multiple, parallel, parallel_multiple, irrelevance, live_simple, \
                                live_multiple, live_parallel, live_parallel_multiple, live_irrelevance";

/// The entries of a file, which is JSON Lines or an array.
pub(super) fn entries<T: DeserializeOwned>(
    text: &str,
    file: &'static str,
) -> Result<Vec<T>, BfclError> {
    let wrong = |number: usize, fault: serde_json::Error| BfclError::Form {
        file,
        number,
        fault: fault.to_string(),
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    let entries: Vec<T> = if text.starts_with('[') {
        let array: Vec<Value> = serde_json::from_str(text).map_err(|fault| wrong(1, fault))?;
        let read = |(at, entry)| serde_json::from_value(entry).map_err(|it| wrong(at + 1, it));
        array
            .into_iter()
            .enumerate()
            .map(read)
            .collect::<Result<_, _>>()?
    } else {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let read = |(at, line)| serde_json::from_str(line).map_err(|fault| wrong(at + 1, fault));
        lines.enumerate().map(read).collect::<Result<_, _>>()?
    };
    if entries.is_empty() {
        return Err(BfclError::Empty { file });
    }
    Ok(entries)
}

impl Question {
    fn functions(&self) -> &[Function] {
        self.functions.as_deref().unwrap_or_default()
    }

    pub(super) fn wrong(&self, reason: impl Into<String>) -> BfclError {
        BfclError::Meaning {
            id: self.id.clone(),
            reason: reason.into(),
        }
    }

    pub(super) fn scenario(&self, answer: Option<&Answer>) -> Result<Scenario, BfclError> {
        // What stands behind the last `_` is the entry's number.
        let kind = self.id.rsplit_once('_').map_or("", |(kind, _)| kind);
        let Some((_, category)) = CATEGORIES.iter().find(|(name, _)| *name == kind) else {
            return Err(BfclError::Category {
                id: self.id.clone(),
                category: kind.to_owned(),
            });
        };
        if self.functions.is_none() {
            return Err(self.wrong("it has no `function`"));
        }
        let [messages] = self.turns.as_slice() else {
            return Err(self.wrong("it has several turns, and one is imported"));
        };
        let Some((last, before)) = messages.split_last() else {
            return Err(self.wrong("nothing is said to the model"));
        };
        if last.role != Speaker::User || last.content.trim().is_empty() {
            return Err(self.wrong("its last message is not what a person says"));
        }
        let calls = match (category, answer) {
            (Category::Irrelevance, _) => Vec::new(),
            (category, Some(answer)) => self.calls(*category, answer)?,
            (_, None) => {
                return Err(BfclError::NoAnswer {
                    id: self.id.clone(),
                    category: kind.to_owned(),
                });
            }
        };
        let before = before.iter().map(|message| Said {
            role: message.role,
            text: message.content.clone(),
        });
        let tools = self.functions().iter().map(|function| DeclaredTool {
            name: function.name.clone(),
            description: schema::description(&function.description),
            input_schema: schema::input(&function.parameters),
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
                any_order: *category == Category::Parallel,
                forbidden: Vec::new(),
                answer: AnswerCheck::default(),
                scoring: Scoring::Bfcl,
            }],
        })
    }

    fn calls(&self, category: Category, answer: &Answer) -> Result<Vec<ExpectedCall>, BfclError> {
        if category != Category::Parallel && answer.ground_truth.len() != 1 {
            return Err(self.wrong("its category has one right call, and its answer has not"));
        }
        let mut calls = Vec::with_capacity(answer.ground_truth.len());
        for call in &answer.ground_truth {
            let mut named = call.iter();
            let (Some((name, Value::Object(arguments))), None) = (named.next(), named.next())
            else {
                return Err(self.wrong("a right call is one function with its arguments"));
            };
            let function = match category {
                // Whatever the answer calls it.
                Category::Simple => self.functions().first(),
                _ => self.functions().iter().find(|it| it.name == *name),
            };
            let function = function.ok_or_else(|| {
                self.wrong(format!(
                    "there is no function `{name}` that is to be called"
                ))
            })?;
            calls.push(self.call(function, arguments)?);
        }
        Ok(calls)
    }

    fn call(
        &self,
        function: &Function,
        arguments: &Map<String, Value>,
    ) -> Result<ExpectedCall, BfclError> {
        let declared = function.parameters.get("properties");
        let required: Vec<&str> = function
            .parameters
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut input = Map::new();
        let mut expect = |name: &str, parameter: &Parameter| {
            input.insert(name.to_owned(), json!({ "$bfcl": parameter }));
        };
        for (name, allowed) in arguments {
            let Value::Array(allowed) = allowed else {
                return Err(self.wrong(format!("the right values of `{name}` are no list")));
            };
            let property = declared.and_then(|it| it.get(name));
            let of = |place: &str| self.type_at(name, property?.pointer(place)?).transpose();
            let declared = of("/type").transpose()?;
            let items = match declared {
                Some(Type::Array | Type::Tuple) => {
                    Some(of("/items/type").transpose()?.ok_or_else(|| {
                        self.wrong(format!("it is not said what the items of `{name}` are"))
                    })?)
                }
                _ => None,
            };
            if property.is_some() && declared.is_none() {
                return Err(self.wrong(format!("`{name}` has no type")));
            }
            let parameter = Parameter {
                declared,
                items,
                allowed: allowed.clone(),
                required: required.contains(&name.as_str()),
            };
            expect(name, &parameter);
        }
        // Required, and the answer does not know it: neither to give it nor to leave it out is right.
        for name in required.iter().filter(|it| !arguments.contains_key(**it)) {
            let parameter = Parameter {
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

    fn type_at(&self, name: &str, value: &Value) -> Result<Option<Type>, BfclError> {
        let read = Type::deserialize(value).map(Some);
        read.map_err(|_| self.wrong(format!("`{name}` is of an unknown type, {value}")))
    }
}
