//! The laws of the schema compiler and of the validation against schemas.

use std::borrow::Cow;

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value};
use switchboard_domain::json_schema::SchemaValidator;
use switchboard_providers_common::schema::{Compiled, Dialect, compile, measure, restore};

/// What came out of the largest schema of the compiler's own tests is below this, in bytes of JSON;
/// the input of a fuzzer is a thousand times smaller.
const MAX_COMPILED: usize = 8_000_000;

/// What the compiler says of a schema of which no pass makes anything that stays the same.
const LAST_RESORT: &str = "it has no stable form: any object is taken";

/// Keys of which schemas are made; the last ones are names of properties.
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
/// An input that is JSON is the schema (any JSON is); of every other one a schema is made, as its
/// bytes say, of the keywords that there are.
///
/// # Panics
///
/// If a law is broken:
/// - nothing panics, also when an answer is restored or a schema is measured;
/// - what was compiled stays the same when it is compiled again, without the last resort;
/// - the same input gives the same text;
/// - the schema is borrowed where nothing changed, and only there;
/// - the output is bounded;
/// - where answers are not encoded they are restored to themselves.
pub fn check(input: &[u8]) {
    let schema = serde_json::from_slice(input).unwrap_or_else(|_| made_of(input));
    for dialect in Dialect::ALL {
        let name = dialect.name();
        let compiled = compile(&schema, dialect);
        let text = compiled.schema.to_string();
        assert!(text.len() < MAX_COMPILED, "{name}: {} bytes", text.len());
        assert_eq!(
            compiled.changes.is_empty(),
            matches!(compiled.schema, Cow::Borrowed(_)),
            "{name}: {:?}",
            compiled.changes
        );
        stable(&compiled, dialect);
        assert_eq!(text, compile(&schema, dialect).schema.to_string(), "{name}");
        measure(&compiled.schema);
        // As good an answer as any other.
        for answer in [&schema, &*compiled.schema] {
            let restored = restore(&schema, dialect, answer.clone());
            if matches!(dialect, Dialect::OpenAiLoose | Dialect::OllamaTools) {
                assert_eq!(&restored, answer, "{name}");
            }
        }
    }
}

/// Checks a value against a schema, both made of the input's bytes.
///
/// An input of two lines of JSON is the schema and the value. Any other input is split in half, and
/// schema and value are made of the halves.
///
/// # Panics
///
/// If a law is broken:
/// - nothing panics, and the check ends (libFuzzer's `-timeout` finds what does not);
/// - a value fits exactly if it has no errors.
pub fn check_validation(input: &[u8]) {
    let middle = input.iter().position(|&byte| byte == b'\n');
    let (first, second) = input.split_at(middle.unwrap_or(input.len() / 2));
    let json = |bytes| serde_json::from_slice(bytes).unwrap_or_else(|_| made_of(bytes));
    let (schema, value): (Value, Value) = (json(first), json(second));
    let Ok(validator) = SchemaValidator::compile(&schema) else {
        return;
    };
    let fits = validator.is_valid(&value);
    if let (Ok(fits), Ok(errors)) = (fits, validator.errors(&value)) {
        assert_eq!(fits, errors.is_empty(), "{schema} on {value}");
    }
}

fn stable(compiled: &Compiled<'_>, dialect: Dialect) {
    let name = dialect.name();
    let schema = &*compiled.schema;
    let again = compile(schema, dialect);
    assert!(
        again.changes.is_empty() && *again.schema == *schema,
        "{name} is not stable: {schema} then {}, {:?}",
        again.schema,
        again.changes
    );
    // The last resort would hide that a rule is not stable. Messages quote the schema, so only the
    // whole message tells.
    let mut changes = compiled.changes.iter();
    let resorted = changes.find(|it| it.message == LAST_RESORT);
    assert!(resorted.is_none(), "{name}: {resorted:?}");
}

/// A schema of these bytes, which ends when they do.
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
