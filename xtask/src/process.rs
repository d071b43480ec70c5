//! Starts other programs in the root folder of the workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Returns the root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // The variable at run time takes precedence, because the program may have been compiled in
    // another checkout.
    let here = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or(here.clone(), Path::to_path_buf)
}

/// Returns the target folder, which contains build results and installed packages. git ignores it.
pub(crate) fn target_dir() -> PathBuf {
    // If the variable contains an absolute path, `join` returns this path.
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns a command that runs in the root folder of the workspace.
///
/// The command does not get the environment variables that `cargo run` sets for the package
/// `xtask`. With these variables, cargo would run build scripts again and compile packages again.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_variable_of_xtask) {
            command.env_remove(name);
        }
    }
    command
}

fn is_variable_of_xtask(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_")
        || variable.starts_with("CARGO_BIN_")
        || matches!(
            variable,
            "CARGO_MANIFEST_DIR" | "CARGO_MANIFEST_PATH" | "CARGO_CRATE_NAME" | "OUT_DIR"
        )
}

/// Returns a command that starts the same cargo that started this program.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Prints and runs a command, whose output goes to the terminal. Fails if the command cannot be
/// started or does not exit with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = format_command(command);
    eprintln!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("failed to start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output. Its standard error goes to the terminal. Fails
/// if the command cannot be started, does not exit with 0, or does not write UTF-8.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let shown = format_command(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("failed to start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not write UTF-8"))
}

/// Returns whether the command starts and exits with 0. Discards its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Returns the text of a command for messages, as a person would type it.
fn format_command(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_stem().unwrap_or(command.get_program());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| quote_argument(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quote_argument(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:@,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{word}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = cargo(["test", "-E", "test(/peer_/)"]);
        command.env("SECRET", "never shown");
        assert!(format_command(&command).ends_with(" test -E 'test(/peer_/)'"));
        assert!(!format_command(&command).contains("never"));
    }

    #[test]
    fn variables_of_the_package_xtask_are_removed() {
        assert!(is_variable_of_xtask("CARGO_PKG_NAME"));
        assert!(is_variable_of_xtask("CARGO_MANIFEST_DIR"));
        assert!(!is_variable_of_xtask("CARGO_TARGET_DIR"));
        assert!(!is_variable_of_xtask("CARGO_INCREMENTAL"));
        assert!(root().join("Cargo.lock").is_file());
    }
}
