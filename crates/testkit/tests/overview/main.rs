//! The table in `docs/providers.md`: the treatment of each part of a request on each wire, read
//! from the mappings.
#![allow(
    clippy::unwrap_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

mod special;
#[path = "../wires/mod.rs"]
mod wires;

use std::{fmt::Write as _, fs, path::PathBuf};

use switchboard_domain::{ToolChoiceOutcome, WarningKind};
use switchboard_testkit::fixtures;

use crate::wires::{Sent, Target, WIRES, Wire};

/// The source of a row's cells.
enum Row {
    /// The request of this fixture.
    Fixture(&'static str),
    /// A function that returns the cell of a wire.
    Special(fn(Wire) -> String),
}

use Row::{Fixture, Special};

const ROWS: [(Row, &str); 21] = [
    (
        Special(special::streamed_calls),
        "tool calls while they are written",
    ),
    (
        Fixture("two_tools_in_parallel"),
        "several tool calls in one answer",
    ),
    (Fixture("one_tool_at_a_time"), "one tool call at a time"),
    (Fixture("tool_choice_none"), "tool choice: none"),
    (Fixture("tool_choice_required"), "tool choice: any tool"),
    (Fixture("tool_choice_only_one"), "tool choice: this tool"),
    (Fixture("tool_choice_only_two"), "tool choice: one of these"),
    (Fixture("structured_output"), "structured output"),
    (
        Fixture("structured_output_with_tools"),
        "structured output beside tools",
    ),
    (
        Special(special::schemas),
        "schemas of tools: unions, bounds, patterns, `not`",
    ),
    (Fixture("images_in_a_dialogue"), "images"),
    (Fixture("documents_over_turns"), "documents"),
    (Fixture("audio"), "audio"),
    (
        Fixture("results_of_every_kind"),
        "images and data in tool results",
    ),
    (
        Special(special::reasoning_replay),
        "the model's own reasoning, sent back",
    ),
    (Fixture("reasoning_effort"), "reasoning effort"),
    (
        Fixture("system_and_options"),
        "temperature, stop, output limit",
    ),
    (Fixture("late_system_message"), "instructions in the middle"),
    (Special(special::caching), "prompt caching"),
    (
        Special(special::built_in_tools),
        "built-in tools, such as web search",
    ),
    (
        Special(special::built_in_tools_beside),
        "built-in tools beside the request's own",
    ),
];

const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";

/// Returns the target of a column: the newest version of each API.
fn target(wire: Wire) -> Target {
    wire.target().with_newest_version()
}

fn cell(sent: &Sent) -> String {
    let told: Vec<&str> = sent
        .warnings
        .iter()
        .filter(|warning| warning.kind != WarningKind::ToolChoiceRelaxed)
        .map(|warning| match warning.kind {
            WarningKind::OptionDropped | WarningKind::PartDropped => "partly omitted",
            WarningKind::PartDowngraded => "degraded",
            _ => "with a warning",
        })
        .collect();
    let outcome = match &sent.outcome {
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
    let mut table = String::from("| |");
    for wire in WIRES {
        let _ = write!(table, " {} |", wire.name());
    }
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(WIRES.len()));
    table.push('\n');
    for (row, what) in ROWS {
        let _ = write!(table, "| {what} |");
        for wire in WIRES {
            let cell = match row {
                Special(find) => find(wire),
                Fixture(name) => {
                    let fixture = fixtures::read(name).unwrap();
                    match target(wire).send(&fixture.request) {
                        Ok(sent) => cell(&sent),
                        Err(_) => "refused with an error".to_owned(),
                    }
                }
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
