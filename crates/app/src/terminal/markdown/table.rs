//! Renders a Markdown table as rows of a terminal.

use anstyle::Style;

use super::styled_rows::{Row, glyphs_width, text_to_glyphs, trim_trailing_spaces, wrap_line};

/// Minimum width of a table column, in terminal columns. A table that is too wide even with this
/// width is shown with one cell per row.
const MIN_COLUMN_WIDTH: usize = 4;

/// A parsed Markdown table. Its cells are styled but not wrapped.
#[derive(Debug, Default)]
pub(super) struct MarkdownTable {
    pub(super) head: Vec<Row>,
    pub(super) body: Vec<Vec<Row>>,
}

impl MarkdownTable {
    pub(super) fn render_rows(&self, most: usize, faint: Style) -> Vec<Row> {
        let lines = || std::iter::once(&self.head).chain(&self.body);
        let widest = (0..self.head.len()).map(|column| {
            let cells = lines().filter_map(|cells| cells.get(column));
            let widest = cells.map(|cell| glyphs_width(cell)).max();
            widest.unwrap_or(0).max(1)
        });
        let mut widths: Vec<usize> = widest.collect();
        let room = most.saturating_sub(3 * widths.len().saturating_sub(1));
        // Reduces the width of the widest columns until the table fits into `room` columns.
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > MIN_COLUMN_WIDTH => *widest -= 1,
                _ => return self.render_one_cell_per_row(most, faint),
            }
        }
        let mut rows = render_table_line(&self.head, &widths, faint);
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        rows.push(text_to_glyphs(&rule.join("─┼─"), faint));
        let lines = self.body.iter();
        rows.extend(lines.flat_map(|cells| render_table_line(cells, &widths, faint)));
        rows
    }

    /// Renders the table with one cell per row, because it does not fit into a narrow terminal.
    fn render_one_cell_per_row(&self, most: usize, faint: Style) -> Vec<Row> {
        let mut rows = Vec::new();
        for cells in &self.body {
            if !rows.is_empty() {
                rows.push(Vec::new());
            }
            for (name, cell) in self.head.iter().zip(cells) {
                let whole = [&name[..], &text_to_glyphs(": ", faint), cell].concat();
                rows.extend(wrap_line(&whole, most, false));
            }
        }
        rows
    }
}

/// Renders one line of the table. Long cells are wrapped, so that the line takes several rows.
fn render_table_line(cells: &[Row], widths: &[usize], faint: Style) -> Vec<Row> {
    let wrap = |(cell, &width): (&Row, &usize)| wrap_line(cell, width, false);
    let columns: Vec<Vec<Row>> = cells.iter().zip(widths).map(wrap).collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(1);
    let mut rows = Vec::new();
    for index in 0..height {
        let mut row = Vec::new();
        for (number, (parts, room)) in columns.iter().zip(widths).enumerate() {
            if number > 0 {
                row.extend(text_to_glyphs(" │ ", faint));
            }
            let part = parts.get(index).map_or(&[][..], Vec::as_slice);
            row.extend_from_slice(part);
            row.extend(text_to_glyphs(
                &" ".repeat(room - glyphs_width(part)),
                Style::new(),
            ));
        }
        trim_trailing_spaces(&mut row);
        rows.push(row);
    }
    rows
}
