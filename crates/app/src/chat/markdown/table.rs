//! Renders a table as rows of a terminal.

use anstyle::Style;

use super::inline::{Row, glyphs, trim_end, width, wrap};

/// Minimum width of a column in characters. Tables that do not fit are shown one cell per row.
const MIN_COLUMN_WIDTH: usize = 4;

/// A parsed table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) head: Vec<Row>,
    pub(super) body: Vec<Vec<Row>>,
}

impl Table {
    pub(super) fn rows(&self, most: usize, faint: Style) -> Vec<Row> {
        let lines = || std::iter::once(&self.head).chain(&self.body);
        let widest = (0..self.head.len()).map(|column| {
            let cells = lines().filter_map(|cells| cells.get(column));
            cells.map(|cell| width(cell)).max().unwrap_or(0).max(1)
        });
        let mut widths: Vec<usize> = widest.collect();
        let room = most.saturating_sub(3 * widths.len().saturating_sub(1));
        // Reduces the widest columns until the table fits.
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > MIN_COLUMN_WIDTH => *widest -= 1,
                _ => return self.cell_by_cell(most, faint),
            }
        }
        let mut rows = line(&self.head, &widths, faint);
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        rows.push(glyphs(&rule.join("─┼─"), faint));
        rows.extend(
            self.body
                .iter()
                .flat_map(|cells| line(cells, &widths, faint)),
        );
        rows
    }

    /// Renders one cell per row, for narrow terminals.
    fn cell_by_cell(&self, most: usize, faint: Style) -> Vec<Row> {
        if self.body.is_empty() {
            return self
                .head
                .iter()
                .flat_map(|name| wrap(name, most, false))
                .collect();
        }
        let mut rows = Vec::new();
        for cells in &self.body {
            if !rows.is_empty() {
                rows.push(Vec::new());
            }
            for (name, cell) in self.head.iter().zip(cells) {
                let whole = [&name[..], &glyphs(": ", faint), cell].concat();
                rows.extend(wrap(&whole, most, false));
            }
        }
        rows
    }
}

/// Renders one line of the table, with several rows for long cells.
fn line(cells: &[Row], widths: &[usize], faint: Style) -> Vec<Row> {
    let columns = cells
        .iter()
        .zip(widths)
        .map(|(cell, &width)| wrap(cell, width, false));
    let columns: Vec<Vec<Row>> = columns.collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(1);
    let mut rows = Vec::new();
    for index in 0..height {
        let mut row = Vec::new();
        for (number, (parts, room)) in columns.iter().zip(widths).enumerate() {
            if number > 0 {
                row.extend(glyphs(" │ ", faint));
            }
            let part = parts.get(index).map_or(&[][..], Vec::as_slice);
            row.extend_from_slice(part);
            row.extend(glyphs(&" ".repeat(room - width(part)), Style::new()));
        }
        trim_end(&mut row);
        rows.push(row);
    }
    rows
}
