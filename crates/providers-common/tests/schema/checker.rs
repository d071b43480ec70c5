//! The rules of each dialect according to the vendors' documentation. The checker shares no code
//! and no tables with the compiler.

use serde_json::{Map, Value};
use switchboard_providers_common::schema::Dialect;

type Object = Map<String, Value>;

/// Returns a message for each violation of the rules of the dialect.
pub(crate) fn problems(schema: &Value, dialect: Dialect) -> Vec<String> {
    let mut check = Check {
        root: schema,
        dialect,
        found: Vec::new(),
        enum_values: 0,
        properties: 0,
    };
    let Some(root) = schema.as_object() else {
        return vec!["the root is no JSON object".to_owned()];
    };
    check.root(root);
    match dialect {
        Dialect::Anthropic | Dialect::OpenAiLoose => {
            if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
                check.bad("", format!("not of draft 2020-12: {error}"));
            }
            check.loose(root, "");
        }
        _ => check.node(root, "", 0),
    }
    if let Some(defs) = root.get("$defs") {
        match defs.as_object() {
            Some(defs) if !defs.is_empty() => {
                for (name, def) in defs {
                    let at = format!("/$defs/{name}");
                    match def.as_object() {
                        Some(def) => check.definition(def, &at),
                        None => check.bad(&at, "no object"),
                    }
                }
            }
            _ => check.bad("/$defs", "no definitions"),
        }
    }
    if dialect == Dialect::OpenAiStrict {
        if check.enum_values > 1_000 {
            check.bad("", format!("{} enum values", check.enum_values));
        }
        if check.properties > 5_000 {
            check.bad("", format!("{} properties", check.properties));
        }
    }
    check.found
}

struct Check<'s> {
    root: &'s Value,
    dialect: Dialect,
    found: Vec<String>,
    enum_values: usize,
    properties: usize,
}

const TYPES: [&str; 7] = [
    "object", "array", "string", "integer", "number", "boolean", "null",
];

/// Returns the keywords that the dialect accepts, separated by blanks.
fn allowed(dialect: Dialect, is_root: bool) -> &'static str {
    match dialect {
        Dialect::AnthropicStrict => {
            "type enum const anyOf $ref $defs properties required additionalProperties items \
             minItems format title description default"
        }
        Dialect::OpenAiStrict => {
            "type enum const anyOf $ref $defs properties required additionalProperties items \
             minItems maxItems format pattern minimum maximum exclusiveMinimum exclusiveMaximum \
             multipleOf title description"
        }
        Dialect::GeminiJsonSchema => {
            "$id $defs $ref $anchor type format title description enum items \
             prefixItems minItems maxItems minimum maximum anyOf oneOf properties \
             additionalProperties required propertyOrdering"
        }
        Dialect::GeminiOpenApi => {
            "type format title description nullable enum maxItems minItems properties \
             required minProperties maxProperties minLength maxLength pattern example \
             anyOf propertyOrdering default items minimum maximum"
        }
        Dialect::OllamaTools if is_root => "type $defs items required properties",
        Dialect::OllamaTools => "anyOf type items description enum properties required",
        _ => {
            "$ref $defs anyOf type const enum properties required additionalProperties items \
             pattern format minLength maxLength minItems maxItems minimum maximum exclusiveMinimum \
             exclusiveMaximum title description default"
        }
    }
}

impl Check<'_> {
    fn bad(&mut self, at: &str, what: impl AsRef<str>) {
        self.found.push(format!("{at}: {}", what.as_ref()));
    }

    fn root(&mut self, root: &Object) {
        use Dialect as D;
        let is_object = root
            .get("type")
            .is_some_and(|it| it == "object" || it == "OBJECT");
        match self.dialect {
            // These dialects are also used for answers, which need not be objects.
            D::OllamaFormat | D::GeminiJsonSchema | D::GeminiOpenApi => {}
            _ if !is_object => self.bad("", "the root is no object"),
            _ => {}
        }
        if matches!(
            self.dialect,
            D::OpenAiLoose | D::OpenAiStrict | D::AnthropicStrict | D::OllamaTools
        ) && !root.get("properties").is_some_and(Value::is_object)
        {
            self.bad("", "object schema missing properties");
        }
        let refused: &[&str] = match self.dialect {
            D::Anthropic => &["oneOf", "anyOf", "allOf"],
            D::OpenAiLoose | D::OpenAiStrict => &["oneOf", "anyOf", "allOf", "enum", "not"],
            D::AnthropicStrict => &["oneOf", "anyOf", "allOf", "$ref"],
            _ => &[],
        };
        for keyword in refused {
            if root.contains_key(*keyword) {
                self.bad("", format!("`{keyword}` at the root"));
            }
        }
        if matches!(self.dialect, D::Anthropic | D::AnthropicStrict)
            && let Some(Value::Object(properties)) = root.get("properties")
        {
            for key in properties.keys() {
                let legal = (1..=64).contains(&key.len())
                    && key
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || b"_.-".contains(&it));
                if !legal {
                    self.bad("", format!("property key {key:?}"));
                }
            }
        }
    }

    fn definition(&mut self, def: &Object, at: &str) {
        match self.dialect {
            Dialect::Anthropic | Dialect::OpenAiLoose => self.loose(def, at),
            Dialect::GeminiOpenApi | Dialect::OllamaTools => self.bad(at, "a definition"),
            Dialect::AnthropicStrict | Dialect::GeminiJsonSchema => {
                if self.leads_to_itself(at) {
                    self.bad(at, "recursive");
                }
                self.node(def, at, 0);
            }
            _ => self.node(def, at, 0),
        }
    }

    fn leads_to_itself(&self, at: &str) -> bool {
        let own = format!("#{at}");
        let mut seen = Vec::new();
        let mut left = vec![own.clone()];
        while let Some(reference) = left.pop() {
            let Some(schema) = self.root.pointer(reference.trim_start_matches('#')) else {
                continue;
            };
            for next in references(schema) {
                if next == own {
                    return true;
                }
                if !seen.contains(&next) {
                    seen.push(next.clone());
                    left.push(next);
                }
            }
        }
        false
    }

    fn reference(&mut self, schema: &Object, at: &str) {
        let Some(reference) = schema.get("$ref") else {
            return;
        };
        let reference = reference.as_str().unwrap_or("no string");
        let takes_root = matches!(
            self.dialect,
            Dialect::Anthropic | Dialect::OpenAiLoose | Dialect::OpenAiStrict
        );
        let found = match reference.strip_prefix('#') {
            Some("") => takes_root,
            Some(pointer) => {
                pointer.starts_with("/$defs/")
                    && self.root.pointer(pointer).is_some_and(Value::is_object)
            }
            None => false,
        };
        if !found {
            self.bad(at, format!("the reference {reference} leads nowhere"));
        }
    }

    /// Checks a schema for a dialect that accepts all keywords of draft 2020-12.
    fn loose(&mut self, schema: &Object, at: &str) {
        self.reference(schema, at);
        let types = schema.get("type");
        let is_array = types.is_some_and(|it| names(it).contains(&"array"));
        if self.dialect == Dialect::OpenAiLoose && is_array && !is_object(schema.get("items")) {
            self.bad(at, "array schema missing items");
        }
        for (keyword, value) in schema {
            let at = format!("{at}/{keyword}");
            match (keyword.as_str(), value) {
                (
                    "items"
                    | "additionalProperties"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "propertyNames"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    Value::Object(one),
                ) => self.loose(one, &at),
                ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                    for (name, one) in named {
                        if let Value::Object(one) = one {
                            self.loose(one, &format!("{at}/{name}"));
                        }
                    }
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                    for one in list.iter().filter_map(Value::as_object) {
                        self.loose(one, &at);
                    }
                }
                _ => {}
            }
        }
    }

    /// Checks a schema for a dialect that accepts only some keywords.
    fn node(&mut self, schema: &Object, at: &str, objects: usize) {
        use Dialect as D;
        let dialect = self.dialect;
        let allowed = allowed(dialect, at.is_empty());
        for keyword in schema.keys() {
            if !allowed.split_whitespace().any(|it| it == keyword) {
                self.bad(at, format!("`{keyword}`"));
            }
        }
        for text in ["description", "title", "format", "pattern"] {
            if schema.get(text).is_some_and(|it| !it.is_string()) {
                self.bad(at, format!("`{text}` is no string"));
            }
        }
        if schema.contains_key("$ref") {
            self.reference(schema, at);
            if schema.len() > 1 {
                self.bad(at, "something beside `$ref`");
            }
            return;
        }
        if let Some(arms) = schema.get("anyOf") {
            self.alternatives(schema, arms, at, objects);
            return;
        }
        let types = schema.get("type").map(names).unwrap_or_default();
        self.types(schema, &types, at);
        self.values(schema, &types, at);
        if types.contains(&"object") {
            self.object(schema, at, objects);
        } else {
            for keyword in ["properties", "required", "additionalProperties"] {
                if schema.contains_key(keyword) {
                    self.bad(at, format!("`{keyword}` of what is no object"));
                }
            }
        }
        if types.contains(&"array") {
            let needs = matches!(
                dialect,
                D::AnthropicStrict | D::OpenAiStrict | D::GeminiOpenApi
            );
            if needs && !is_object(schema.get("items")) {
                self.bad(at, "an array without items");
            }
            if dialect == D::AnthropicStrict
                && schema
                    .get("minItems")
                    .is_some_and(|it| !matches!(it.as_u64(), Some(0 | 1)))
            {
                self.bad(at, "`minItems` above 1");
            }
        } else if schema.contains_key("items") {
            self.bad(at, "`items` of what is no array");
        }
        if let Some(items) = schema.get("items") {
            self.child(items, &format!("{at}/items"), objects);
        }
        for (index, item) in list(schema.get("prefixItems")).iter().enumerate() {
            self.child(item, &format!("{at}/prefixItems/{index}"), objects);
        }
        self.strings(schema, &types, at);
    }

    fn child(&mut self, schema: &Value, at: &str, objects: usize) {
        match schema.as_object() {
            Some(schema) => self.node(schema, at, objects),
            None => self.bad(at, "no schema"),
        }
    }

    fn alternatives(&mut self, schema: &Object, arms: &Value, at: &str, objects: usize) {
        let beside: &[&str] = match self.dialect {
            Dialect::GeminiOpenApi => &[],
            _ => &["description", "title", "default", "$defs"],
        };
        for keyword in schema.keys() {
            if keyword != "anyOf" && !beside.contains(&keyword.as_str()) {
                self.bad(at, format!("`{keyword}` beside `anyOf`"));
            }
        }
        let arms = list(Some(arms));
        if arms.is_empty() {
            self.bad(at, "no alternative");
        }
        for (index, arm) in arms.iter().enumerate() {
            self.child(arm, &format!("{at}/anyOf/{index}"), objects);
        }
    }

    fn types(&mut self, schema: &Object, types: &[&str], at: &str) {
        let known = |name: &&str| TYPES.contains(&name.to_ascii_lowercase().as_str());
        if !types.iter().all(known) {
            self.bad(at, format!("types {types:?}"));
        }
        let (needed, one, upper) = match self.dialect {
            Dialect::GeminiOpenApi => (true, true, true),
            Dialect::OpenAiStrict | Dialect::AnthropicStrict => (true, false, false),
            Dialect::OllamaFormat => (
                !schema.contains_key("const") && !schema.contains_key("enum"),
                false,
                false,
            ),
            _ => (false, false, false),
        };
        if needed && types.is_empty() {
            self.bad(at, "type must be specified");
        }
        if one && types.len() > 1 {
            self.bad(at, "several types");
        }
        if schema.contains_key("type") && types.is_empty() {
            self.bad(at, "no type in `type`");
        }
        let raw = schema.get("type").and_then(Value::as_str);
        if upper && raw.is_some_and(|it| it != it.to_ascii_uppercase() || it == "NULL") {
            self.bad(at, "a type in lower case, or null");
        }
        if !upper && raw.is_some_and(|it| it != it.to_ascii_lowercase()) {
            self.bad(at, "a type in upper case");
        }
    }

    fn values(&mut self, schema: &Object, types: &[&str], at: &str) {
        let Some(values) = schema.get("enum") else {
            return;
        };
        let values = list(Some(values));
        self.enum_values += values.len();
        if values.is_empty() {
            self.bad(at, "an empty enum");
        }
        let fits = |value: &Value| match self.dialect {
            Dialect::GeminiOpenApi => value.as_str().is_some_and(|it| !it.is_empty()),
            Dialect::GeminiJsonSchema => value.is_string() || value.is_number(),
            Dialect::OpenAiStrict | Dialect::AnthropicStrict => {
                !value.is_object() && !value.is_array()
            }
            _ => true,
        };
        if !values.iter().all(fits) {
            self.bad(at, "values that cannot be listed");
        }
        if self.dialect == Dialect::GeminiOpenApi && types != ["string"] {
            self.bad(at, "enum: only allowed for STRING type");
        }
    }

    fn object(&mut self, schema: &Object, at: &str, objects: usize) {
        let empty = Object::new();
        let properties = match schema.get("properties") {
            Some(Value::Object(properties)) => properties,
            Some(_) => return self.bad(at, "`properties` is no object"),
            None => &empty,
        };
        self.properties += properties.len();
        let objects = objects + 1;
        if self.dialect == Dialect::OpenAiStrict && objects > 10 {
            self.bad(at, "more than 10 objects within each other");
        }
        let required = list(schema.get("required"));
        let known = |name: &Value| name.as_str().is_some_and(|it| properties.contains_key(it));
        if !required.iter().all(known) {
            self.bad(at, "required[…]: property is not defined");
        }
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        match self.dialect {
            Dialect::OpenAiStrict => {
                if !closed || !schema.contains_key("properties") {
                    self.bad(at, "'additionalProperties' is required to be false");
                }
                let mut wanted: Vec<&str> = properties.keys().map(String::as_str).collect();
                let mut given: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
                wanted.sort_unstable();
                given.sort_unstable();
                if wanted != given || !schema.contains_key("required") {
                    self.bad(at, "'required' must include every key");
                }
            }
            Dialect::AnthropicStrict if !closed => self.bad(at, "an open object"),
            Dialect::GeminiOpenApi if properties.is_empty() && !at.is_empty() => {
                self.bad(at, "properties: should be non-empty for OBJECT type");
            }
            Dialect::GeminiJsonSchema | Dialect::OllamaFormat => {
                if let Some(further @ Value::Object(_)) = schema.get("additionalProperties") {
                    self.child(further, &format!("{at}/additionalProperties"), objects);
                }
            }
            _ => {}
        }
        for (name, property) in properties {
            self.child(property, &format!("{at}/properties/{name}"), objects);
        }
    }

    fn strings(&mut self, schema: &Object, types: &[&str], at: &str) {
        let format = schema.get("format").and_then(Value::as_str);
        let is_string = types.contains(&"string");
        let formats = match self.dialect {
            Dialect::AnthropicStrict => {
                "date-time time date duration email hostname uri ipv4 ipv6 uuid"
            }
            Dialect::OpenAiStrict => "date-time time date duration email hostname ipv4 ipv6 uuid",
            Dialect::GeminiOpenApi if is_string => "enum date-time",
            Dialect::GeminiOpenApi => "float double int32 int64",
            _ => format.unwrap_or_default(),
        };
        if let Some(format) = format
            && !formats.split_whitespace().any(|it| it == format)
        {
            self.bad(at, format!("format {format}"));
        }
        if self.dialect == Dialect::OllamaFormat
            && let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && !(pattern.starts_with('^') && pattern.ends_with('$'))
        {
            self.bad(at, "Pattern must start with '^' and end with '$'");
        }
        if self.dialect == Dialect::OpenAiStrict
            && let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && (pattern.contains("(?!") || pattern.contains("(?="))
        {
            self.bad(at, "a pattern that looks around");
        }
    }
}

fn names(types: &Value) -> Vec<&str> {
    // The type names of OpenAPI are in upper case.
    let lower = |name: &str| {
        let lower = name.to_ascii_lowercase();
        TYPES.into_iter().find(|it| *it == lower).unwrap_or("?")
    };
    match types {
        Value::String(name) => vec![lower(name)],
        Value::Array(names) => names
            .iter()
            .map(|it| it.as_str().map_or("?", lower))
            .collect(),
        _ => vec!["?"],
    }
}

fn is_object(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_object)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns all `$ref` targets in a schema and its subschemas.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value {
                Value::String(text) if key == "$ref" => vec![text.clone()],
                _ if matches!(key.as_str(), "enum" | "const" | "default") => Vec::new(),
                value => references(value),
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
