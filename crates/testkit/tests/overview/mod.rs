//! The table in `docs/providers.md`: what becomes of a request on each wire, read off the mappings
//! themselves.

use std::{fmt::Write as _, fs, path::PathBuf};

use switchboard_domain::{ToolChoiceOutcome, WarningKind};
use switchboard_testkit::fixtures;

use super::{Mapped, PROVIDERS, Provider};

/// What is compared: the fixture that asks for it, and its name in the table.
const ROWS: [(&str, &str); 14] = [
    ("two_tools_in_parallel", "several tool calls in one answer"),
    ("one_tool_at_a_time", "one tool call at a time"),
    ("tool_choice_none", "tool choice: none"),
    ("tool_choice_required", "tool choice: any tool"),
    ("tool_choice_only_one", "tool choice: this tool"),
    ("tool_choice_only_two", "tool choice: one of these"),
    ("structured_output", "structured output"),
    ("strict_schema", "schemas with `$ref`, unions, bounds"),
    ("images_and_documents", "images and documents"),
    ("audio", "audio"),
    ("results_of_every_kind", "images and data in tool results"),
    ("reasoning_effort", "reasoning effort"),
    ("system_and_options", "temperature, stop, output limit"),
    ("late_system_message", "instructions in the middle"),
];

const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";

/// The first model of each wire that the official SDK judges.
fn columns() -> Vec<&'static Provider> {
    let is_main = |provider: &&Provider| provider.variant.is_none() && provider.only.is_none();
    PROVIDERS.iter().filter(is_main).collect()
}

fn cell(mapped: &Mapped) -> String {
    let told: Vec<&str> = mapped
        .warnings
        .iter()
        .filter(|warning| warning.kind != WarningKind::ToolChoiceRelaxed)
        .map(|warning| match warning.kind {
            WarningKind::OptionDropped | WarningKind::PartDropped => "left out in part",
            WarningKind::PartDowngraded => "in a poorer form",
            _ => "with a warning",
        })
        .collect();
    let outcome = match &mapped.outcome {
        ToolChoiceOutcome::Native => "native",
        ToolChoiceOutcome::Emulated { .. } => "emulated",
        ToolChoiceOutcome::Relaxed { .. } => "relaxed",
    };
    match told.first() {
        None => outcome.to_owned(),
        Some(told) if outcome == "native" => (*told).to_owned(),
        Some(told) => format!("{outcome}, {told}"),
    }
}

fn table() -> String {
    let columns = columns();
    let mut table = String::from("| |");
    for column in &columns {
        let _ = write!(table, " {} |", column.kind);
    }
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(columns.len()));
    table.push('\n');
    let fixtures = fixtures::all();
    for (name, title) in ROWS {
        let fixture = fixtures.iter().find(|fixture| fixture.name == name);
        let _ = write!(table, "| {title} |");
        let Some(fixture) = fixture else {
            table.push_str(" no such fixture |\n");
            continue;
        };
        for column in &columns {
            let cell = match (column.map)(&fixture.request) {
                Ok(mapped) => cell(&mapped),
                Err(_) => "refused with an error".to_owned(),
            };
            let _ = write!(table, " {cell} |");
        }
        table.push('\n');
    }
    table
}

#[test]
fn the_table_in_the_documentation_is_what_the_mappings_do() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (there, after) = rest.split_once(END).unwrap();
    let table = table();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&file, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        there, table,
        "docs/providers.md: write it anew with `cargo xtask snapshots accept`"
    );
}
