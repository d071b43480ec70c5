//! Reads the parameters of a tool from its input schema.

use serde_json::Value;

use crate::word_stems::{stem_all_words, stem_word};

/// A parameter of a tool: one property of the tool's input schema.
#[derive(Debug, Clone)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: String,
    /// The JSON Schema of the parameter. If the property has `anyOf` or `oneOf`, this is the first
    /// alternative whose type is not `null`.
    pub(crate) schema: &'a Value,
    pub(crate) is_required: bool,
    /// The word stems of the parameter's name, for comparisons with words of a question.
    pub(crate) stems: Vec<String>,
}

impl Parameter<'_> {
    /// Returns the JSON type of the parameter, or an empty string if the schema has no type. For a
    /// list of types, returns the first type that is not `null`.
    pub(crate) fn json_type(&self) -> &str {
        match &self.schema["type"] {
            Value::String(kind) => kind,
            Value::Array(kinds) => kinds
                .iter()
                .filter_map(Value::as_str)
                .find(|kind| *kind != "null")
                .unwrap_or_default(),
            _ => "",
        }
    }

    pub(crate) fn schema_format(&self) -> &str {
        self.schema["format"].as_str().unwrap_or_default()
    }

    pub(crate) fn description(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }

    pub(crate) fn enum_values(&self) -> &[Value] {
        self.schema["enum"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns whether the parameter's name contains at least one of the words in `names`.
    pub(crate) fn name_contains_any(&self, names: &[&str]) -> bool {
        names
            .iter()
            .any(|name| self.stems.contains(&stem_word(name)))
    }
}

/// Returns the parameters in the input schema of a tool, in the order of its properties.
pub(crate) fn read_parameters(schema: &Value) -> Vec<Parameter<'_>> {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Parameter {
            name: name.clone(),
            schema: non_null_alternative(schema),
            is_required: required.iter().any(|required| required == name),
            stems: stem_all_words(name),
        })
        .collect()
}

fn non_null_alternative(schema: &Value) -> &Value {
    let alternatives = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    alternatives
        .into_iter()
        .flatten()
        .find(|alternative| alternative["type"] != "null")
        .unwrap_or(schema)
}
