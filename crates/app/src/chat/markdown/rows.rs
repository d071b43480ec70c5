//! Renders a block of Markdown as rows of a terminal.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::{
    inline::{Glyph, glyphs, paint, width, wrap},
    table::Table,
};

/// Indentation of list items and code in columns.
const INDENT: usize = 2;

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
}

/// Returns the rows of a block, each at most `most` columns wide.
pub(super) fn rows(block: &str, most: usize, look: Look) -> Vec<String> {
    let rows = Layout::new(most.max(1), look).of(block);
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

/// A list item or quotation, which indents its content.
struct Container {
    first: Vec<Glyph>,
    further: Vec<Glyph>,
    /// The first row was written.
    begun: bool,
}

/// The layout of one block.
struct Layout {
    most: usize,
    look: Look,
    rows: Vec<Vec<Glyph>>,
    containers: Vec<Container>,
    /// Numbers of the open lists. `None` is a bullet list.
    lists: Vec<Option<u64>>,
    styles: Vec<Style>,
    line: Vec<Glyph>,
    /// Open links: address and start of the text.
    links: Vec<(String, usize)>,
    table: Option<Table>,
    row: Vec<Vec<Glyph>>,
    /// The text of the open code block.
    code: Option<String>,
}

impl Layout {
    fn new(most: usize, look: Look) -> Self {
        Self {
            most,
            look,
            rows: Vec::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            styles: vec![Style::new()],
            line: Vec::new(),
            links: Vec::new(),
            table: None,
            row: Vec::new(),
            code: None,
        }
    }

    fn of(mut self, raw: &str) -> Vec<Vec<Glyph>> {
        for (event, range) in Parser::new_ext(raw, OPTIONS).into_offset_iter() {
            // A blank line in the source is a blank row.
            if matches!(event, Event::Start(_) | Event::Rule)
                && self.line.is_empty()
                && self.table.is_none()
                && self.rows.last().is_some_and(|row| !is_blank(row))
                && ends_with_blank_line(raw.get(..range.start).unwrap_or_default())
            {
                self.row(Vec::new());
            }
            self.take(event);
        }
        self.end_line();
        while self.rows.last().is_some_and(|row| is_blank(row)) {
            self.rows.pop();
        }
        self.rows
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.text(&text, self.style()),
            },
            Event::Code(text) => {
                let style = over(self.style(), self.look.code);
                self.text(&text, style);
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for (index, line) in html.split('\n').enumerate() {
                    if index > 0 {
                        self.end_line();
                    }
                    self.text(line, self.style());
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if self.table.is_some() {
                    self.text(" ", self.style());
                } else {
                    self.break_line();
                }
            }
            Event::Rule => {
                let room = self.room();
                let rule = glyphs(&"─".repeat(room), self.look.faint).collect();
                self.row(rule);
            }
            Event::TaskListMarker(done) => {
                self.text(if done { "☑ " } else { "☐ " }, self.style());
            }
            // These extensions of the parser are off.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text, self.style());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                let style = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => self.look.heading.underline(),
                    _ => self.look.heading,
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.end_line();
                let bar: Vec<Glyph> = glyphs("│ ", self.look.faint).collect();
                self.contain(bar.clone(), bar);
            }
            Tag::CodeBlock(_) => {
                self.end_line();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number += 1;
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                let first: Vec<Glyph> = glyphs(&mark, self.look.faint).collect();
                let indent = " ".repeat(width(&first));
                self.contain(first, glyphs(&indent, Style::new()).collect());
            }
            Tag::Emphasis => self.styles.push(self.style().italic()),
            Tag::Strong => self.styles.push(self.style().bold()),
            Tag::Strikethrough => self.styles.push(self.style().strikethrough()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(over(self.style(), self.look.link));
                self.links.push((dest_url.into_string(), self.line.len()));
            }
            Tag::Table(_) => {
                self.end_line();
                self.table = Some(Table::default());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::Heading(_) => {
                self.end_line();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_line();
                if let Some(container) = self.containers.last()
                    && !container.begun
                {
                    // An empty item.
                    self.row(Vec::new());
                }
                self.containers.pop();
            }
            TagEnd::CodeBlock => {
                let room = self.room();
                for line in self.code.take().unwrap_or_default().lines() {
                    for row in code_rows(line, room, self.look) {
                        self.row(row);
                    }
                }
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((address, from)) = self.links.pop() {
                    let written = self.line.get(from..).unwrap_or_default();
                    let text: String = written.iter().map(|glyph| glyph.c).collect();
                    let is_said = text == address || address == format!("mailto:{text}");
                    // The address must be visible, because a model may hide it.
                    if !is_said && !address.is_empty() {
                        self.text(
                            &format!(" ({address})"),
                            over(self.style(), self.look.faint),
                        );
                    }
                }
            }
            TagEnd::TableCell => self.row.push(std::mem::take(&mut self.line)),
            TagEnd::TableHead => {
                let head = std::mem::take(&mut self.row);
                if let Some(table) = &mut self.table {
                    table.head = head;
                }
            }
            TagEnd::TableRow => {
                let row = std::mem::take(&mut self.row);
                if let Some(table) = &mut self.table {
                    table.body.push(row);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for row in table.rows(self.room(), self.look.faint) {
                        self.row(row);
                    }
                }
            }
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str, style: Style) {
        self.line.extend(glyphs(text, style));
    }

    fn contain(&mut self, first: Vec<Glyph>, further: Vec<Glyph>) {
        self.containers.push(Container {
            first,
            further,
            begun: false,
        });
    }

    /// Returns the columns inside the containers.
    fn room(&self) -> usize {
        let taken: usize = self.containers.iter().map(|it| width(&it.further)).sum();
        if taken + 4 > self.most {
            // Deep nesting: the indentation is cut.
            return self.most.min(4);
        }
        self.most - taken
    }

    fn end_line(&mut self) {
        if !self.line.is_empty() {
            self.break_line();
        }
    }

    fn break_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        for row in wrap(&line, self.room()) {
            self.row(row);
        }
    }

    fn row(&mut self, content: Vec<Glyph>) {
        let mut row = Vec::new();
        for container in &mut self.containers {
            let begins = !std::mem::replace(&mut container.begun, true);
            row.extend_from_slice(if begins {
                &container.first
            } else {
                &container.further
            });
        }
        let room = self.most.saturating_sub(width(&content));
        let mut used = 0;
        row.retain(|glyph| {
            used += glyph.width;
            used <= room
        });
        row.extend(content);
        while row.last().is_some_and(|last| last.c == ' ') {
            row.pop();
        }
        self.rows.push(row);
    }
}

/// Combines two styles. The second one takes precedence.
fn over(base: Style, style: Style) -> Style {
    let effects = base.get_effects() | style.get_effects();
    base.fg_color(style.get_fg_color().or(base.get_fg_color()))
        .effects(effects)
}

/// Returns whether a row contains only indentation.
fn is_blank(row: &[Glyph]) -> bool {
    row.iter().all(|glyph| matches!(glyph.c, ' ' | '│'))
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
