//! JSON Schemas (2020-12) of arguments and structured content, from Rust types.
//!
//! The schemas are small, for models and strict providers: no `$ref`, no titles, no `format` for
//! the width of a Rust integer, and no type `null` for optional arguments.

use rmcp::model::JsonObject;
use schemars::{
    JsonSchema, Schema,
    generate::{Contract, SchemaSettings},
    transform::{RecursiveTransform, Transform},
};
use serde_json::Value;

/// Generates the schema of a tool's arguments.
pub(crate) fn input_schema<T: JsonSchema>() -> JsonObject {
    generate_schema::<T>(Contract::Deserialize)
}

/// Generates the schema of a tool's structured content.
pub(crate) fn output_schema<T: JsonSchema>() -> JsonObject {
    generate_schema::<T>(Contract::Serialize)
}

fn generate_schema<T: JsonSchema>(contract: Contract) -> JsonObject {
    let is_input = contract == Contract::Deserialize;
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(move |schema: &mut Schema| simplify_schema(schema, is_input))
        .transform(&mut schema);
    let mut object = schema.as_object().cloned().unwrap_or_default();
    // The description of the root type is removed, because the tool has its own description.
    object.retain(|key, _| key != "description");
    object
}

fn simplify_schema(schema: &mut Schema, is_input: bool) {
    const WIDTHS: [&str; 12] = [
        "int8", "int16", "int32", "int64", "int", "uint8", "uint16", "uint32", "uint64", "uint",
        "float", "double",
    ];
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    // Line breaks of doc comments are removed, because the model does not need them.
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    // Uses `retain`, because `remove` would change the order of the other entries.
    object.retain(|key, value| match key.as_str() {
        "title" => false,
        "format" => !WIDTHS.iter().any(|width| value == width),
        _ => true,
    });
    if is_input && let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
}
