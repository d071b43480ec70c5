//! Invariants of the schema compiler and of the validation against schemas.

use std::borrow::Cow;

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value};
use switchboard_domain::json_schema::SchemaValidator;
use switchboard_providers_common::schema::{
    CompiledSchema, Dialect, compile, measure_schema, restore_answer,
};

/// Maximum size of a compiled schema in bytes of JSON. The largest schema of the compiler's own
/// tests is below it, and inputs of a fuzzer are a thousand times smaller.
const MAX_COMPILED: usize = 8_000_000;

/// Message of the compiler for a schema without a stable form.
const LAST_RESORT: &str = "it has no stable form: any object is taken";

/// Keys of generated schemas. The last ones are property names.
const KEYS: [&str; 48] = [
    "type",
    "properties",
    "items",
    "required",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "$ref",
    "$defs",
    "definitions",
    "enum",
    "const",
    "default",
    "description",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "prefixItems",
    "contains",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "if",
    "then",
    "else",
    "nullable",
    "$id",
    "$anchor",
    "$dynamicRef",
    "unevaluatedProperties",
    "title",
    "a",
    "b",
    "$c",
    "d[e]",
];

const WORDS: [&str; 26] = [
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "null",
    "OBJECT",
    "",
    "#",
    "#/$defs/a",
    "#/$defs/b",
    "#/properties/a",
    "#/properties/a/items",
    "#/definitions/a",
    "#/nowhere",
    "#anchor",
    "anchor",
    "https://example.org/schema.json",
    "date-time",
    "uuid",
    "^a+$",
    "(?=x)",
    "a",
    "b",
    "#/$defs/a/anyOf/0",
];

/// Compiles the schema of an input for every dialect.
///
/// A JSON input is the schema. For any other input, its bytes select the keywords of a generated
/// schema.
///
/// # Panics
///
/// If an invariant is violated:
/// - nothing panics, also while an answer is restored or a schema is measured;
/// - compiling a compiled schema does not change it or use the last resort;
/// - equal inputs give equal texts;
/// - the schema is borrowed if and only if nothing changed;
/// - the output is bounded;
/// - answers that need no encoding are restored unchanged.
pub fn check(input: &[u8]) {
    let schema = serde_json::from_slice(input).unwrap_or_else(|_| made_of(input));
    for dialect in Dialect::ALL {
        let name = dialect.name();
        let compiled = compile(&schema, dialect);
        let text = compiled.schema.to_string();
        assert!(text.len() < MAX_COMPILED, "{name}: {} bytes", text.len());
        let is_borrowed = matches!(compiled.schema, Cow::Borrowed(_));
        assert_eq!(is_borrowed, *compiled.schema == schema, "{name}");
        assert!(
            !is_borrowed || compiled.changes.is_empty(),
            "{name}: {:?}",
            compiled.changes
        );
        stable(&compiled, dialect);
        assert_eq!(text, compile(&schema, dialect).schema.to_string(), "{name}");
        measure_schema(&compiled.schema);
        // An arbitrary answer.
        for answer in [&schema, &*compiled.schema] {
            let restored = restore_answer(&schema, dialect, answer.clone());
            if matches!(dialect, Dialect::OpenAiLoose | Dialect::OllamaTools) {
                assert_eq!(&restored, answer, "{name}");
            }
        }
    }
}

/// Validates a value against a schema. The input determines both.
///
/// An input of two lines of JSON is the schema and the value. Any other input is split in half, and
/// schema and value are generated from the halves.
///
/// # Panics
///
/// If an invariant is violated:
/// - nothing panics, and the validation ends (libFuzzer's `-timeout` finds endless ones);
/// - a value is valid if and only if it has no errors.
pub fn check_validation(input: &[u8]) {
    let middle = input.iter().position(|&byte| byte == b'\n');
    let (first, second) = input.split_at(middle.unwrap_or(input.len() / 2));
    let json = |bytes| serde_json::from_slice(bytes).unwrap_or_else(|_| made_of(bytes));
    let (schema, value): (Value, Value) = (json(first), json(second));
    let Ok(validator) = SchemaValidator::compile(&schema) else {
        return;
    };
    let fits = validator.is_valid(&value);
    if let (Ok(fits), Ok(errors)) = (fits, validator.list_errors(&value)) {
        assert_eq!(fits, errors.is_empty(), "{schema} on {value}");
    }
}

fn stable(compiled: &CompiledSchema<'_>, dialect: Dialect) {
    let name = dialect.name();
    let schema = &*compiled.schema;
    let again = compile(schema, dialect);
    assert!(
        again.changes.is_empty() && *again.schema == *schema,
        "{name} is not stable: {schema} then {}, {:?}",
        again.schema,
        again.changes
    );
    // The last resort would hide an unstable rule. Messages quote the schema, so the whole message
    // is compared.
    let mut changes = compiled.changes.iter();
    let resorted = changes.find(|it| it.message == LAST_RESORT);
    assert!(resorted.is_none(), "{name}: {resorted:?}");
}

/// Generates a schema until the bytes are used up.
fn made_of(bytes: &[u8]) -> Value {
    let mut source = Unstructured::new(bytes);
    value(&mut source, 0).unwrap_or(Value::Null)
}

fn value(source: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    let kinds = if depth < 12 { 10_u8 } else { 5 };
    Ok(match source.int_in_range(0..=kinds)? {
        0 => Value::Null,
        1 => source.arbitrary::<bool>()?.into(),
        2 => source.arbitrary::<i16>()?.into(),
        3 => source.arbitrary::<f64>()?.into(),
        4 => (*source.choose(&WORDS)?).into(),
        5 => source.arbitrary::<String>()?.into(),
        6 => {
            let length = source.int_in_range(0..=4_u8)?;
            let list = (0..length).map(|_| value(source, depth + 1));
            list.collect::<Result<Vec<_>>>()?.into()
        }
        _ => {
            let length = source.int_in_range(0..=5_u8)?;
            let pairs = (0..length).map(|_| {
                let key = *source.choose(&KEYS)?;
                Ok((key.to_owned(), value(source, depth + 1)?))
            });
            Value::Object(pairs.collect::<Result<Map<_, _>>>()?)
        }
    })
}
