//! JSON Schemas (2020-12) of what tools take and give, from their Rust types.
//!
//! They are kept as small as models and strict providers like them: no `$ref`, no titles, no
//! `format` that only says how wide a Rust integer is, and no `null` among the types of an argument,
//! which may simply be left out.

use rmcp::model::JsonObject;
use schemars::{
    JsonSchema, Schema,
    generate::{Contract, SchemaSettings},
    transform::{RecursiveTransform, Transform},
};
use serde_json::Value;

/// The schema of a tool's arguments.
pub(crate) fn input<T: JsonSchema>() -> JsonObject {
    generate::<T>(Contract::Deserialize)
}

/// The schema of a tool's structured content.
pub(crate) fn output<T: JsonSchema>() -> JsonObject {
    generate::<T>(Contract::Serialize)
}

fn generate<T: JsonSchema>(contract: Contract) -> JsonObject {
    let takes = contract == Contract::Deserialize;
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(move |schema: &mut Schema| simplify(schema, takes)).transform(&mut schema);
    let mut object = schema.as_object().cloned().unwrap_or_default();
    // What the whole type is for stands in the tool's own description.
    object.retain(|key, _| key != "description");
    object
}

fn simplify(schema: &mut Schema, takes: bool) {
    const WIDTHS: [&str; 12] = [
        "int8", "int16", "int32", "int64", "int", "uint8", "uint16", "uint32", "uint64", "uint",
        "float", "double",
    ];
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    // Comments are broken into lines for the editor, not for the model.
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    // `retain`, because `remove` would change the order of the rest.
    object.retain(|key, value| match key.as_str() {
        "title" => false,
        "format" => !WIDTHS.iter().any(|width| value == width),
        _ => true,
    });
    if takes && let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
}
