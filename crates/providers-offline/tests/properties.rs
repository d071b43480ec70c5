//! What holds for any text and any tools.

mod support;

use std::{collections::BTreeSet, sync::Arc};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Map, Value, json};
use support::{answer, calls, planner, request, tools};
use switchboard_domain::{Message, ToolChoice, ToolDefinition, ToolResult};

const ALL: &str = "customer_service everything filesystem git memory time";

/// A schema of one value, of the kinds that tools have, with bounds, lists and defaults.
fn value_schema() -> impl Strategy<Value = Value> {
    let number = (
        any::<bool>(),
        prop::option::of(-5..20i64),
        prop::option::of(20..200i64),
    )
        .prop_map(|(whole, low, high)| {
            let mut schema = json!({"type": if whole { "integer" } else { "number" }});
            if let Some(low) = low {
                schema["minimum"] = json!(low);
            }
            if let Some(high) = high {
                schema["maximum"] = json!(high);
            }
            schema
        });
    let text = (
        prop::option::of(prop::sample::select(vec![
            "date",
            "date-time",
            "email",
            "uri",
            "uuid",
            "time",
        ])),
        prop::option::of(1..40u64),
    )
        .prop_map(|(format, longest)| {
            let mut schema = json!({"type": "string"});
            if let Some(format) = format {
                schema["format"] = json!(format);
            }
            if let Some(longest) = longest {
                schema["maxLength"] = json!(longest);
            }
            schema
        });
    let listed = prop::sample::subsequence(vec!["low", "normal", "high", "New York", "asc"], 1..4)
        .prop_map(|values| json!({"type": "string", "enum": values}));
    let defaulted = prop::sample::subsequence(vec!["low", "normal", "high"], 2..=3)
        .prop_map(|values| json!({"enum": values, "default": values[0]}));
    let single = prop_oneof![
        number,
        text,
        listed,
        defaulted,
        Just(json!({"type": "boolean"}))
    ]
    .boxed();
    let list = single
        .clone()
        .prop_map(|items| json!({"type": "array", "items": items, "maxItems": 3}));
    let nullable = single
        .clone()
        .prop_map(|schema| json!({"anyOf": [schema, {"type": "null"}]}));
    prop_oneof![6 => single, 1 => list, 1 => nullable]
}

const NAMES: &[&str] = &[
    "customer_id",
    "limit",
    "subject",
    "message",
    "query",
    "path",
    "city",
    "since",
    "priority",
    "a",
    "b",
    "includeImage",
    "email",
    "url",
    "timezone",
    "name",
    "id",
    "count",
    "paths",
    "tags",
    "branch",
    "due",
];

fn tool() -> impl Strategy<Value = ToolDefinition> {
    let properties = prop::collection::btree_map(
        prop::sample::select(NAMES),
        (value_schema(), any::<bool>()),
        0..5,
    );
    let name = prop::sample::select(vec![
        "list_customers",
        "echo",
        "createOrder",
        "get-sum",
        "delete_file",
        "searchDocs",
        "weather",
        "set_name",
    ]);
    let about = prop::sample::select(vec![
        "",
        "Lists the newest customers.",
        "Returns a sum. DEPRECATED",
        "Opens a file",
    ]);
    (name, about, properties, any::<bool>()).prop_map(|(name, about, properties, strict)| {
        let required: Vec<&str> = properties
            .iter()
            .filter(|(_, (_, required))| *required)
            .map(|(name, _)| *name)
            .collect();
        let schemas: Map<String, Value> = properties
            .iter()
            .map(|(name, (schema, _))| ((*name).to_owned(), schema.clone()))
            .collect();
        let mut schema = json!({"type": "object", "properties": schemas, "required": required});
        if strict {
            schema["additionalProperties"] = json!(false);
        }
        ToolDefinition::new(name, about, schema)
    })
}

/// Different tools of any kind.
fn toolset() -> impl Strategy<Value = Vec<Arc<ToolDefinition>>> {
    prop::collection::vec(tool(), 0..5).prop_map(|tools| {
        let mut names = BTreeSet::new();
        tools
            .into_iter()
            .filter(|tool| names.insert(tool.name.clone()))
            .map(Arc::new)
            .collect()
    })
}

/// Texts that look like requests.
fn sentence() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "list",
        "the",
        "5",
        "most",
        "recent",
        "customers",
        "customer",
        "42",
        "#7",
        "and",
        "create",
        "an",
        "order",
        "echo",
        "hello",
        "\"late delivery\"",
        "about",
        "a",
        "sum",
        "of",
        "19",
        "2.5",
        "-3",
        "for",
        "in",
        "New York",
        "since",
        "2026-10-01",
        "yesterday",
        "high",
        "priority",
        "urgent",
        "to",
        "ada@example.org",
        "with",
        "named",
        "Ada Lovelace",
        "/etc/hosts",
        "https://example.org/x",
        "subject:",
        "message",
        "=",
        "yes",
        "without",
        "image",
        "Europe/Paris",
        "14:30",
        "search",
        "delete",
        "file",
        "weather",
        "set",
        "name",
        "limit",
        "{\"limit\": 3}",
        ",",
        "?",
        "each",
        "first",
        "one",
        "it",
        "seven",
        "twenty-five",
        "last",
        "week",
        "’",
        "日本",
        "then",
    ]);
    prop::collection::vec(piece, 1..14).prop_map(|words| words.join(" "))
}

/// Tools, and a text that speaks of one of them and of its parameters.
fn meant() -> impl Strategy<Value = (String, Vec<Arc<ToolDefinition>>)> {
    let value = prop::sample::select(vec![
        "5",
        "42",
        "seven",
        "\"late delivery\"",
        "New York",
        "high",
        "urgent",
        "2026-10-01",
        "yesterday",
        "14:30",
        "ada@example.org",
        "Ada Lovelace",
        "/etc/hosts",
        "https://example.org/x",
        "is 7",
        "= 19",
        ": hello world",
        "7 and 9",
        "low, high and normal",
        "true",
        "about a broken screen",
    ]);
    let values = prop::collection::vec((value, any::<bool>()), 5);
    let tools = toolset().prop_filter("at least one tool", |tools| !tools.is_empty());
    (
        tools,
        any::<prop::sample::Index>(),
        values,
        sentence(),
        any::<bool>(),
    )
        .prop_map(|(tools, index, values, rest, asks)| {
            let tool = index.get(&tools);
            let mut text = if asks {
                format!("Please {} ", tool.name)
            } else {
                said(&tool.name)
            };
            let properties = tool.input_schema["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            for (name, (value, named)) in properties.keys().zip(values) {
                text.push_str(if named { name } else { "with" });
                text.extend([" ", value, " "]);
            }
            text.push_str(&rest);
            (text, tools)
        })
}

/// A tool's name in words: `createOrder` is "create order ".
fn said(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            words.push(' ');
        }
        words.extend(
            c.to_lowercase()
                .map(|c| if c.is_alphanumeric() { c } else { ' ' }),
        );
    }
    words + " "
}

/// Texts with tools that they mean, and with any others.
fn asked() -> impl Strategy<Value = (String, Vec<Arc<ToolDefinition>>)> {
    prop_oneof![2 => meant(), 1 => (any_text(), toolset())]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![4 => sentence(), 1 => "\\PC{0,80}", 1 => "[ -~\\n“”„«»’`'\"{}:=#]{0,60}"]
}

/// A schema that nobody would write.
fn wild_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![
            "#",
            "#/properties/a",
            "object",
            "string",
            "array",
            "integer",
            "[",
            "date"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "const",
            "$ref",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "minimum",
            "maxLength",
            "pattern",
            "format",
            "default",
            "a",
            "path",
            "customer_id",
            "description",
            "additionalProperties",
            "title",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|pairs| {
                pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()
            }),
        ]
    })
}

fn wild_tool() -> impl Strategy<Value = Arc<ToolDefinition>> {
    (
        "[A-Za-z_-]{1,20}",
        "\\PC{0,30}",
        wild_schema(),
        prop::option::of(wild_schema()),
    )
        .prop_map(|(name, about, schema, output)| {
            let mut tool = ToolDefinition::new(name, about, schema);
            tool.output_schema = output;
            Arc::new(tool)
        })
}

fn wild_result() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(
                "customer_id|id|name|currency|value|\\PC{0,8}",
                inner,
                0..4
            )
            .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn scalars<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::Object(map) => map.values().for_each(|item| scalars(item, found)),
        scalar => found.push(scalar),
    }
}

/// Whether a value stands in a schema as a choice or a default.
fn in_schema(value: &Value, schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, inner)| match key.as_str() {
            "enum" => inner
                .as_array()
                .is_some_and(|values| values.contains(value)),
            "default" | "const" => inner == value,
            _ => in_schema(value, inner),
        }),
        Value::Array(items) => items.iter().any(|item| in_schema(value, item)),
        _ => false,
    }
}

/// Whether a value can be read off a text: as it is written, as a number word, as a date that the
/// text tells relative to today, as the one that a singular means, as a switch.
fn derivable(value: &Value, text: &str) -> bool {
    let lower = text.to_lowercase();
    match value {
        // Which switch is meant is no value of its own.
        Value::Bool(_) => true,
        Value::Null => lower.contains("null"),
        Value::Number(number) => {
            let words = [
                ("seven", 7.0),
                ("twenty-five", 25.0),
                ("first", 1.0),
                ("one", 1.0),
                ("an", 1.0),
            ];
            let wanted = number.as_f64().unwrap_or(f64::NAN);
            // "the most recent customer" asks for one.
            let singular = (wanted - 1.0).abs() < f64::EPSILON
                && ["recent", "last", "first"]
                    .iter()
                    .any(|word| lower.contains(word));
            let digits: String = lower
                .chars()
                .map(|c| {
                    if c.is_ascii_digit() || ".-".contains(c) {
                        c
                    } else {
                        ' '
                    }
                })
                .collect();
            singular
                || digits
                    .split(' ')
                    .any(|run| run.trim_matches('.').parse() == Ok(wanted))
                || words.iter().any(|(word, number)| {
                    lower.contains(word) && (number - wanted).abs() < f64::EPSILON
                })
                || lower.contains(&number.to_string())
        }
        Value::String(said) => {
            let said_lower = said.to_lowercase();
            let day = said.get(..10).unwrap_or_default();
            let number = said.parse::<i64>().map(Value::from);
            lower.contains(&said_lower)
                || said_lower.strip_suffix(":00z").is_some_and(|time| lower.contains(time))
                // "seven" as the text of an id.
                || number.is_ok_and(|number| derivable(&number, text))
                || (day == "2026-10-20" && lower.contains("yesterday"))
                || (day.len() == 10 && lower.contains("last ") && lower.contains(" week"))
                || (said == &format!("{day}T00:00:00Z") && lower.contains(day))
                || (said == "America/New_York" && lower.contains("new york"))
        }
        _ => false,
    }
}

fn valid(tool: &ToolDefinition, input: &Value) -> Result<(), TestCaseError> {
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&tool.input_schema);
    let validator = validator.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(
        validator.is_valid(input),
        "{} {input} against {}",
        tool.name,
        tool.input_schema
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_are_valid_and_nothing_is_invented((text, tools) in asked(), forced in any::<bool>()) {
        let choice = if forced { ToolChoice::Required } else { ToolChoice::Auto };
        let request = request(vec![Message::user(&*text)], &tools).with_tool_choice(choice);
        let response = answer(&request);
        prop_assert_eq!(&response, &answer(&request), "equal requests, equal answers");
        let calls = calls(&response);
        prop_assert!(!calls.is_empty() || !response.message.text().is_empty());
        for (name, input) in &calls {
            let tool = tools.iter().find(|tool| tool.name == *name).expect("a declared tool");
            valid(tool, input)?;
            let mut values = Vec::new();
            scalars(input, &mut values);
            for value in values {
                prop_assert!(
                    in_schema(value, &tool.input_schema) || derivable(value, &text),
                    "{} came from nowhere: {} {} for {:?}", value, name, input, text
                );
            }
        }
    }

    #[test]
    fn calls_of_real_tools_are_valid(text in sentence()) {
        let tools = tools(ALL);
        for (name, input) in calls(&answer(&request(vec![Message::user(text)], &tools))) {
            let tool = tools.iter().find(|tool| tool.name == name).expect("a declared tool");
            valid(tool, &input)?;
        }
    }

    #[test]
    fn no_schema_and_no_text_makes_it_panic(
        texts in prop::collection::vec(any_text(), 1..3),
        tools in prop::collection::vec(wild_tool(), 0..4),
        forced in any::<bool>(),
    ) {
        let mut messages = Vec::new();
        for text in texts {
            messages.push(Message::user(text));
            let choice = if forced { ToolChoice::Required } else { ToolChoice::Auto };
            let response = answer(&request(messages.clone(), &tools).with_tool_choice(choice));
            messages.push(response.message);
        }
    }

    /// Whatever comes back, a turn ends, no call is made twice in it, and what a call takes was said,
    /// is the schema's own, or came back before.
    #[test]
    fn every_turn_ends(
        (text, tools) in asked(),
        results in prop::collection::vec((wild_result(), any::<bool>()), 1..4),
    ) {
        let mut messages = vec![Message::user(&*text)];
        let mut made = Vec::new();
        let mut came_back: Vec<Value> = Vec::new();
        let mut results = results.iter().cycle();
        for step in 0.. {
            prop_assert!(step < 12, "the turn does not end: {:?}", made);
            let response = answer(&request(messages.clone(), &tools));
            for call in calls(&response) {
                prop_assert!(!made.contains(&call), "twice: {:?}", call);
                let tool = tools.iter().find(|tool| tool.name == call.0).expect("a declared tool");
                valid(tool, &call.1)?;
                let (mut taken, mut known) = (Vec::new(), Vec::new());
                scalars(&call.1, &mut taken);
                for data in &came_back {
                    scalars(data, &mut known);
                }
                for value in taken {
                    prop_assert!(
                        in_schema(value, &tool.input_schema) || derivable(value, &text) || known.contains(&value),
                        "{} came from nowhere: {:?} for {:?}", value, call, text
                    );
                }
                made.push(call);
            }
            let mut given = Vec::new();
            for tool_use in response.message.tool_uses() {
                let Some((data, failed)) = results.next() else { break };
                let mut result = ToolResult::text(&tool_use.id, &tool_use.name, data.to_string());
                result.structured = Some(data.clone().into());
                result.is_error = *failed;
                came_back.push(data.clone());
                given.push(result);
            }
            if given.is_empty() {
                prop_assert!(!response.message.text().is_empty());
                break;
            }
            messages.push(response.message);
            messages.push(Message::tool_results(given));
        }
    }
}

/// The properties above would hold of a planner that does nothing.
#[test]
fn the_properties_are_about_many_calls() {
    let mut runner = TestRunner::deterministic();
    let (mut called, mut with_arguments) = (0, 0);
    for _ in 0..300 {
        let (text, tools) = asked().new_tree(&mut runner).expect("a value").current();
        let calls = calls(&answer(&request(vec![Message::user(text)], &tools)));
        called += usize::from(!calls.is_empty());
        with_arguments += usize::from(calls.iter().any(|(_, input)| *input != json!({})));
    }
    assert!(
        called > 50 && with_arguments > 30,
        "{called} with calls, {with_arguments} with arguments"
    );
}

#[test]
fn a_long_conversation_of_questions_and_replies_is_understood_at_once() {
    let tools = tools(ALL);
    let mut messages = Vec::new();
    for _ in 0..60 {
        messages.push(Message::user("Create a support ticket"));
        let response = answer(&request(messages.clone(), &tools));
        assert!(
            response.message.text().contains("subject"),
            "{}",
            response.message.text()
        );
        messages.push(response.message);
    }
    messages.push(Message::user("customer 7, about a late delivery"));
    let plan = planner().plan(&request(messages, &tools));
    assert_eq!(plan.calls().len(), 1, "{plan:?}");
}
