//! Renders a block of Markdown, such as a paragraph or a list, as rows of a terminal.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, HeadingLevel, OffsetIter, Options, Parser, Tag, TagEnd};

use super::{
    styled_rows::{Row, glyphs_width, render_row, text_to_glyphs, trim_trailing_spaces, wrap_line},
    table::MarkdownTable,
};

/// Maximum depth of list items and quotations. Deeper ones are laid out without indentation.
const MAX_DEPTH: usize = 16;

/// Markdown extensions that the parser accepts in answers.
const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// Terminal styles of Markdown elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkdownStyles {
    code: Style,
    link: Style,
    heading: Style,
    faint: Style,
}

impl MarkdownStyles {
    /// Creates the styles for a terminal with or without colours.
    pub(crate) fn new(colours: bool) -> Self {
        let style = |style: Style| if colours { style } else { Style::new() };
        Self {
            code: style(AnsiColor::Cyan.on_default()),
            link: style(AnsiColor::Blue.on_default()).underline(),
            heading: style(AnsiColor::Magenta.on_default()).bold(),
            faint: style(Style::new().dimmed()),
        }
    }
}

/// Renders a Markdown block as rows of at most `most` columns.
pub(super) fn render_block(block: &str, most: usize, look: MarkdownStyles) -> Vec<String> {
    let mut layout = BlockLayout {
        source: block,
        events: Parser::new_ext(block, OPTIONS).into_offset_iter(),
        look,
        line: Vec::new(),
        styles: vec![Style::new()],
        links: Vec::new(),
    };
    let rows = layout.lay_out_blocks(most.max(1), 0);
    rows.iter().map(|row| render_row(row)).collect()
}

/// Returns the byte offset of the second block in `text`, or `None` if there is only one block.
/// List items count as blocks, so that a long list is drawn item by item.
pub(super) fn find_second_block(text: &str) -> Option<usize> {
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

/// State of the layout of one Markdown block.
struct BlockLayout<'s> {
    source: &'s str,
    events: OffsetIter<'s>,
    look: MarkdownStyles,
    /// Text of the current paragraph that is not wrapped into rows yet.
    line: Row,
    styles: Vec<Style>,
    /// Open links of `line`: the address, and the index in `line` at which the link text starts.
    links: Vec<(String, usize)>,
}

impl BlockLayout<'_> {
    /// Lays out blocks as rows of at most `room` columns, up to the end of the list item or
    /// quotation that contains them. At nesting depth 0, lays out all blocks.
    fn lay_out_blocks(&mut self, room: usize, depth: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        // Number of the next item of each open list. `None` for a list with bullets.
        let mut lists: Vec<Option<u64>> = Vec::new();
        // Number of blocks that have started but not ended at this nesting depth.
        let mut open = 0;
        while let Some((event, range)) = self.events.next() {
            if is_inline_event(&event) {
                self.add_inline_event(event);
                continue;
            }
            self.wrap_current_line(room, &mut rows);
            // A blank line in the Markdown source becomes a blank row.
            if !matches!(event, Event::End(_))
                && rows.last().is_some_and(|row: &Row| !row.is_empty())
                && ends_with_blank_line(&self.source[..range.start])
            {
                rows.push(Vec::new());
            }
            match event {
                Event::Rule => rows.push(text_to_glyphs(&"─".repeat(room), self.look.faint)),
                Event::Start(Tag::List(first)) => lists.push(first),
                Event::End(TagEnd::List(_)) => {
                    lists.pop();
                }
                Event::Start(Tag::Item) if depth < MAX_DEPTH => {
                    let first = text_to_glyphs(&next_list_marker(&mut lists), self.look.faint);
                    let further = text_to_glyphs(&" ".repeat(glyphs_width(&first)), Style::new());
                    rows.extend(self.lay_out_indented_block(&first, &further, room, depth));
                }
                Event::Start(Tag::BlockQuote(_)) if depth < MAX_DEPTH => {
                    let bar = text_to_glyphs("│ ", self.look.faint);
                    rows.extend(self.lay_out_indented_block(&bar, &bar, room, depth));
                }
                Event::Start(Tag::CodeBlock(_)) => rows.extend(self.lay_out_code_block(room)),
                Event::Start(Tag::Table(_)) => {
                    rows.extend(self.parse_table().render_rows(room, self.look.faint));
                }
                Event::Start(tag) => {
                    open += 1;
                    if let Tag::Heading { level, .. } = tag {
                        let style = self.look.heading;
                        self.styles.push(match level {
                            HeadingLevel::H1 | HeadingLevel::H2 => style.underline(),
                            _ => style,
                        });
                    }
                }
                Event::End(_) if open == 0 => break,
                Event::End(end) => {
                    open -= 1;
                    if matches!(end, TagEnd::Heading(_)) {
                        self.styles.pop();
                    }
                }
                _ => {}
            }
        }
        self.wrap_current_line(room, &mut rows);
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Lays out a list item or quotation. Puts the prefix `first` before its first row and
    /// `further` before the other rows. Omits the prefixes if fewer than 4 columns would remain for
    /// the text.
    fn lay_out_indented_block(
        &mut self,
        first: &Row,
        further: &Row,
        room: usize,
        depth: usize,
    ) -> Vec<Row> {
        let indent = glyphs_width(first);
        if room < indent + 4 {
            return self.lay_out_blocks(room, depth + 1);
        }
        let mut rows = self.lay_out_blocks(room - indent, depth + 1);
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        for (number, row) in rows.iter_mut().enumerate() {
            let prefix = if number == 0 { first } else { further };
            row.splice(0..0, prefix.iter().copied());
            trim_trailing_spaces(row);
        }
        rows
    }

    /// Lays out a code block. Keeps spaces, and breaks long lines at the terminal width.
    fn lay_out_code_block(&mut self, room: usize) -> Vec<Row> {
        let mut code = String::new();
        while let Some((Event::Text(text), _)) = self.events.next() {
            code.push_str(&text);
        }
        let indent = text_to_glyphs(if room > 8 { "  " } else { "" }, Style::new());
        let mut rows = Vec::new();
        for line in code.lines() {
            let line = text_to_glyphs(line, self.look.code);
            for mut row in wrap_line(&line, room - indent.len(), true) {
                if !row.is_empty() {
                    row.splice(0..0, indent.iter().copied());
                }
                rows.push(row);
            }
        }
        rows
    }

    fn parse_table(&mut self) -> MarkdownTable {
        let mut table = MarkdownTable::default();
        let mut cells = Vec::new();
        while let Some((event, _)) = self.events.next() {
            match event {
                Event::Start(Tag::TableHead) => self.styles.push(Style::new().bold()),
                Event::End(TagEnd::TableCell) => cells.push(std::mem::take(&mut self.line)),
                Event::End(TagEnd::TableHead) => {
                    self.styles.pop();
                    table.head = std::mem::take(&mut cells);
                }
                Event::End(TagEnd::TableRow) => table.body.push(std::mem::take(&mut cells)),
                Event::End(TagEnd::Table) => break,
                event => self.add_inline_event(event),
            }
        }
        table
    }

    fn add_inline_event(&mut self, event: Event<'_>) {
        let style = self.styles.last().copied().unwrap_or_default();
        match event {
            Event::Code(text) => self.add_text(&text, combine_styles(style, self.look.code)),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.add_text(&text, style);
            }
            Event::SoftBreak | Event::HardBreak => self.add_text("\n", style),
            Event::TaskListMarker(done) => self.add_text(if done { "☑ " } else { "☐ " }, style),
            Event::Start(Tag::Emphasis) => self.styles.push(style.italic()),
            Event::Start(Tag::Strong) => self.styles.push(style.bold()),
            Event::Start(Tag::Strikethrough) => self.styles.push(style.strikethrough()),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.styles.push(combine_styles(style, self.look.link));
                self.links.push((dest_url.into_string(), self.line.len()));
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => {
                self.styles.pop();
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                self.styles.pop();
                self.add_link_address();
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str, style: Style) {
        self.line.extend(text_to_glyphs(text, style));
    }

    /// Adds the address of a link after its text, so that the model cannot hide the link target.
    fn add_link_address(&mut self) {
        let Some((address, from)) = self.links.pop() else {
            return;
        };
        let shown = self.line.get(from..).unwrap_or_default();
        let shown: String = shown.iter().map(|glyph| glyph.c).collect();
        if shown != address && address != format!("mailto:{shown}") && !address.is_empty() {
            let style = self.styles.last().copied().unwrap_or_default();
            self.add_text(
                &format!(" ({address})"),
                combine_styles(style, self.look.faint),
            );
        }
    }

    fn wrap_current_line(&mut self, room: usize, rows: &mut Vec<Row>) {
        let mut line = std::mem::take(&mut self.line);
        while line.last().is_some_and(|last| last.c == '\n') {
            line.pop();
        }
        if !line.is_empty() {
            let lines = line.split(|glyph| glyph.c == '\n');
            rows.extend(lines.flat_map(|line| wrap_line(line, room, false)));
        }
    }
}

/// Returns the bullet or number of the next item of the innermost list.
fn next_list_marker(lists: &mut [Option<u64>]) -> String {
    match lists.last_mut() {
        Some(Some(number)) => {
            *number += 1;
            format!("{}. ", *number - 1)
        }
        _ => "• ".to_owned(),
    }
}

/// Returns whether a parser event is part of the text of a block, such as emphasis or a link.
fn is_inline_event(event: &Event<'_>) -> bool {
    let end = match event {
        Event::Start(tag) => tag.to_end(),
        Event::End(end) => *end,
        event => return !matches!(event, Event::Rule),
    };
    matches!(
        end,
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image
    )
}

/// Combines two styles. Settings of `style` take precedence over settings of `base`.
fn combine_styles(base: Style, style: Style) -> Style {
    let effects = base.get_effects() | style.get_effects();
    base.fg_color(style.get_fg_color().or(base.get_fg_color()))
        .effects(effects)
}

/// Returns whether `text` ends with a blank line, which may end a Markdown block.
pub(super) fn ends_with_blank_line(text: &str) -> bool {
    let mut lines = text.rsplit('\n');
    // `text` ends with a blank line if two parts are blank: the part after its last line break, and
    // the line that ends at this line break. The mark `>` of a quotation counts as blank.
    let own = lines.next().unwrap_or_default();
    own.trim_matches([' ', '>']).is_empty()
        && lines
            .next()
            .is_some_and(|line| line.trim_matches([' ', '>']).is_empty())
}

#[cfg(test)]
#[path = "block_layout_tests.rs"]
pub(super) mod tests;
