//! Renders a block of Markdown as rows of a terminal.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, HeadingLevel, OffsetIter, Options, Parser, Tag, TagEnd};

use super::{
    inline::{Glyph, glyphs, paint, trim_end, width, wrap},
    table::Table,
};

/// Indentation of list items and code in columns.
const INDENT: usize = 2;

/// Maximum depth of list items and quotations. Deeper ones are laid out without indentation.
const MAX_DEPTH: usize = 16;

/// The supported extensions of Markdown.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// The styles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    code: Style,
    link: Style,
    heading: Style,
    faint: Style,
}

impl Look {
    /// Creates the styles with or without colours.
    pub(crate) fn new(colours: bool) -> Self {
        let colour = |colour: AnsiColor| {
            if colours {
                colour.on_default()
            } else {
                Style::new()
            }
        };
        Self {
            code: colour(AnsiColor::Cyan),
            link: colour(AnsiColor::Blue).underline(),
            heading: colour(AnsiColor::Magenta).bold(),
            faint: if colours {
                Style::new().dimmed()
            } else {
                Style::new()
            },
        }
    }

    fn of_heading(self, level: HeadingLevel) -> Style {
        match level {
            HeadingLevel::H1 | HeadingLevel::H2 => self.heading.underline(),
            _ => self.heading,
        }
    }
}

/// Returns the rows of a block, each at most `most` columns wide.
pub(super) fn rows(block: &str, most: usize, look: Look) -> Vec<String> {
    let rows = Layout::new(block, look).blocks(most.max(1), 0);
    rows.iter().map(|row| paint(row)).collect()
}

/// Returns the start of the second block in `text`. Items of a list are blocks too, so that a long
/// list does not stay open.
pub(super) fn next_block(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut blocks = 0;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::List(_)) | Event::End(TagEnd::List(_)) if depth == 0 => continue,
            Event::End(_) => {
                depth -= 1;
                continue;
            }
            _ if depth == 0 => blocks += 1,
            _ => {}
        }
        if blocks == 2 {
            return Some(text[..range.start].rfind('\n').map_or(0, |end| end + 1));
        }
        depth += i32::from(matches!(event, Event::Start(_)));
    }
    None
}

/// Lays out code, which keeps its spaces and breaks at the end of a row.
fn code_rows(line: &str, most: usize, look: Look) -> Vec<Vec<Glyph>> {
    let indent = if most > 4 * INDENT { INDENT } else { 0 };
    let mut rows: Vec<Vec<Glyph>> = vec![Vec::new()];
    let mut used = indent;
    for glyph in glyphs(line, look.code).filter(|glyph| glyph.width <= most - indent) {
        if used + glyph.width > most {
            rows.push(Vec::new());
            used = indent;
        }
        used += glyph.width;
        if let Some(row) = rows.last_mut() {
            if row.is_empty() {
                row.extend(glyphs(&" ".repeat(indent), Style::new()));
            }
            row.push(glyph);
        }
    }
    rows
}

type Row = Vec<Glyph>;

/// The layout of one block.
struct Layout<'s> {
    source: &'s str,
    events: OffsetIter<'s>,
    look: Look,
}

impl<'s> Layout<'s> {
    fn new(source: &'s str, look: Look) -> Self {
        Self {
            source,
            events: Parser::new_ext(source, OPTIONS).into_offset_iter(),
            look,
        }
    }

    /// Lays out the blocks up to the end of the list item or quotation that contains them.
    fn blocks(&mut self, room: usize, depth: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut text = Text::new(self.look);
        // Numbers of the open lists. `None` is a bullet list.
        let mut lists: Vec<Option<u64>> = Vec::new();
        // Open blocks that are laid out here.
        let mut open = 0;
        while let Some((event, range)) = self.events.next() {
            if is_inline(&event) {
                text.take(event);
                continue;
            }
            text.end_line(room, &mut rows);
            // A blank line in the source is a blank row.
            if !matches!(event, Event::End(_))
                && rows.last().is_some_and(|row: &Row| !row.is_empty())
                && ends_with_blank_line(&self.source[..range.start])
            {
                rows.push(Vec::new());
            }
            match event {
                Event::Rule => rows.push(glyphs(&"─".repeat(room), self.look.faint).collect()),
                Event::Start(Tag::List(first)) => lists.push(first),
                Event::End(TagEnd::List(_)) => {
                    lists.pop();
                }
                Event::Start(Tag::Item) if depth < MAX_DEPTH => {
                    let mark = next_mark(&mut lists);
                    let first: Row = glyphs(&mark, self.look.faint).collect();
                    let further: Row = glyphs(&" ".repeat(width(&first)), Style::new()).collect();
                    rows.extend(self.contained(&first, &further, room, depth));
                }
                Event::Start(Tag::BlockQuote(_)) if depth < MAX_DEPTH => {
                    let bar: Row = glyphs("│ ", self.look.faint).collect();
                    rows.extend(self.contained(&bar, &bar, room, depth));
                }
                Event::Start(Tag::CodeBlock(_)) => rows.extend(self.code(room)),
                Event::Start(Tag::Table(_)) => {
                    rows.extend(self.table().rows(room, self.look.faint));
                }
                Event::Start(tag) => {
                    open += 1;
                    if let Tag::Heading { level, .. } = tag {
                        text.styles.push(self.look.of_heading(level));
                    }
                }
                Event::End(_) if open == 0 => break,
                Event::End(end) => {
                    open -= 1;
                    if matches!(end, TagEnd::Heading(_)) {
                        text.styles.pop();
                    }
                }
                _ => {}
            }
        }
        text.end_line(room, &mut rows);
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Lays out a list item or quotation. Its indentation is left out where it leaves no room.
    fn contained(&mut self, first: &Row, further: &Row, room: usize, depth: usize) -> Vec<Row> {
        let indent = width(first);
        if room < indent + 4 {
            return self.blocks(room, depth + 1);
        }
        let mut rows = self.blocks(room - indent, depth + 1);
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        for (number, row) in rows.iter_mut().enumerate() {
            let prefix = if number == 0 { first } else { further };
            row.splice(0..0, prefix.iter().copied());
            trim_end(row);
        }
        rows
    }

    fn code(&mut self, room: usize) -> Vec<Row> {
        let mut code = String::new();
        for (event, _) in self.events.by_ref() {
            match event {
                Event::Text(text) => code.push_str(&text),
                _ => break,
            }
        }
        let lines = code.lines();
        lines
            .flat_map(|line| code_rows(line, room, self.look))
            .collect()
    }

    fn table(&mut self) -> Table {
        let mut table = Table::default();
        let mut text = Text::new(self.look);
        let mut cells = Vec::new();
        for (event, _) in self.events.by_ref() {
            match event {
                Event::End(TagEnd::TableCell) => cells.push(std::mem::take(&mut text.line)),
                Event::End(TagEnd::TableHead) => table.head = std::mem::take(&mut cells),
                Event::End(TagEnd::TableRow) => table.body.push(std::mem::take(&mut cells)),
                Event::End(TagEnd::Table) => break,
                event => text.take(event),
            }
        }
        table
    }
}

/// Returns the mark of the next list item.
fn next_mark(lists: &mut [Option<u64>]) -> String {
    match lists.last_mut() {
        Some(Some(number)) => {
            let mark = format!("{number}. ");
            *number += 1;
            mark
        }
        _ => "• ".to_owned(),
    }
}

fn is_inline(event: &Event<'_>) -> bool {
    match event {
        Event::Start(tag) => is_inline(&Event::End(tag.to_end())),
        Event::End(end) => matches!(
            end,
            TagEnd::Emphasis
                | TagEnd::Strong
                | TagEnd::Strikethrough
                | TagEnd::Link
                | TagEnd::Image
        ),
        Event::Rule => false,
        _ => true,
    }
}

/// Styled text that is not wrapped yet.
struct Text {
    look: Look,
    line: Row,
    styles: Vec<Style>,
    /// Open links: address and start of the text.
    links: Vec<(String, usize)>,
}

impl Text {
    fn new(look: Look) -> Self {
        Self {
            look,
            line: Vec::new(),
            styles: vec![Style::new()],
            links: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>) {
        let style = self.styles.last().copied().unwrap_or_default();
        match event {
            Event::Code(text) => self.add(&text, over(style, self.look.code)),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.add(&text, style),
            Event::SoftBreak | Event::HardBreak => self.add("\n", style),
            Event::TaskListMarker(done) => self.add(if done { "☑ " } else { "☐ " }, style),
            Event::Start(Tag::Emphasis) => self.styles.push(style.italic()),
            Event::Start(Tag::Strong) => self.styles.push(style.bold()),
            Event::Start(Tag::Strikethrough) => self.styles.push(style.strikethrough()),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.styles.push(over(style, self.look.link));
                self.links.push((dest_url.into_string(), self.line.len()));
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => {
                self.styles.pop();
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                self.styles.pop();
                self.add_address();
            }
            _ => {}
        }
    }

    fn add(&mut self, text: &str, style: Style) {
        self.line.extend(glyphs(text, style));
    }

    /// Adds the address of a link, which must be visible, because a model may hide it.
    fn add_address(&mut self) {
        let Some((address, from)) = self.links.pop() else {
            return;
        };
        let shown = self.line.get(from..).unwrap_or_default();
        let shown: String = shown.iter().map(|glyph| glyph.c).collect();
        if shown != address && address != format!("mailto:{shown}") && !address.is_empty() {
            let style = self.styles.last().copied().unwrap_or_default();
            self.add(&format!(" ({address})"), over(style, self.look.faint));
        }
    }

    fn end_line(&mut self, room: usize, rows: &mut Vec<Row>) {
        let mut line = std::mem::take(&mut self.line);
        while line.last().is_some_and(|last| last.c == '\n') {
            line.pop();
        }
        if !line.is_empty() {
            let lines = line.split(|glyph| glyph.c == '\n');
            rows.extend(lines.flat_map(|line| wrap(line, room)));
        }
    }
}

/// Combines two styles. The second one takes precedence.
fn over(base: Style, style: Style) -> Style {
    let effects = base.get_effects() | style.get_effects();
    base.fg_color(style.get_fg_color().or(base.get_fg_color()))
        .effects(effects)
}

/// Returns whether the last complete line is blank.
pub(super) fn ends_with_blank_line(text: &str) -> bool {
    let mut lines = text.rsplit('\n');
    // The rest of the line belongs to the next part.
    let own = lines.next().unwrap_or_default();
    own.trim_matches([' ', '>']).is_empty()
        && lines
            .next()
            .is_some_and(|line| line.trim_matches([' ', '>']).is_empty())
}

#[cfg(test)]
#[path = "rows_tests.rs"]
pub(super) mod tests;
