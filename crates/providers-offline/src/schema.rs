//! The parameters of a tool, read from its input schema.

use serde_json::Value;

use crate::text::{stem, words};

/// One property of an input schema.
#[derive(Debug, Clone)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: String,
    /// The property's schema. The first alternative of `anyOf` that is not `null` replaces it.
    pub(crate) schema: &'a Value,
    pub(crate) is_required: bool,
    /// Word stems of the parameter's name.
    pub(crate) stems: Vec<String>,
}

impl Parameter<'_> {
    /// Returns the JSON type of the parameter, or an empty string.
    pub(crate) fn kind(&self) -> &str {
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

    pub(crate) fn format(&self) -> &str {
        self.schema["format"].as_str().unwrap_or_default()
    }

    pub(crate) fn description(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }

    pub(crate) fn options(&self) -> &[Value] {
        self.schema["enum"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns whether the name contains one of these words.
    pub(crate) fn is_named(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.stems.contains(&stem(name)))
    }
}

/// Returns the parameters in the order of the schema.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter<'_>> {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Parameter {
            name: name.clone(),
            schema: without_null(schema),
            is_required: required.iter().any(|required| required == name),
            stems: words(name).iter().map(|word| stem(word)).collect(),
        })
        .collect()
}

fn without_null(schema: &Value) -> &Value {
    let alternatives = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    alternatives
        .into_iter()
        .flatten()
        .find(|alternative| alternative["type"] != "null")
        .unwrap_or(schema)
}
