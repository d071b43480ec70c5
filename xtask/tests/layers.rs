//! Tests `cargo xtask layers` with small workspaces, from the manifests to the exit code.
#![allow(clippy::expect_used, reason = "a test that cannot be set up must fail")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn write_crate(root: &Path, folder: &str, dependencies: &str) {
    let path = root.join("crates").join(folder);
    fs::create_dir_all(path.join("src")).expect("folder");
    fs::write(path.join("src/lib.rs"), "").expect("lib.rs");
    let manifest = format!(
        "[package]\nname = \"switchboard-{folder}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         {dependencies}\n"
    );
    fs::write(path.join("Cargo.toml"), manifest).expect("manifest");
}

/// Creates a workspace with the crates `domain` and `orchestration`, whose manifests end with the
/// given lines. Returns its folder.
fn workspace(domain: &str, orchestration: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("temporary folder");
    let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n";
    fs::write(root.path().join("Cargo.toml"), manifest).expect("manifest");
    write_crate(root.path(), "domain", domain);
    write_crate(root.path(), "orchestration", orchestration);
    root
}

fn layers(root: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["layers", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .output()
        .expect("xtask starts")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_allowed_edge_passes() {
    let root = workspace(
        "[dependencies]\nserde = \"1\"",
        "[dependencies]\nswitchboard-domain = { path = \"../domain\" }",
    );
    let output = layers(root.path());
    assert!(output.status.success(), "{}", errors(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 crates, 2 dependencies"));
}

#[test]
fn a_forbidden_edge_fails_and_is_named() {
    let root = workspace(
        "[dependencies]\nswitchboard-orchestration = { path = \"../orchestration\" }",
        "",
    );
    let output = layers(root.path());
    assert!(!output.status.success());
    let errors = errors(&output);
    assert!(
        errors.contains("domain -> orchestration (dependency)"),
        "{errors}"
    );
    assert!(errors.contains("fix:"), "{errors}");
}

#[test]
fn a_renamed_optional_dependency_is_found() {
    let root = workspace(
        "[target.'cfg(unix)'.dependencies]\nweb = { package = \"reqwest\", version = \"0.13\", \
         optional = true }",
        "[build-dependencies]\nrmcp = \"3\"",
    );
    let output = layers(root.path());
    assert!(!output.status.success());
    let errors = errors(&output);
    assert!(
        errors.contains("domain -> reqwest (dependency)"),
        "{errors}"
    );
    assert!(
        errors.contains("orchestration -> rmcp (dependency)"),
        "{errors}"
    );
}

#[test]
fn a_crate_without_a_row_fails() {
    let root = workspace("", "");
    write_crate(root.path(), "brand-new", "");
    let output = layers(root.path());
    assert!(!output.status.success());
    assert!(
        errors(&output).contains("add it to the table"),
        "{}",
        errors(&output)
    );
}
