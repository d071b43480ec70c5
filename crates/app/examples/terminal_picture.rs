//! Draws the terminal picture of the README as SVG. It shows a real conversation of the demo model
//! with the bundled server at a pseudo-terminal. `cargo xtask pictures` runs this program.
//!
//! Usage: `terminal_picture FILE`. The program `switchboard` must be built before.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed picture ends the program"
)]

#[cfg(unix)]
#[path = "../tests/chat/terminal.rs"]
#[allow(dead_code, reason = "made for the tests")]
mod terminal;

#[cfg(unix)]
fn main() {
    picture::draw_picture();
}

#[cfg(not(unix))]
fn main() {
    panic!("pseudo-terminals need Unix");
}

#[cfg(unix)]
mod picture {
    use std::{fmt::Write as _, path::PathBuf};

    use vt100::{Cell, Color};

    use super::terminal::Terminal;

    const ROWS: u16 = 18;
    const COLUMNS: u16 = 114;
    /// Width of one terminal character in units of the SVG view box.
    const WIDTH: f64 = 8.4;
    const HEIGHT: f64 = 19.0;
    const MARGIN: f64 = 18.0;

    const PAPER: &str = "#16181d";
    const INK: &str = "#d7dae0";

    pub(super) fn draw_picture() {
        let file: PathBuf = std::env::args_os()
            .nth(1)
            .expect("the file to write")
            .into();
        let home = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        // Cargo builds examples into `examples/`, a subfolder of the folder with `switchboard`.
        let program = program.parent().and_then(|it| it.parent()).unwrap();
        let program = program.join("switchboard");
        let variables = [
            ("HOME", home.path().display().to_string()),
            ("TERM", "xterm-256color".to_owned()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
        ];
        let args = ["chat", "--model", "offline/planner", "--approve", "ask"];
        let mut chat = Terminal::start(&program, args, home.path(), variables, (ROWS, COLUMNS));
        let is_ready = |screen: &str| screen.ends_with('❯');
        chat.wait_for("prompt", is_ready);
        chat.line("What is the account value of customer 42?");
        chat.shows("✔ ");
        chat.wait_for("prompt", is_ready);
        chat.line("Create a low priority ticket for customer 7 with subject \"Invoice missing\"");
        chat.shows("Run it?");
        chat.wait_for("question", |screen| screen.ends_with('›'));
        chat.keys("y\r");
        chat.wait_for("second answer", |screen| {
            screen.matches("✔ ").count() == 2 && is_ready(screen)
        });
        chat.line("/usage");
        chat.wait_for("usage", |screen| {
            screen.contains("2 answers") && is_ready(screen)
        });
        let svg = chat.look(render_svg);
        chat.keys("\u{4}");
        chat.end();
        std::fs::write(&file, svg).unwrap();
    }

    fn render_svg(screen: &vt100::Screen) -> String {
        let (rows, columns) = screen.size();
        let width = f64::from(columns) * WIDTH + 2.0 * MARGIN;
        let height = f64::from(rows) * HEIGHT + 2.0 * MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             role=\"img\" aria-label=\"A conversation in switchboard chat\">\n\
             <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{PAPER}\"/>\n\
             <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
             font-size=\"14\" fill=\"{INK}\">\n"
        );
        for row in 0..rows {
            write_screen_row(screen, row, columns, &mut svg);
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }

    /// Writes one screen row as SVG. Each character is placed at its column, because the widths of
    /// characters differ between fonts.
    fn write_screen_row(screen: &vt100::Screen, row: u16, columns: u16, svg: &mut String) {
        let y = MARGIN + f64::from(row) * HEIGHT + 13.0;
        for column in 0..columns {
            let cell = screen.cell(row, column).unwrap();
            let text = cell.contents().replace('&', "&amp;").replace('<', "&lt;");
            if text.trim().is_empty() {
                continue;
            }
            let x = MARGIN + f64::from(column) * WIDTH;
            let style = svg_style(cell);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\"{style}>{text}</text>");
        }
    }

    fn svg_style(cell: &Cell) -> String {
        let colour = match cell.fgcolor() {
            Color::Idx(1 | 9) => "#ff6b68",
            Color::Idx(2 | 10) => "#7fd88f",
            Color::Idx(3 | 11) => "#f5c76a",
            Color::Idx(4..=6 | 12..=14) => "#6cb6ff",
            _ if cell.dim() => "#8b9099",
            _ => INK,
        };
        let weight = if cell.bold() { "bold" } else { "normal" };
        format!(" fill=\"{colour}\" font-weight=\"{weight}\"")
    }
}
