//! Conversion of listed values (`enum` and `const`) to the values that a dialect accepts.

use serde_json::{Value, json};

use super::{Map, SchemaLowering, SchemaMembers};
use crate::schema::{
    change::ChangeKind,
    dialect_rules::EnumValueRule,
    keywords::{const_or_enum, has_type, implied_types, is_annotation, type_keyword_value},
};

/// Number of strings in one `enum` above which OpenAI limits their total length to
/// `MAX_CHARS_OF_MANY`.
const MANY_STRINGS: usize = 250;
/// Maximum total length, in bytes, of the strings in one `enum` with more than [`MANY_STRINGS`]
/// strings.
const MAX_CHARS_OF_MANY: usize = 15_000;

impl SchemaLowering<'_, '_> {
    /// Converts `enum` and `const` to values that the dialect accepts. Returns `None` if no listed
    /// value is valid.
    pub(super) fn lower_enum_values(&mut self, schema: &mut Map, at: &str) -> Option<()> {
        if let Some(constant) = schema.get("const").cloned() {
            if let Some(Value::Array(values)) = schema.shift_remove("enum")
                && !values.contains(&constant)
            {
                return None;
            }
            if !self.rules.keeps_keyword("const") || constant.is_object() || constant.is_array() {
                schema.shift_remove("const");
                schema.set("enum", json!([constant]));
            }
        }
        self.remove_mistyped_values(schema, at);
        let Some(Value::Array(values)) = schema.get("enum").cloned() else {
            return Some(());
        };
        if values.is_empty() {
            return None;
        }
        if !schema.contains_key("type")
            && let Some(types) = implied_types(schema)
        {
            schema.shift_insert(0, "type".to_owned(), types);
        }
        let mut listed = values.clone();
        if self.rules.openapi {
            listed.retain(|value| *value != "" && !value.is_null());
        }
        if !listed.is_empty() && self.accepts_enum_values(&listed) {
            if self.rules.openapi && values.contains(&json!("")) {
                let message = "the empty string cannot be listed";
                self.report_change(at, ChangeKind::Narrowed, message);
            }
            self.enum_values += listed.len();
            schema.set("enum", listed);
            return Some(());
        }
        schema.shift_remove("enum");
        let is_boolean = values.len() == 2 && values.iter().all(Value::is_boolean);
        // The type alone allows exactly `true` and `false`, or exactly null, so these values need
        // no text.
        if !is_boolean && !values.iter().all(Value::is_null) {
            self.describe_rule(schema, "enum", &Value::Array(values), at);
        }
        Some(())
    }

    fn accepts_enum_values(&self, values: &[Value]) -> bool {
        let is_accepted = |value: &Value| match self.rules.enums {
            EnumValueRule::Any => true,
            EnumValueRule::Scalars => !value.is_object() && !value.is_array(),
            EnumValueRule::StringsAndNumbers => value.is_string() || value.is_number(),
            EnumValueRule::Strings => value.is_string(),
        };
        let chars = || -> usize { values.iter().filter_map(Value::as_str).map(str::len).sum() };
        let is_too_large = self.rules.max_enum_values < usize::MAX
            && (self.enum_values.saturating_add(values.len()) > self.rules.max_enum_values
                || (values.len() > MANY_STRINGS && chars() > MAX_CHARS_OF_MANY));
        !is_too_large && values.iter().all(is_accepted)
    }

    /// Splits an `enum` with null into a union of the other values and the type `null`, for a
    /// dialect that cannot list null. Returns `None` if the dialect does not need the split, or if
    /// the `enum` does not list null together with other values.
    pub(super) fn split_null_from_enum(&self, schema: &Map) -> Option<Map> {
        if self.rules.enums != EnumValueRule::StringsAndNumbers {
            return None;
        }
        let mut values = schema.get("enum")?.as_array()?.clone();
        let count = values.len();
        values.retain(|value| !value.is_null());
        if values.len() == count || values.is_empty() {
            return None;
        }
        let keywords = schema.clone().into_iter();
        let (mut union, mut others): (Map, Map) =
            keywords.partition(|(keyword, _)| is_annotation(keyword));
        others.set("enum", values);
        let mut types = schema.get_types();
        let allows_null = types.is_empty() || types.contains(&"null");
        types.retain(|name| *name != "null");
        if types.is_empty() {
            others.shift_remove("type");
        } else {
            others.set("type", type_keyword_value(&types));
        }
        let mut alternatives = vec![Value::Object(others)];
        if allows_null {
            alternatives.push(json!({"type": "null"}));
        }
        union.set("anyOf", alternatives);
        Some(union)
    }

    /// Removes the values in `enum` or `const` that do not have the schema's type. If no value has
    /// the type, removes the type instead.
    fn remove_mistyped_values(&mut self, schema: &mut Map, at: &str) {
        let types = schema.get_types();
        let Some(values) = const_or_enum(schema).filter(|_| schema.contains_key("type")) else {
            return;
        };
        let matching = values.iter().filter(|value| has_type(value, &types));
        let matching: Vec<Value> = matching.map(|value| (*value).clone()).collect();
        if matching.len() == values.len() {
            return;
        }
        if matching.is_empty() {
            let message = "the type is removed: no listed value has it";
            self.report_change(at, ChangeKind::Invalid, message);
            schema.shift_remove("type");
        } else {
            schema.set("enum", matching);
        }
    }
}
