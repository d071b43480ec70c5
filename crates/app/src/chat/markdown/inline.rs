//! Styled characters and line wrapping.

use anstyle::Style;
use unicode_width::UnicodeWidthChar as _;

use crate::terminal::is_control;

/// A character on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glyph {
    pub(super) c: char,
    /// Width in columns.
    pub(super) width: usize,
    pub(super) style: Style,
}

/// Converts text to glyphs without control characters except line breaks. Tabs become spaces.
pub(super) fn glyphs(text: &str, style: Style) -> impl Iterator<Item = Glyph> {
    text.chars().flat_map(move |c| {
        let (c, times) = match c {
            '\t' => (' ', 4),
            '\n' => (c, 1),
            c if is_control(c) => (c, 0),
            c => (c, 1),
        };
        let glyph = Glyph {
            c,
            width: c.width().unwrap_or(0),
            style,
        };
        std::iter::repeat_n(glyph, times)
    })
}

/// Returns the width in columns.
pub(super) fn width(glyphs: &[Glyph]) -> usize {
    glyphs.iter().map(|glyph| glyph.width).sum()
}

/// Wraps a line at spaces, and longer words at the end of a row. Every row has at most `most`
/// columns. An empty line is one empty row.
pub(super) fn wrap(line: &[Glyph], most: usize) -> Vec<Vec<Glyph>> {
    let mut rows: Vec<Vec<Glyph>> = vec![Vec::new()];
    let mut used = 0;
    let mut rest = line;
    while !rest.is_empty() {
        let is_space = rest[0].c == ' ';
        let end = rest.iter().position(|it| (it.c == ' ') != is_space);
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        let wide = width(part);
        let fits = used + wide <= most;
        if is_space {
            let begins_row = used == 0 && rows.len() > 1;
            // Spaces at a break are dropped.
            if fits && !begins_row {
                push(&mut rows, part);
                used += wide;
            } else if !fits {
                rows.push(Vec::new());
                used = 0;
            }
            continue;
        }
        if !fits && used > 0 && wide <= most {
            rows.push(Vec::new());
            used = 0;
        }
        for glyph in part.iter().filter(|glyph| glyph.width <= most) {
            if used + glyph.width > most {
                rows.push(Vec::new());
                used = 0;
            }
            push(&mut rows, std::slice::from_ref(glyph));
            used += glyph.width;
        }
    }
    rows.iter_mut().for_each(trim_end);
    if rows.len() > 1 && rows.last().is_some_and(Vec::is_empty) {
        rows.pop();
    }
    rows
}

/// Removes the spaces at the end of a row.
pub(super) fn trim_end(row: &mut Vec<Glyph>) {
    while row.last().is_some_and(|last| last.c == ' ') {
        row.pop();
    }
}

fn push(rows: &mut [Vec<Glyph>], glyphs: &[Glyph]) {
    if let Some(row) = rows.last_mut() {
        row.extend_from_slice(glyphs);
    }
}

/// Returns a row with escape sequences. A joining character at its start is dropped, because
/// terminals would join it to another row.
pub(super) fn paint(glyphs: &[Glyph]) -> String {
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
