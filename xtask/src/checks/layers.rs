//! `cargo xtask layers`: checks the crate graph against the layer table of the architecture.

mod table;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::process;
use table::{BANNED, CONFINED, LayerRow, ROWS, TESTKIT};

/// Checks the workspace of the manifest `manifest_path`, or this workspace if it is `None`.
pub(crate) fn run(manifest_path: Option<&Path>) -> Result<()> {
    let manifest = manifest_path.map_or_else(|| process::root().join("Cargo.toml"), Path::to_owned);
    // The rules apply to the dependencies in the manifests, including optional and
    // platform-specific ones. They are not resolved, so nothing is downloaded.
    let metadata = MetadataCommand::new()
        .manifest_path(&manifest)
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .with_context(|| format!("cannot read the crate graph of {}", manifest.display()))?;
    let packages = metadata.workspace_packages();
    let mut violations = Vec::new();
    for package in &packages {
        let folder = folder(&metadata, package);
        let Some(row) = ROWS.iter().find(|row| row.folder == folder) else {
            violations.push(format!(
                "{folder} (package {})\n  rule: every crate has a row in the layer table\n  fix: \
                 add it to the table: docs/architecture.md and xtask/src/checks/layers/table.rs, \
                 with its allowed dependencies",
                package.name
            ));
            continue;
        };
        // `name` is the name of the package, even if the manifest renames the dependency. Build
        // dependencies are checked like normal ones.
        violations.extend(package.dependencies.iter().filter_map(|dependency| {
            let is_dev = dependency.kind == DependencyKind::Development;
            check_dependency(row, &dependency.name, is_dev)
        }));
    }
    for violation in &violations {
        eprintln!("{violation}\n");
    }
    if !violations.is_empty() {
        bail!(
            "{} dependencies violate the layers of the architecture",
            violations.len()
        );
    }
    let edges: usize = packages.iter().map(|it| it.dependencies.len()).sum();
    println!(
        "layers: {} crates, {edges} dependencies, all allowed",
        packages.len()
    );
    Ok(())
}

fn folder(metadata: &Metadata, package: &Package) -> String {
    let manifest = &package.manifest_path;
    let inside = manifest.strip_prefix(&metadata.workspace_root);
    let folder = inside.unwrap_or(manifest).parent();
    let folder = folder.map_or("", |it| it.as_str()).replace('\\', "/");
    folder.strip_prefix("crates/").unwrap_or(&folder).to_owned()
}

/// Returns a message if a dependency of the crate `from` violates a rule: the dependency, the rule
/// and how to fix it. Checks the strictest rule first.
fn check_dependency(from: &LayerRow, package: &str, is_dev: bool) -> Option<String> {
    let folder = from.folder;
    // Every package with the prefix `switchboard-` counts as a crate of the workspace.
    let (to, rule, way_out) = match package.strip_prefix("switchboard-") {
        Some(to) if from.may_use.contains(&to) || (is_dev && to != "app") => return None,
        Some(to) => {
            let layer = from.layer;
            let rule = match from.may_use {
                [] => format!("`{folder}` (layer {layer}) must not depend on a workspace crate"),
                some => format!(
                    "`{folder}` (layer {layer}) may depend only on {}",
                    some.join(", ")
                ),
            };
            let way_out = match to {
                TESTKIT => "testkit is for tests: put it under [dev-dependencies]",
                _ => {
                    "put the type or port that both need into `domain`, and let `app` join the \
                     two; or change the table in docs/architecture.md and \
                     xtask/src/checks/layers/table.rs, with the reason"
                }
            };
            (to, rule, way_out)
        }
        None => {
            let (rule, way_out) = check_third_party_package(from, package, is_dev)?;
            (package, rule, way_out)
        }
    };
    let dev = if is_dev { "dev-" } else { "" };
    Some(format!(
        "{folder} -> {to} ({dev}dependency)\n  rule: {rule}\n  fix: {way_out}"
    ))
}

fn check_third_party_package(
    from: &LayerRow,
    package: &str,
    is_dev: bool,
) -> Option<(String, &'static str)> {
    let folder = from.folder;
    let mut banned = BANNED.iter().filter(|it| it.folder == folder && !is_dev);
    if let Some(ban) = banned.find(|it| it.packages.contains(&package)) {
        return Some((
            format!("`{folder}` must not depend on {package}: {}", ban.why),
            "describe the requirement as a port (a trait) in `domain`, and implement it in an \
             adapter",
        ));
    }
    let confined = CONFINED.iter().find(|it| it.packages.contains(&package))?;
    let is_listed = |folders: &[&str]| {
        let mut folders = folders.iter();
        folders.any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => folder.starts_with(start),
            None => folder == *pattern,
        })
    };
    let is_allowed = is_listed(confined.to) || (is_dev && is_listed(confined.to_tests_of));
    let (to, why) = (confined.to.join(", "), confined.why);
    (!is_allowed).then(|| {
        (
            format!("{package} is allowed only in {to}: {why}"),
            "use the domain's types and ports here; or move the code that needs it into one of \
             those crates",
        )
    })
}
