//! The picture of a terminal in the README: a real conversation, and its screen as SVG.

use anyhow::{Context as _, Result};

use crate::process::{cargo, root, run};

/// Where it goes, from the top of the repository.
const FILE: &str = "docs/pictures/terminal.svg";

/// Builds the program and the example that talks with it, and has it draw the screen.
pub(crate) fn draw_terminal() -> Result<()> {
    let package = ["--package", "switchboard-app"];
    run(cargo(["build", "--bin", "switchboard"]).args(package))?;
    let file = root().join(FILE);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let mut example = cargo(["run", "--example", "terminal_picture"]);
    run(example.args(package).arg("--").arg(&file))
}
