//! `cargo xtask schemathesis`: sends requests generated from the OpenAPI document to a server.
//!
//! The Python package Schemathesis generates valid and invalid requests from the document of a
//! running `switchboard serve`. The server must not return an internal error. Each response must
//! have a documented status, content type and body.

use anyhow::Result;

use super::served::{Server, TOKEN};
use crate::packages::install_python;
use crate::process;

/// The Python package with its exact version. A newer version may find more problems.
const PACKAGE: &str = "schemathesis==4.32.5";

/// Names of the checks that Schemathesis applies to every response.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,unsupported_method,missing_required_header,use_after_free,\
                      ensure_resource_availability";

/// Regular expression of the paths that are not tested: event streams, whose responses do not end.
const STREAMS: &str = "(events|stream)$";

/// Seed of the random generator. With a fixed seed, every run sends the same requests.
const SEED: &str = "1";

/// Installs missing packages, starts a server and tests it.
pub(crate) fn run() -> Result<()> {
    let folder = process::target_dir().join("schemathesis");
    let python = install_python(&folder.join("python"), &[PACKAGE])?;
    let server = Server::start(&Server::program()?, &folder.join("server"), "ask", None)?;
    let mut tests = process::command(python);
    tests.args(["-m", "schemathesis.cli", "run"]);
    tests.arg(format!("{}/openapi.json", server.address));
    tests.args(["--checks", CHECKS, "--exclude-path-regex", STREAMS]);
    tests.args(["--phases", "examples,coverage,fuzzing,stateful"]);
    tests.args(["--max-examples", "25", "--seed", SEED]);
    tests.args(["--request-timeout", "30"]);
    tests.args(["--continue-on-failure", "--no-color"]);
    tests.arg(format!("--header=Authorization: Bearer {TOKEN}"));
    process::run(tests.current_dir(&folder))
}
