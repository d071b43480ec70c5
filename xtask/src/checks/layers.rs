//! `cargo xtask layers`: the crate graph against the layer table of the architecture.

mod rules;
#[cfg(test)]
mod rules_tests;
mod table;

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::process;
use rules::{Crate, Dependency, Graph, Kind};

/// Checks the workspace of `manifest_path`, or ours without one.
pub(crate) fn run(manifest_path: Option<&Path>) -> Result<()> {
    let graph = read(manifest_path)?;
    let violations = rules::check(&graph);
    for violation in &violations {
        eprintln!("{violation}\n");
    }
    if !violations.is_empty() {
        bail!(
            "{} edges break the layers of the architecture",
            violations.len()
        );
    }
    let edges: usize = graph.crates.iter().map(|one| one.dependencies.len()).sum();
    println!(
        "layers: {} crates, {edges} dependencies, all allowed",
        graph.crates.len()
    );
    Ok(())
}

/// Reads the dependencies from the manifests, optional and platform-specific ones included. Does
/// not resolve them, because the rules concern manifests only and nothing must be downloaded.
fn read(manifest_path: Option<&Path>) -> Result<Graph> {
    let root = process::root();
    let manifest = manifest_path.map_or_else(|| root.join("Cargo.toml"), Path::to_path_buf);
    let metadata = MetadataCommand::new()
        .manifest_path(&manifest)
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .with_context(|| {
            format!(
                "the crate graph of {} could not be read",
                manifest.display()
            )
        })?;
    Ok(graph(&metadata))
}

fn graph(metadata: &Metadata) -> Graph {
    let packages = metadata.workspace_packages();
    let mut crates: Vec<Crate> = packages
        .into_iter()
        .map(|package| Crate {
            folder: folder(metadata, package),
            package: package.name.to_string(),
            dependencies: package.dependencies.iter().map(dependency).collect(),
        })
        .collect();
    crates.sort_by(|a, b| a.folder.cmp(&b.folder));
    Graph { crates }
}

fn folder(metadata: &Metadata, package: &Package) -> String {
    let manifest = &package.manifest_path;
    let inside = manifest
        .strip_prefix(&metadata.workspace_root)
        .unwrap_or(manifest);
    let folder = inside.parent().map_or("", |folder| folder.as_str());
    let folder = folder.replace('\\', "/");
    let name = folder.strip_prefix("crates/").unwrap_or(&folder);
    name.to_owned()
}

fn dependency(dependency: &cargo_metadata::Dependency) -> Dependency {
    Dependency {
        // The package's own name, also where a manifest renames it.
        package: dependency.name.clone(),
        kind: match dependency.kind {
            DependencyKind::Development => Kind::Dev,
            _ => Kind::Normal,
        },
    }
}
