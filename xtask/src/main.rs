//! Development tasks of the repository. `cargo xtask help` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tasks report to the terminal or the CI log"
)]

mod bench;
mod catalogue;
mod checks;
mod ci;
mod dist;
mod files;
mod packages;
mod process;
mod suites;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use checks::{docs, layers, lint, snapshots};
use suites::{bfcl, browser, clients, conformance, oracle, postgres, schemathesis, test};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Development tasks of the Switchboard repository"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every test of the workspace, and the doc tests; needs no network
    Test(test::Args),
    /// Check format, clippy and the repository's own rules
    Lint(lint::Args),
    /// Check the crate graph against the layer table
    Layers {
        /// Manifest of the workspace to check, instead of this one
        #[arg(long, value_name = "FILE")]
        manifest_path: Option<PathBuf>,
    },
    /// Check or accept the snapshots of the tests
    Snapshots {
        #[command(subcommand)]
        action: Option<snapshots::Action>,
    },
    /// Validate the golden request bodies with the official SDKs
    Oracle,
    /// Compare our scorer with that of the Berkeley Function Calling Leaderboard, on its data
    Bfcl,
    /// Run the protocol's conformance suite against the MCP client
    Conformance,
    /// Test official client packages against a real server
    Clients,
    /// Send requests generated from the OpenAPI document, valid and invalid, to a real server
    Schemathesis,
    /// Test the session store on a real PostgreSQL server, which is installed if necessary
    Postgres,
    /// Regenerate the model catalogue from its source and our overlay
    Catalogue(catalogue::Args),
    /// Test the web page in a real Chromium, over the real server
    Browser(browser::Args),
    /// Take the screenshot of the web page
    Pictures,
    /// Rebuild the web page's third-party files from npm
    Vendor,
    /// Build the documentation; any warning is an error
    Docs,
    /// Build the program for publication, optimized for recorded runs
    Dist,
    /// Run benchmarks and print Markdown tables
    Bench(bench::Args),
    /// Run all steps of continuous integration
    Ci(ci::Args),
}

fn main() -> ExitCode {
    match run_task(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The error is printed here and not returned from `main`, because `main` would also
            // print a long backtrace if `RUST_BACKTRACE` is set.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_task(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Test(args) => test::run(&args),
        Task::Lint(args) => lint::run(&args),
        Task::Layers { manifest_path } => layers::run(manifest_path.as_deref()),
        Task::Snapshots { action } => snapshots::run(action.unwrap_or_default()),
        Task::Oracle => oracle::run(),
        Task::Bfcl => bfcl::run(),
        Task::Conformance => conformance::run(),
        Task::Clients => clients::run(),
        Task::Schemathesis => schemathesis::run(),
        Task::Postgres => postgres::run(),
        Task::Catalogue(args) => catalogue::run(&args),
        Task::Browser(args) => browser::run(&args),
        Task::Pictures => browser::pictures(),
        Task::Vendor => browser::vendor(),
        Task::Docs => docs::run(),
        Task::Dist => dist::run(),
        Task::Bench(args) => bench::run(&args),
        Task::Ci(args) => ci::run(&args),
    }
}
