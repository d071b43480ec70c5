//! `cargo xtask conformance`: runs the protocol's conformance suite against the MCP client.
//!
//! The suite starts a server for each scenario and runs our client against it. The client is the
//! example `conformance` of `switchboard-mcp-client`. Two versions of the suite run: the newer one
//! is still a draft, and other clients are measured with the older one. The expected failures are
//! listed beside the example, each with its reason.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use super::test;
use crate::packages::{NpmPackage, Scripts, install_npm};
use crate::process;

/// The suite needs Node.js 22. This package contains the binary, so that npm may run on any
/// version.
const NODE: NpmPackage<'static> = ("node", "22.23.3");
const PACKAGE: &str = "@modelcontextprotocol/conformance";

/// One version of the protocol, and the version of the suite that judges it.
struct Suite {
    specification: &'static str,
    package_version: &'static str,
}

const SUITES: [Suite; 2] = [
    Suite {
        specification: "2025-11-25",
        package_version: "0.1.16",
    },
    Suite {
        specification: "2026-07-28",
        package_version: "0.2.0-alpha.12",
    },
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this version of the protocol
    #[arg(long, value_name = "VERSION", value_parser = SUITES.map(|suite| suite.specification))]
    specification: Option<String>,
    /// Which scenarios: all, core, auth, extensions, …
    #[arg(long, value_name = "SUITE", default_value = "all")]
    suite: String,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            specification: None,
            suite: "all".to_owned(),
        }
    }
}

/// Totals that a suite reports at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Total {
    passed: u32,
    failed: u32,
    warnings: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = process::target_dir().join("conformance");
    let node = installed(&folder.join("node"), NODE)?.join("bin/node");
    let client = client()?;
    let suites: Vec<&Suite> = SUITES
        .iter()
        .filter(|suite| {
            let wanted = args.specification.as_deref();
            wanted.is_none_or(|wanted| wanted == suite.specification)
        })
        .collect();
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for suite in suites {
        let (total, good) = ask(suite, args, &folder, &node, &client)?;
        if !good {
            failures.push(suite.specification);
        }
        rows.push((suite, total));
    }
    println!("\n| protocol | suite | passed | failed | warnings |\n|---|---|---:|---:|---:|");
    for (suite, total) in rows {
        let Total {
            passed,
            failed,
            warnings,
        } = total;
        println!(
            "| {} | {} of {} | {passed} | {failed} | {warnings} |",
            suite.specification, args.suite, suite.package_version
        );
    }
    if !failures.is_empty() {
        bail!(
            "not as expected: {}; what each client said is in {}",
            failures.join(", "),
            folder.join("results").display()
        );
    }
    Ok(())
}

/// Runs one version of the suite. Returns its totals, and whether only expected failures occurred.
fn ask(
    suite: &Suite,
    args: &Args,
    folder: &Path,
    node: &Path,
    client: &Path,
) -> Result<(Total, bool)> {
    let Suite {
        specification,
        package_version,
    } = suite;
    let package = installed(&folder.join(package_version), (PACKAGE, package_version))?;
    let expected = expected_failures(specification)?;
    let results = folder.join("results").join(specification);
    if results.exists() {
        fs::remove_dir_all(&results)?;
    }
    fs::create_dir_all(&results)?;
    // It says much on its standard error, which matters only where something failed.
    let log = results.join("log.txt");
    let said = process::command(node)
        .arg(package.join("dist/index.js"))
        .args(["client", "--suite", &args.suite])
        .args(["--spec-version", specification])
        .arg("--expected-failures")
        .arg(expected)
        .arg("--output-dir")
        .arg(&results)
        .arg("--command")
        .arg(client)
        .stdin(Stdio::null())
        .stderr(File::create(&log)?)
        .output()
        .context("the conformance suite could not be started")?;
    let text = String::from_utf8_lossy(&said.stdout);
    println!("\n=== {specification} ({PACKAGE} {package_version}) ===");
    print!("{text}");
    let total = text
        .lines()
        .rev()
        .find_map(total)
        .with_context(|| format!("the suite counted nothing: see {}", log.display()))?;
    Ok((total, said.status.success()))
}

/// Parses `Total: 12 passed, 0 failed, 1 warnings` and ignores any text after it.
fn total(line: &str) -> Option<Total> {
    let mut counts = line.strip_prefix("Total: ")?.split(", ");
    let mut count = |what: &str| {
        let (number, word) = counts.next()?.split_once(' ')?;
        (word == what).then_some(number)?.parse().ok()
    };
    Some(Total {
        passed: count("passed")?,
        failed: count("failed")?,
        warnings: count("warnings")?,
    })
}

/// Returns the path of the built example.
fn client() -> Result<PathBuf> {
    test::build()?;
    let client = test::example("conformance");
    // The suite splits the command at its spaces.
    if client.to_string_lossy().contains(' ') {
        bail!(
            "the path of the client must not contain a space: {}",
            client.display()
        );
    }
    Ok(client)
}

/// Returns the list of expected failures after checking that each has a reason.
fn expected_failures(specification: &str) -> Result<PathBuf> {
    let file = process::root()
        .join("crates/mcp-client/examples/conformance")
        .join(format!("expected-failures-{specification}.yaml"));
    let text = fs::read_to_string(&file)
        .with_context(|| format!("{} could not be read", file.display()))?;
    match unexplained(&text) {
        Some(entry) => bail!("{}: say above `{entry}` why it fails", file.display()),
        None => Ok(file),
    }
}

/// The first entry of a list that has no comment right above it.
fn unexplained(yaml: &str) -> Option<&str> {
    let mut above = "";
    for line in yaml.lines().map(str::trim) {
        if line.starts_with("- ") && !above.starts_with('#') {
            return Some(line);
        }
        above = line;
    }
    None
}

/// Installs an npm package, and returns its folder.
fn installed(prefix: &Path, package: NpmPackage<'_>) -> Result<PathBuf> {
    install_npm(prefix, &[package], Scripts::Run)?;
    Ok(prefix.join("node_modules").join(package.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_suite_counted() {
        let expected = Total {
            passed: 208,
            failed: 2,
            warnings: 0,
        };
        for line in [
            "Total: 208 passed, 2 failed, 0 warnings",
            "Total: 208 passed, 2 failed, 0 warnings, 3 skipped",
        ] {
            assert_eq!(total(line), Some(expected), "{line}");
        }
        for line in [
            "✓ initialize: 1 passed, 0 failed",
            "Total: many",
            "Total: 1 failed",
        ] {
            assert_eq!(total(line), None, "{line}");
        }
    }

    #[test]
    fn every_expected_failure_is_explained() {
        let explained =
            "# All of them.\nclient:\n  # It is not done because …\n  - a\n  # Nor this.\n  - b\n";
        assert_eq!(unexplained(explained), None);
        assert_eq!(unexplained("client: []\n"), None);
        let not = "client:\n  # It is not done because …\n  - a\n  - b:check\n";
        assert_eq!(unexplained(not), Some("- b:check"));
    }
}
