//! Splits text into styled characters and wraps lines for the terminal.

use anstyle::Style;
use unicode_width::UnicodeWidthChar as _;

use crate::terminal::is_control_character;

/// A styled character on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glyph {
    pub(super) c: char,
    /// Width of the character in terminal columns: 0, 1 or 2.
    pub(super) width: usize,
    pub(super) style: Style,
}

/// A row of the screen, or a longer line that is not wrapped into rows yet.
pub(super) type Row = Vec<Glyph>;

/// Converts text to glyphs. Tabs become spaces. Control characters except line breaks are removed.
pub(super) fn text_to_glyphs(text: &str, style: Style) -> Row {
    let text = text.replace('\t', "    ");
    let shown = text.chars().filter(|&c| !is_control_character(c));
    let glyphs = shown.map(|c| Glyph {
        c,
        width: c.width().unwrap_or(0),
        style,
    });
    glyphs.collect()
}

/// Returns the total width of the glyphs in terminal columns.
pub(super) fn glyphs_width(glyphs: &[Glyph]) -> usize {
    glyphs.iter().map(|glyph| glyph.width).sum()
}

/// Breaks a line into rows of at most `most` columns. It breaks at spaces and removes the spaces at
/// the break. With `keep_spaces`, it breaks at any character and keeps all spaces. An empty line
/// becomes one empty row.
pub(super) fn wrap_line(line: &[Glyph], most: usize, keep_spaces: bool) -> Vec<Row> {
    let fits = |glyph: &&Glyph| glyph.width <= most;
    let line: Row = line.iter().filter(fits).copied().collect();
    let mut rows = Vec::new();
    let mut rest = &line[..];
    loop {
        let mut used = 0;
        let fitting = rest.iter().take_while(|glyph| {
            used += glyph.width;
            used <= most
        });
        let mut end = fitting.count();
        if let (false, Some(begin)) = (keep_spaces, rest.get(..=end)) {
            let is_word = |at: usize| begin[..at].iter().any(|glyph| glyph.c != ' ');
            let space = begin.iter().rposition(|glyph| glyph.c == ' ');
            end = space.filter(|&at| is_word(at)).unwrap_or(end);
        }
        let (row, after) = rest.split_at(end);
        rest = after;
        let mut row = row.to_vec();
        if !keep_spaces {
            trim_trailing_spaces(&mut row);
            let spaces = rest.iter().take_while(|glyph| glyph.c == ' ');
            rest = &rest[spaces.count()..];
        }
        rows.push(row);
        if rest.is_empty() {
            return rows;
        }
    }
}

pub(super) fn trim_trailing_spaces(row: &mut Row) {
    while row.last().is_some_and(|last| last.c == ' ') {
        row.pop();
    }
}

/// Converts a row to text with escape sequences for its styles. Drops zero-width characters at the
/// start, because terminals would join them to another row.
pub(super) fn render_row(glyphs: &[Glyph]) -> String {
    let mut text = String::new();
    let mut style = Style::new();
    for glyph in glyphs.iter().skip_while(|glyph| glyph.width == 0) {
        if glyph.style != style {
            text.push_str(&style.render_reset().to_string());
            text.push_str(&glyph.style.render().to_string());
            style = glyph.style;
        }
        text.push(glyph.c);
    }
    text.push_str(&style.render_reset().to_string());
    text
}
