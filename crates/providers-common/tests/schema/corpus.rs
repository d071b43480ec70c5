//! Schemas of real tools; see `tests/schemas/README.md`.

use std::{borrow::Cow, collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use switchboard_providers_common::schema::{ChangeKind, Dialect, compile};

use crate::checker::problems;

pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Value,
}

/// Returns all tools. A name consists of the file name and the name of the tool.
pub(crate) fn tools() -> Vec<Tool> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas");
    let files = fs::read_dir(folder).expect("the corpus is there");
    let mut files: Vec<_> = files
        .map(|file| file.expect("the corpus is readable").path())
        .filter(|file| file.extension().is_some_and(|it| it == "json"))
        .collect();
    files.sort();
    let mut tools = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("the corpus is readable");
        let list: Vec<Value> = serde_json::from_str(&text).expect("the corpus is JSON");
        let stem = file.file_stem().expect("a file has a name");
        for mut tool in list {
            let name = tool["name"].as_str().expect("a tool has a name");
            let name = format!("{}/{name}", stem.display());
            let schema = tool["schema"].take();
            tools.push(Tool { name, schema });
        }
    }
    tools
}

#[test]
fn every_tool_compiles_to_a_valid_and_stable_schema() {
    let mut wrong = Vec::new();
    for tool in tools() {
        for dialect in Dialect::ALL {
            let compiled = compile(&tool.schema, dialect);
            let problems = problems(&compiled.schema, dialect);
            if !problems.is_empty() {
                wrong.push(format!("{} {}: {problems:?}", tool.name, dialect.name()));
            }
            let again = compile(&compiled.schema, dialect);
            if !again.changes.is_empty() || *again.schema != *compiled.schema {
                wrong.push(format!(
                    "{} {} is not stable: {:?}",
                    tool.name,
                    dialect.name(),
                    again.changes
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
}

#[test]
fn no_tool_loses_a_property_of_its_root() {
    for tool in tools() {
        let Some(properties) = tool.schema.get("properties").and_then(Value::as_object) else {
            continue;
        };
        for dialect in Dialect::ALL {
            let compiled = compile(&tool.schema, dialect);
            if compiled.schema.get("anyOf").is_some() {
                // The alternatives contain the properties.
                assert_eq!(dialect, Dialect::OllamaFormat, "{}", tool.name);
                continue;
            }
            let is_removed = |name: &String| {
                let pointer = format!("/properties/{name}");
                let mut changes = compiled.changes.iter();
                properties[name] == false
                    || changes.any(|change| {
                        change.pointer == pointer && change.kind == ChangeKind::Renamed
                    })
            };
            let names: Vec<&String> = properties.keys().collect();
            let present = compiled.schema["properties"].as_object();
            let present: Vec<&String> = present.into_iter().flat_map(|it| it.keys()).collect();
            let missing: Vec<_> = names
                .iter()
                .filter(|name| !present.contains(name) && !is_removed(name))
                .collect();
            assert!(
                missing.is_empty(),
                "{} {}: {missing:?}",
                tool.name,
                dialect.name()
            );
            // The properties keep the order of the original schema.
            let order: Vec<&&String> = names.iter().filter(|name| present.contains(name)).collect();
            let present: Vec<&&String> =
                present.iter().filter(|name| names.contains(name)).collect();
            assert_eq!(order, present, "{} {}", tool.name, dialect.name());
        }
    }
}

/// A snapshot of the number of changes of each kind, so that every effect of a changed rule is
/// visible.
#[test]
fn changes_in_the_corpus() {
    let mut table: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for tool in tools() {
        for dialect in Dialect::ALL {
            let row = table.entry(dialect.name()).or_default();
            let compiled = compile(&tool.schema, dialect);
            if matches!(compiled.schema, Cow::Borrowed(_)) {
                *row.entry("(unchanged)".to_owned()).or_default() += 1;
            }
            if compiled.keeps_all_constraints() {
                *row.entry("(exact)".to_owned()).or_default() += 1;
            }
            for change in &compiled.changes {
                *row.entry(format!("{:?}", change.kind)).or_default() += 1;
            }
        }
    }
    insta::assert_json_snapshot!(table);
}
