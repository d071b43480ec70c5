//! Renders a table as rows of a terminal.

use anstyle::Style;

use super::inline::{Glyph, glyphs, trim_end, width, wrap};

/// Minimum width of a column. Narrower tables are shown cell by cell.
const MIN_COLUMN_WIDTH: usize = 4;

/// A parsed table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) head: Vec<Vec<Glyph>>,
    pub(super) body: Vec<Vec<Vec<Glyph>>>,
}

impl Table {
    pub(super) fn rows(&self, most: usize, faint: Style) -> Vec<Vec<Glyph>> {
        let columns = self.head.len();
        if columns == 0 {
            return Vec::new();
        }
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = std::iter::once(&self.head).chain(&self.body);
                let widest = cells.filter_map(|row| row.get(column)).map(|it| width(it));
                widest.max().unwrap_or(0).max(1)
            })
            .collect();
        match fit(widths, most.saturating_sub(3 * (columns - 1))) {
            Some(widths) => self.grid(&widths, faint),
            None => self.cell_by_cell(most, faint),
        }
    }

    fn grid(&self, widths: &[usize], faint: Style) -> Vec<Vec<Glyph>> {
        let bold = |cell: &Vec<Glyph>| -> Vec<Glyph> {
            let strong = |glyph: &Glyph| Glyph {
                style: glyph.style.bold(),
                ..*glyph
            };
            cell.iter().map(strong).collect()
        };
        let mut rows = line(
            &self.head.iter().map(bold).collect::<Vec<_>>(),
            widths,
            faint,
        );
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        rows.push(glyphs(&rule.join("─┼─"), faint).collect());
        for cells in &self.body {
            rows.extend(line(cells, widths, faint));
        }
        rows
    }

    /// Renders one cell per row, for narrow terminals.
    fn cell_by_cell(&self, most: usize, faint: Style) -> Vec<Vec<Glyph>> {
        let mut rows = Vec::new();
        for (index, cells) in self.body.iter().enumerate() {
            if index > 0 {
                rows.push(Vec::new());
            }
            for (name, cell) in self.head.iter().zip(cells) {
                let mut whole = name.clone();
                whole.extend(glyphs(": ", faint));
                whole.extend_from_slice(cell);
                rows.extend(wrap(&whole, most));
            }
        }
        if self.body.is_empty() {
            rows.extend(self.head.iter().flat_map(|name| wrap(name, most)));
        }
        rows
    }
}

/// Reduces the widest columns until the table fits.
fn fit(mut widths: Vec<usize>, most: usize) -> Option<Vec<usize>> {
    while widths.iter().sum::<usize>() > most {
        let widest = widths.iter_mut().max()?;
        if *widest <= MIN_COLUMN_WIDTH {
            return None;
        }
        *widest -= 1;
    }
    Some(widths)
}

/// Renders one line of the table, with several rows for long cells.
fn line(cells: &[Vec<Glyph>], widths: &[usize], faint: Style) -> Vec<Vec<Glyph>> {
    let empty = Vec::new();
    let columns: Vec<Vec<Vec<Glyph>>> = widths
        .iter()
        .enumerate()
        .map(|(column, &width)| wrap(cells.get(column).unwrap_or(&empty), width))
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(1);
    let mut rows = Vec::new();
    for index in 0..height {
        let mut row = Vec::new();
        for (column, parts) in columns.iter().enumerate() {
            if column > 0 {
                row.extend(glyphs(" │ ", faint));
            }
            let part = parts.get(index).map_or(&[][..], Vec::as_slice);
            row.extend_from_slice(part);
            if column + 1 < columns.len() {
                let padding = widths[column].saturating_sub(width(part));
                row.extend(glyphs(&" ".repeat(padding), Style::new()));
            }
        }
        trim_end(&mut row);
        rows.push(row);
    }
    rows
}
